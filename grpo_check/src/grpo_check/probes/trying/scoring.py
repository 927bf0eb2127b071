"""Score the matrix of completions, then score parts of it again in other ways."""

import math
import re
import sys
from collections.abc import Iterator
from random import Random

from ...packages import sends_no_content
from ...prompts import question_text
from ..answers import answer_kind
from ..calling import Outcome, question_of
from ..changes import changes_of
from ..matrix import NO_ANSWER, Case, cases, clean_case, echo, fillers
from .discovery import texts_in_code
from .growth import CUT_OFF, compute_powers, note_endless
from .trial import SpentError, Trial

#: Completions longer than this (in characters) are scored one by one, and may take this many seconds each.
HUGE, SECONDS_FOR_ONE = 5_000, 1.0
#: Seconds a completion above which a reward is slow: a tenth of a step of 10 seconds with 32 completions.
SLOW = 0.1 * 10 / 32
#: The attribute that an executed answer sets in `sys`.
TRACE = "_written_by_a_completion"
#: Dataset rows that are tried, and completions that are retried one by one after a batch that timed out.
ROWS_TRIED, MOST_RETRIES = 8, 3
#: Ids of the cases that are scored once more, each on its own.
ALONE = ("clean", "nothing", "other row")
#: A completion of another prompt, which answers no row.
STRANGER = Case("of another prompt", "odd", NO_ANSWER)
#: Words of a reward's code that are written into one completion.
_FEWEST_WORDS, _MOST_WORDS = 3, 80
#: What tells most comes first if not everything may be scored.
IMPORTANT = ("clean", "near", "nothing", "writing", "wrong", "missing", "hedge", "attack", "broken", "odd", "long")

Batch = list[tuple[Case, float | None]]


def score_all(trial: Trial) -> None:
    """Score the matrix, and try everything else that the rules need, as far as completions may be scored."""
    try:
        _score_matrix(trial)
        batch = _score_again(trial) if trial.scored else []
        if not trial.scored or trial.stopped:
            return
        _score_backwards(trial, batch)
        _score_with_another_row(trial, batch)
        _score_alone(trial, batch)
        _score_other_kind(trial)
        _score_scrambled(trial)
        if trial.answered:
            if trial.plan.blank_golds:
                _score_without_gold(trial)
            _let_run(trial)
        if not trial.grouped:
            _fill(trial)
    except SpentError:
        return


def _score_matrix(trial: Trial) -> None:
    """Score every completion: ordinary ones in one batch, huge ones and the one without content one by one."""
    words = _words_of(trial)
    rows = [row for number in range(len(trial.plan.golds[:ROWS_TRIED])) for row in _rows(trial, number, words)]
    failures: dict[tuple[str, str], Case] = {}  # the first case for each code and message
    for row, outcome in _outcomes(trial, _affordable(trial, rows)):
        if outcome.scores is None and outcome.code == "slow":
            trial.add("slow", f"{outcome.error} ({row.what}).", row)
        elif outcome.scores is None:
            failures.setdefault((outcome.code, outcome.error.split("\n")[0]), row)
        elif outcome.scores[0] is not None and not math.isfinite(outcome.scores[0]):
            failures.setdefault(("not_finite", f"the score is {outcome.scores[0]}"), row)
        else:
            trial.scored.append((row, outcome.scores[0]))
    if not trial.scored and not failures and not trial.stopped:
        failures = {("raises", "no completion was scored within the time limit"): rows[0]}
    for (code, message), case in failures.items():
        trial.add(code, f"{message} (on: {case.what}).", case, *_advice(message))


def _advice(message: str) -> list[str]:
    """What to do about an exception that no completion causes."""
    if message.startswith(("NameError", "UnboundLocalError", "ImportError", "ModuleNotFoundError")):
        return ["define or import that name; whatever the completion, this line raises."]
    return ["give it the column or the argument that it needs."] if "positional argument" in message else []


