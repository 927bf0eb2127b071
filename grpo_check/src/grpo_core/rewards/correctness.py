r"""Rewards for correct answers: 1.0 if correct, 0.0 if wrong, ``None`` if there is no gold answer.

    >>> right, wrong = "<answer>1,000</answer>", "<answer>100</answer>"
    >>> correctness_reward([right, wrong], answer=["1000", "1000"])
    [1.0, 0.0]

The answer is the text in the only ``<answer>…</answer>``; `AnswerReward` can look elsewhere. A missing
answer never scores, whatever the gold answer is, and neither do several answers.
"""

import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import CourseError
from ..training.answers import same_number
from .maths import gold_number, same_expression
from .text import Completion, completion_text, extract_answer, split_form

Scores = list[float | None]


def same_text(said: str, gold: object) -> bool:
    """Whether two texts are equal except for white space; any of several gold answers is correct.

    >>> same_text(" New  York", ["NYC", "New York"]), same_text("new york", "New York")
    (True, False)
    """
    return any(_equal(said, text) for text in _gold_texts(gold))


#: Longer texts are compared character by character, spaces included.
_LONGEST_COMPARED = 100_000


def _equal(said: str, gold: str) -> bool:
    return said == gold or (max(len(said), len(gold)) <= _LONGEST_COMPARED and said.split() == gold.split())


def same_answer(said: str | None, gold: object) -> bool:
    r"""Whether an answer equals the gold answer.

    If the gold answer is a number, the answer must be the same number (see `grpo_core.training.answers`): an expression
    such as "15 + 27" may only repeat the question. Otherwise, it must be the same text, or an expression that
    math-verify finds equal (see `maths`).

    Args:
        said: the answer, a short text.
        gold: the gold answer, or a list of correct answers.

    >>> same_answer("1,000", "1000"), same_answer("-5", "5"), same_answer("15 + 27", "42"), same_answer(None, "")
    (True, False, False, False)
    >>> same_answer(r"\frac{1}{2}", "0.5"), same_answer(r"2\sqrt{2}", r"\sqrt{8}"), same_answer("6", ["6", "8"])
    (True, True, True)
    """
    return bool(said) and any(_same_as_one(said, text) for text in _gold_texts(gold))


def _same_as_one(said: str, gold: str) -> bool:
    if number := gold_number(gold):
        return said == gold or same_number(said, number)
    return _equal(said, gold) or same_expression(said, gold)


def _gold_texts(gold: object) -> list[str]:
    """The gold answers as texts, without missing ones."""
    golds = gold if isinstance(gold, list | tuple) else [gold]
    return [text for text in map(_text, golds) if text]


def _text(gold: object) -> str:
    try:
        return "" if gold is None else str(gold).strip()
    except ValueError:  # Python does not print integers of more than 4,300 digits
        return ""


def same_fact(said: str | None, gold: object) -> bool:
    """Whether an answer names a fact: spelling, case, articles and punctuation may differ a little, digits may not.

    ``gold`` may be a list of correct names. The comparison is SQuAD's (Rajpurkar et al. 2016), followed by an edit
    distance for names of at least five letters, which must be at least 90% similar.

    >>> same_fact("the Eiffel tower.", "Eiffel Tower"), same_fact("Mississipi", "Mississippi")
    (True, True)
    >>> same_fact("5", "15"), same_fact("Austria", "Australia"), same_fact("NYC", ["New York", "NYC"])
    (False, False, True)
    """
    return any(_same_name(_plain_name(said or ""), _plain_name(name)) for name in _gold_texts(gold))


def _plain_name(name: str) -> str:
    """A name in lower case, without punctuation and articles; signs that distinguish names stay (C, C++, C#)."""
    words = MINUS.sub("minus ", name[:500].lower()).translate(_PUNCTUATION).split()
    return " ".join([word for word in words if word not in {"a", "an", "the"}] or words)


MINUS = re.compile(r"(?<!\w)-(?=\d)")
SIGNS = "".join(set(string.punctuation) - set("+#&"))
_PUNCTUATION = str.maketrans(SIGNS, " " * len(SIGNS))


