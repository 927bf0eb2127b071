"""Put a reward to the test: build the matrix, score it, gather what the rules judge by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..errors import CourseError
from . import rules
from .answers import wrong_answers
from .calling import Outcome, Row, call, missing_columns, name_of, parameters_of, sum_of
from .forms import FORMS, Form, read_tags
from .matrix import NO_ANSWER, Case, cases, reasoning
from .report import ProbeReport, Scored, in_order

#: Gold answers where none are given: a plain one, a negative one, a long one, one with decimals.
DEFAULT_ANSWERS = ("42", "-5", "1250", "0.5")
JSON_ANSWER = '{"answer": 42}'
#: Completions longer than this (in characters) are scored one by one and timed.
HUGE = 5_000
SECONDS_FOR_ONE = 1.0
MOST_ROWS = 8


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

    def rows(self, texts: Sequence[Case], number: int = 0, **other: object) -> list[Row]:
        """Cases as rows of one dataset row; ``other`` replaces columns of it."""
        return [Row(case, number, {**self.columns[number], **other}) for case in texts]


def probe(
    reward: Callable | Sequence[Callable],
    *,
    answers: Sequence[object] | None = None,
    answer_column: str = "answer",
    columns: dict[str, Sequence] | None = None,
    tags: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    seconds_per_step: float = 10.0,
    completions_per_step: int = 32,
) -> ProbeReport:
    """Attack a reward before a training does.

    Args:
        reward: one reward, async or not, or a list of rewards, which are judged each and as the sum.
        answers: gold answers as your dataset holds them, a few of each kind; numbers of the lab's
            own where a reward names the answer column and none are given; else it is probed without.
        answer_column: the name of the column that they arrive under.
        columns: further dataset columns, each with one value for each answer.
        tags: the asked form, as the four texts around reasoning and answer, ``()`` for the answer
            alone. If not given, the usual forms are tried and the one that pays best is taken.
        weights: one for each reward of a list; all 1.0 if not given.
        seconds_per_step: how long a training step takes you, for the verdict ``slow``.
        completions_per_step: how many completions a step scores.

    >>> from grpo_utils.rewards import correctness_reward
    >>> probe(correctness_reward, answers=["42", "1000"]).ok
    True
    >>> def finds_it(completions, answer, **kwargs):
    ...     return [1.0 if gold in c[0]["content"] else 0.0 for c, gold in zip(completions, answer)]
    >>> print(sorted(probe(finds_it, answers=["42"]).codes))
    ['chat_only', 'pays_missing_answer', 'raises', 'wrong_beats_right']

    Raises:
        CourseError: what was given is no reward, asks for a column that was not given, or the
            lengths of answers, columns or weights do not fit.
    """
    subjects = _subjects(reward, weights)
    per_completion = 0.01 * seconds_per_step / completions_per_step
    plan = _plan(subjects, answers, answer_column, columns or {}, tags, per_completion)
    plan = _choose_form(subjects[-1], plan)
    examined = [_examine(subject, name, plan) for subject, name in zip(subjects, _names(subjects), strict=True)]
    findings = [replace(f, reward=seen.reward) for seen in examined for rule in rules.RULES for f in rule(seen)]
    scored = [
        _scored(seen, row, score, plan) for seen in examined for row, score in zip(seen.rows, seen.scores, strict=True)
    ]
    return ProbeReport(in_order(findings), tuple(scored), {seen.reward: _judged(seen, plan) for seen in examined})


def _subjects(reward: Callable | Sequence[Callable], weights: Sequence[float] | None) -> list[Callable]:
    """The rewards to judge; of several the weighted sum comes last."""
    if not isinstance(reward, list | tuple):
        return [reward]
    weights = [1.0] * len(reward) if weights is None else list(weights)
    if not reward or len(weights) != len(reward):
        raise CourseError(f"{len(weights)} weights were given for {len(reward)} rewards; give one for each.")
    for one in reward:
        parameters_of(one)
    return [*reward, sum_of(reward, weights)]


def _plan(
    subjects: list[Callable],
    answers: Sequence[object] | None,
    answer_column: str,
    columns: dict[str, Sequence],
    tags: Sequence[str] | None,
    seconds_for_one: float,
) -> Plan:
    parameters = [parameters_of(subject) for subject in subjects]
    if answers is None and any(answer_column in names for names in parameters):
        answers = _default_answers(columns)
    golds = list(answers) if answers is not None else [None] * (_length(columns) or 1)
    _check_columns(subjects, parameters, [answer_column] if answers is not None else [], columns, len(golds))
    rows = [{name: values[i] for name, values in columns.items()} for i in range(len(golds))]
    rows = (
        [{**row, answer_column: gold} for row, gold in zip(rows, golds, strict=True)] if answers is not None else rows
    )
    forms = (read_tags(tags),) if tags is not None else FORMS
    texts = [_as_text(gold) for gold in golds]
    plan = Plan(texts, rows, answer_column, answers is not None, forms, seconds_for_one)
    if answers is None and _fails(subjects[-1], plan):  # perhaps it reads kwargs["answer"]
        given = _plan(subjects, _default_answers(columns), answer_column, columns, tags, seconds_for_one)
        return plan if _fails(subjects[-1], given) else given
    return plan


def _default_answers(columns: dict[str, Sequence]) -> list[str]:
    """The lab's own gold answers, as many as the other columns are long."""
    length = _length(columns) or len(DEFAULT_ANSWERS)
    return [DEFAULT_ANSWERS[i % len(DEFAULT_ANSWERS)] for i in range(length)]