def _rows(trial: Trial, number: int, words: list[str]) -> list[Case]:
    """The matrix of one dataset row; ``words`` are those of the reward's code."""
    plan = trial.plan
    found = cases(plan.form, plan.golds[number], plan.golds, trial.answered)
    found += [echo(_question(plan.columns[number], number), trial.answered)]
    found += [Case("one of your examples", "odd", text, id="example") for text in plan.examples]
    found += [Case(one.what, "odd", one.text, id=one.kind) for text in plan.examples for one in changes_of(text)]
    other = "the words of your example in another order"
    mixed = [_shuffled(text) for text in plan.examples if len(text.split()) > 2]
    found += [Case(other, "odd", text, id="salad") for text in mixed]
    listed = Case("the words in the reward's own code", "attack", " ".join(words), id="words")
    found += [listed] if len(words) >= _FEWEST_WORDS else []  # one alone is rather what it asks for
    kept = [case for case in found if case.text is not None or (plan.chat and sends_no_content())]
    return plan.rows(kept, number)


def _question(columns: dict, number: int) -> str:
    """The text of a row's prompt."""
    return question_text(columns.get("prompt", question_of(number)))


def _words_of(trial: Trial) -> list[str]:
    """The words and phrases in a reward's code for which it may look."""
    texts = texts_in_code(trial.reward)
    return [text for text in texts if re.fullmatch(r"[^\W\d_][\w' -]{2,40}", text)][:_MOST_WORDS]


def _shuffled(text: str) -> str:
    """The words of a text in another order."""
    words = text.split()
    Random(0).shuffle(words)
    return " ".join(words)


