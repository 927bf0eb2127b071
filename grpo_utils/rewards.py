"""Reward functions: completions in, one score each out.

    >>> completion = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> correctness_reward([completion], answer=["42"])
    [2.0]

They have TRL's signature ``f(completions, **columns) -> list[float | None]``: dataset
columns such as ``answer`` arrive as lists beside the completions, ``None`` means that a
reward does not apply to a row. A completion is a string, or a list of messages where the
prompt was one. No completion, however odd, makes a reward of this module raise, and each
takes time in proportion to the length of the text.
"""

import re
from collections.abc import Sequence
from decimal import Decimal

Completion = str | Sequence[dict] | None

TAGS = ("<reasoning>", "</reasoning>", "<answer>", "</answer>")

#: A number, with optional thousands commas, decimals and a currency sign before it.
NUMBER = re.compile(r"([-+]?)\$?((?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)")

#: No answer that can be right is longer; what is longer is not read.
LONGEST_NUMBER = 64


def completion_text(completion: Completion) -> str:
    """The text of a completion: itself, or what its last message says; "" where it says nothing.

    >>> completion_text([{"role": "assistant", "content": "42"}])
    '42'
    >>> completion_text([{"role": "assistant", "content": None}])
    ''
    """
    if isinstance(completion, str):
        return completion
    last = completion[-1] if isinstance(completion, list | tuple) and completion else None
    content = last.get("content") if isinstance(last, dict) else None
    return content if isinstance(content, str) else ""


def split_form(text: str) -> tuple[str, str] | None:
    """Reasoning and answer of a text in the strict form, else None.

    Strict: each of the four tags once and in order, both parts not blank, nothing but white
    space before, between and after.

    >>> split_form("<reasoning>15 + 27 = 42</reasoning> <answer>42</answer>")
    ('15 + 27 = 42', '42')
    >>> split_form("<reasoning>15 + 27 = 42 <answer>42") is None
    True
    """
    text = text.strip()
    if not (text.startswith(TAGS[0]) and text.endswith(TAGS[3])):
        return None
    if any(text.count(tag) != 1 for tag in TAGS):
        return None
    reasoning, _, rest = text[len(TAGS[0]) : -len(TAGS[3])].partition(TAGS[1])
    between, opening, answer = rest.partition(TAGS[2])
    if not opening or between.strip() or not reasoning.strip() or not answer.strip():
        return None
    return reasoning.strip(), answer.strip()


def extract_answer(text: str) -> str | None:
    """What stands in the one ``<answer>…</answer>`` of the text, else None.

    Two answers are none: a model must not be paid for guessing twice.

    >>> extract_answer("so <answer> 42 </answer>")
    '42'
    >>> extract_answer("<answer>41</answer><answer>42</answer>") is None
    True
    """
    if text.count(TAGS[2]) != 1 or text.count(TAGS[3]) != 1:
        return None
    answer, closing, _ = text.partition(TAGS[2])[2].partition(TAGS[3])
    return answer.strip() or None if closing else None


def parse_number(text: str) -> Decimal | None:
    """The number that the whole text writes, else None; commas, ``$`` and a final dot are allowed.

    >>> parse_number("$1,000.00") == parse_number("1000")
    True
    >>> parse_number("42 or 43") is None
    True
    """
    if len(text) > LONGEST_NUMBER:
        return None
    match = NUMBER.fullmatch(text.strip().rstrip("."))
    return Decimal(match[1] + match[2].replace(",", "")) if match else None


def same_answer(said: str | None, gold: str | None) -> bool:
    """Whether an answer equals the gold answer, as a number where both are, else as text.

    >>> same_answer("1,000", "1000"), same_answer("-5", "5"), same_answer(None, "")
    (True, False, False)
    """
    gold = "" if gold is None else str(gold)
    if not said or not gold.strip():
        return False
    if said.strip() == gold.strip():
        return True
    number = parse_number(said)
    return number is not None and number == parse_number(gold)


def is_strictly_right(text: str, gold: str) -> bool:
    """Form and answer both right: what this course calls strict accuracy.

    >>> is_strictly_right("<answer>42</answer>", "42")
    False
    """
    parts = split_form(text)
    return parts is not None and same_answer(parts[1], gold)


def correctness_reward(completions: Sequence[Completion], answer: Sequence[str], **kwargs: object) -> list[float]:
    """2.0 where the one ``<answer>`` equals the gold answer, else 0.0. A missing answer never scores.

    >>> right, bare = "<answer>42</answer>", "42"
    >>> correctness_reward([right, bare], answer=["42", "42"])
    [2.0, 0.0]
    """
    pairs = zip(completions, answer, strict=True)
    return [2.0 if same_answer(extract_answer(completion_text(c)), gold) else 0.0 for c, gold in pairs]


def strict_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """0.5 for exactly the asked form (see `split_form`), else 0.0.

    >>> strict_format_reward(["<reasoning>a</reasoning><answer>b</answer>", "b"])
    [0.5, 0.0]
    """
    return [0.5 if split_form(completion_text(c)) else 0.0 for c in completions]


def incremental_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """0.125 for each of the four tags in its place, so that half a form earns more than none.

    Only `split_form`'s strict form earns all four (0.5); see `count_placed_tags`.

    >>> half, whole = "<reasoning>a <answer>b", "<reasoning>a</reasoning><answer>b</answer>"
    >>> incremental_format_reward([half, whole, whole + whole, whole + " and so on"])
    [0.25, 0.5, 0.0, 0.375]
    """
    return [0.125 * count_placed_tags(completion_text(c)) for c in completions]


def count_placed_tags(text: str) -> int:
    """How many of the four tags stand where the form wants them.

    The text must open with ``<reasoning>`` and hold no tag twice or out of order, or nothing
    counts. A tag counts when its part of the form is there: reasoning that is not blank (else nothing
    counts), nothing between the two parts, an answer that is not blank, nothing after it. So empty
    tags, a form appended to other text, and a tail all earn less than the form itself.

    >>> count_placed_tags("It is 42.<reasoning></reasoning><answer></answer>")
    0
    >>> count_placed_tags("<reasoning>15 + 27 = 42</reasoning> so <answer>42</answer>")
    3
    """
    text = text.strip()
    places = [text.find(tag) for tag in TAGS]
    found = [place for place in places if place >= 0]
    if places[0] != 0 or found != sorted(found) or any(text.count(tag) > 1 for tag in TAGS):
        return 0
    _, closed, answered, ended = (place >= 0 for place in places)
    if not _part(text, places, 0):
        return 0
    between = text[places[1] + len(TAGS[1]) : places[2]] if closed and answered else ""
    whole_answer = ended and bool(_part(text, places, 2)) and text.endswith(TAGS[3])
    return 1 + closed + (answered and not between.strip()) + whole_answer


def _part(text: str, places: list[int], index: int) -> str:
    """What stands between a tag and the next one that is there, without white space around."""
    if places[index] < 0:
        return ""
    end = next((place for place in places[index + 1 :] if place >= 0), len(text))
    return text[places[index] + len(TAGS[index]) : end].strip()


#: The three rewards of lesson 03; their maxima are 2.0, 0.5 and 0.5.
LESSON_REWARDS = (correctness_reward, strict_format_reward, incremental_format_reward)
