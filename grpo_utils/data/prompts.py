"""A question as a prompt: messages for a chat model, text for a base model."""

from collections.abc import Sequence

SYSTEM_PROMPT = (
    "Think first, then answer, in exactly this form: "
    "<reasoning>your thinking</reasoning><answer>the result alone</answer>"
)


def chat_prompt(
    question: str, system_prompt: str | None = SYSTEM_PROMPT, examples: Sequence[tuple[str, str]] = ()
) -> list[dict]:
    """A question as the messages that TRL renders with the model's chat template.

    Args:
        question: the question.
        system_prompt: the first message; None or "" for none.
        examples: (question, completion) pairs, added as earlier turns: a few-shot prompt.

    >>> chat_prompt("What is 2 + 2?", system_prompt=None)
    [{'role': 'user', 'content': 'What is 2 + 2?'}]
    >>> [turn["role"] for turn in chat_prompt("What is 2 + 2?", examples=[("What is 1 + 1?", "2")])]
    ['system', 'user', 'assistant', 'user']
    """
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    pairs = [(("user", asked), ("assistant", said)) for asked, said in examples]
    shown = [{"role": role, "content": text} for pair in pairs for role, text in pair]
    return [*system, *shown, {"role": "user", "content": question}]
