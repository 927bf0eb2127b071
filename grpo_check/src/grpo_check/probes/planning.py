"""Decide how to probe a reward: gold answers, format, and kind of judgment."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice

from grpo_core.errors import CourseError
from grpo_core.rewards import reward_name

from .answers import answer_kind, wrong_answer
from .calling import WeightedSum, call, missing_columns, parameters_of, reads_group
from .discovery import forms_of
from .forms import FORMS, Form
from .matrix import NO_ANSWER, Case, clean_case, reasoning

#: The default gold answers: a plain one, a negative one, a long one, one with decimals.
DEFAULT_ANSWERS = ("42", "-5", "1250", "0.5")
#: Common names of the column with the gold answers.
GOLD_COLUMNS = {"answer", "answers", "solution", "label", "target", "gold", "ground_truth", "expected", "reference"}


@dataclass(frozen=True)
class Plan:
    """How to probe a reward, and what was observed while the format was chosen."""

    golds: list[str]  # as a model would write them
    columns: list[dict]  # one for each gold
    answer_column: str
    form: Form
    chat: bool = True
    own_golds: bool = False  # the lab's own, because none were given
    blank_golds: bool = False  # whether some given gold answers are empty
    refused: tuple[str, ...] = ()  # the lab's own answers that the reward does not accept
    elsewhere: tuple[Case, float] | None = None  # the best-scoring wrong answer in any format

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

    def without_answers(self) -> "Plan":
        """The plan for rewards that read no answers: the rows of the other columns, or one row."""
        rows = [{name: row[name] for name in row if name != self.answer_column} for row in self.columns]
        rows = rows if any(rows) else rows[:1]
        return replace(self, golds=self.golds[:1] * len(rows), columns=rows)


def subjects_of(reward: Callable | Sequence[Callable], weights: Sequence[float] | None) -> list[Callable]:
    """The rewards to judge. If there are several, their weighted sum comes last."""
    rewards = list(reward) if isinstance(reward, list | tuple) else [reward]
    weights = [1.0] * len(rewards) if weights is None else list(weights)
    if not rewards:
        raise CourseError("The list of rewards is empty. Pass one or more, such as [correctness_reward].")
    if len(weights) != len(rewards):
        raise CourseError(f"{len(weights)} weights were given for {len(rewards)} rewards; pass one per reward.")
    for one in rewards:
        parameters_of(one)
    return rewards if len(rewards) == 1 else [*rewards, WeightedSum(rewards, weights)]


def answer_column_of(subjects: list[Callable], answer_column: str, columns: dict[str, Sequence]) -> str:
    """The column of gold answers: the named one, or the only given column that a reward needs.

    A column that holds anything but single values is not one: those are tests, or something else that an answer is
    checked with.
    """
    names = {name for subject in subjects for name in parameters_of(subject)}
    asked = [name for name in columns if name in names]
    asked = [name for name in asked if name in GOLD_COLUMNS] or asked
    single = len(asked) == 1 and all(isinstance(value, str | int | float) for value in columns[asked[0]])
    return asked[0] if single and answer_column not in names else answer_column


def make_plan(
    subjects: list[Callable], answers: Sequence | None, answer_column: str, columns: dict[str, Sequence], form: Form
) -> Plan:
    """The plan for the given rewards, answers and columns; without answers, with the lab's own."""
    own = islice(cycle(DEFAULT_ANSWERS), len(next(iter(columns.values()), DEFAULT_ANSWERS)))
    golds = list(own if answers is None else answers)
    columns = {**columns, answer_column: golds}
    _check_columns(subjects, columns, len(golds))
    rows = [{name: values[i] for name, values in columns.items()} for i in range(len(golds))]
    texts = [gold_text(gold) for gold in golds]
    kept = [i for i, text in enumerate(texts) if text.strip()]  # without a gold answer nothing is right
    if not kept:
        raise CourseError(f"answers={golds!r} contains no gold answer; pass a few from your dataset, or omit it.")
    blank = len(kept) < len(golds)
    return Plan(texts, rows, answer_column, form, own_golds=answers is None, blank_golds=blank).of_golds(kept)


def _check_columns(subjects: list[Callable], columns: dict[str, Sequence], length: int) -> None:
    for name, values in columns.items():
        if isinstance(values, str) or len(values) != length:
            raise CourseError(f"column {name!r} should be a list of {length} values, one per answer.")
    for subject in subjects:
        if missing := missing_columns(parameters_of(subject), columns):
            names, first = ", ".join(map(repr, missing)), missing[0]
            raise CourseError(
                f"{reward_name(subject)} needs {names}, which TRL fills from a dataset column. Pass "
                f"columns={{{first!r}: […]}} with one value per answer (in a terminal: --column NAME JSON), or "
                f"answers=[…], answer_column={first!r} if it contains the gold answers."
            )


