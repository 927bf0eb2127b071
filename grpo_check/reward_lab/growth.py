"""Whether the time that a reward takes is bounded: texts that grow, and what they cost.

Short runs that cost more and more show a pattern that tries all ways to cut a text (time doubles with each sign);
long runs show time that grows with the square of the length. Only processor time counts, so that neither a busy machine
nor a judge on the network is taken for a fault.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..findings import Finding
from .calling import CUT_OFF, Outcome, call
from .discovery import forms_of
from .forms import FORMS
from .matrix import Case
from .planning import Plan
from .report import finding

#: What runs are made of.
PIECES = ["7", " ", "a", ".", "-", ",", "(", "[", "{", "<", "$", "\n", "a ", "7 ", "1,", "1.", "- ", "a\n", "()"]
PIECES += ["<answer>", "</answer>", "<think>", "<a>", "\\frac{", "**", "#", '"', "\\", "a, ", "Answer: ", "aA1 ", "_"]
#: A sign that fits to nothing before it.
FOREIGN = "\u203d"
SHORT, LONG = (12, 16, 20, 24, 28, 34, 40), (1_000, 4_000)  # pieces; signs
#: Processor seconds that are notable for a short and for a long run.
NOTABLE_SHORT, NOTABLE_LONG = 0.03, 0.02
#: Wall seconds of an ordinary call from which on a reward is too slow to be tried hundreds of times.
TOO_SLOW = 0.05
#: A run four times as long costs at most this many times as much, where time is in proportion to length.
MOST_GROWTH = 8


def find_growth(reward: Callable, plan: Plan) -> list[Finding]:
    """What shows that time is not bounded: ``unbounded_time`` if the reward practically hangs, ``slow`` if not."""
    ordinary = plan.rows([Case("an ordinary completion", "odd", FORMS[0].write("6 * 7 = 42", "42"))])[0]
    if call(reward, [ordinary], plan.chat, CUT_OFF).scores is None:
        plan = replace(plan, chat=not plan.chat)
    outcome = min((call(reward, [ordinary], plan.chat, CUT_OFF) for _ in range(3)), key=lambda one: one.seconds)
    if outcome.seconds > TOO_SLOW:  # the first of the three may import something
        return hangs_in_use(outcome, ordinary)
    worst = []
    for place in _places(reward, plan):
        for piece in PIECES:
            found = _hangs(reward, plan, place, piece) or (not worst and _superlinear(reward, plan, place, piece)) or []
            if found and found[0].code == "unbounded_time":
                return found
            worst = worst or found
    return worst


def _places(reward: Callable, plan: Plan) -> Iterator[Callable[[str], str]]:
    """Where a run can be: alone, as the answer, as the reasoning."""
    yield str
    for form in dict.fromkeys([plan.form, *forms_of(reward)[:2]]):
        if form.before_reasoning:
            yield lambda run, form=form: form.before_reasoning + run  # cut off
        yield lambda run, form=form: form.write("so", run)
        yield lambda run, form=form: form.write(run, "42")


def _hangs(reward: Callable, plan: Plan, place: Callable, piece: str) -> list[Finding]:
    """Whether a run of a few dozen signs costs more than it could."""
    for count in SHORT:
        case = _run_of(plan, place, piece, count)
        outcome = _least(reward, plan, case, NOTABLE_SHORT)
        if outcome.code == "slow" or outcome.cpu > NOTABLE_SHORT:
            if outcome.code != "slow" and threading.current_thread() is threading.main_thread():
                case = _run_of(plan, place, piece, 2 * count)  # elsewhere nothing could stop it
                outcome = call(reward, [case], plan.chat, CUT_OFF)
            return _hangs_on(outcome, case)
    return []


def _hangs_on(outcome: Outcome, case: Case) -> list[Finding]:
    length = f"{len(case.text)} characters ({case.what}), and much more for each further one"
    pattern = "Look for a regular expression that repeats a repetition, such as (a+|b)*."
    return _unbounded(outcome, case, f"{_took(outcome)} for {length}. {pattern}")


def _unbounded(outcome: Outcome, case: Case, what: str) -> list[Finding]:
    found = [finding("unbounded_time", what, case)]
    return found + [finding("slow", "no end within a second or two.", case)] * (outcome.code == "slow")


def _took(outcome: Outcome) -> str:
    return outcome.error if outcome.code == "slow" else f"{outcome.cpu:.2f} s of processor time"


def hangs_in_use(outcome: Outcome, case: Case) -> list[Finding]:
    """The same verdict on an ordinary completion that did not end, if the processor was busy all the time."""
    busy = outcome.code == "slow" and outcome.cpu > 0.3 * outcome.seconds
    return _hangs_on(outcome, case) if busy else []


def computes_powers(reward: Callable, plan: Plan) -> list[Finding]:
    """Whether an answer is computed with its powers: 9**9**9**9 has no end, and nothing can stop it."""
    gold = plan.golds[0]
    answers = gold, f"{gold}+0*7**7**4", f"{gold}+1+0*7**7**4", f"{gold}+0*9**9**9**9"
    *rows, case = plan.rows([Case("a tower of powers", "odd", plan.form.write("so", answer)) for answer in answers])
    scores = [(call(reward, [row], plan.chat, CUT_OFF).scores or [None])[0] for row in rows]
    if None in scores or not scores[0] == scores[1] > scores[2]:
        return []
    what = "it computes whatever the answer says, powers too: 9**9**9**9 never ends. Read numbers, not programs."
    return [finding("unbounded_time", what, case)]


def _superlinear(reward: Callable, plan: Plan, place: Callable, piece: str) -> list[Finding]:
    """Whether a run four times as long costs far more than four times as much."""
    few, many = (signs // len(piece) for signs in LONG)
    case = _run_of(plan, place, piece, many)
    if call(reward, [case], plan.chat, CUT_OFF).cpu < NOTABLE_LONG:
        return []
    first, then = (_least(reward, plan, _run_of(plan, place, piece, n), 0.0) for n in (few, many))
    if then.code != "slow" and (then.cpu < NOTABLE_LONG or then.cpu < MOST_GROWTH * first.cpu):
        return []
    times = f"{_took(then)} for {many} times {piece!r}, {first.cpu:.3f} s for {few}"
    what = f"{times}: it grows faster than the length."
    return _unbounded(then, case, what) if then.code == "slow" else [finding("slow", what, case)]


def _run_of(plan: Plan, place: Callable, piece: str, count: int) -> Case:
    return plan.rows([Case(f"a run of {piece!r}", "odd", place(piece * count + FOREIGN))])[0]


def _least(reward: Callable, plan: Plan, case: Case, notable: float) -> Outcome:
    """The cheaper of two calls, if the first is notable: a first one may import something."""
    first = call(reward, [case], plan.chat, CUT_OFF)
    if first.code == "slow" or first.cpu <= notable:
        return first
    return min(first, call(reward, [case], plan.chat, CUT_OFF), key=lambda outcome: outcome.cpu)
