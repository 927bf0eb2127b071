"""Check that the run time of a reward is bounded, with texts that grow.

Short runs of a repeated piece reveal a regular expression that backtracks (the time doubles with each character).
Long runs reveal a time that grows with the square of the length. Only processor time counts, so neither a busy machine
nor a judge on the network looks like a fault.
"""

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache

from ..calling import Outcome
from ..forms import Form
from ..matrix import Case
from .discovery import forms_of
from .trial import Trial

#: Seconds of processor time after which a call on a hostile text is cut off.
CUT_OFF = 1.5
#: Whole seconds of processor time after which a tower of powers counts as endless; math-verify's own limits are 5.
PATIENCE = 12
#: The pieces that a run repeats.
PIECES = ["7", " ", "a", ".", "-", ",", "(", "[", "{", "<", "$", "\n", "a ", "7 ", "1,", "1.", "- ", "a\n", "()"]
PIECES += ["<answer>", "</answer>", "<think>", "<a>", "\\frac{", "**", "#", '"', "\\", "a, ", "Answer: ", "aA1 ", "_"]
#: A character that matches nothing before it.
UNMATCHED = "\u203d"
SHORT_RUNS, LONG_RUNS = (12, 16, 20, 24, 28, 34, 40), (1_000, 4_000)  # pieces; characters
#: Seconds of processor time that are suspicious for a short run.
NOTABLE_SHORT = 0.03
#: A long run is suspicious from this many times what the commonest quadratic pattern takes, which harms nobody.
NOTABLE_LONG, HARMLESS = 1.5, r"\s+$"
#: Seconds of processor time for all runs together, of which an expensive reward gets fewer.
MOST = 10.0
#: Seconds of an ordinary call above which a reward is too slow to be called hundreds of times.
TOO_SLOW = 0.05
#: With linear time, a run four times as long takes at most this many times as long.
MOST_GROWTH = 8
#: With quadratic time, a run twice as long takes at most this many times as long.
MOST_GROWTH_SHORT = 4


def grow(trial: Trial) -> None:
    """Score runs that grow, in each place of a completion, and note a time without bounds, or else one that is slow."""
    usual = min((trial.score([trial.plan.clean], cpu=CUT_OFF) for _ in range(3)), key=lambda outcome: outcome.seconds)
    if usual.code == "slow":
        return note_endless(trial, usual, trial.plan.clean)
    if usual.seconds > TOO_SLOW:
        return None
    notable = max(NOTABLE_SHORT, MOST_GROWTH_SHORT * usual.cpu)
    end = time.process_time() + MOST
    for place in list(_places(trial.plan.form, forms_of(trial.reward)[:2])):
        for piece in PIECES:
            if time.process_time() > end:
                return None
            _try_short_runs(trial, place, piece, notable)
            if trial.stopped:
                return None
            if not trial.observed["slow"]:
                _try_long_runs(trial, place, piece)
    return None


def _places(first: Form, others: tuple[Form, ...]) -> Iterator[Callable[[str], str]]:
    """Where to put a run: alone, as the answer, or as the reasoning."""
    yield str
    for form in dict.fromkeys([first, *others]):
        if form.before_reasoning:
            yield lambda run, form=form: form.before_reasoning + run  # cut off
        yield lambda run, form=form: form.write("so", run)
        yield lambda run, form=form: form.write(run, "42")