def _length(columns: dict[str, Sequence]) -> int:
    return len(next(iter(columns.values()))) if columns else 0


def _check_columns(
    subjects: list[Callable], parameters: list[dict], given: list[str], columns: dict[str, Sequence], length: int
) -> None:
    if not length:
        raise CourseError("answers=[] holds no gold answer; give a few of your dataset's, or leave it out.")
    for name, values in columns.items():
        if isinstance(values, str) or len(values) != length:
            raise CourseError(f"column {name!r} should be a list of {length} values, one for each answer.")
    for subject, names in zip(subjects, parameters, strict=True):
        if missing := missing_columns(names, [*given, *columns]):
            raise CourseError(
                f"{name_of(subject)} asks for {', '.join(map(repr, missing))}, which TRL fills from a dataset column: "
                f"give columns={{{missing[0]!r}: […]}}, one value for each answer."
            )


def _as_text(gold: object) -> str:
    """A gold answer as a model would write it; the first of several; JSON for a dict."""
    import json

    if gold is None:
        return DEFAULT_ANSWERS[0]
    if isinstance(gold, list | tuple) and gold and isinstance(gold[0], str):
        return gold[0]
    return json.dumps(gold) if isinstance(gold, dict | list) else str(gold)


def _fails(reward: Callable, plan: Plan) -> bool:
    """Whether a reward raises even on a plain completion, of either kind."""
    rows = plan.rows([_clean(plan.forms[0], plan.golds[0])])
    return all(call(reward, rows, chat).scores is None for chat in (True, False))


def _clean(form: Form, gold: str) -> Case:
    return Case("right, in the asked form", "clean", form.write(reasoning(gold), gold))


def _choose_form(reward: Callable, plan: Plan) -> Plan:
    """The form, and the kind of completion, in which a clean completion stands out most."""
    if len(plan.forms) > 1 and not plan.given:
        tried = [replace(plan, forms=(form,), chat=chat) for form in plan.forms for chat in (True, False)]
        json_golds = [JSON_ANSWER] * len(plan.golds)
        tried += [replace(plan, forms=(FORMS[-1],), golds=json_golds, chat=chat) for chat in (True, False)]
    else:
        tried = [replace(plan, forms=(form,), chat=chat) for form in plan.forms for chat in (True, False)]
    return max(tried, key=lambda option: _margin(reward, option))


