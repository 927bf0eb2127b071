"""Collect the evidence about one reward: score the matrix, then score parts of it again in other ways."""

import math
import sys
from collections.abc import Iterator, Sequence
from itertools import islice

from .answers import kind_of
from .calling import CUT_OFF, Outcome, call, question_of
from .evidence import Evidence
from .growth import computes_powers, hangs_in_use
from .matrix import NO_ANSWER, Case, cases, clean_case, echo, fillers
from .planning import Plan

#: Completions longer than this (in characters) are scored one by one, and may take this many seconds each.
HUGE, SECONDS_FOR_ONE = 5_000, 1.0
#: Seconds a completion above which a reward is slow: 1% of a step of 10 seconds with 32 completions.
SLOW = 0.01 * 10 / 32
#: The attribute that an executed answer sets in `sys`.
TRACE = "_written_by_a_completion"
#: Dataset rows that are tried, and completions that are retried one by one after a batch that timed out.
MOST_ROWS, MOST_RETRIES = 8, 3
#: Ids of the cases that are scored once more, each on its own.
ALONE = ("clean", "nothing", "other row")
#: A completion of another prompt, which answers no row.
STRANGER = Case("of another prompt", "odd", NO_ANSWER)
#: When TRL sends None (read in `parse_response` of trl/chat_template_utils.py).
NO_CONTENT = (
    "TRL 1.14 always sends text: it replaces missing content with ''. Only code of your own that makes messages, or "
    "another version of TRL, sends None."
)

Batch = list[tuple[Case, float | None]]


def collect(seen: Evidence, examples: Sequence[str]) -> None:
    """Score the matrix, and try everything else that the rules need."""
    _score_matrix(seen, examples)
    batch = _score_again(seen) if seen.scored else []
    if not seen.scored or seen.stopped:
        return
    _score_backwards(seen, batch)
    _score_with_another_row(seen, batch)
    _score_alone(seen, batch)
    _score_other_kind(seen)
    if seen.answered:
        _score_without_gold(seen)
        _let_run(seen)
    if not seen.grouped:
        _fill(seen)


def _score_matrix(seen: Evidence, examples: Sequence[str]) -> None:
    """Score every completion: ordinary ones in one batch, huge ones and the one without content one by one."""
    rows = [row for number in range(len(seen.plan.golds[:MOST_ROWS])) for row in _rows(seen, number, examples)]
    failures: dict[tuple[str, str, bool], Case] = {}  # the first case for each code and message
    for row, outcome in _outcomes(seen, rows):
        if outcome.scores is None and outcome.code == "slow":
            seen.add("slow", f"{outcome.error} ({row.what})", row)
        elif outcome.scores is None:
            failures.setdefault((outcome.code, outcome.error.split("\n")[0], row.text is None), row)
        elif outcome.scores[0] is not None and not math.isfinite(outcome.scores[0]):
            failures.setdefault(("not_finite", f"the score is {outcome.scores[0]}", False), row)
        else:
            seen.scored.append((row, outcome.scores[0]))
    if not seen.scored and not failures and not seen.observed["unbounded_time"]:
        failures = {("raises", "no completion was scored within the time limit", False): rows[0]}
    for (code, message, silent), case in failures.items():
        ignored = {"why": NO_CONTENT, "severity": "warning"} if silent else {}
        fixes = ("ignore this, or read (message.get('content') or '').",) if silent else ()
        seen.add(code, f"{message} (on: {case.what}).", case, *fixes, **ignored)


def _rows(seen: Evidence, number: int, examples: Sequence[str]) -> list[Case]:
    """The matrix of one dataset row."""
    plan = seen.plan
    found = cases(plan.form, plan.golds[number], plan.golds, seen.answered)
    found += [echo(_question(plan, number), seen.answered)]
    found += [Case("one of your examples", "odd", text, id="example") for text in examples]
    return plan.rows([case for case in found if plan.chat or case.text is not None], number)


def _question(plan: Plan, number: int) -> str:
    """The text of a row's prompt."""
    prompt = plan.columns[number].get("prompt", question_of(number))
    return prompt if isinstance(prompt, str) else str(prompt[-1]["content"])


