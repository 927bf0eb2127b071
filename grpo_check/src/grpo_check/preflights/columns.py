"""Which column of a dataset is meant by another name: by what it has, not by how it is spelled."""

from collections.abc import Sequence

from grpo_core.errors import did_you_mean

#: Names that people give to the question, to the gold answer, and to a whole chat with the reply in it.
QUESTIONS = ("question", "problem", "query", "instruction", "input", "prompts", "user_prompt", "task")
ANSWERS = ("answer", "solution", "ground_truth", "final_answer", "gold", "gold_answer", "target", "label", "reference")
ANSWERS += ("expected", "expected_answer", "reference_answer", "answers", "solutions", "output")
CHATS = ("messages", "conversations", "conversation", "chat")


def meant_by(wanted: str, there: Sequence[str]) -> str:
    """The column that has what another name says; "" if none does.

    >>> meant_by("solution", ["messages", "ground_truth"]), meant_by("solution", ["messages"])
    ('ground_truth', '')
    """
    if wanted in ANSWERS:
        return next((name for name in ANSWERS if name in there), "")
    if wanted in ("prompt", *QUESTIONS):
        return next((name for name in QUESTIONS if name in there), "")
    hint = did_you_mean(wanted, there, 0.8)
    return hint.split("'")[1] if hint else ""
