"""Decide how a reward is probed: with which gold answers, in which form, judged by what."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grpo_utils.errors import CourseError
from grpo_utils.rewards import reward_name

from .answers import kind_of, wrong_answers
from .calling import call, missing_columns, parameters_of, reads_group, sum_of
from .discovery import forms_of
from .forms import FORMS, Form
from .matrix import NO_ANSWER, Case, clean_case, reasoning

#: Gold answers where none are given: a plain one, a negative one, a long one, one with decimals.
DEFAULT_ANSWERS = ("42", "-5", "1250", "0.5")
#: Usual names of the column with the gold answers.
GOLD_COLUMNS = {"answer", "answers", "solution", "label", "target", "gold", "ground_truth", "expected", "reference"}
JSON_ANSWER = '{"answer": 42}'


@dataclass(frozen=True)
class Plan:
    """What a reward is probed with, and what was seen while the form was chosen."""

    golds: list[str]  # as a model would write them
    columns: list[dict]  # one for each gold
    answer_column: str
    given: bool  # whether there are gold answers at all
    form: Form
    chat: bool = True
    own_golds: bool = False  # the lab's own, since none were given
    stands_out: bool = True  # whether a clean completion in the form scores more than others
    unlike: tuple | None = None  # a completion, its score, and its score in a second, equal call
    elsewhere: tuple[Case, float] | None = None  # the wrong answer that earns most, in whatever form

    def rows(self, cases: Sequence[Case], number: int = 0, **other: object) -> list[Case]:
        """Cases as completions of one dataset row; ``other`` replaces columns of it."""
        return [case._replace(number=number, columns={**self.columns[number], **other}) for case in cases]

    @property
    def clean(self) -> Case:
        """The first gold answer in the form."""
        return self.rows([clean_case(self.form, self.golds[0])])[0]

    @property
    def wrong(self) -> str:
        """A wrong answer for the first gold one."""
        return next(iter(wrong_answers(self.golds[0], self.golds).values()), "another")

    def of_golds(self, numbers: Sequence[int]) -> "Plan":
        """The plan with some of the gold answers."""
        return replace(self, golds=[self.golds[i] for i in numbers], columns=[self.columns[i] for i in numbers])


def subjects_of(reward: Callable | Sequence[Callable], weights: Sequence[float] | None) -> list[Callable]:
    """The rewards to judge; of several the weighted sum comes last."""
    if not isinstance(reward, list | tuple):
        return [reward]
    weights = [1.0] * len(reward) if weights is None else list(weights)
    if not reward or len(weights) != len(reward):
        raise CourseError(f"{len(weights)} weights were given for {len(reward)} rewards; give one for each.")
    for one in reward:
        parameters_of(one)
    return [*reward, sum_of(reward, weights)]


def make_plans(
    subjects: list[Callable], answers: Sequence | None, answer_column: str, columns: dict[str, Sequence], form: Form
) -> list[Plan]:
    """Plans for rewards and what was given with them; without answers also one with the lab's own."""
    if answers is not None:
        return [_with_answers(subjects, answers, answer_column, columns, form)]
    length = len(next(iter(columns.values()), DEFAULT_ANSWERS))
    own = [DEFAULT_ANSWERS[i % len(DEFAULT_ANSWERS)] for i in range(length)]
    plans = [replace(_with_answers(subjects, own, answer_column, columns, form), own_golds=True)]
    if any(answer_column in parameters_of(subject) for subject in subjects):
        return plans
    plans.insert(0, _with_answers(subjects, None, answer_column, columns, form))  # it may read kwargs["answer"]
    return [plan for plan in plans if not _fails(subjects[-1], plan)] or plans[:1]


def answer_column_of(subjects: list[Callable], answer_column: str, columns: dict[str, Sequence]) -> str:
    """The column of gold answers: the named one, or the only given column that a reward asks for.

    A column that holds anything but single values is not one: those are tests, or something else that an answer is
    checked with.
    """
    names = {name for subject in subjects for name in parameters_of(subject)}
    asked = [name for name in columns if name in names]
    asked = [name for name in asked if name in GOLD_COLUMNS] or asked
    single = len(asked) == 1 and all(isinstance(value, str | int | float) for value in columns[asked[0]])
    return asked[0] if single and answer_column not in names else answer_column


def _with_answers(
    subjects: list[Callable], answers: Sequence | None, answer_column: str, columns: dict[str, Sequence], form: Form
) -> Plan:
    golds = [None] * len(next(iter(columns.values()), [None])) if answers is None else list(answers)
    columns = columns if answers is None else {**columns, answer_column: golds}
    _check_columns(subjects, columns, len(golds))
    rows = [{name: values[i] for name, values in columns.items()} for i in range(len(golds))]
    texts = [DEFAULT_ANSWERS[0] if answers is None else _as_text(gold) for gold in golds]
    kept = [i for i, text in enumerate(texts) if text.strip()]  # without a gold answer nothing is right
    if not kept:
        raise CourseError(f"answers={golds!r} holds no gold answer; give a few of your dataset's, or leave it out.")
    return Plan(texts, rows, answer_column, answers is not None, form).of_golds(kept)


def _check_columns(subjects: list[Callable], columns: dict[str, Sequence], length: int) -> None:
    for name, values in columns.items():
        if isinstance(values, str) or len(values) != length:
            raise CourseError(f"column {name!r} should be a list of {length} values, one for each answer.")
    for subject in subjects:
        if missing := missing_columns(parameters_of(subject), columns):
            names, first = ", ".join(map(repr, missing)), missing[0]
            raise CourseError(
                f"{reward_name(subject)} asks for {names}, which TRL fills from a dataset column: give "
                f"columns={{{first!r}: […]}}, one value for each answer (in a terminal: --column NAME JSON); or "
                f"answers=[…], answer_column={first!r} if it holds the gold answers."
            )


