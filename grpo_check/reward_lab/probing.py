"""Put a reward to the test: score the matrix, gather what the rules judge by."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from grpo_utils.rewards import reward_name

from . import rules
from .answers import kind_of
from .calling import CUT_OFF, Outcome, call, reads_group
from .forms import FORMS, read_tags
from .growth import computes_powers, find_growth, hangs_in_use
from .matrix import Case, cases, clean_case, fillers
from .planning import Plan, answer_column_of, choose_form, make_plan, reads_answers, subjects_of
from .report import CODES, ProbeReport
from .rules import Evidence

#: Completions longer than this (in characters) are scored one by one, and so many seconds for one are too many.
HUGE, SECONDS_FOR_ONE = 5_000, 1.0
#: The name that an executed answer leaves in `sys`.
TRACE = "_written_by_a_completion"
#: Dataset rows that are tried, and completions that are scored one by one after a batch that did not end.
MOST_ROWS, MOST_RETRIES = 8, 3
#: Cases that are scored once more alone.
ALONE = ("right, in the asked form", "no tags, no answer", "another row's answer", "off by one", "no idea")


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
    """Attack a reward before a training run does.

    Args:
        reward: one reward, async or not, or a list of rewards, which are judged each and as the sum.
        answers: gold answers as your dataset holds them, a few of each kind. If not given, the lab tries
            numbers of its own; a reward that does not read them is judged by the form alone.
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
        CourseError: what was given is not a reward, asks for a column that was not given, or the
            lengths of answers, columns or weights do not fit.
    """
    subjects, columns = subjects_of(reward, weights), dict(columns or {})
    if answers is None:
        answer_column = answer_column_of(subjects, answer_column, columns)
        answers = columns.pop(answer_column, None)
    plan = make_plan(subjects, answers, answer_column, columns, FORMS[0] if tags is None else read_tags(tags))
    lab = [
        Evidence(name, reads_group(one), [] if hasattr(one, "parts") else find_growth(one, plan))
        for name, one in zip(_names(subjects), subjects, strict=True)
    ]
    if any(seen.found_a("unbounded_time") for seen in lab):  # nothing else can be tried with it
        said = "tried only on runs of characters, because one of them does not end."
        return _report(lab, plan, dict.fromkeys((seen.reward for seen in lab), said))
    plan = choose_form(subjects[-1], plan, tags is not None)
    lab[-1].elsewhere = plan.elsewhere
    for subject, seen in zip(subjects, lab, strict=True):
        seen.answered = reads_answers(subject, plan, len(subjects) > 1)
    if plan.own_golds and not any(seen.answered for seen in lab):
        plan = plan.without_answers()
    slow = 0.01 * seconds_per_step / completions_per_step
    for subject, seen in zip(subjects, lab, strict=True):
        if plan.refused and seen.answered:
            some = f"nothing for a right answer {', '.join(plan.refused)}, which is left out."
            seen.add("too_strict", f"{some} If your task has such answers, give answers=….")
        _examine(subject, plan, seen, examples, slow)
        seen.judge()
    return _report(lab, plan, {seen.reward: _judged(seen, plan) for seen in lab})


def _names(subjects: list[Callable]) -> list[str]:
    """The rewards' names, numbered where two are the same."""
    names = [reward_name(subject) for subject in subjects]
    return [f"{name} ({i + 1})" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _report(lab: list[Evidence], plan: Plan, judged: dict[str, str]) -> ProbeReport:
    findings = [replace(found, subject=seen.reward) for seen in lab for found in seen.found]
    scored = [
        {"reward": seen.reward, "gold": plan.golds[case.number] if seen.answered else "", "what": case.what}
        | {"label": case.label, "completion": case.text, "score": score}
        for seen in lab
        for case, score in seen.scored
    ]
    order = list(CODES)
    return ProbeReport(tuple(sorted(findings, key=lambda found: order.index(found.code))), tuple(scored), judged)


def _judged(seen: Evidence, plan: Plan) -> str:
    """How one reward was judged, in a sentence."""
    kind = "chat messages" if plan.chat else "strings"
    golds = ", ".join(plan.golds[:4]) + (", …" if len(plan.golds) > 4 else "")
    how = f"by the answer ({golds})" if seen.answered else "by its form alone, without answers"
    return f"{len(seen.scored)} completions, {kind} in the form {plan.form}, judged {how}."


def _examine(reward: Callable, plan: Plan, seen: Evidence, examples: Sequence[str], slow: float) -> None:
    """Gather all evidence about one reward."""
    _score_matrix(reward, plan, seen, examples)
    if seen.scored:
        _score_among_others(reward, plan, seen, slow)
        _score_other_kind(reward, plan, seen)
    if seen.scored and seen.answered:
        _score_without_gold(reward, plan, seen)
        _let_run(reward, plan, seen)
    if seen.scored and not seen.grouped:
        _fill(reward, plan, seen)


def _score_matrix(reward: Callable, plan: Plan, seen: Evidence, examples: Sequence[str]) -> None:
    """Score every completion: ordinary ones in a batch, huge ones one by one."""
    rows = []
    for number, gold in enumerate(plan.golds[:MOST_ROWS]):
        found = cases(plan.form, gold, plan.golds, seen.answered)
        found += [Case("an example of yours", "odd", text) for text in examples]
        rows += plan.rows([case for case in found if plan.chat or case.text is not None], number)
    failures: dict[tuple[str, str], Case] = {}  # of each code and message the first case that shows it
    for row, outcome in _outcomes(reward, rows, plan, seen):
        if outcome.scores is None and outcome.code == "slow":
            seen.add("slow", f"{outcome.error} ({row.what})", row)
        elif outcome.scores is None:
            failures.setdefault((outcome.code, outcome.error.split("\n")[0]), row)
        elif outcome.scores[0] is not None and not math.isfinite(outcome.scores[0]):
            failures.setdefault(("not_finite", f"the score is {outcome.scores[0]}"), row)
        else:
            seen.scored.append((row, outcome.scores[0]))
    if not seen.scored and not failures and not seen.found_a("unbounded_time"):
        failures = {("raises", "no completion was scored in time"): rows[0]}
    for (code, message), case in failures.items():
        if sum(found.code == code for found in seen.found) < 3:
            seen.add(code, f"{message} (on: {case.what}).", case)


def _outcomes(reward: Callable, rows: list[Case], plan: Plan, seen: Evidence) -> Iterator[tuple[Case, Outcome]]:
    """What became of each row; huge ones come last, one by one, if anything was scored before."""
    ordinary = [row for row in rows if seen.grouped or len(row.text or "") <= HUGE]
    yield from zip(ordinary, _score_all(reward, ordinary, plan, seen), strict=False)
    for row in [row for row in rows if len(row.text or "") > HUGE] if seen.scored and not seen.grouped else []:
        outcome = call(reward, [row], plan.chat)
        if outcome.seconds > SECONDS_FOR_ONE and not outcome.error:
            seen.add("slow", f"{outcome.seconds:.1f} s for one completion ({row.what})", row)
        yield row, outcome


def _score_all(reward: Callable, rows: list[Case], plan: Plan, seen: Evidence) -> list[Outcome]:
    """One outcome a row: from one batch, or one by one if the batch raises."""
    batch = call(reward, rows, plan.chat)
    if batch.changed:
        what = f"it changes `{batch.changed}`, which the next reward gets too; work on a copy."
        seen.add("changes_inputs", what)
    if batch.scores is not None:
        return [Outcome([score]) for score in batch.scores]
    if batch.code == "wrong_length":
        return [batch]
    if batch.code == "slow":
        outcomes = ((row, call(reward, [row], plan.chat, CUT_OFF)) for row in rows)
        hangs = (hangs_in_use(outcome, row) for row, outcome in outcomes if outcome.code == "slow")
        if found := next(filter(None, islice(hangs, MOST_RETRIES)), []):
            seen.found += found[:1]
            return []
    return [call(reward, [row], plan.chat) for row in (rows[:MOST_RETRIES] if batch.code == "slow" else rows)]


def _score_among_others(reward: Callable, plan: Plan, seen: Evidence, slow: float) -> None:
    """Score again, in the reverse order and alone: do the scores stay? And how long does it take?"""
    pairs = [(row, score) for row, score in seen.scored if seen.grouped or len(row.text or "") <= HUGE][::-1]
    backwards = call(reward, [row for row, _ in pairs], plan.chat)
    for (row, score), again in zip(pairs, backwards.scores or [], strict=False):
        _compare(seen, row, score, again, "in the reverse order")
    each = backwards.seconds / max(len(pairs), 1)
    if each > slow and backwards.scores is not None:
        seen.add("slow", f"{1000 * each:.1f} ms per completion; 1 % of a step leaves {1000 * slow:.1f} ms")
    for row, score in [] if seen.grouped else pairs[::-1]:
        if row.what in ALONE:
            _compare(seen, row, score, (call(reward, [row], plan.chat).scores or [None])[0], "alone")
    if seen.answered and not seen.grouped and list(plan.columns[0]) == [plan.answer_column]:
        _score_beside_another_gold(reward, plan, seen)


def _score_beside_another_gold(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """With a single gold answer: does a right completion keep its score behind a row with another one?"""
    other = plan.rows([clean_case(plan.form, plan.wrong)] * 2, **{plan.answer_column: plan.wrong})
    both, alone = call(reward, [*other, plan.clean], plan.chat), call(reward, [plan.clean], plan.chat)
    if both.scores and alone.scores:
        _compare(seen, other[0], *both.scores[:2], "the second time")  # a memory has not seen this gold answer yet
        _compare(seen, plan.clean, alone.scores[0], both.scores[2], "behind a row with another gold answer")


def _compare(seen: Evidence, row: Case, first: float | None, second: float | None, how: str) -> None:
    differ = (first is None) != (second is None) or abs((first or 0) - (second or 0)) > rules.ROUNDING
    if differ and not seen.found_a("order_dependent"):
        what = f"one completion ({row.what}) scores {first} among the others and {second} {how}."
        seen.add("order_dependent", what, row)


def _score_other_kind(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score a few completions as strings instead of chat messages, or the other way round."""
    code, other = ("chat_only", "a string") if plan.chat else ("string_only", "a chat message")
    known = ("right, in the asked form", "off by one", "no tags, no answer")
    rows = [row for row, _ in seen.scored if row.number == 0 and row.what in known]
    usual, outcome = call(reward, rows, plan.chat), call(reward, rows, not plan.chat)
    if outcome.scores is None:
        seen.add(code, f"on {other} as completion: {outcome.error}")
    elif outcome.scores != usual.scores:
        seen.add(code, f"other scores where the completion is {other}: completion_text(c) reads both.")


def _score_without_gold(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score completions without an answer where the gold answer is missing too."""
    rows = [row for row, _ in seen.scored if row.number == 0 and row.role == "missing"]
    rows += plan.rows([Case("the word None", "missing", plan.form.write("None", "None"))])
    usual = call(reward, rows, plan.chat)
    for gold in ("", None):
        without = call(reward, plan.rows(rows, **{plan.answer_column: gold}), plan.chat)
        if usual.scores and without.scores:
            pairs = zip(rows, usual.scores, without.scores, strict=True)
            seen.without_gold += [(row, a or 0.0, b, repr(gold)) for row, a, b in pairs if b is not None]


def _let_run(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Give an answer that leaves a trace if it is executed; where a program is asked for, that is meant."""
    if kind_of(plan.golds[0]) == "program" or "```" in plan.form.before_answer:
        return
    answer = f"setattr(__import__('sys'), '{TRACE}', 1)"
    case = plan.rows([Case("a program as the answer", "odd", plan.form.write("so", answer))])[0]
    call(reward, [case], plan.chat)
    if vars(sys).pop(TRACE, None):
        what = "it executes what the model writes (eval or exec). Parse the answer, or run it in a sandbox."
        seen.add("runs_model_text", what, case)
    if not seen.found_a("unbounded_time"):
        seen.found += computes_powers(reward, plan)


def _fill(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score completions with more and more filler, all with as many tokens: a length in tokens is a choice."""
    series = fillers(plan.form, plan.golds[0], plan.golds, seen.answered)
    rows = plan.rows([case for one in series for case in one], completion_ids=list(range(100)))
    scores = call(reward, rows, plan.chat).scores
    if scores and all(score is None or math.isfinite(score) for score in scores):
        scored = iter(scores)
        seen.filled = [[(case, next(scored)) for case in one] for one in series]
