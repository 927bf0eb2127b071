"""Decide how a reward is probed: with which gold answers, in which form, judged by what."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import CourseError
from ..rewards import reward_name
from .answers import kind_of, wrong_answers
from .calling import Row, call, missing_columns, parameters_of, sum_of
from .forms import FORMS, Form, read_tags
from .matrix import NO_ANSWER, Case, clean_case, reasoning

#: Gold answers where none are given: a plain one, a negative one, a long one, one with decimals.
DEFAULT_ANSWERS = ("42", "-5", "1250", "0.5")
JSON_ANSWER = '{"answer": 42}'


@dataclass(frozen=True)
class Plan:
    """What a reward is probed with."""

    golds: list[str]
    columns: list[dict]  # one for each gold
    answer_column: str
    given: bool  # whether there are gold answers at all
    forms: tuple[Form, ...]
    seconds_for_one: float
    chat: bool = True
    examples: tuple[str, ...] = ()

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


def make_plan(
    subjects: list[Callable],
    answers: Sequence[object] | None,
    answer_column: str,
    columns: dict[str, Sequence],
    tags: Sequence[str] | None,
    seconds_for_one: float,
) -> Plan:
    """The plan for rewards and what was given with them; without answers the lab's own where they are needed."""
    own = [DEFAULT_ANSWERS[i % len(DEFAULT_ANSWERS)] for i in range(_length(columns) or len(DEFAULT_ANSWERS))]
    named = any(answer_column in parameters_of(subject) for subject in subjects)
    options = [answers] if answers is not None else [own] if named else [None, own]  # it may read kwargs["answer"]
    forms = (read_tags(tags),) if tags is not None else FORMS
    plans = [_with_answers(subjects, some, answer_column, columns, forms, seconds_for_one) for some in options]
    return next((plan for plan in plans if not _fails(subjects[-1], plan)), plans[0])


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
    tried = [replace(plan, forms=(form,), chat=chat) for form in plan.forms for chat in (True, False)]
    if len(plan.forms) > 1 and not plan.given:
        json_golds = [JSON_ANSWER] * len(plan.golds)
        tried += [replace(plan, forms=(FORMS[-1],), golds=json_golds, chat=chat) for chat in (True, False)]
    first = replace(plan, forms=plan.forms[:1])
    if call(reward, first.rows([clean_case(first.forms[0], first.golds[0])]), first.chat).code == "slow":
        return first  # it does not end: no use in trying further forms
    margin, best = max(
        ((_margin(reward, option), i) for i, option in enumerate(tried)), key=lambda pair: (pair[0], -pair[1])
    )
    return tried[best] if margin[1] or margin[2] > 0 or len(tried) == 2 else first


def _margin(reward: Callable, plan: Plan) -> tuple[bool, bool, float]:
    """How a clean completion stands out: whether it scores at all, beats a wrong one, and no answer by how much."""
    form, gold = plan.forms[0], plan.golds[0]
    wrong = next(iter(wrong_answers(gold, plan.golds).values()), "")
    texts = [clean_case(form, gold).text, form.write(reasoning(wrong), wrong), NO_ANSWER]
    outcomes = [call(reward, plan.rows([Case("", "", text)]), plan.chat) for text in texts]
    scores = [outcome.scores[0] if outcome.scores else None for outcome in outcomes]
    if None in scores:
        return (False, False, 0.0)
    clean, other, nothing = scores
    return (True, clean > other, clean - nothing)


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
