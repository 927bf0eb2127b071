# Generated from grpo_utils 0.1.0, grpo_utils/run/texts.py; the same in every template.
"""The text of a completion, which is a string, or a list of messages if the prompt was one."""


def messages_of(completion: object) -> list[dict]:
    """The messages of a completion: TRL passes a list of messages for chat prompts, and a text otherwise."""
    if isinstance(completion, str):
        return [{"role": "assistant", "content": completion}]
    return [m for m in completion if isinstance(m, dict)] if isinstance(completion, list | tuple) else []


def text_of(completion: object) -> str:
    """The text of the last message of the model (or without a role). Tool and user messages are ignored.

    >>> text_of([{"role": "assistant", "content": "42"}, {"role": "tool", "content": "41"}]), text_of("42")
    ('42', '42')
    """
    own = [m for m in messages_of(completion) if m.get("role") in ("assistant", None)]
    return message_text(own[-1]) if own else ""


def message_text(message: dict) -> str:
    """The text of a message; if the content has parts (images, texts), only the texts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type", "text") == "text"]
    return "".join(text for text in texts if isinstance(text, str))