def gold_text(gold: object) -> str:
    """A gold answer as a model would write it; the first of several; JSON for a dict; "" for None."""
    if gold is None:
        return ""
    if isinstance(gold, list | tuple) and gold and isinstance(gold[0], str):
        return gold[0]
    if isinstance(gold, str) and "####" in gold:  # a GSM8K solution: the answer comes after it
        return gold.rpartition("####")[2].strip()
    return json.dumps(gold, default=str) if isinstance(gold, dict | list) else str(gold)


def choose_form(reward: Callable, plan: Plan, asked: bool) -> Plan:
    """Choose the format and the kind of completion in which a clean completion scores furthest above others."""
    forms = (plan.form,) if asked else tuple(dict.fromkeys([*FORMS, *forms_of(reward)]))
    options = [replace(plan, form=form) for form in forms]
    if call(reward, [options[0].clean], chat=True).code == "slow":
        return options[0]  # it does not end: no use in trying further forms
    strings = [replace(option, chat=False) for option in options]
    scores, options = _scores(reward, options) + _scores(reward, strings), options + strings
    margins = [_margin(*three) for three in scores]
    best = max(range(len(options)), key=lambda i: (margins[i], -forms.index(options[i].form), -i))
    stands_out = margins[best][1] or margins[best][2] > 0
    plan = options[best] if stands_out or len(options) == 2 else options[0]
    wrong = [(_three_texts(option)[1], score) for option, (_, score, _) in zip(options, scores, strict=True)]
    paid = [(case, score) for case, score in wrong if score is not None and not math.isnan(score)]
    return replace(_fitting(reward, plan), elsewhere=max(paid, key=lambda pair: pair[1], default=None))


def _scores(reward: Callable, options: list[Plan]) -> list[tuple[float | None, float | None, float | None]]:
    """For each option the scores of a clean, a wrong and a missing answer, in one batch or one by one if it fails."""
    rows = [row for option in options for row in option.rows(_three_texts(option))]
    chat = options[0].chat
    whole = None if reads_group(reward) else call(reward, rows, chat).scores
    scores = whole or [(call(reward, [row], chat).scores or [math.nan])[0] for row in rows]
    return list(zip(scores[::3], scores[1::3], scores[2::3], strict=True))


def _three_texts(plan: Plan) -> list[Case]:
    wrong = plan.form.write(reasoning(plan.wrong), plan.wrong)
    return [
        plan.clean._replace(role="odd"),
        Case("wrong, in another format", "odd", wrong),
        Case("no answer", "odd", NO_ANSWER),
    ]


def _margin(clean: float | None, other: float | None, nothing: float | None) -> tuple[bool, bool, float]:
    """Whether a clean completion has a score, whether it beats a wrong one, and its lead over a missing answer."""
    if clean is None or any(math.isnan(score or 0.0) for score in (clean, other, nothing)):
        return (False, False, 0.0)
    lowest = min(0.0, clean - 1.0)  # where it gives no score
    other, nothing = (lowest if score is None else score for score in (other, nothing))
    return (True, clean > other, clean - nothing)


def _fitting(reward: Callable, plan: Plan) -> Plan:
    """The plan without the lab's answers that the reward does not accept (a task may have no decimals)."""
    if not plan.own_golds:
        return plan
    fits = [_margin(*_scores(reward, [plan.of_golds([i])])[0])[1] for i in range(len(plan.golds))]
    refused = tuple(gold for gold, fit in zip(plan.golds, fits, strict=True) if not fit)
    return replace(plan.of_golds([i for i, fit in enumerate(fits) if fit]), refused=refused) if any(fits) else plan


def depends_on_answer(reward: Callable, plan: Plan, among_others: bool) -> bool:
    """Whether scores should depend on the answer: the reward names the column, or another row's answer matters.

    A single reward that names any of the columns given with answers is; of several some may only shape.
    """
    names = {plan.answer_column} if among_others or plan.own_golds else set(plan.columns[0])
    if names & set(parameters_of(reward)):
        return True
    if answer_kind(plan.golds[0]) == "program" and not among_others and _tells_programs_apart(reward, plan):
        return True
    several = len(plan.golds) > 1 and not plan.own_golds
    columns = plan.columns[-1] if several else {plan.answer_column: plan.wrong}
    batches = [plan.clean] * 2, [plan.clean] * 2, plan.rows([plan.clean] * 2, **columns)
    first, again, other = (call(reward, rows, plan.chat).scores for rows in batches)
    return first == again != other


def _tells_programs_apart(reward: Callable, plan: Plan) -> bool:
    """Whether a text that is not a program scores less than the gold program, whatever the columns contain."""
    none = Case("", "", plan.form.write(reasoning("I do not know."), "I do not know."))
    right, wrong = ((call(reward, [row], plan.chat).scores or [None])[0] for row in [plan.clean, *plan.rows([none])])
    return None not in (right, wrong) and wrong < right
