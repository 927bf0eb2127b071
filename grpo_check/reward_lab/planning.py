"""Decide how a reward is probed: with which gold answers, in which form, judged by what."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grpo_utils.errors import CourseError
from grpo_utils.rewards import reward_name

from .answers import kind_of, wrong_answers
from .calling import Row, call, missing_columns, parameters_of, sum_of
from .discovery import forms_of
from .forms import FORMS, Form, read_tags
from .matrix import NO_ANSWER, Case, clean_case, reasoning

#: Gold answers where none are given: a plain one, a negative one, a long one, one with decimals.
DEFAULT_ANSWERS = ("42", "-5", "1250", "0.5")
#: Usual names of the column with the gold answers.
GOLD_COLUMNS = {"answer", "answers", "solution", "label", "target", "gold", "ground_truth", "expected", "reference"}
JSON_ANSWER = '{"answer": 42}'


@dataclass(frozen=True)
class Plan:
    """What a reward is probed with."""

    golds: list[str]  # as a model would write them
    columns: list[dict]  # one for each gold
    answer_column: str
    given: bool  # whether there are gold answers at all
    forms: tuple[Form, ...]
    seconds_for_one: float
    chat: bool = True
    examples: tuple[str, ...] = ()
    own_golds: bool = False  # the lab's own, since none were given
    stands_out: bool = True  # whether a clean completion in the form scores more than others
    chosen_for: Callable | None = None  # the reward that the form was chosen for
    unlike: tuple | None = None  # a completion, its score, and its score in a second, equal call
    elsewhere: tuple[Case, float] | None = None  # the wrong answer that earns most, in whatever form

    def rows(self, texts: Sequence[Case], number: int = 0, **other: object) -> list[Row]:
        """Cases as rows of one dataset row; ``other`` replaces columns of it."""
        return [Row(case, number, {**self.columns[number], **other}) for case in texts]


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
    subjects: list[Callable],
    answers: Sequence[object] | None,
    answer_column: str,
    columns: dict[str, Sequence],
    tags: Sequence[str] | None,
    seconds_for_one: float,
) -> list[Plan]:
    """Plans for rewards and what was given with them; without answers also one with the lab's own."""
    own = [DEFAULT_ANSWERS[i % len(DEFAULT_ANSWERS)] for i in range(_length(columns) or len(DEFAULT_ANSWERS))]
    named = any(answer_column in parameters_of(subject) for subject in subjects)
    options = [answers] if answers is not None else [own] if named else [None, own]  # it may read kwargs["answer"]
    forms = (read_tags(tags),) if tags is not None else FORMS
    plans = [_with_answers(subjects, some, answer_column, columns, forms, seconds_for_one) for some in options]
    plans = [replace(plan, own_golds=answers is None and plan.given) for plan in plans]
    return plans[:1] if len(plans) == 1 else [plan for plan in plans if not _fails(subjects[-1], plan)] or plans[:1]


def answer_column_of(subjects: list[Callable], answer_column: str, columns: dict[str, Sequence]) -> str:
    """The column of gold answers: the named one, or the only given column that a reward asks for.

    A column that holds anything but single values is none: those are tests, or something else that an answer is
    checked with.
    """
    names = {name for subject in subjects for name in parameters_of(subject)}
    asked = [name for name in columns if name in names]
    asked = [name for name in asked if name in GOLD_COLUMNS] or asked
    single = len(asked) == 1 and all(isinstance(value, str | int | float) for value in columns[asked[0]])
    return asked[0] if single and answer_column not in names else answer_column


def _with_answers(
    subjects: list[Callable],
    answers: Sequence[object] | None,
    answer_column: str,
    columns: dict[str, Sequence],
    forms: tuple[Form, ...],
    seconds_for_one: float,
) -> Plan:
    golds = [None] * (_length(columns) or 1) if answers is None else list(answers)
    filled = columns if answers is None else {**columns, answer_column: golds}
    _check_columns(subjects, filled, len(golds))
    rows = [{name: values[i] for name, values in filled.items()} for i in range(len(golds))]
    texts = [DEFAULT_ANSWERS[0] if answers is None else _as_text(gold) for gold in golds]
    kept = [i for i, text in enumerate(texts) if text.strip()]  # without a gold answer nothing is right
    if not kept:
        raise CourseError(f"answers={golds!r} holds no gold answer; give a few of your dataset's, or leave it out.")
    return Plan(
        [texts[i] for i in kept], [rows[i] for i in kept], answer_column, answers is not None, forms, seconds_for_one
    )