def _affordable(trial: Trial, rows: list[Case]) -> list[Case]:
    """As many rows as may be scored and scored again; without a limit, all."""
    if trial.most is None:
        return rows
    by_importance = sorted(rows, key=lambda row: min(map(_importance, (row.id, row.role))))
    return by_importance[: max((trial.most - trial.tried) // 2, 1)]


def _importance(name: str) -> int:
    return IMPORTANT.index(name) if name in IMPORTANT else len(IMPORTANT)


def _outcomes(trial: Trial, rows: list[Case]) -> Iterator[tuple[Case, Outcome]]:
    """The outcome for each row; the others come last, one by one, if anything was scored before."""
    ordinary = [row for row in rows if _is_ordinary(trial, row)]
    yield from zip(ordinary, _score_each(trial, ordinary), strict=False)
    for row in [row for row in rows if not _is_ordinary(trial, row)] if trial.scored else []:
        outcome = trial.score([row, row])  # a reward that is relative to its group may need two
        if outcome.cpu > 2 * SECONDS_FOR_ONE and not outcome.error:
            trial.add("slow", f"{outcome.cpu / 2:.1f} s of processor time for one completion ({row.what}).", row)
        yield row, outcome


def _is_ordinary(trial: Trial, row: Case) -> bool:
    return row.text is not None and (trial.grouped or len(row.text) <= HUGE)


def _score_each(trial: Trial, rows: list[Case]) -> list[Outcome]:
    """One outcome per row: from one batch, or one by one if the batch raises."""
    batch = trial.score(rows)
    if batch.changed:
        trial.add("changes_inputs", f"the reward changes `{batch.changed}`, which TRL passes to the next reward too.")
    if batch.scores is not None:
        return [Outcome([score]) for score in batch.scores]
    if batch.code == "wrong_length":
        return [batch]
    if batch.code == "slow":
        for row in rows:
            outcome = trial.score([row], cpu=CUT_OFF)
            if outcome.code == "slow":
                note_endless(trial, outcome, row)
                return []
    return [trial.score([row]) for row in (rows[:MOST_RETRIES] if batch.code == "slow" else rows)]


def _score_again(trial: Trial) -> Batch:
    """Score the ordinary completions once more, and a third time if scores change: is it chance or a cache?"""
    first = [(row, score) for row, score in trial.scored if _is_ordinary(trial, row)]
    rows = [row for row, _ in first]
    outcome = trial.score(rows)
    second = _pairs(rows, outcome)
    each = outcome.cpu / max(len(rows), 1)
    if each > SLOW and second:
        what = f"{1000 * each:.0f} ms of processor time per completion; a tenth of a step is {1000 * SLOW:.0f} ms."
        trial.add("slow", what)
    if changed := _changes(trial, first, second):
        if again := _changes(trial, second, _pairs(rows, trial.score(rows))):
            row, one, other = again
            scores = f"{one} and then {other}"
            trial.add("random", f"the reward is random: in the same batch, the same completion scores {scores}.", row)
        elif not trial.observed["raises"]:  # else the first time each was scored alone
            _note_order(trial, *changed, "when the same batch comes again")
    return second


def _pairs(rows: list[Case], outcome: Outcome) -> Batch:
    """The rows with their scores; nothing if the reward failed."""
    return list(zip(rows, outcome.scores or [], strict=False))


def _changes(trial: Trial, first: Batch, second: Batch) -> tuple[Case, float | None, float | None] | None:
    """The first completion whose score is not the same the second time, with both scores."""
    pairs = zip(first, second, strict=False)
    return next(((row, one, other) for (row, one), (_, other) in pairs if trial.differ(one, other)), None)


def _note_order(trial: Trial, row: Case, one: float | None, other: float | None, when: str) -> None:
    trial.add("order_dependent", f"the same completion ({row.what}) scores {one} in the batch and {other} {when}.", row)


def _score_backwards(trial: Trial, batch: Batch) -> None:
    """Score the same batch in reverse order."""
    rows = [row for row, _ in batch[::-1]]
    if changed := _changes(trial, batch[::-1], _pairs(rows, trial.score(rows))):
        _note_order(trial, *changed, "in reverse order")


def _score_with_another_row(trial: Trial, batch: Batch) -> None:
    """Put completions of another prompt before some of the first row, with its columns and with another row's.

    They answer neither row, so nothing changes for a reward that is relative to the batch.
    """
    columns = trial.plan.other_columns
    if not (trial.answered and columns):
        return
    some = [row for row, _ in batch if row.number == 0 and (row.role == "wrong" or row.id in ALONE)]
    usual = _score_after(trial, _strangers(trial, STRANGER), some)
    other = _score_after(trial, _strangers(trial, STRANGER, **columns), some)
    if changed := _changes(trial, usual, other):
        _note_order(trial, *changed, "if other completions of the batch have another gold answer")
    if list(columns) == [trial.plan.answer_column]:  # a memory has not seen this gold answer yet
        wrong = trial.plan.wrong
        twice = _strangers(trial, clean_case(trial.plan.form, wrong), **{trial.plan.answer_column: wrong})
        scores = trial.score(twice).scores
        if scores and trial.differ(*scores[:2]):
            _note_order(trial, twice[0], *scores[:2], "the second time")


def _score_after(trial: Trial, others: list[Case], some: list[Case]) -> Batch:
    """The scores of some completions in a batch that begins with others."""
    return _pairs([*others, *some], trial.score([*others, *some]))[len(others) :]


def _strangers(trial: Trial, case: Case, count: int = 4, /, **columns: object) -> list[Case]:
    """The same completion of a prompt that no row has, a few times."""
    if prompt := trial.plan.columns[0].get("prompt"):  # a reward that is relative to its group may tell groups by it
        question = question_of(ROWS_TRIED)
        columns = {
            "prompt": question if isinstance(prompt, str) else [{"role": "user", "content": question}],
            **columns,
        }
    return [row._replace(number=ROWS_TRIED) for row in trial.plan.rows([case] * count, **columns)]


def _score_alone(trial: Trial, batch: Batch) -> None:
    """Score a few completions each in a group of two equal ones. Is the reward relative to its group?"""
    if trial.grouped or trial.observed["order_dependent"]:
        return
    chosen = [pair for pair in batch if pair[0].id in ALONE]
    alone = [(row, (trial.score([row, row]).scores or [None])[0]) for row, _ in chosen]
    if _changes(trial, chosen, alone):
        trial.scored = [pair for pair in trial.scored if _is_ordinary(trial, pair[0])]  # the others were scored alone
        trial.grouped = True
        _score_beside_another_prompt(trial, [row for row, _ in batch if row.number == 0])


def _score_beside_another_prompt(trial: Trial, rows: list[Case]) -> None:
    """For a reward that is relative to its group: do the completions of another prompt count too?"""
    usual = _pairs(rows, trial.score(rows))
    both = _score_after(trial, _strangers(trial, STRANGER, len(rows)), rows)
    if changed := _changes(trial, usual, both):
        row, one, other = changed
        what = f"a completion ({row.what}) scores {one} among those of its prompt and {other} next to another prompt's."
        trial.add("mixes_groups", what, row)


def _score_other_kind(trial: Trial) -> None:
    """Score a few completions as strings instead of chat messages, or the reverse."""
    code, kind = ("chat_only", "chat messages") if trial.plan.chat else ("string_only", "strings")
    rows = [row for row, _ in trial.scored if row.number == 0 and row.id in ("clean", "near", "nothing")]
    usual, other = trial.score(rows).scores, trial.score(rows, chat=not trial.plan.chat).scores
    if usual != other:
        trial.add(code, f"it reads {kind} only.")


def _score_scrambled(trial: Trial) -> None:
    """Score a few completions with their characters in another order: does the reward read anything but the length?"""
    some = [pair for pair in trial.scored if pair[0].text and pair[0].role in ("clean", "long", "broken", "missing")]
    rows = [row for row, _ in some if row.number == 0]
    mixed = [row._replace(text="".join(Random(0).sample(row.text, len(row.text)))) for row in rows]
    scores = [score for row, score in some if row.number == 0]
    trial.length_alone = len(set(scores)) > 1 and trial.score(mixed).scores == scores


def _score_without_gold(trial: Trial) -> None:
    """Score completions without an answer if the gold answer is missing too, as in some rows that were given."""
    plan = trial.plan
    rows = [row for row, _ in trial.scored if row.number == 0 and row.role == "missing"]
    rows += plan.rows([Case("the word None", "missing", plan.form.write("None", "None"))])
    usual = trial.score(rows)
    for gold in ("", None):
        without = trial.score(plan.rows(rows, **{plan.answer_column: gold}))
        if usual.scores and without.scores:
            pairs = zip(rows, usual.scores, without.scores, strict=True)
            trial.without_gold += [(row, a or 0.0, b, repr(gold)) for row, a, b in pairs if b is not None]


def _let_run(trial: Trial) -> None:
    """Try an answer that leaves a trace if it is executed, unless the task asks for a program."""
    if answer_kind(trial.plan.golds[0]) == "program" or "```" in trial.plan.form.before_answer:
        return
    answer = f"setattr(__import__('sys'), '{TRACE}', 1)"
    [case] = trial.plan.rows([Case("a program as the answer", "odd", trial.plan.form.write("so", answer))])
    trial.score([case])
    if vars(sys).pop(TRACE, None):
        trial.add("runs_model_text", "the reward executes what the model writes.", case)
    if not trial.observed["unbounded_time"]:
        compute_powers(trial)


def _fill(trial: Trial) -> None:
    """Score completions with more and more filler but equal token counts, as a reward may use those on purpose."""
    series = fillers(trial.plan.form, trial.plan.golds[0], trial.plan.golds, trial.answered)
    rows = trial.plan.rows([case for one in series for case in one], completion_ids=list(range(100)))
    scores = trial.score(rows).scores
    if scores and all(score is None or math.isfinite(score) for score in scores):
        scored = iter(scores)
        trial.filled = [[(case, next(scored)) for case in one] for one in series]
