"""Whether the time that a reward takes is bounded: texts that grow, and what they cost.

Short runs that cost more and more show a pattern that tries all ways to cut a text (time doubles with each sign);
long runs show time that grows with the square of the length. Only processor time counts, so that neither a busy machine
nor a judge on the network is taken for a fault.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from .calling import Outcome, call
from .discovery import forms_of
from .forms import FORMS
from .matrix import Case
from .planning import Plan

#: What runs are made of.
PIECES = ["7", " ", "a", ".", "-", ",", "(", "[", "{", "<", "$", "\n", "a ", "7 ", "1,", "1.", "- ", "a\n", "()"]
PIECES += ["<answer>", "</answer>", "<think>", "<a>", "\\frac{", "**", "#", '"', "\\", "a, ", "Answer: ", "aA1 ", "_"]
#: A sign that fits to nothing before it.
FOREIGN = "\u203d"
SHORT, LONG = (12, 16, 20, 24, 28, 34, 40), (1_000, 4_000)  # pieces; signs
#: Processor seconds: more is notable for a short and for a long run; a call is cut off after the last.
NOTABLE_SHORT, NOTABLE_LONG, CUT_OFF = 0.03, 0.02, 1.5
#: Wall seconds of an ordinary call from which on a reward is too slow to be tried hundreds of times.
TOO_SLOW = 0.05
#: A run four times as long costs at most this many times as much, where time is in proportion to length.
MOST_GROWTH = 8


def find_growth(reward: Callable, plan: Plan) -> tuple[str, Case, bool] | None:
    """A sentence, the completion that shows it, and whether the reward practically hangs; None if time is bounded."""
    ordinary = Case("an ordinary completion", "odd", FORMS[0].write("6 * 7 = 42", "42"))
    rows = plan.rows([ordinary])
    if call(reward, rows, plan.chat, CUT_OFF).scores is None:
        plan = replace(plan, chat=not plan.chat)
    outcome = min((call(reward, rows, plan.chat, CUT_OFF) for _ in range(3)), key=lambda one: one.seconds)
    if outcome.seconds > TOO_SLOW:  # the first of the three may import something
        return hangs_in_use(outcome, ordinary)
    worst = None
    for place in _places(reward, plan):
        for piece in PIECES:
            found = _hangs(reward, plan, place, piece) or (not worst and _superlinear(reward, plan, place, piece))
            if found and found[-1]:
                return found
            worst = worst or found or None
    return worst


def _places(reward: Callable, plan: Plan) -> Iterator[Callable[[str], str]]:
    """Where a run can stand: alone, as the answer, as the reasoning."""
    yield str
    for form in dict.fromkeys([plan.forms[0], *forms_of(reward)[:2]]):
        if form.before_reasoning:
            yield lambda run, form=form: form.before_reasoning + run  # cut off
        yield lambda run, form=form: form.write("so", run)
        yield lambda run, form=form: form.write(run, "42")


def _hangs(reward: Callable, plan: Plan, place: Callable, piece: str) -> tuple[str, Case, bool] | None:
    """Whether a run of a few dozen signs costs more than it could."""
    for count in SHORT:
        case = _case(place, piece, count)
        outcome = _least(reward, plan, case, NOTABLE_SHORT)
        if outcome.code == "slow" or outcome.cpu > NOTABLE_SHORT:
            if outcome.code != "slow" and threading.current_thread() is threading.main_thread():
                longer = _case(place, piece, 2 * count)  # elsewhere nothing could stop it
                case, outcome = longer, call(reward, plan.rows([longer]), plan.chat, CUT_OFF)
            return _hangs_on(outcome, case), case, True
    return None


def _hangs_on(outcome: Outcome, case: Case) -> str:
    took = outcome.error if outcome.code == "slow" else f"{outcome.cpu:.2f} s of processor time"
    pattern = "Look for a regular expression that repeats a repetition, such as (a+|b)*."
    return f"{took} for {len(case.text)} characters ({case.what}), and much more for each further one. {pattern}"


def hangs_in_use(outcome: Outcome, case: Case) -> tuple[str, Case, bool] | None:
    """The same verdict on an ordinary completion that did not end, if the processor was busy all the time."""
    busy = outcome.code == "slow" and outcome.cpu > 0.3 * outcome.seconds
    return (_hangs_on(outcome, case), case, True) if busy else None


def computes_powers(reward: Callable, plan: Plan) -> tuple[str, Case, bool] | None:
    """Whether an answer is computed with its powers: 9**9**9**9 has no end, and nothing can stop it."""
    form, gold = plan.forms[0], plan.golds[0]
    texts = [form.write("so", answer) for answer in (gold, f"{gold}+0*7**7**4", f"{gold}+1+0*7**7**4")]
    case = Case("a tower of powers", "odd", form.write("so", f"{gold}+0*9**9**9**9"))
    rows = plan.rows([Case("", "", text) for text in texts])
    scores = [(call(reward, [row], plan.chat, CUT_OFF).scores or [None])[0] for row in rows]
    if None in scores or not scores[0] == scores[1] > scores[2]:
        return None
    return (
        "it computes whatever the answer says, powers too: 9**9**9**9 never ends. Read numbers, not programs.",
        case,
        True,
    )


def _superlinear(reward: Callable, plan: Plan, place: Callable, piece: str) -> tuple[str, Case, bool] | None:
    """Whether a run four times as long costs far more than four times as much; whether it hangs, if it does not end."""
    few, many = (signs // len(piece) for signs in LONG)
    case = _case(place, piece, many)
    then = call(reward, plan.rows([case]), plan.chat, CUT_OFF)
    if then.cpu < NOTABLE_LONG:
        return None
    first, then = (_least(reward, plan, _case(place, piece, n), 0.0) for n in (few, many))
    if then.code != "slow" and (then.cpu < NOTABLE_LONG or then.cpu < MOST_GROWTH * first.cpu):
        return None
    took = then.error if then.code == "slow" else f"{then.cpu:.2f} s of processor time"
    growth = f"{took} for {many} times {piece!r}, {first.cpu:.3f} s for {few}: it grows faster than the length"
    return f"{growth}.", case, then.code == "slow"


def _case(place: Callable, piece: str, count: int) -> Case:
    return Case(f"a run of {piece!r}", "odd", place(piece * count + FOREIGN))


def _least(reward: Callable, plan: Plan, case: Case, notable: float) -> Outcome:
    """The cheaper of two calls, if the first is notable: a first one may import something."""
    first = call(reward, plan.rows([case]), plan.chat, CUT_OFF)
    if first.code == "slow" or first.cpu <= notable:
        return first
    return min(first, call(reward, plan.rows([case]), plan.chat, CUT_OFF), key=lambda outcome: outcome.cpu)