def _same_name(said: str, gold: str) -> bool:
    from rapidfuzz.distance import Levenshtein

    if not said or not gold or re.findall(r"\d+", said) != re.findall(r"\d+", gold):
        return False
    if "minus" in {*said.split(), *gold.split()} or len(said.split()) != len(gold.split()) or len(gold) < 5:
        return said == gold
    return Levenshtein.normalized_similarity(said, gold) >= 0.9


@dataclass(frozen=True)
class AnswerReward:
    r"""Correctness for any format: how to find the answer, and how to compare it.

    Args:
        extract: returns the answer in a completion's text, or None: `extract_answer`, `extract_boxed`,
            `extract_after_thinking`, `extract_after_hashes`, `extract_all`,
            or your own (a named function, so that it can be pickled).
        same: compares an answer with the gold answer: `same_answer`, `same_text`, `same_fact`,
            `structured.same_json`, or your own.
        column: the dataset column with the gold answer.

    >>> from grpo_core.rewards.text import extract_boxed
    >>> reward = AnswerReward(extract=extract_boxed)
    >>> reward([r"so \boxed{42}", r"\boxed{41} or \boxed{42}"], answer=["42", "42"])
    [1.0, 0.0]
    """

    extract: Callable[[str], str | None] = extract_answer
    same: Callable[[str, object], bool] = same_answer
    column: str = "answer"

    __name__ = "answer_reward"

    def __call__(self, completions: Sequence[Completion], **columns: object) -> Scores:
        """1.0 or 0.0 for each completion, or None if the row has no gold answer.

        Raises:
            CourseError: the dataset has no column of that name.
        """
        if self.column not in columns:
            raise CourseError(f"The dataset has no column {self.column!r} to check answers against.")
        pairs = zip(completions, columns[self.column], strict=True)
        return [self._score(completion, gold) for completion, gold in pairs]

    def _score(self, completion: Completion, gold: object) -> float | None:
        if _is_missing(gold):
            return None
        said = self.extract(completion_text(completion))
        return 1.0 if said and self.same(said, gold) else 0.0


def _is_missing(gold: object) -> bool:
    """Whether a row has no gold answer: None, or one of pandas' missing values."""
    return gold is None or (not isinstance(gold, str) and _text(gold) in ("nan", "NaN", "<NA>", "NaT"))


def correctness_reward(completions: Sequence[Completion], answer: Sequence[object], **kwargs: object) -> Scores:
    """Return 1.0 if the answer equals the gold number, expression or text (`same_answer`), else 0.0.

    For numbers and mathematics. Known exploits: none that `probe` finds. Units count only if both answers have one.

    >>> correctness_reward(["<answer>$42.00</answer>", "<answer>41 or 42</answer>", "42"], answer=["42"] * 3)
    [1.0, 0.0, 0.0]
    """
    return AnswerReward()(completions, answer=answer)


def exact_reward(completions: Sequence[Completion], answer: Sequence[object], **kwargs: object) -> Scores:
    """Return 1.0 if the answer is exactly the gold text, else 0.0.

    For labels and identifiers. Strict: "1,000" is not "1000". Known exploits: none that `probe` finds.

    >>> exact_reward(["<answer>positive</answer>", "<answer>Positive</answer>"], answer=["positive"] * 2)
    [1.0, 0.0]
    """
    return AnswerReward(same=same_text)(completions, answer=answer)


def fuzzy_reward(completions: Sequence[Completion], answer: Sequence[object], **kwargs: object) -> Scores:
    """Return 1.0 if the answer names the gold fact, with small spelling mistakes allowed (`same_fact`), else 0.0.

    Known exploit: names that differ in one letter of ten. Never use it for numbers.

    >>> fuzzy_reward(["<answer>the Mississipi</answer>", "<answer>Missouri</answer>"], answer=["Mississippi"] * 2)
    [1.0, 0.0]
    """
    return AnswerReward(same=same_fact)(completions, answer=answer)


def is_strictly_right(text: str, gold: object) -> bool:
    """Whether format and answer are both correct, which this course calls strict accuracy.

    >>> is_strictly_right("<reasoning>40 + 2</reasoning><answer>42</answer>", "42")
    True
    >>> is_strictly_right("<answer>42</answer>", "42")
    False
    """
    parts = split_form(text)
    return parts is not None and same_answer(parts[1], gold)