def _outcomes(seen: Evidence, rows: list[Case]) -> Iterator[tuple[Case, Outcome]]:
    """The outcome for each row; the others come last, one by one, if anything was scored before."""
    ordinary = [row for row in rows if _is_ordinary(seen, row)]
    yield from zip(ordinary, _score_all(seen, ordinary), strict=False)
    for row in [row for row in rows if not _is_ordinary(seen, row)] if seen.scored else []:
        outcome = seen.score([row, row])  # a reward that is relative to its group may need two
        if outcome.seconds > 2 * SECONDS_FOR_ONE and not outcome.error:
            seen.add("slow", f"{outcome.seconds / 2:.1f} s for one completion ({row.what})", row)
        yield row, outcome


def _is_ordinary(seen: Evidence, row: Case) -> bool:
    return row.text is not None and (seen.grouped or len(row.text) <= HUGE)


def _score_all(seen: Evidence, rows: list[Case]) -> list[Outcome]:
    """One outcome per row: from one batch, or one by one if the batch raises."""
    batch = seen.score(rows)
    if batch.changed:
        seen.add("changes_inputs", f"the reward changes `{batch.changed}`, which TRL passes to the next reward too.")
    if batch.scores is not None:
        return [Outcome([score]) for score in batch.scores]
    if batch.code == "wrong_length":
        return [batch]
    if batch.code == "slow":
        outcomes = ((row, call(seen.subject, [row], seen.plan.chat, CUT_OFF)) for row in rows)
        hangs = (hangs_in_use(outcome, row) for row, outcome in outcomes if outcome.code == "slow")
        if found := next(filter(None, islice(hangs, MOST_RETRIES)), None):
            seen.add_growth(found)
            return []
    return [seen.score([row]) for row in (rows[:MOST_RETRIES] if batch.code == "slow" else rows)]


def _score_again(seen: Evidence) -> Batch:
    """Score the ordinary completions once more, and a third time if scores change: is it chance or a cache?"""
    first = [(row, score) for row, score in seen.scored if _is_ordinary(seen, row)]
    rows = [row for row, _ in first]
    outcome = seen.score(rows)
    second = _pairs(rows, outcome)
    each = outcome.seconds / max(len(rows), 1)
    if each > SLOW and second:
        seen.add("slow", f"{1000 * each:.1f} ms per completion; 1% of a step is {1000 * SLOW:.1f} ms.")
    if changed := _changes(seen, first, second):
        if again := _changes(seen, second, _pairs(rows, seen.score(rows))):
            row, one, other = again
            scores = f"{one} and then {other}"
            seen.add("random", f"the reward is random: in the same batch, the same completion scores {scores}.", row)
        elif not seen.observed["raises"]:  # else the first time each was scored alone
            _note_order(seen, *changed, "when the same batch comes again")
    return second


def _pairs(rows: list[Case], outcome: Outcome) -> Batch:
    """The rows with their scores; nothing if the reward failed."""
    return list(zip(rows, outcome.scores or [], strict=False))


def _changes(seen: Evidence, first: Batch, second: Batch) -> tuple[Case, float | None, float | None] | None:
    """The first completion whose score is not the same the second time, with both scores."""
    pairs = zip(first, second, strict=False)
    return next(((row, one, other) for (row, one), (_, other) in pairs if seen.differ(one, other)), None)


def _note_order(seen: Evidence, row: Case, one: float | None, other: float | None, when: str) -> None:
    seen.add("order_dependent", f"the same completion ({row.what}) scores {one} in the batch and {other} {when}.", row)


def _score_backwards(seen: Evidence, batch: Batch) -> None:
    """Score the same batch in reverse order."""
    rows = [row for row, _ in batch[::-1]]
    if changed := _changes(seen, batch[::-1], _pairs(rows, seen.score(rows))):
        _note_order(seen, *changed, "in reverse order")


def _score_with_another_row(seen: Evidence, batch: Batch) -> None:
    """Put completions of another prompt before some of the first row, with its columns and with another row's.

    They answer neither row, so nothing changes for a reward that is relative to the batch.
    """
    columns = seen.plan.other_columns
    if not (seen.answered and columns):
        return
    some = [row for row, _ in batch if row.number == 0 and (row.role == "wrong" or row.id in ALONE)]
    usual = _score_after(seen, _strangers(seen, STRANGER), some)
    other = _score_after(seen, _strangers(seen, STRANGER, **columns), some)
    if changed := _changes(seen, usual, other):
        _note_order(seen, *changed, "if other completions of the batch have another gold answer")
    if list(columns) == [seen.plan.answer_column]:  # a memory has not seen this gold answer yet
        wrong = seen.plan.wrong
        twice = _strangers(seen, clean_case(seen.plan.form, wrong), **{seen.plan.answer_column: wrong})
        scores = seen.score(twice).scores
        if scores and seen.differ(*scores[:2]):
            _note_order(seen, twice[0], *scores[:2], "the second time")


