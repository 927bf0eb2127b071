"""With what rewards are tried: gold answers, dataset columns and a format."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from grpo_core.errors import CourseError
from grpo_core.rewards import parse_number, reward_name

from ..answers import wrong_answer
from ..calling import WeightedSum
from ..forms import Form
from ..matrix import Case, clean_case
from ..signatures import columns_read, missing_columns, only_what_it_takes

#: The default gold answers: a plain one, a negative one, a long one, one with decimals.
DEFAULT_ANSWERS = ("42", "-5", "1250", "0.5")
#: Common names of the column with the gold answers.
GOLD_COLUMNS = ("answer", "answers", "solution", "solutions", "label", "labels", "target", "targets", "gold")
GOLD_COLUMNS += ("ground_truth", "ground_truths", "expected", "expected_answer", "reference", "references")
#: Words of the names of columns that an answer is measured by.
_MEASURES = {"len", "length", "limit", "token", "tokens", "word", "words", "count", "budget", "scale", "size"}


@dataclass(frozen=True)
class Plan:
    """With what a reward is tried.

    Attributes:
        golds: the gold answers as a model would write them, and ``columns`` the columns of each one's row.
        answer_column: the column with the gold answers.
        form: the requested format, and ``any_form`` whether the reward takes any.
        asked: whether the user gave the format, and ``examples`` the user's own completions that it should pay.
        numbers: whether the gold answers in its rows are numbers, although texts were given.
        told: whether the reward tells a right answer in it from a wrong or a missing one.
        chat: whether completions are messages.
        own_golds: whether the gold answers are those of this module, because none were given.
        blank_golds: whether some given gold answers are empty.
        refused: the gold answers of this module that the reward does not accept.
        elsewhere: the best-scoring wrong answer in any format, with its score.
    """

    golds: list[str]
    columns: list[dict]
    answer_column: str
    form: Form
    any_form: bool = False
    asked: bool = False
    examples: tuple[str, ...] = ()
    told: bool = True
    numbers: bool = False
    chat: bool = True
    own_golds: bool = False
    blank_golds: bool = False
    refused: tuple[str, ...] = ()
    elsewhere: tuple[Case, float] | None = None

    def rows(self, cases: Sequence[Case], number: int = 0, /, **other: object) -> list[Case]:
        """The cases as completions of one dataset row, some of whose columns ``other`` replaces."""
        return [case._replace(number=number, columns={**self.columns[number], **other}) for case in cases]

    @property
    def clean(self) -> Case:
        """The first gold answer in the requested format."""
        return self.rows([clean_case(self.form, self.golds[0])])[0]

    @property
    def wrong(self) -> str:
        """A wrong answer for the first gold answer."""
        return wrong_answer(self.golds[0], tuple(self.golds)) or "another"

    @property
    def other_columns(self) -> dict:
        """Columns of another row, whose gold answer is a different one; empty if there are none."""
        others = [row for row, gold in zip(self.columns, self.golds, strict=True) if gold != self.golds[0]]
        if others or list(self.columns[0]) != [self.answer_column]:
            return others[-1] if others else {}
        return {self.answer_column: self.wrong}

    def of_golds(self, numbers: Sequence[int]) -> "Plan":
        """The plan with some of the gold answers."""
        return replace(self, golds=[self.golds[i] for i in numbers], columns=[self.columns[i] for i in numbers])

    def as_numbers(self) -> "Plan | None":
        """The plan with numbers in place of texts as gold answers in its rows; None if some gold is no number."""
        numbers = [parse_number(gold) for gold in self.golds]
        if not all(numbers) or not all(isinstance(row[self.answer_column], str) for row in self.columns):
            return None
        values = [int(one.value) if one.value.denominator == 1 else float(one.value) for one in numbers]
        pairs = zip(self.columns, values, strict=True)
        return replace(self, columns=[{**row, self.answer_column: value} for row, value in pairs])

    def without_answers(self) -> "Plan":
        """The plan for rewards that do not depend on answers: rows that differ in other columns, or one row."""
        rows = self.columns if len(self.columns[0]) > 1 else self.columns[:1]
        return replace(self, golds=self.golds[:1] * len(rows), columns=rows)


def rewards_of(reward: Callable | Sequence[Callable], weights: Sequence[float] | None) -> list[Callable]:
    """The rewards to try. If there are several, their weighted sum comes last."""
    rewards = list(reward) if isinstance(reward, list | tuple) else [reward]
    weights = [1.0] * len(rewards) if weights is None else list(weights)
    if not rewards:
        raise CourseError("The list of rewards is empty. Pass one or more, such as [correctness_reward].")
    if len(weights) != len(rewards):
        raise CourseError(f"{len(weights)} weights were given for {len(rewards)} rewards; pass one per reward.")
    rewards = [only_what_it_takes(one) for one in rewards]
    return rewards if len(rewards) == 1 else [*rewards, WeightedSum(rewards, weights)]


def make_plan(
    rewards: list[Callable],
    answers: Sequence | None,
    answer_column: str | None,
    columns: dict[str, Sequence],
    form: Form,
) -> Plan:
    """The plan for the given rewards, answers and columns.

    Their column is looked for among those that the rewards read. Without answers, it may be one of the given columns,
    or the gold answers are those of this module; with answers, no given column is replaced.
    """
    columns = dict(columns)
    answer_column = answer_column or _gold_column(rewards, columns, answers is None) or "answer"
    answers = columns.pop(answer_column, None) if answers is None else answers
    own = islice(cycle(DEFAULT_ANSWERS), len(next(iter(columns.values()), DEFAULT_ANSWERS)))
    golds = list(own if answers is None else answers)
    columns[answer_column] = golds
    _check_columns(rewards, columns, len(golds))
    rows = [{name: values[i] for name, values in columns.items()} for i in range(len(golds))]
    texts = [gold_text(gold) for gold in golds]
    kept = [i for i, text in enumerate(texts) if text.strip()]  # without a gold answer nothing is right
    if not kept:
        raise CourseError(f"answers={golds!r} contains no gold answer; pass a few from your dataset, or omit it.")
    blank = len(kept) < len(golds)
    return Plan(texts, rows, answer_column, form, own_golds=answers is None, blank_golds=blank).of_golds(kept)


def _gold_column(rewards: list[Callable], columns: dict[str, Sequence], among_given: bool) -> str:
    """The column that holds the gold answers: one that the rewards read, and of whose name or values that is known.

    A column that holds anything but single values is not one: those are tests, or something else that an answer is
    checked with.
    """
    read = {name for reward in rewards for name in columns_read(reward)}
    if not among_given:
        read -= set(columns)
    if "answer" in read:
        return "answer"
    asked = [name for name in columns if name in read]
    usual = [name for name in asked if name in GOLD_COLUMNS]
    asked = usual or [name for name in asked if not _is_measure(name, columns[name])]
    if asked:
        single = len(asked) == 1 and all(isinstance(value, str | int | float) for value in columns[asked[0]])
        return asked[0] if single else ""
    known = sorted(read & set(GOLD_COLUMNS))
    return known[0] if len(known) == 1 else ""


def _is_measure(name: str, values: Sequence) -> bool:
    """Whether a column holds numbers that are a length, a limit or a scale, by its name."""
    return all(isinstance(value, int | float) for value in values) and bool(_MEASURES & {*name.lower().split("_")})


def _check_columns(rewards: list[Callable], columns: dict[str, Sequence], length: int) -> None:
    for name, values in columns.items():
        if isinstance(values, str) or len(values) != length:
            raise CourseError(f"column {name!r} should be a list of {length} values, one per answer.")
    for reward in rewards:
        if missing := missing_columns(reward, columns):
            names, first = ", ".join(map(repr, missing)), missing[0]
            raise CourseError(
                f"{reward_name(reward)} needs {names}, which TRL fills from a dataset column. Pass "
                f"columns={{{first!r}: […]}} with one value per answer, or, if it contains the gold answers, "
                f"answers=[…] and answer_column={first!r}."
            )


def gold_text(gold: object) -> str:
    """A gold answer as a model would write it; the first of several; JSON for a dict; "" for None."""
    if gold is None:
        return ""
    if isinstance(gold, list) and gold and isinstance(gold[-1], dict) and isinstance(gold[-1].get("content"), str):
        return gold[-1]["content"]  # a chat, of which the last message is the answer
    if isinstance(gold, list | tuple) and gold and isinstance(gold[0], str):
        return gold[0]
    if isinstance(gold, str) and "####" in gold:  # a GSM8K solution: the answer comes after it
        return gold.rpartition("####")[2].strip()
    return json.dumps(gold, default=str) if isinstance(gold, dict | list) else str(gold)
