"""Put a reward to the test: score the matrix, gather what the rules judge by."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice

from grpo_utils.rewards import reward_name

from . import rules
from .answers import kind_of, wrong_answers
from .calling import Outcome, Row, call
from .growth import CUT_OFF, computes_powers, find_growth, hangs_in_use
from .matrix import Case, cases, clean_case, fillers
from .planning import Plan, answer_column_of, choose_form, fitting_golds, make_plans, reads_answers, subjects_of
from .report import ProbeReport, Scored, in_order

#: Completions longer than this (in characters) are scored one by one and timed.
HUGE = 5_000
SECONDS_FOR_ONE = 1.0
#: The name that an executed answer leaves in `sys`.
TRACE = "_written_by_a_completion"
#: Rows that are scored one by one after a batch that did not end.
MOST_RETRIES = 3
#: Cases that are scored once more alone.
ALONE = ("right, in the asked form", "no tags, no answer", "another row's answer", "off by one", "no idea")
MOST_ROWS = 8


def probe(
    reward: Callable | Sequence[Callable],
    *,
    answers: Sequence[object] | None = None,
    answer_column: str = "answer",
    columns: dict[str, Sequence] | None = None,
    tags: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    examples: Sequence[str] = (),
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
        examples: completions of your own, tried as well and judged as neutral; for a reward that reacts
            to something of which the lab knows nothing (swear words, bullet points).
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
    subjects, columns = subjects_of(reward, weights), dict(columns or {})
    if answers is None:
        answer_column = answer_column_of(subjects, answer_column, columns)
    if answers is None and answer_column in columns:
        answers = columns.pop(answer_column)
    per_completion = 0.01 * seconds_per_step / completions_per_step
    plans = make_plans(subjects, answers, answer_column, columns, tags, per_completion)
    plan = plans[0]
    growth = [None if hasattr(subject, "parts") else find_growth(subject, plan) for subject in subjects]
    if any(found and found[-1] for found in growth):
        return _only_growth(subjects, growth, plan)
    chosen = [choose_form(subjects[-1], plan)]
    if not chosen[0].stands_out:  # it may read the answers from its keywords
        chosen += [choose_form(subjects[-1], plan) for plan in plans[1:]]
    best = next((plan for plan in chosen if plan.stands_out), chosen[0])
    plan, refused = fitting_golds(subjects[-1], replace(best, examples=tuple(examples)))
    answered = [reads_answers(subject, plan, len(subjects) > 1) for subject in subjects]
    seen = [
        rules.Evidence(name, reads, growth=found, refused=refused if reads else [], grouped=_reads_group(subject))
        for name, reads, found, subject in zip(_names(subjects), answered, growth, subjects, strict=True)
    ]
    examined = [_examine(subject, plan, some) for subject, some in zip(subjects, seen, strict=True)]
    findings = [replace(f, reward=seen.reward) for seen in examined for rule in rules.RULES for f in rule(seen)]
    scored = [
        _scored(seen, row, score, plan) for seen in examined for row, score in zip(seen.rows, seen.scores, strict=True)
    ]
    return ProbeReport(in_order(findings), tuple(scored), {seen.reward: _judged(seen, plan) for seen in examined})


def _only_growth(subjects: list[Callable], growth: list, plan: Plan) -> ProbeReport:
    """The report on rewards of which one hangs: nothing else can be tried with it."""
    seen = [
        rules.Evidence(name, plan.given, growth=found) for name, found in zip(_names(subjects), growth, strict=True)
    ]
    for some in seen:
        if some.growth and some.growth[0].startswith("no end"):
            some.slow.append(("no end within a second or two", some.growth[1]))
    findings = [replace(f, reward=some.reward) for some in seen for rule in rules.RULES for f in rule(some)]
    judged = {some.reward: "tried only on runs of characters, because one of them does not end." for some in seen}
    return ProbeReport(in_order(findings), (), judged)


def _reads_group(reward: Callable) -> bool:
    return getattr(reward, "reads_group", False)


def _names(subjects: list[Callable]) -> list[str]:
    """The rewards' names, numbered where two are the same."""
    names = [reward_name(subject) for subject in subjects]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _examine(reward: Callable, plan: Plan, seen: rules.Evidence) -> rules.Evidence:
    """Gather all evidence about one reward."""
    _score_matrix(reward, plan, seen)
    if reward is plan.chosen_for:
        seen.elsewhere = plan.elsewhere
        seen.unlike += [(*plan.unlike, "in a second call")] if plan.unlike else []
    if seen.rows:
        _score_among_others(reward, plan, seen)
        _score_other_kind(reward, plan, seen)
    if seen.rows and seen.answered:
        _score_without_gold(reward, plan, seen)
        _let_run(reward, plan, seen)
    if seen.rows and not _reads_group(reward):
        _fill(reward, plan, seen)
    return seen