def _score_after(seen: Evidence, others: list[Case], some: list[Case]) -> Batch:
    """The scores of some completions in a batch that begins with others."""
    return _pairs([*others, *some], seen.score([*others, *some]))[len(others) :]


def _strangers(seen: Evidence, case: Case, count: int = 4, /, **columns: object) -> list[Case]:
    """The same completion of a prompt that no row has, a few times."""
    return [row._replace(number=MOST_ROWS) for row in seen.plan.rows([case] * count, **columns)]


def _score_alone(seen: Evidence, batch: Batch) -> None:
    """Score a few completions each in a group of two equal ones. Is the reward relative to its group?"""
    if seen.grouped or seen.observed["order_dependent"]:
        return
    chosen = [pair for pair in batch if pair[0].id in ALONE]
    alone = [(row, (seen.score([row, row]).scores or [None])[0]) for row, _ in chosen]
    if _changes(seen, chosen, alone):
        seen.scored = [pair for pair in seen.scored if _is_ordinary(seen, pair[0])]  # the others were scored alone
        seen.grouped = True
        _score_beside_another_prompt(seen, [row for row, _ in batch if row.number == 0])


def _score_beside_another_prompt(seen: Evidence, rows: list[Case]) -> None:
    """For a reward that is relative to its group: do the completions of another prompt count too?"""
    usual = _pairs(rows, seen.score(rows))
    both = _score_after(seen, _strangers(seen, STRANGER, len(rows)), rows)
    if changed := _changes(seen, usual, both):
        row, one, other = changed
        what = f"a completion ({row.what}) scores {one} among those of its prompt and {other} next to another prompt's."
        seen.add("mixes_groups", what, row)


def _score_other_kind(seen: Evidence) -> None:
    """Score a few completions as strings instead of chat messages, or the reverse."""
    code, other = ("chat_only", "a string") if seen.plan.chat else ("string_only", "a chat message")
    rows = [row for row, _ in seen.scored if row.number == 0 and row.id in ("clean", "near", "nothing")]
    usual, outcome = seen.score(rows), call(seen.subject, rows, not seen.plan.chat)
    if outcome.scores is None:
        seen.add(code, f"it fails if the completion is {other}: {outcome.error}.")
    elif outcome.scores != usual.scores:
        seen.add(code, f"its scores change if the completion is {other}.")


def _score_without_gold(seen: Evidence) -> None:
    """Score completions without an answer if the gold answer is missing too."""
    plan = seen.plan
    rows = [row for row, _ in seen.scored if row.number == 0 and row.role == "missing"]
    rows += plan.rows([Case("the word None", "missing", plan.form.write("None", "None"))])
    usual = seen.score(rows)
    for gold in ("", None):
        without = seen.score(plan.rows(rows, **{plan.answer_column: gold}))
        if usual.scores and without.scores:
            pairs = zip(rows, usual.scores, without.scores, strict=True)
            seen.without_gold += [(row, a or 0.0, b, repr(gold)) for row, a, b in pairs if b is not None]


def _let_run(seen: Evidence) -> None:
    """Try an answer that leaves a trace if it is executed, unless the task asks for a program."""
    if kind_of(seen.plan.golds[0]) == "program" or "```" in seen.plan.form.before_answer:
        return
    answer = f"setattr(__import__('sys'), '{TRACE}', 1)"
    [case] = seen.plan.rows([Case("a program as the answer", "odd", seen.plan.form.write("so", answer))])
    seen.score([case])
    if vars(sys).pop(TRACE, None):
        seen.add("runs_model_text", "the reward executes what the model writes.", case)
    if not seen.observed["unbounded_time"]:
        seen.add_growth(computes_powers(seen.subject, seen.plan))


def _fill(seen: Evidence) -> None:
    """Score completions with more and more filler but equal token counts, as a reward may use those on purpose."""
    series = fillers(seen.plan.form, seen.plan.golds[0], seen.plan.golds, seen.answered)
    rows = seen.plan.rows([case for one in series for case in one], completion_ids=list(range(100)))
    scores = seen.score(rows).scores
    if scores and all(score is None or math.isfinite(score) for score in scores):
        scored = iter(scores)
        seen.filled = [[(case, next(scored)) for case in one] for one in series]
