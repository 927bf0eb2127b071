"""Check that the run time of a reward is bounded, with texts that grow.

Short runs of a repeated piece reveal a regular expression that backtracks (the time doubles with each character).
Long runs reveal a time that grows with the square of the length. Only CPU time counts, so neither a busy machine
nor a judge on the network looks like a fault.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from .calling import CUT_OFF, Outcome, call
from .discovery import forms_of
from .forms import FORMS
from .matrix import Case
from .planning import Plan

#: The pieces that a run repeats.
PIECES = ["7", " ", "a", ".", "-", ",", "(", "[", "{", "<", "$", "\n", "a ", "7 ", "1,", "1.", "- ", "a\n", "()"]
PIECES += ["<answer>", "</answer>", "<think>", "<a>", "\\frac{", "**", "#", '"', "\\", "a, ", "Answer: ", "aA1 ", "_"]
#: A character that matches nothing before it.
UNMATCHED = "\u203d"
SHORT_RUNS, LONG_RUNS = (12, 16, 20, 24, 28, 34, 40), (1_000, 4_000)  # pieces; characters
#: CPU seconds that are suspicious for a short and for a long run.
NOTABLE_SHORT, NOTABLE_LONG = 0.03, 0.02
#: Wall-clock seconds of an ordinary call above which a reward is too slow to be called hundreds of times.
TOO_SLOW = 0.05
#: With linear time, a run four times as long takes at most this many times as long.
MOST_GROWTH = 8
#: With quadratic time, a run twice as long takes at most this many times as long.
MOST_GROWTH_SHORT = 4


class Growth(NamedTuple):
    """A completion whose scoring takes far too long, and whether it practically never ends."""

    what: str
    case: Case
    endless: bool
    fixes: tuple[str, ...] = ()


def find_growth(reward: Callable, plan: Plan) -> Growth | None:
    """Evidence that the run time is not bounded, the worst that is found."""
    call(reward, plan.rows([Case("nothing", "odd", "")]), plan.chat)  # it may import torch, which takes seconds
    ordinary = plan.rows([Case("an ordinary completion", "odd", FORMS[0].write("6 * 7 = 42", "42"))])[0]
    if call(reward, [ordinary], plan.chat, CUT_OFF).scores is None:
        plan = replace(plan, chat=not plan.chat)
    outcome = min((call(reward, [ordinary], plan.chat, CUT_OFF) for _ in range(3)), key=lambda one: one.seconds)
    if outcome.seconds > TOO_SLOW:
        return hangs_in_use(outcome, ordinary)
    notable = max(NOTABLE_SHORT, MOST_GROWTH_SHORT * outcome.cpu)
    worst = None
    for place in _places(reward, plan):
        for piece in PIECES:
            found = _hangs(reward, plan, place, piece, notable)
            if not found and not worst:
                found = _superlinear(reward, plan, place, piece)
            if found and found.endless:
                return found
            worst = worst or found
    return worst


def _places(reward: Callable, plan: Plan) -> Iterator[Callable[[str], str]]:
    """Where to put a run: alone, as the answer, or as the reasoning."""
    yield str
    for form in dict.fromkeys([plan.form, *forms_of(reward)[:2]]):
        if form.before_reasoning:
            yield lambda run, form=form: form.before_reasoning + run  # cut off
        yield lambda run, form=form: form.write("so", run)
        yield lambda run, form=form: form.write(run, "42")


def _hangs(reward: Callable, plan: Plan, place: Callable, piece: str, notable: float) -> Growth | None:
    """Whether a run of a few dozen pieces takes suspiciously long, and far longer than half of it."""
    for count in SHORT_RUNS:
        case = _run_of(plan, place, piece, count)
        outcome = _least(reward, plan, case, notable)
        if outcome.code == "slow":  # nothing, if the machine and not the reward was slow
            return hangs_in_use(outcome, case)
        if outcome.cpu > notable and _explodes(reward, plan, place, piece, count, outcome):
            if threading.current_thread() is threading.main_thread():
                case = _run_of(plan, place, piece, 2 * count)  # in another thread nothing could stop it
                outcome = call(reward, [case], plan.chat, CUT_OFF)
            return _hangs_on(outcome, case)
    return None


def _explodes(reward: Callable, plan: Plan, place: Callable, piece: str, count: int, outcome: Outcome) -> bool:
    """Whether the run takes far more than twice as long as its half, which no slow machine explains."""
    half = _least(reward, plan, _run_of(plan, place, piece, count // 2), 0.0)
    tick = time.get_clock_info("process_time").resolution  # 16 ms on some systems
    return outcome.cpu > MOST_GROWTH_SHORT * max(half.cpu, tick)


def _hangs_on(outcome: Outcome, case: Case) -> Growth:
    length = f"{len(case.text)} characters ({case.what}), and each further one adds much more"
    return Growth(f"{_took(outcome)} for {length}.", case, endless=True)


def _took(outcome: Outcome) -> str:
    return outcome.error if outcome.code == "slow" else f"{outcome.cpu:.2f} s of CPU time"


def hangs_in_use(outcome: Outcome, case: Case) -> Growth | None:
    """The same evidence for a completion that did not finish, if the CPU was busy throughout."""
    busy = outcome.code == "slow" and outcome.cpu > 0.3 * outcome.seconds
    return _hangs_on(outcome, case) if busy else None


def computes_powers(reward: Callable, plan: Plan) -> Growth | None:
    """Whether the reward evaluates powers in an answer: 9**9**9**9 never finishes, and nothing can stop it."""
    gold = plan.golds[0]
    answers = gold, f"{gold}+0*7**7**4", f"{gold}+1+0*7**7**4", f"{gold}+0*9**9**9**9"
    *rows, case = plan.rows([Case("a tower of powers", "odd", plan.form.write("so", answer)) for answer in answers])
    scores = [(call(reward, [row], plan.chat, CUT_OFF).scores or [None])[0] for row in rows]
    if None in scores or not scores[0] == scores[1] > scores[2]:
        return None
    what = "the reward evaluates any expression in the answer, and 9**9**9**9 never finishes."
    return Growth(what, case, endless=True, fixes=("accept only numbers.",))


def _superlinear(reward: Callable, plan: Plan, place: Callable, piece: str) -> Growth | None:
    """Whether a run four times as long takes far more than four times as long."""
    few, many = (signs // len(piece) for signs in LONG_RUNS)
    case = _run_of(plan, place, piece, many)
    if call(reward, [case], plan.chat, CUT_OFF).cpu < NOTABLE_LONG:
        return None
    first, then = (_least(reward, plan, _run_of(plan, place, piece, n), 0.0) for n in (few, many))
    if then.code != "slow" and (then.cpu < NOTABLE_LONG or then.cpu < MOST_GROWTH * first.cpu):
        return None
    times = f"{_took(then)} for {many} repetitions of {piece!r}, {first.cpu:.3f} s for {few}"
    return Growth(f"{times}. The time grows faster than the length.", case, endless=then.code == "slow")


def _run_of(plan: Plan, place: Callable, piece: str, count: int) -> Case:
    return plan.rows([Case(f"a run of {piece!r}", "odd", place(piece * count + UNMATCHED))])[0]


def _least(reward: Callable, plan: Plan, case: Case, notable: float) -> Outcome:
    """The faster of two calls if the first is suspicious, because it may include an import."""
    first = call(reward, [case], plan.chat, CUT_OFF)
    if first.code == "slow" or first.cpu <= notable:
        return first
    return min(first, call(reward, [case], plan.chat, CUT_OFF), key=lambda outcome: outcome.cpu)