def _margin(reward: Callable, plan: Plan) -> tuple[bool, bool, float]:
    """How a clean completion stands out: whether it scores at all, beats a wrong one, and no answer by how much."""
    form, gold = plan.forms[0], plan.golds[0]
    wrong = next(iter(wrong_answers(gold, plan.golds).values()), "")
    texts = [_clean(form, gold).text, form.write(reasoning(wrong), wrong), NO_ANSWER]
    outcomes = [call(reward, plan.rows([Case("", "", text)]), plan.chat) for text in texts]
    scores = [outcome.scores[0] if outcome.scores else None for outcome in outcomes]
    if None in scores:
        return (False, False, 0.0)
    clean, other, nothing = scores
    return (True, clean > other, clean - nothing)


def _reads_answers(reward: Callable, plan: Plan) -> bool:
    """Whether a reward is to be judged by the answer: it names the column, or another row's changes its score."""
    if not plan.given or plan.answer_column in parameters_of(reward):
        return plan.given
    clean, gold = _clean(plan.forms[0], plan.golds[0]), plan.golds[0]
    other = next(iter(wrong_answers(gold, plan.golds).values()), "another")
    first = call(reward, plan.rows([clean, clean]), plan.chat)
    columns = {**plan.columns[-1], plan.answer_column: other} if len(plan.golds) == 1 else plan.columns[-1]
    second = call(reward, plan.rows([clean, clean], **columns), plan.chat)
    return first.scores != second.scores


def _names(subjects: list[Callable]) -> list[str]:
    """The rewards' names, numbered where two are the same."""
    names = [name_of(subject) for subject in subjects]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _examine(reward: Callable, name: str, plan: Plan) -> rules.Evidence:
    """All evidence about one reward."""
    seen = rules.Evidence(name, _reads_answers(reward, plan))
    _score_matrix(reward, plan, seen)
    if seen.rows:
        _score_among_others(reward, plan, seen)
        _score_other_kind(reward, plan, seen)
    if seen.rows and seen.answered:
        _score_without_gold(reward, plan, seen)
    return seen


def _all_rows(plan: Plan, answered: bool) -> list[Row]:
    rows = []
    for number, gold in enumerate(plan.golds[:MOST_ROWS]):
        found = cases(plan.forms[0], gold, plan.golds, answered)
        rows += plan.rows([case for case in found if plan.chat or case.text is not None], number)
    return rows


