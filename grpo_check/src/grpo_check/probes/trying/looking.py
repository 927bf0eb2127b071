"""The first few calls of a reward: can it be called here at all, and what does a call cost?"""

import re
from dataclasses import replace

from ..calling import Outcome
from ..forms import BOXED, FORMS, HASHES, PLAIN
from ..matrix import NO_ANSWER, Case, clean_case
from ..signatures import missing_columns
from .discovery import forms_of
from .growth import CUT_OFF, note_endless
from .trial import NotJudgedError, Trial

#: About how many completions a whole trial scores.
USUAL = 2_500
#: Seconds of processor time for the first call, which may import torch.
IMPORT = 8.0
#: Seconds for one completion above which the number of completions should be chosen, because they may cost money, too.
EXPENSIVE = 0.25
#: What a line says that a reward prints when it cannot do its work.
_FAILED = re.compile("error|fail|refused|timed out|exception|unable|could not|cannot", re.IGNORECASE)


def look(trial: Trial) -> None:
    """Call a reward with a few right answers, each in another format, and choose the kind of completions.

    Raises:
        NotJudgedError: it needs something that is not here, or is so slow that the number of calls should be chosen.
    """
    rows, short = _ordinary(trial), trial.plan.rows([Case("one letter", "odd", "a")])
    outcome = trial.score(rows[:1], cpu=IMPORT)
    if outcome.code == "slow":
        trial.score(short)  # the rest of the import
        outcome = trial.score(rows[:1], cpu=CUT_OFF)
    if outcome.code != "slow":
        outcome = trial.score(rows, cpu=len(rows) * CUT_OFF)
        if outcome.scores is None or len(set(outcome.scores)) == 1:
            outcome = _as_strings(trial, rows, outcome)
    if outcome.code == "slow" and trial.score(short).cpu < CUT_OFF / 20:
        return note_endless(trial, outcome, rows[0])
    if outcome.scores is None and outcome.code != "slow":
        return _no_score(trial, rows)
    if outcome.scores:
        _check_silent_failure(trial, outcome.scores)
    _check_cost(trial, outcome.seconds / len(rows))
    return None


def _as_strings(trial: Trial, rows: list[Case], outcome: Outcome) -> Outcome:
    """What a reward says to strings, which it is tried with if it tells them apart, or fails on messages alone."""
    other = trial.score(rows, chat=not trial.plan.chat)
    if other.scores is None or (outcome.scores is not None and len(set(other.scores)) == 1):
        return outcome
    trial.plan = replace(trial.plan, chat=not trial.plan.chat)
    return other


def _ordinary(trial: Trial) -> list[Case]:
    """The user's examples, the first gold answer in four formats, the reward's own first, and no answer."""
    some = dict.fromkeys([trial.plan.form, *forms_of(trial.reward)[:2], FORMS[0], BOXED, HASHES, PLAIN])
    right = [clean_case(form, trial.plan.golds[0]) for form in list(some)[:4]]
    own = [Case("one of your examples", "odd", text) for text in trial.plan.examples]
    return trial.plan.rows([*right, *own, Case("no answer", "odd", NO_ANSWER)])


def _no_score(trial: Trial, rows: list[Case]) -> None:
    """What is wrong if neither messages nor strings are scored; a fault of the reward itself is found later."""
    each = [trial.score([row]) for row in rows]
    if any(outcome.scores for outcome in each):
        return
    error = each[0].error
    if all(outcome.outside for outcome in each):
        raise NotJudgedError(f"it fails with {error}. Run it where what it needs is at hand.")
    spare = missing_columns(trial.reward, trial.plan.columns[0], optional=True)
    if spare and all(outcome.code == "raises" for outcome in each):
        raise NotJudgedError(
            f"it fails with {error}, and no column {' or '.join(map(repr, spare))} was given, which it reads. Pass "
            f"columns={{{spare[0]!r}: […]}} with one value per answer."
        )


def _check_silent_failure(trial: Trial, scores: list[float | None]) -> None:
    """A reward that catches its own errors, tells of them or waits for a server, and scores everything the same."""
    outside = trial.needs_from_outside()
    if outside and len(set(scores)) == 1 and (trial.plan.examples or any(trial.reached.values())):
        raise NotJudgedError(f"it scores {len(scores)} different completions all {scores[0]}, {outside}")
    lines = [line for line in (*trial.logs, *trial.prints) if _FAILED.search(line)]
    if lines and len(set(scores)) == 1 and len(trial.logs) + len(trial.prints) >= trial.tried:
        raise NotJudgedError(
            f"it scores {len(scores)} different completions all {scores[0]}, and prints: {lines[0]}. If a "
            "server or a package is missing, run it where that is at hand. If it does not read these answers, give "
            "answers=[…] as your dataset has them, or a completion that it should pay: examples=[…]."
        )


def _check_cost(trial: Trial, seconds: float) -> None:
    """Ask before an expensive reward is called some thousand times."""
    if seconds > EXPENSIVE and trial.most is None:
        minutes = USUAL * seconds / 60
        raise NotJudgedError(
            f"one completion takes it {seconds:.1f} s, and all of them are about {USUAL:,} ({minutes:.0f} minutes). "
            "Say how many it may score: calls=100, for example."
        )
