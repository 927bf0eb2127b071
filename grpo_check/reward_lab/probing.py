"""Test a reward: score the matrix of completions and collect the evidence for the rules."""

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

#: Completions longer than this (in characters) are scored one by one, and may take this many seconds each.
HUGE, SECONDS_FOR_ONE = 5_000, 1.0
#: Seconds a completion above which a reward is slow: 1% of a step of 10 seconds with 32 completions.
SLOW = 0.01 * 10 / 32
#: The attribute that an executed answer sets in `sys`.
TRACE = "_written_by_a_completion"
#: Dataset rows that are tried, and completions that are retried one by one after a batch that timed out.
MOST_ROWS, MOST_RETRIES = 8, 3
#: Cases that are scored once more, each on its own.
ALONE = ("correct, in the requested format", "no tags, no answer", "another row's answer", "off by one", "no idea")


def probe(
    reward: Callable | Sequence[Callable],
    *,
    answers: Sequence[object] | None = None,
    answer_column: str = "answer",
    columns: dict[str, Sequence] | None = None,
    tags: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
    examples: Sequence[str] = (),
) -> ProbeReport:
    """Attack a reward before a training run does.

    Args:
        reward: one reward, async or not, or a list of rewards, tested one by one and as a weighted sum.
        answers: gold answers as in your dataset, a few of each kind. By default the lab uses
            numbers of its own, and judges a reward that does not read them by its format alone.
        answer_column: the name of the column with the gold answers.
        columns: further dataset columns, each with one value per answer.
        tags: the requested format, as the four texts around reasoning and answer, or ``()`` for the answer
            alone. By default the lab tries common formats and uses the one that scores best.
        weights: one per reward in a list; 1.0 each by default.
        examples: your own completions, scored as well and treated as neutral; for a reward that looks
            for something the lab does not know (swear words, bullet points).

    >>> from grpo_utils.rewards import correctness_reward
    >>> probe(correctness_reward, answers=["42", "1000"]).ok
    True
    >>> def finds_it(completions, answer, **kwargs):
    ...     return [1.0 if gold in c[0]["content"] else 0.0 for c, gold in zip(completions, answer)]
    >>> print(sorted(probe(finds_it, answers=["42"]).codes))
    ['chat_only', 'pays_missing_answer', 'raises', 'wrong_beats_right']

    Raises:
        CourseError: the reward is not a function, needs a column that was not given, or the
            lengths of answers, columns or weights do not match.
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
    if any(seen.found_a("unbounded_time") for seen in lab):  # nothing else can be tested
        said = "tested only on runs of repeated characters, because one of them never finished."
        return _report(lab, plan, dict.fromkeys((seen.reward for seen in lab), said))
    plan = choose_form(subjects[-1], plan, tags is not None)
    lab[-1].elsewhere = plan.elsewhere
    for subject, seen in zip(subjects, lab, strict=True):
        seen.answered = reads_answers(subject, plan, len(subjects) > 1)
    if plan.own_golds and not any(seen.answered for seen in lab):
        plan = plan.without_answers()
    for subject, seen in zip(subjects, lab, strict=True):
        if plan.refused and seen.answered:
            some = f"the correct answers {', '.join(plan.refused)} earn nothing, so the lab left them out."
            seen.add("too_strict", f"{some} If your task has such answers, pass answers=….")
        _examine(subject, plan, seen, examples)
        seen.judge()
    return _report(lab, plan, {seen.reward: _judged(seen, plan) for seen in lab})


def _names(subjects: list[Callable]) -> list[str]:
    """The names of the rewards, numbered if two are equal."""
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
    """A sentence that says how one reward was tested."""
    kind = "chat messages" if plan.chat else "strings"
    golds = ", ".join(plan.golds[:4]) + (", …" if len(plan.golds) > 4 else "")
    how = f"by the answer ({golds})" if seen.answered else "by its format alone"
    return f"{len(seen.scored)} completions as {kind}, format {plan.form}, judged {how}."


def _examine(reward: Callable, plan: Plan, seen: Evidence, examples: Sequence[str]) -> None:
    """Collect all evidence about one reward."""
    _score_matrix(reward, plan, seen, examples)
    if seen.scored:
        _score_among_others(reward, plan, seen)
        _score_other_kind(reward, plan, seen)
    if seen.scored and seen.answered:
        _score_without_gold(reward, plan, seen)
        _let_run(reward, plan, seen)
    if seen.scored and not seen.grouped:
        _fill(reward, plan, seen)


def _score_matrix(reward: Callable, plan: Plan, seen: Evidence, examples: Sequence[str]) -> None:
    """Score every completion: ordinary ones in one batch, huge ones one by one."""
    rows = []
    for number, gold in enumerate(plan.golds[:MOST_ROWS]):
        found = cases(plan.form, gold, plan.golds, seen.answered)
        found += [Case("one of your examples", "odd", text) for text in examples]
        rows += plan.rows([case for case in found if plan.chat or case.text is not None], number)
    failures: dict[tuple[str, str], Case] = {}  # the first case for each code and message
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
        failures = {("raises", "no completion was scored within the time limit"): rows[0]}
    for (code, message), case in failures.items():
        if sum(found.code == code for found in seen.found) < 3:
            seen.add(code, f"{message} (on: {case.what}).", case)


def _outcomes(reward: Callable, rows: list[Case], plan: Plan, seen: Evidence) -> Iterator[tuple[Case, Outcome]]:
    """The outcome for each row; huge ones come last, one by one, if anything was scored before."""
    ordinary = [row for row in rows if seen.grouped or len(row.text or "") <= HUGE]
    yield from zip(ordinary, _score_all(reward, ordinary, plan, seen), strict=False)
    for row in [row for row in rows if len(row.text or "") > HUGE] if seen.scored and not seen.grouped else []:
        outcome = call(reward, [row], plan.chat)
        if outcome.seconds > SECONDS_FOR_ONE and not outcome.error:
            seen.add("slow", f"{outcome.seconds:.1f} s for one completion ({row.what})", row)
        yield row, outcome


def _score_all(reward: Callable, rows: list[Case], plan: Plan, seen: Evidence) -> list[Outcome]:
    """One outcome per row: from one batch, or one by one if the batch raises."""
    batch = call(reward, rows, plan.chat)
    if batch.changed:
        what = f"the reward changes `{batch.changed}`, which TRL passes to the next reward too. Work on a copy."
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


def _score_among_others(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score again, in reverse order and alone, to see whether scores change and how long scoring takes."""
    pairs = [(row, score) for row, score in seen.scored if seen.grouped or len(row.text or "") <= HUGE][::-1]
    backwards = call(reward, [row for row, _ in pairs], plan.chat)
    for (row, score), again in zip(pairs, backwards.scores or [], strict=False):
        _compare(seen, row, score, again, "in reverse order")
    each = backwards.seconds / max(len(pairs), 1)
    if each > SLOW and backwards.scores is not None:
        seen.add("slow", f"{1000 * each:.1f} ms per completion; 1% of a step is {1000 * SLOW:.1f} ms.")
    for row, score in [] if seen.grouped else pairs[::-1]:
        if row.what in ALONE:
            _compare(seen, row, score, (call(reward, [row], plan.chat).scores or [None])[0], "alone")
    if seen.answered and not seen.grouped and list(plan.columns[0]) == [plan.answer_column]:
        _score_beside_another_gold(reward, plan, seen)


