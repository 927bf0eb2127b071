"""The rewards. THIS IS THE FIRST FILE TO CHANGE: what you pay for is what the model learns.

A reward gets the completions of a batch and, by name, every column of `data.py` as a list of the same length. It
returns one number for each completion. A new reward is one function and one line in `REWARDS`, with its weight.
"""

import re
from decimal import Decimal

from lib.scoring import text_of

NUMBER = re.compile(r"-?\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
FORM = re.compile(r"\s*<reasoning>(?:(?!</?(?:reasoning|answer)>).)+</reasoning>"
                  r"\s*<answer>((?:(?!</?(?:reasoning|answer)>).)+)</answer>\s*", re.DOTALL)  # fmt: skip
TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")


def answer_in(text: str) -> str | None:
    """The one answer of a text in the asked form, or None."""
    match = FORM.fullmatch(text)
    return match[1].strip() if match else None


def number(text: str | None) -> Decimal | None:
    """The number that a text is, or None: "1,250" and "$1250.00" are 1250; "4,2", "nan" and words are none."""
    text = (text or "").strip()
    return Decimal(re.sub(r"[,$]", "", text)) if len(text) < 40 and NUMBER.fullmatch(text) else None


def same_number(said: str | None, gold: str) -> bool:
    """Whether an answer is the gold number. A missing one never is. (Your answers are words? Compare words here.)"""
    value = number(said)
    return value is not None and value == number(gold)


def correctness_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """1.0 for the right number in the asked form."""
    return [float(same_number(answer_in(text_of(c)), gold)) for c, gold in zip(completions, answer, strict=True)]


def format_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for the whole form, whatever the answer."""
    return [float(answer_in(text_of(c)) is not None) for c in completions]


def tag_reward(completions: list, **kwargs) -> list[float]:
    """A quarter for each tag in its place: a slope that leads to the form. Nothing for tags repeated or reordered."""
    return [tags_placed(text_of(c).strip()) / 4 for c in completions]


def tags_placed(text: str) -> int:
    """How many tags are where the form has them: the first opens the text, and no part is empty or has text around."""
    places = [text.find(tag) for tag in TAGS if tag in text]
    if not text.startswith(TAGS[0]) or places != sorted(places) or any(text.count(tag) > 1 for tag in TAGS):
        return 0
    reasoning, closed, rest = text.removeprefix(TAGS[0]).partition(TAGS[1])
    between, opened, rest = rest.partition(TAGS[2])
    answer, ended, after = rest.partition(TAGS[3])
    if not reasoning.strip():
        return 0
    return (
        1 + bool(closed) + bool(opened and not between.strip()) + bool(ended and answer.strip() and not after.strip())
    )


#: What `train.py` trains on, each with its weight: correctness outweighs the rest together.
REWARDS = {correctness_reward: 2.0, format_reward: 0.5, tag_reward: 0.5}


def is_right(text: str, row: dict) -> bool:
    """What the report counts as accurate: form and answer both right."""
    return same_number(answer_in(text), row["answer"])


def is_in_form(text: str) -> bool:
    """What the report counts as in form."""
    return answer_in(text) is not None