def _as_text(gold: object) -> str:
    """A gold answer as a model would write it; the first of several; JSON for a dict; "" for None."""
    if gold is None:
        return ""
    if isinstance(gold, list | tuple) and gold and isinstance(gold[0], str):
        return gold[0]
    if isinstance(gold, str) and "####" in gold:  # a GSM8K solution: the answer comes after it
        return gold.rpartition("####")[2].strip()
    return json.dumps(gold, default=str) if isinstance(gold, dict | list) else str(gold)


def _fails(reward: Callable, plan: Plan) -> bool:
    """Whether a reward raises even on a plain completion, of either kind."""
    return all(call(reward, [plan.clean], chat).scores is None for chat in (True, False))


def choose_form(reward: Callable, plan: Plan, asked: bool) -> Plan:
    """The form (of the asked one, or any) and the kind of completion in which a clean completion stands out most."""
    forms = (plan.form,) if asked else tuple(dict.fromkeys([*FORMS, *forms_of(reward)]))
    options = [replace(plan, form=form) for form in forms]
    if not asked and not plan.given:
        options.append(replace(plan, form=FORMS[-1], golds=[JSON_ANSWER] * len(plan.golds)))
    if call(reward, [options[0].clean], chat=True).code == "slow":
        return options[0]  # it does not end: no use in trying further forms
    kinds = options, [replace(option, chat=False) for option in options]
    scores, again = ([three for kind in kinds for three in _scores(reward, kind)] for _ in range(2))
    options = [*kinds[0], *kinds[1]]
    margins = [_margin(*three) for three in scores]
    best = max(range(len(options)), key=lambda i: (margins[i], -forms.index(options[i].form), -i))
    stands_out = margins[best][1] or margins[best][2] > 0
    cases = [case for option in options for case in _three_texts(option)]
    firsts, seconds = ([score for three in some for score in three] for some in (scores, again))
    differ = (pair for pair in zip(cases, firsts, seconds, strict=True) if pair[1] != pair[2] and not _both_nan(*pair))
    wrong = [(case, s) for case, s in list(zip(cases, firsts, strict=True))[1::3] if s is not None and s == s]
    return replace(
        options[best] if stands_out or len(options) == 2 else options[0],
        stands_out=stands_out,
        unlike=next(differ, None),
        elsewhere=max(wrong, key=lambda pair: pair[1], default=None),
    )


def _both_nan(case: Case, first: float | None, second: float | None) -> bool:
    return first != first and second != second


def _scores(reward: Callable, options: list[Plan]) -> list[tuple[float | None, float | None, float | None]]:
    """For each option what a clean completion, a wrong one and none score: in one batch, or alone if that fails."""
    rows = [row for option in options for row in option.rows(_three_texts(option))]
    chat = options[0].chat
    whole = None if reads_group(reward) else call(reward, rows, chat).scores
    scores = whole or [(call(reward, [row], chat).scores or [math.nan])[0] for row in rows]
    return list(zip(scores[::3], scores[1::3], scores[2::3], strict=True))


def _three_texts(plan: Plan) -> list[Case]:
    wrong = plan.form.write(reasoning(plan.wrong), plan.wrong)
    return [
        plan.clean._replace(role="odd"),
        Case("wrong, in another form", "odd", wrong),
        Case("no answer", "odd", NO_ANSWER),
    ]


def _margin(clean: float | None, other: float | None, nothing: float | None) -> tuple[bool, bool, float]:
    """Whether a clean completion scores at all, whether it beats a wrong one, and no answer by how much."""
    if clean is None or any(math.isnan(score or 0.0) for score in (clean, other, nothing)):
        return (False, False, 0.0)
    lowest = min(0.0, clean - 1.0)  # where it gives no score
    other, nothing = (lowest if score is None else score for score in (other, nothing))
    return (True, clean > other, clean - nothing)


def fitting_golds(reward: Callable, plan: Plan) -> tuple[Plan, list[str]]:
    """Without the lab's own answers that the reward does not take as right, and those (a task may have no decimals)."""
    if not plan.own_golds:
        return plan, []
    fits = [_margin(*_scores(reward, [plan.of_golds([i])])[0])[1] for i in range(len(plan.golds))]
    if not any(fits):
        return plan, []
    refused = [gold for gold, fit in zip(plan.golds, fits, strict=True) if not fit]
    return plan.of_golds([i for i, fit in enumerate(fits) if fit]), refused


def reads_answers(reward: Callable, plan: Plan, among_others: bool) -> bool:
    """Whether a reward is to be judged by the answer: it names the column, or another row's changes its score.

    A single reward that names any of the given columns is; of several some may only shape.
    """
    names = {plan.answer_column} if among_others else set(plan.columns[0])
    if not plan.given or names & set(parameters_of(reward)):
        return plan.given
    if kind_of(plan.golds[0]) == "program" and not among_others and _tells_programs_apart(reward, plan):
        return True
    columns = plan.columns[-1] if len(plan.golds) > 1 else {plan.answer_column: plan.wrong}
    first = call(reward, [plan.clean] * 2, plan.chat)
    return first.scores != call(reward, plan.rows([plan.clean] * 2, **columns), plan.chat).scores


def _tells_programs_apart(reward: Callable, plan: Plan) -> bool:
    """Whether a program that is none scores less than the gold one, whatever the columns hold."""
    none = Case("", "", plan.form.write(reasoning("I do not know."), "I do not know."))
    right, wrong = ((call(reward, [row], plan.chat).scores or [None])[0] for row in [plan.clean, *plan.rows([none])])
    return None not in (right, wrong) and wrong < right