def _length(columns: dict[str, Sequence]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


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
    if isinstance(gold, str) and "####" in gold:  # a GSM8K solution: the answer stands behind
        return gold.rpartition("####")[2].strip()
    return json.dumps(gold, default=str) if isinstance(gold, dict | list) else str(gold)


def _fails(reward: Callable, plan: Plan) -> bool:
    """Whether a reward raises even on a plain completion, of either kind."""
    rows = plan.rows([clean_case(plan.forms[0], plan.golds[0])])
    return all(call(reward, rows, chat).scores is None for chat in (True, False))


def choose_form(reward: Callable, plan: Plan) -> Plan:
    """The form, and the kind of completion, in which a clean completion stands out most."""
    own = forms_of(reward) if len(plan.forms) > 1 else ()
    forms = tuple(dict.fromkeys([*plan.forms, *own]))
    tried = [replace(plan, forms=(form,), chat=chat) for chat in (True, False) for form in forms]
    if len(plan.forms) > 1 and not plan.given:
        json_golds = [JSON_ANSWER] * len(plan.golds)
        tried += [replace(plan, forms=(FORMS[-1],), golds=json_golds, chat=chat) for chat in (True, False)]
    first = tried[0]
    if call(reward, first.rows([clean_case(first.forms[0], first.golds[0])]), first.chat).code == "slow":
        return first  # it does not end: no use in trying further forms
    options = [option for chat in (True, False) for option in tried if option.chat == chat]
    scores, again = (
        [three for chat in (True, False) for three in _scores(reward, [o for o in tried if o.chat == chat])]
        for _ in range(2)
    )
    margins = [_margin(*three) for three in scores]
    order = {form: i for i, form in enumerate(forms)}
    margin, _, best = max(
        ((m, -order[o.forms[0]], -i) for i, (m, o) in enumerate(zip(margins, options, strict=True))),
    )
    stands_out = margin[1] or margin[2] > 0
    chosen = options[-best] if stands_out or len(options) == 2 else first
    pairs = [
        (case, *two)
        for option, one, other in zip(options, scores, again, strict=True)
        for case, *two in zip(_three_texts(option), one, other, strict=True)
    ]
    wrong = [(case, score) for case, score, _ in pairs[1::3] if score is not None and not math.isnan(score)]
    return replace(
        chosen,
        stands_out=stands_out,
        chosen_for=reward,
        unlike=next((pair for pair in pairs if _differ(*pair[1:])), None),
        elsewhere=max(wrong, key=lambda pair: pair[1], default=None),
    )


def _differ(first: float | None, second: float | None) -> bool:
    return first != second and not (first != first and second != second)


def _scores(reward: Callable, options: list[Plan]) -> list[tuple[float | None, float | None, float | None]]:
    """For each option what a clean completion, a wrong one and none score: in one batch, or alone if that fails."""
    texts = [_three_texts(option) for option in options]
    rows = [row for option, three in zip(options, texts, strict=True) for row in option.rows(three)]
    whole = None if getattr(reward, "reads_group", False) else call(reward, rows, options[0].chat).scores
    scores = whole or [(call(reward, [row], options[0].chat).scores or [math.nan])[0] for row in rows]
    return [tuple(scores[i : i + 3]) for i in range(0, len(scores), 3)]


def _three_texts(plan: Plan) -> list[Case]:
    form, gold = plan.forms[0], plan.golds[0]
    wrong = next(iter(wrong_answers(gold, plan.golds).values()), "")
    texts = clean_case(form, gold).text, form.write(reasoning(wrong), wrong), NO_ANSWER
    whats = "right, in the asked form", "wrong, in another form", "no answer"
    return [Case(what, "odd", text) for what, text in zip(whats, texts, strict=True)]


def _margin(clean: float | None, other: float | None, nothing: float | None) -> tuple[bool, bool, float]:
    """Whether a clean completion scores at all, whether it beats a wrong one, and no answer by how much."""
    if clean is None or any(math.isnan(score or 0.0) for score in (clean, other, nothing)):
        return (False, False, 0.0)
    lowest = min(0.0, clean - 1.0)  # where it gives no score
    other, nothing = (lowest if score is None else score for score in (other, nothing))
    return (True, clean > other, clean - nothing)


def fitting_golds(reward: Callable, plan: Plan) -> tuple[Plan, list[str]]:
    """Without the lab's own answers that the reward does not take as right, and those (a task may have no decimals)."""
    if not plan.own_golds or len(plan.golds) == 1:
        return plan, []
    pairs = [replace(plan, golds=[gold], columns=[row]) for gold, row in zip(plan.golds, plan.columns, strict=True)]
    fits = [_margin(*_scores(reward, [pair])[0])[1] for pair in pairs]
    if all(fits) or not any(fits):
        return plan, []
    kept = [i for i, fit in enumerate(fits) if fit]
    refused = [gold for gold, fit in zip(plan.golds, fits, strict=True) if not fit]
    return replace(plan, golds=[plan.golds[i] for i in kept], columns=[plan.columns[i] for i in kept]), refused


def reads_answers(reward: Callable, plan: Plan, among_others: bool) -> bool:
    """Whether a reward is to be judged by the answer: it names the column, or another row's changes its score.

    A single reward that names any of the given columns is; of several some may only shape.
    """
    names = {plan.answer_column} if among_others else set(plan.columns[0])
    if not plan.given or names & set(parameters_of(reward)):
        return plan.given
    if kind_of(plan.golds[0]) == "program" and not among_others and _tells_programs_apart(reward, plan):
        return True
    clean, gold = clean_case(plan.forms[0], plan.golds[0]), plan.golds[0]
    other = next(iter(wrong_answers(gold, plan.golds).values()), "another")
    first = call(reward, plan.rows([clean, clean]), plan.chat)
    columns = {**plan.columns[-1], plan.answer_column: other} if len(plan.golds) == 1 else plan.columns[-1]
    second = call(reward, plan.rows([clean, clean], **columns), plan.chat)
    return first.scores != second.scores


def _tells_programs_apart(reward: Callable, plan: Plan) -> bool:
    """Whether a program that is none scores less than the gold one, whatever the columns hold."""
    form, none = plan.forms[0], "I do not know."
    rows = plan.rows([clean_case(form, plan.golds[0]), Case("", "", form.write(reasoning(none), none))])
    right, wrong = (call(reward, [row], plan.chat).scores or [None] for row in rows)
    return None not in (right[0], wrong[0]) and wrong[0] < right[0]
