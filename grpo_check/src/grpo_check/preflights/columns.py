"""Which column of a dataset is meant by another name: by what it has, not by how it is spelled."""

from collections.abc import Sequence
from difflib import get_close_matches

#: Names that people give to the question, to the gold answer, and to a whole chat with the reply in it.
QUESTIONS = ("question", "problem", "query", "instruction", "input", "prompts", "user_prompt", "task")
ANSWERS = ("answer", "solution", "ground_truth", "final_answer", "gold", "gold_answer", "target", "label", "reference")
ANSWERS += ("expected", "expected_answer", "reference_answer", "answers", "solutions", "output")
#: Names of the possible answers to a question of multiple choice.
CHOICES = ("choices", "options", "candidates", "alternatives")
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
    return next(iter(get_close_matches(wanted, there, n=1, cutoff=0.8)), "")