def _score_beside_another_gold(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """With a single gold answer: does a correct completion keep its score after a row with another answer?"""
    other = plan.rows([clean_case(plan.form, plan.wrong)] * 2, **{plan.answer_column: plan.wrong})
    both, alone = call(reward, [*other, plan.clean], plan.chat), call(reward, [plan.clean], plan.chat)
    if both.scores and alone.scores:
        _compare(seen, other[0], *both.scores[:2], "the second time")  # a cache has not seen this gold answer yet
        _compare(seen, plan.clean, alone.scores[0], both.scores[2], "after a row with another gold answer")


def _compare(seen: Evidence, row: Case, first: float | None, second: float | None, how: str) -> None:
    differ = (first is None) != (second is None) or abs((first or 0) - (second or 0)) > rules.ROUNDING
    if differ and not seen.found_a("order_dependent"):
        what = f"the same completion ({row.what}) scores {first} in the batch and {second} {how}."
        seen.add("order_dependent", what, row)


def _score_other_kind(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score a few completions as strings instead of chat messages, or the reverse."""
    code, other = ("chat_only", "a string") if plan.chat else ("string_only", "a chat message")
    known = ("correct, in the requested format", "off by one", "no tags, no answer")
    rows = [row for row, _ in seen.scored if row.number == 0 and row.what in known]
    usual, outcome = call(reward, rows, plan.chat), call(reward, rows, not plan.chat)
    if outcome.scores is None:
        seen.add(code, f"it fails if the completion is {other}: {outcome.error}")
    elif outcome.scores != usual.scores:
        seen.add(code, f"its scores change if the completion is {other}; completion_text(c) reads both kinds.")


def _score_without_gold(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score completions without an answer if the gold answer is missing too."""
    rows = [row for row, _ in seen.scored if row.number == 0 and row.role == "missing"]
    rows += plan.rows([Case("the word None", "missing", plan.form.write("None", "None"))])
    usual = call(reward, rows, plan.chat)
    for gold in ("", None):
        without = call(reward, plan.rows(rows, **{plan.answer_column: gold}), plan.chat)
        if usual.scores and without.scores:
            pairs = zip(rows, usual.scores, without.scores, strict=True)
            seen.without_gold += [(row, a or 0.0, b, repr(gold)) for row, a, b in pairs if b is not None]


def _let_run(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Try an answer that leaves a trace if it is executed, unless the task asks for a program."""
    if kind_of(plan.golds[0]) == "program" or "```" in plan.form.before_answer:
        return
    answer = f"setattr(__import__('sys'), '{TRACE}', 1)"
    case = plan.rows([Case("a program as the answer", "odd", plan.form.write("so", answer))])[0]
    call(reward, [case], plan.chat)
    if vars(sys).pop(TRACE, None):
        what = "the reward executes what the model writes (eval or exec). Parse the answer, or run it in a sandbox."
        seen.add("runs_model_text", what, case)
    if not seen.found_a("unbounded_time"):
        seen.found += computes_powers(reward, plan)


def _fill(reward: Callable, plan: Plan, seen: Evidence) -> None:
    """Score completions with more and more filler but equal token counts, as a reward may use those on purpose."""
    series = fillers(plan.form, plan.golds[0], plan.golds, seen.answered)
    rows = plan.rows([case for one in series for case in one], completion_ids=list(range(100)))
    scores = call(reward, rows, plan.chat).scores
    if scores and all(score is None or math.isfinite(score) for score in scores):
        scored = iter(scores)
        seen.filled = [[(case, next(scored)) for case in one] for one in series]
