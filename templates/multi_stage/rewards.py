"""The rewards. CHANGE THIS FILE FIRST: the model learns what you reward.

A reward gets the completions of a batch and, by name, every column of `data.py` as a list of the same length. It
returns one number for each completion. To add a reward, write a function and add it with its weight to `REWARDS`.
"""

import re

from grpo_core.training.answers import same_number, same_text
from grpo_core.training.texts import completion_text

#: If each answer is one of a few labels, list them, such as ("billing", "delivery"): the prompt then names them.
LABELS: tuple[str, ...] = ()
#: As numbers, "1,250", "$1250.00" and "1250 apples" are 1250, and words are not numbers. As texts, case, spaces and a
#: final period do not matter. If your answers are words but not labels, write same_text here.
same_answer = same_text if LABELS else same_number

# "\s*+" never gives blanks back, so that PART is not blank and a long run of blanks is read once.
PART = r"\s*+((?:(?!</?(?:reasoning|answer)>).)+)"  # text that is not blank and has no tag
FORMAT = re.compile(rf"(?<!\s)\s*+<reasoning>{PART}</reasoning>\s*+<answer>{PART}</answer>\s*+", re.DOTALL)
ANSWER = re.compile(rf"<answer>{PART}</answer>\s*+", re.DOTALL)
TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")
TAG = re.compile(f"({'|'.join(TAGS)})")
#: The form of an answer, as data.py asks for it, and as test_rewards.py fills it in.
FORM = "<reasoning>{thinking}</reasoning><answer>{result}</answer>"


def answer_in(text: str) -> str | None:
    """The answer in a correctly formatted text, else None."""
    match = FORMAT.fullmatch(text)
    return match[2].strip() if match else None


def tagged_answer(text: str) -> str | None:
    """The text in the only <answer>…</answer> if it ends the text, else None, whatever comes before it."""
    _, opening, rest = text.partition(TAGS[2])
    match = ANSWER.fullmatch(opening + rest)
    return match[1].strip() if match else None


def correctness_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """1.0 for the correct answer in the answer tags, even if the reasoning has no tags yet."""
    found = [tagged_answer(completion_text(c)) for c in completions]
    return [float(same_answer(said, gold)) for said, gold in zip(found, answer, strict=True)]


def format_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for the required format, whatever the answer."""
    return [float(answer_in(completion_text(c)) is not None) for c in completions]


def tag_reward(completions: list, **kwargs) -> list[float]:
    """0.25 for each tag in its place, as partial credit for the format. Repeated or reordered tags get nothing."""
    return [tags_placed(completion_text(c)) / 4 for c in completions]


def tags_placed(text: str) -> int:
    """How many tags have text after them (opening) or close such a text; all four only in the whole format."""
    if is_in_form(text):
        return 4
    _, *pieces = TAG.split(text)
    tags, text_after = pieces[::2], dict(zip(pieces[::2], pieces[1::2], strict=True))
    if tags != [tag for tag in TAGS if tag in tags]:
        return 0
    pairs = ((TAGS[0], TAGS[1]), (TAGS[2], TAGS[3]))
    placed = sum(1 + (closing in tags) for opening, closing in pairs if text_after.get(opening, "").strip())
    return min(placed, 3)


#: The rewards that `train.py` uses, with their weights. Correctness outweighs all others together.
REWARDS = {correctness_reward: 2.0, format_reward: 0.5, tag_reward: 0.5}


def is_right(text: str, row: dict) -> bool:
    """Whether the report counts a text as accurate: format and answer are both correct."""
    return same_answer(answer_in(text), row["answer"])


def is_in_form(text: str) -> bool:
    """Whether the report counts a text as correctly formatted."""
    return answer_in(text) is not None


def gold_text(row: dict) -> str:
    """The gold answer as the model should write it, for the checks before training: it must count as correct."""
    return FORM.format(thinking="So.", result=row["answer"])
