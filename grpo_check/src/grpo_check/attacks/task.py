"""The rows that are attacked, and which completions of them are correct."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from grpo_core.errors import CourseError
from grpo_core.rewards import reward_name, same_answer, same_json

from ..probes.answers import answer_kind
from ..probes.calling import parts_of
from ..probes.forms import FORMS
from ..probes.limits import OutOfTimeError, time_limit
from ..probes.signatures import missing_columns
from ..probes.trying.planning import Plan, gold_text
from ..prompts import has_word, question_text

#: The column with the gold answers, if no other is named.
ANSWER = "answer"
#: Rows that are attacked, and the longest prompts in characters; longer prompts make every step slower.
MOST_ROWS, LONGEST_PROMPT = 32, 1200
#: Seconds for one call of the user's definition of correctness.
_LONGEST_JUDGMENT = 5.0
#: Different numbers in a completion above which it lists guesses, of which one is right by chance.
_MOST_NUMBERS = 4
#: Words above which a gold answer is one of many ways to say it.
_MOST_WORDS = 6
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d+)?")
_TAGGED = re.compile(r"<(answer|solution|result|final|output)>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
BOXED = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
AFTER = re.compile(r"(?:####|\banswer(?: is|\**:)\**)(.*)", re.IGNORECASE)


@dataclass(frozen=True)
class Task:
    """What the reward is attacked on.

    Attributes:
        rows: the dataset rows, with their prompts.
        answer_column: where the gold answers are, if there are any.
        defined: the user's own ``correct(text, row)``.
    """

    rows: list[dict]
    answer_column: str
    defined: Callable | None = None

    @cached_property
    def golds(self) -> list[str]:
        """The gold answers as a model would write them; "" where there is none."""
        return [gold_text(row.get(self.answer_column)).strip() for row in self.rows]

    @property
    def judges(self) -> bool:
        """Whether it is known which completions are correct."""
        return self.defined is not None or any(self.golds)

    @property
    def chat(self) -> bool:
        """Whether the prompts, and so the completions, are messages."""
        return not isinstance(self.rows[0]["prompt"], str)

    @cached_property
    def plan(self) -> Plan | None:
        """The rows with gold answers, as `probe` reads them."""
        kept = [n for n, gold in enumerate(self.golds) if gold]
        plan = Plan(self.golds, self.rows, self.answer_column, FORMS[0], chat=self.chat)
        return plan.of_golds(kept) if kept else None

    def question(self, number: int) -> str:
        """The text of a row's prompt.

        >>> Task([{"prompt": [{"role": "user", "content": "2 + 2?"}]}], "answer").question(0)
        '2 + 2?'
        """
        return question_text(self.rows[number]["prompt"])

    def correct(self, text: str, number: int) -> bool | None:
        """Whether a completion of a row is correct; None if that is not known.

        Raises:
            CourseError: the user's own definition fails.
        """
        if self.defined:
            return _by_definition(self.defined, text, self.rows[number])
        gold = self.rows[number].get(self.answer_column)
        several = isinstance(gold, list | tuple) and gold and all(isinstance(one, str) for one in gold)
        said = [is_correct(text, one, self.golds) for one in (gold if several else [self.golds[number]]) if one]
        return True if True in said else None if None in said or not said else False


def _by_definition(correct: Callable, text: str, row: dict) -> bool | None:
    """What the user's own function says."""
    try:
        with time_limit(_LONGEST_JUDGMENT):
            said = correct(text, row)
    except OutOfTimeError as error:
        raise CourseError(f"correct() did not finish within {_LONGEST_JUDGMENT:g} seconds on {text!r:.200}.") from error
    except (Exception, SystemExit) as error:  # this runs a user's function
        what = f"{type(error).__name__}: {error}"
        raise CourseError(f"correct(text, row) failed with {what} on {text!r:.200}. Return False there.") from error
    return None if said is None else bool(said)