def _score_matrix(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Score every completion: ordinary ones in a batch, huge ones one by one."""
    rows = _all_rows(plan, seen.answered)
    grouped = getattr(reward, "reads_group", False)
    huge = [row for row in rows if len(row.case.text or "") > HUGE and not grouped]
    ordinary = [row for row in rows if row not in huge]
    _keep(seen, ordinary, _score_all(reward, ordinary, plan, seen))
    for row in huge if seen.rows else []:
        outcome = call(reward, [row], plan.chat)
        _keep(seen, [row], [outcome])
        if outcome.seconds > SECONDS_FOR_ONE and not outcome.error:
            seen.slow.append((f"{outcome.seconds:.1f} s for one completion ({row.case.what})", row.case))


def _score_all(reward: Callable, rows: list[Row], plan: Plan, seen: rules.Evidence) -> list[Outcome]:
    """One outcome a row: from one batch, or one by one if the batch raises."""
    batch = call(reward, rows, plan.chat)
    if batch.scores is not None:
        return [Outcome([score]) for score in batch.scores]
    if batch.code == "wrong_length":
        seen.failures.append((batch.code, batch.error, rows[0].case))
        return []
    return [call(reward, [row], plan.chat) for row in rows]


def _keep(seen: rules.Evidence, rows: list[Row], outcomes: list[Outcome]) -> None:
    """Keep the scores that are some, and note the failures."""
    for row, outcome in zip(rows, outcomes, strict=False):  # no outcomes where the batch had a wrong length
        if outcome.scores is None and outcome.code == "slow":
            seen.slow.append((f"{outcome.error} ({row.case.what})", row.case))
        elif outcome.scores is None:
            seen.failures.append((outcome.code, outcome.error, row.case))
        elif outcome.scores[0] is not None and not _finite(outcome.scores[0]):
            seen.failures.append(("not_finite", f"the score is {outcome.scores[0]}", row.case))
        else:
            seen.rows.append(row)
            seen.scores.append(outcome.scores[0])


def _finite(score: float) -> bool:
    return abs(score) < float("inf")  # false for NaN too


def _score_among_others(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Score again, in the reverse order and alone: do the scores stay? And how long does it take?"""
    grouped = getattr(reward, "reads_group", False)
    pairs = [
        (row, s) for row, s in zip(seen.rows, seen.scores, strict=True) if grouped or len(row.case.text or "") <= HUGE
    ]
    backwards = call(reward, [row for row, _ in reversed(pairs)], plan.chat)
    for (row, score), again in zip(reversed(pairs), backwards.scores or [], strict=False):
        _compare(seen, row, score, again, "in the reverse order")
    _time(seen, backwards, len(pairs), plan)
    for row, score in [] if grouped else pairs:
        if row.case.what in ("right, in the asked form", "no tags, no answer"):
            alone = call(reward, [row], plan.chat)
            _compare(seen, row, score, alone.scores[0] if alone.scores else None, "alone")


def _compare(seen: rules.Evidence, row: Row, first: float | None, second: float | None, how: str) -> None:
    if (first is None) != (second is None) or abs((first or 0) - (second or 0)) > rules.ROUNDING:
        seen.unlike.append((row.case, first, second, how))


def _time(seen: rules.Evidence, outcome: Outcome, count: int, plan: Plan) -> None:
    each = outcome.seconds / max(count, 1)
    if each > plan.seconds_for_one and outcome.scores is not None:
        seen.slow.append(
            (f"{1000 * each:.1f} ms a completion; 1 % of a step leaves {1000 * plan.seconds_for_one:.1f} ms", None)
        )


def _score_other_kind(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Score a few completions as strings instead of chat messages, or the other way round."""
    code, other = ("chat_only", "a string") if plan.chat else ("string_only", "a chat message")
    known = ("right, in the asked form", "off by one", "no tags, no answer")
    rows = [row for row in seen.rows if row.number == 0 and row.case.what in known]
    usual, outcome = call(reward, rows, plan.chat), call(reward, rows, not plan.chat)
    if outcome.scores is None:
        seen.kinds.append((code, f"on {other} as completion: {outcome.error}"))
    elif outcome.scores != usual.scores:
        seen.kinds.append((code, f"other scores where the completion is {other}: completion_text(c) reads both."))


def _score_without_gold(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Score completions without an answer where the gold answer is missing too."""
    form = plan.forms[0]
    answerless = [row.case for row in seen.rows if row.number == 0 and row.case.role == "missing"]
    answerless.append(Case("the word None", "missing", form.write("None", "None")))
    usual = call(reward, plan.rows(answerless), plan.chat)
    for gold in ("", None):
        without = call(reward, plan.rows(answerless, **{plan.answer_column: gold}), plan.chat)
        if usual.scores and without.scores:
            pairs = zip(answerless, usual.scores, without.scores, strict=True)
            seen.without_gold += [(c, a or 0.0, b, repr(gold)) for c, a, b in pairs if b is not None]


def _scored(seen: rules.Evidence, row: Row, score: float | None, plan: Plan) -> Scored:
    label = row.case.label if seen.answered else "clean" if row.case.label == "right" else "neutral"
    gold = plan.golds[row.number] if seen.answered else ""
    return Scored(seen.reward, gold, row.case.what, label, row.case.text, score)


def _judged(seen: rules.Evidence, plan: Plan) -> str:
    """How one reward was judged, in a sentence."""
    kind = "chat messages" if plan.chat else "strings"
    golds = ", ".join(plan.golds[:4]) + (", …" if len(plan.golds) > 4 else "")
    how = f"by the answer ({golds})" if seen.answered else "by its form alone, without answers"
    return f"{len(seen.rows)} completions, {kind} in the form {plan.forms[0]}, judged {how}."
