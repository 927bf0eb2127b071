"""The text of a completion, which is a string, or a list of messages if the prompt was one."""


def messages_of(completion: object) -> list[dict]:
    """The messages of a completion: TRL passes a list of messages for chat prompts, and a text otherwise."""
    if isinstance(completion, str):
        return [{"role": "assistant", "content": completion}]
    return [m for m in completion if isinstance(m, dict)] if isinstance(completion, list | tuple) else []


def own_messages(completion: object) -> list[dict]:
    """The messages of a completion that the model wrote: those of the assistant, and those without a role."""
    return [m for m in messages_of(completion) if m.get("role") in ("assistant", None)]


def completion_text(completion: object) -> str:
    """The text of a completion: the string itself, or the text of its last assistant message ("" if there is none).

    Only the model's text is read: messages from tools, users and the system are ignored, even after the model's last
    message. A message without a role counts as the model's. If the content has parts, the text parts are read.

    >>> completion_text([{"role": "assistant", "content": "42"}, {"role": "tool", "content": "43"}])
    '42'
    >>> completion_text([{"role": "assistant", "content": None}]), completion_text([{"role": "tool", "content": "43"}])
    ('', '')
    """
    own = own_messages(completion)
    return message_text(own[-1]) if own else ""


def message_text(message: dict) -> str:
    """The text of a message; if the content has parts (images, texts), only the texts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