def is_correct(text: str, gold: str, golds: Sequence[str] = ()) -> bool | None:
    """Whether the final answer of a completion is the gold answer; None where readers could disagree.

    The final answer is what stands in tags or a box, else what follows "####" or "answer is", else the last number
    (for a number), else the whole text. Programs and long answers may be right in other words.

    >>> is_correct("6 * 7 = 42", "42"), is_correct("<answer>41</answer> or 42", "42"), is_correct("142", "42")
    (True, False, False)
    >>> is_correct("It is Paris.", "Paris"), is_correct("Rome, Paris, Bern", "Paris", ["Paris", "Rome", "Bern"])
    (None, False)
    """
    marked = {content.strip() for _, content in _TAGGED.findall(text)} | {one.strip() for one in BOXED.findall(text)}
    if _same(text.strip(), gold) or any(_same(one, gold) for one in marked if len(marked) == 1):
        return True
    if answer_kind(gold) == "program" or len(gold.split()) > _MOST_WORDS:
        return None if text.strip() else False
    if marked:
        return None if any(_same(one.strip(" .*"), gold) for one in AFTER.findall(text)) else _one_of(marked, gold)
    return _by_number(text, gold) if NUMBER.fullmatch(gold) else _by_words(text, gold, golds)


def _same(said: str, gold: str) -> bool:
    """Whether an answer is the gold answer, also as JSON."""
    return same_answer(said, gold) or (gold[:1] in ("{", "[") and same_json(said, gold))


def _by_number(text: str, gold: str) -> bool | None:
    """By the number after "answer is", or else the last one. A few numbers with the right one elsewhere: not known."""
    numbers, after = NUMBER.findall(text), AFTER.findall(text)
    final = (NUMBER.findall(after[-1])[:1] if after else []) or numbers[-1:]
    if any(same_answer(one, gold) for one in final):
        return True
    mentioned = any(same_answer(one, gold) for one in numbers)
    return None if mentioned and len(set(numbers)) <= _MOST_NUMBERS else False


def _by_words(text: str, gold: str, golds: Sequence[str]) -> bool | None:
    """By what follows "answer is". False for a text that does not name the gold answer, or several others as well."""
    after = AFTER.findall(text)
    if after and _same(after[-1].strip(" .*\n"), gold):
        return True
    others = {one for one in golds if one and one != gold}
    hedged = others and sum(has_word(text, one) for one in others) >= min(3, len(others))
    return False if hedged or not has_word(text, gold) else None


def _one_of(marked: set[str], gold: str) -> bool | None:
    """None for marked answers of which one is right, or has the right one in words; otherwise False."""
    right = [one for one in marked if _same(one, gold)]
    loose = [one for one in marked if has_word(one, gold) and len(NUMBER.findall(one)) <= 1]
    return None if right or loose else False


def read_task(reward: Callable, rows: Sequence[dict], answer_column: str, correct: Callable | None, seed: int) -> Task:
    """The rows that are attacked: some, with short prompts, because a CPU reads slowly.

    Raises:
        CourseError: there are no rows, they have no prompts, or no column that the reward needs.
    """
    rows = _with_the_same_columns(rows)
    if not rows:
        raise CourseError("there are no rows to attack with. Check the file or the filter that produced them.")
    for number, row in enumerate(rows, 1):
        _check_prompt(number, row)
    if answer_column not in rows[0] and answer_column != ANSWER:
        raise CourseError(f"no row has the column {answer_column!r}; they have {', '.join(map(repr, rows[0]))}.")
    for one in parts_of(reward):
        if lacking := missing_columns(one, [*rows[0]]):
            needs = ", ".join(map(repr, lacking))
            raise CourseError(
                f"{reward_name(one)} needs {needs}, which TRL fills from a dataset column, and the rows have only "
                f"{', '.join(map(repr, rows[0]))}. Add that column to the rows."
            )
    random.Random(seed).shuffle(rows)
    rows.sort(key=lambda row: max(len(str(row["prompt"])), LONGEST_PROMPT))  # short ones first, in their random order
    return Task(rows[:MOST_ROWS], answer_column, correct)


def _with_the_same_columns(rows: Sequence[dict]) -> list[dict]:
    """Copies of the rows, each with all columns, as a dataset has them.

    >>> _with_the_same_columns([{"a": 1}, {"b": 2}])
    [{'a': 1, 'b': None}, {'a': None, 'b': 2}]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _check_prompt(number: int, row: dict) -> None:
    """Refuse a row without a prompt, or whose prompt is neither text nor messages."""
    prompt = row.get("prompt")
    if prompt is None:
        has = ", ".join(repr(name) for name, value in row.items() if value is not None)
        raise CourseError(f"row {number} has no prompt; it has {has}. Name the column with the prompts 'prompt'.")
    messages = isinstance(prompt, list) and all(isinstance(one, dict) and "content" in one for one in prompt)
    if not prompt or not (isinstance(prompt, str) or messages):
        what = f"row {number}: the prompt is {prompt!r:.80}"
        raise CourseError(f"{what}. It should be a text, or a list of messages with a role and a content.")