def _try_short_runs(trial: Trial, place: Callable, piece: str, notable: float) -> None:
    """Note a run of a few dozen pieces that takes suspiciously long, and far longer than half of it."""
    for count in SHORT_RUNS:
        case = _run_of(trial, place, piece, count)
        outcome = _faster_of_two(trial, case, notable)
        if outcome.code == "slow":
            return note_endless(trial, outcome, case)
        if outcome.cpu > notable and _explodes(trial, _run_of(trial, place, piece, count // 2), outcome):
            if threading.current_thread() is threading.main_thread():
                case = _run_of(trial, place, piece, 2 * count)  # in another thread nothing could stop it
                outcome = trial.score([case], cpu=CUT_OFF)
            return note_endless(trial, outcome, case)
    return None


def _explodes(trial: Trial, half: Case, outcome: Outcome) -> bool:
    """Whether a run takes far more than twice as long as its half, which no slow machine explains."""
    tick = time.get_clock_info("process_time").resolution  # 16 ms on some systems
    return outcome.cpu > MOST_GROWTH_SHORT * max(_faster_of_two(trial, half, 0.0).cpu, tick)


def note_endless(trial: Trial, outcome: Outcome, case: Case) -> None:
    """Note a completion whose scoring practically never ends."""
    length = f"{len(case.text)} characters ({case.what}), and each further one adds much more"
    trial.add("unbounded_time", f"{_took(outcome)} for {length}.", case)


def _took(outcome: Outcome) -> str:
    return outcome.error if outcome.code == "slow" else f"{outcome.cpu:.2f} s of processor time"


@cache
def _notable_long() -> float:
    """Seconds of processor time that are suspicious for a long run on this machine."""
    text, pattern, times = " " * LONG_RUNS[1] + UNMATCHED, re.compile(HARMLESS), []
    for _ in range(3):
        started = time.process_time()
        pattern.search(text)
        times.append(time.process_time() - started)
    return NOTABLE_LONG * min(times)


def _try_long_runs(trial: Trial, place: Callable, piece: str) -> None:
    """Note a run that takes far more than four times as long as one of a quarter of its length."""
    few, many = (signs // len(piece) for signs in LONG_RUNS)
    case = _run_of(trial, place, piece, many)
    notable = _notable_long()
    if trial.score([case], cpu=CUT_OFF).cpu < notable:
        return
    first, then = (_faster_of_two(trial, _run_of(trial, place, piece, count), 0.0) for count in (few, many))
    if then.code != "slow" and (then.cpu < notable or then.cpu < MOST_GROWTH * first.cpu):
        return
    times = f"{_took(then)} for {many} repetitions of {piece!r}, {first.cpu:.3f} s for {few}"
    trial.add("slow", f"{times}. The time grows faster than the length.", case)


def _run_of(trial: Trial, place: Callable, piece: str, count: int) -> Case:
    return trial.plan.rows([Case(f"a run of {piece!r}", "odd", place(piece * count + UNMATCHED))])[0]


def _faster_of_two(trial: Trial, case: Case, notable: float) -> Outcome:
    """The faster of two calls if the first is suspicious, because it may include an import."""
    first = trial.score([case], cpu=CUT_OFF)
    if first.code != "slow" and first.cpu <= notable:
        return first
    return min(first, trial.score([case], cpu=CUT_OFF), key=lambda outcome: outcome.cpu)


def compute_powers(trial: Trial) -> None:
    """Note a reward that evaluates powers in an answer: 9**9**9**9 never finishes, unless it has a limit of its own.

    Nothing in this process could stop it, so it is tried in another one, if the system can copy this process.
    """
    gold = trial.plan.golds[0]
    answers = gold, f"{gold}+0*7**7**4", f"{gold}+1+0*7**7**4", f"{gold}+0*9**9**9**9"
    form = trial.plan.form
    *rows, case = trial.plan.rows([Case("a tower of powers", "odd", form.write("so", answer)) for answer in answers])
    scores = [(trial.score([row], cpu=CUT_OFF).scores or [None])[0] for row in rows]
    if None not in scores and scores[0] == scores[1] > scores[2] and not _ends_in_a_copy(trial, case):
        what = "the reward evaluates any expression in the answer, and 9**9**9**9 never finishes."
        trial.add("unbounded_time", what, case, "accept only numbers.")


def _ends_in_a_copy(trial: Trial, case: Case) -> bool:
    """Whether a completion is scored in a copy of this process, before that is stopped."""
    if sys.platform == "win32":
        return False
    copy = os.fork()
    if copy == 0:
        failed = 1
        try:
            import resource

            hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
            most = PATIENCE if hard == resource.RLIM_INFINITY else min(PATIENCE, hard)
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))  # kills it, whatever it computes
            trial.score([case])
            failed = 0
        finally:
            os._exit(failed)  # nothing of the copy is written or closed twice
    end = time.monotonic() + 5 * PATIENCE
    while time.monotonic() < end:
        ended, status = os.waitpid(copy, os.WNOHANG)
        if ended:
            return os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
        time.sleep(0.02)
    os.kill(copy, signal.SIGKILL)  # it waits for what another thread held when it was copied
    os.waitpid(copy, 0)
    return False