def _let_run(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Give an answer that leaves a trace if it is executed; where a program is asked for, that is meant."""
    form = plan.forms[0]
    if kind_of(plan.golds[0]) == "program" or "```" in form.before_answer:
        return
    case = Case("a program as the answer", "odd", form.write("so", f"setattr(__import__('sys'), '{TRACE}', 1)"))
    call(reward, plan.rows([case]), plan.chat)
    if hasattr(sys, TRACE):
        delattr(sys, TRACE)
        seen.ran = case
    seen.growth = seen.growth or computes_powers(reward, plan)


def _fill(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Score completions with more and more filler, all with as many tokens: a length in tokens is a choice."""
    series = fillers(plan.forms[0], plan.golds[0], plan.golds, seen.answered)
    cases = [case for one in series for case in one]
    outcome = call(reward, plan.rows(cases, completion_ids=list(range(100))), plan.chat)
    if outcome.scores and all(score is None or _finite(score) for score in outcome.scores):
        scores = iter(outcome.scores)
        seen.filled = [[(case, next(scores)) for case in one] for one in series]


def _all_rows(plan: Plan, answered: bool) -> list[Row]:
    rows = []
    for number, gold in list(enumerate(plan.golds))[:MOST_ROWS]:
        found = cases(plan.forms[0], gold, plan.golds, answered)
        found += [Case("an example of yours", "odd", text) for text in plan.examples]
        rows += plan.rows([case for case in found if plan.chat or case.text is not None], number)
    return rows


def _score_matrix(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """Score every completion: ordinary ones in a batch, huge ones one by one."""
    rows = _all_rows(plan, seen.answered)
    grouped = _reads_group(reward)
    huge = [row for row in rows if len(row.case.text or "") > HUGE and not grouped]
    ordinary = [row for row in rows if len(row.case.text or "") <= HUGE or grouped]
    _keep(seen, ordinary, _score_all(reward, ordinary, plan, seen))
    hangs = seen.growth and seen.growth[-1]
    if not seen.rows and not seen.failures and not hangs:
        seen.failures.append(("raises", "no completion was scored in time", rows[0].case))
    for row in huge if seen.rows else []:
        outcome = call(reward, [row], plan.chat)
        _keep(seen, [row], [outcome])
        if outcome.seconds > SECONDS_FOR_ONE and not outcome.error:
            seen.slow.append((f"{outcome.seconds:.1f} s for one completion ({row.case.what})", row.case))


def _score_all(reward: Callable, rows: list[Row], plan: Plan, seen: rules.Evidence) -> list[Outcome]:
    """One outcome a row: from one batch, or one by one if the batch raises."""
    batch = call(reward, rows, plan.chat)
    seen.changed = batch.changed
    if batch.code == "slow" and (found := _hanging(reward, rows, plan)):
        seen.growth = found
        return []
    if batch.scores is not None:
        return [Outcome([score]) for score in batch.scores]
    if batch.code == "wrong_length":
        seen.failures.append((batch.code, batch.error, rows[0].case))
        return []
    return [call(reward, [row], plan.chat) for row in (rows[:MOST_RETRIES] if batch.code == "slow" else rows)]


def _hanging(reward: Callable, rows: list[Row], plan: Plan) -> tuple[str, Case, bool] | None:
    """The completion on which a reward keeps the processor busy without an end."""
    outcomes = ((row, call(reward, [row], plan.chat, CUT_OFF)) for row in rows)
    found = (hangs_in_use(outcome, row.case) for row, outcome in outcomes if outcome.code == "slow")
    return next((one for one in islice(found, MOST_RETRIES) if one), None)


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
    grouped = _reads_group(reward)
    pairs = [
        (row, s) for row, s in zip(seen.rows, seen.scores, strict=True) if grouped or len(row.case.text or "") <= HUGE
    ]
    backwards = call(reward, [row for row, _ in reversed(pairs)], plan.chat)
    for (row, score), again in zip(reversed(pairs), backwards.scores or [], strict=False):
        _compare(seen, row, score, again, "in the reverse order")
    _time(seen, backwards, len(pairs), plan)
    for row, score in [] if grouped else pairs:
        if row.case.what in ALONE:
            alone = call(reward, [row], plan.chat)
            _compare(seen, row, score, alone.scores[0] if alone.scores else None, "alone")
    if seen.answered and not grouped and list(plan.columns[0]) == [plan.answer_column]:
        _score_beside_another_gold(reward, plan, seen)


def _score_beside_another_gold(reward: Callable, plan: Plan, seen: rules.Evidence) -> None:
    """With a single gold answer: does a right completion keep its score behind a row with another one?"""
    other = next(iter(wrong_answers(plan.golds[0], plan.golds).values()))
    clean, another = clean_case(plan.forms[0], plan.golds[0]), clean_case(plan.forms[0], other)
    rows = [*plan.rows([another, another], **{plan.answer_column: other}), *plan.rows([clean])]
    both, alone = call(reward, rows, plan.chat), call(reward, rows[2:], plan.chat)
    if both.scores and alone.scores:
        _compare(seen, rows[0], *both.scores[:2], "the second time")  # a memory has not seen this gold answer yet
        _compare(seen, rows[2], alone.scores[0], both.scores[2], "behind a row with another gold answer")


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
    gold = plan.golds[row.number] if seen.answered else ""
    return Scored(seen.reward, gold, row.case.what, row.case.label, row.case.text, score)


def _judged(seen: rules.Evidence, plan: Plan) -> str:
    """How one reward was judged, in a sentence."""
    kind = "chat messages" if plan.chat else "strings"
    golds = ", ".join(plan.golds[:4]) + (", …" if len(plan.golds) > 4 else "")
    how = f"by the answer ({golds})" if seen.answered else "by its form alone, without answers"
    return f"{len(seen.rows)} completions, {kind} in the form {plan.forms[0]}, judged {how}."
