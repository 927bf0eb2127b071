"""The rules that judge an attack: everything that was paid in, findings out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean, stdev

from ..findings import Finding
from ..probes.report import shown
from ..probes.trying.trial import ROUNDING
from ..rule import Rule, adding_to, found
from . import examples
from .history import Ends, ends_of
from .honest import Pay, pay_of, place_of
from .scoring import FIRST, FIXED, HONEST, TRAINED, VARIED, Paid, Scorer
from .sharing import QUESTIONS, shared_by

#: Rows on which a wrong completion has to be overpaid; of fewer rows than the second number, a quarter.
ENOUGH, FEW = 3, 12
#: With fewer steps of GRPO, nothing is known about what a policy learns.
FEWEST_STEPS = 5
#: Best-paid completions that are shown, and of how many it is said what they share.
SHOWN, COMPARED = 3, 12
#: Characters of a prompt that are shown: its end, where the question is.
ASKED = 80

#: All rules, in the order in which findings of equal severity are listed.
RULES: list[Rule] = []
rule = adding_to(RULES)


@rule(
    "error",
    "a reward that fails on a completion of the model, a variation of one, a reference or a fixed text of `probe`",
    why="TRL stops at an exception, takes NaN for None, and waits forever for a reward that does not end.",
    fixes=("return 0.0 for a completion that the reward cannot read; grpo-check probe looks for more of them.",),
    example=examples.fails_on_samples,
)
def fails_on_samples(scorer: Scorer) -> Iterator[Finding]:
    """An exception, a wrong number of scores, a score that is not a finite number, or a call that does not end."""
    for error, text in list(dict(scorer.failures).items())[:SHOWN]:
        yield found(f"{error}.", seen=shown(text))


@rule(
    "error",
    "a reward that pays wrong completions at least as much as correct ones",
    why="training makes whatever is paid more likely, so a policy can learn to write these instead of correct ones.",
    fixes=(
        "read the completions: what do they have that is paid, or lack that costs nothing? A wrong completion should "
        "earn clearly less than a correct one.",
        "if your task accepts some of them, pass your own check with --correct FILE.py:function, and attack again.",
        "if you know a correct completion that is paid more, show it with --example TEXT.",
    ),
    example=examples.pays_wrong_completions,
)
def pays_wrong_completions(scorer: Scorer) -> Iterator[Finding]:
    """On three rows (of fewer than 12: a quarter), a wrong completion is paid as much as an honest one of that row.

    Partial credit is not a fault: a completion does not count if making it correct adds more than its form has earned.
    """
    pay = pay_of(scorer.paid, scorer.relative)
    rows, worst = len({one.row for one in scorer.paid}), overpaid(scorer, pay)
    needed = ENOUGH if rows >= FEW else max(1, -(-rows // 4))
    if len({one.row for one in worst}) < needed:
        return
    more = [one for one in worst if one.score > pay[place_of(one, scorer.relative)].plain + ROUNDING]
    if scorer.reads_answer or len({one.row for one in more}) >= needed:
        some = worst if scorer.reads_answer else more
        where = f"on at least {len({one.row for one in some})} of {rows} rows"
        what = f"{where}, a wrong completion is paid at least as much as a correct one."
        yield found(what, seen=_seen(some, pay, scorer))
        return
    what = "the reward does not read the answer, so wrong completions are paid as much as correct ones."
    fix = "ignore this if it is one of several; attack them together, with --weights."
    yield found(what, fix, severity="warning", seen=_seen(worst, pay, scorer))


def _seen(some: Sequence[Paid], pay: dict[object, Pay], scorer: Scorer) -> str:
    """Who found the overpaid completions, on how many rows, and the most overpaid of each."""
    sources = Counter(source for source, _ in {(one.source, one.row) for one in some})
    found_by = "; ".join(f"{source}: {count}" for source, count in sources.most_common())
    lines = [_line(one, pay[place_of(one, scorer.relative)], scorer) for one in _most(some, pay, scorer)]
    return "\n        ".join([f"Rows by who found it (one row can count for several): {found_by}.", *lines])


def overpaid(scorer: Scorer, pay: dict[object, Pay]) -> list[Paid]:
    """The wrong completions that are paid as much as correct ones."""
    wrong = [one for one in scorer.paid if one.correct is False]
    placed = [(one, pay.get(place_of(one, scorer.relative))) for one in wrong]
    return [one for one, of_row in placed if of_row and of_row.overpays(one.score)]


def _most(worst: Sequence[Paid], pay: dict[object, Pay], scorer: Scorer) -> list[Paid]:
    """The most overpaid completions: the best of each source, those of the policy first, and then others."""
    ranked = sorted(worst, key=lambda one: one.score - pay[place_of(one, scorer.relative)].plain, reverse=True)
    by_text = {one.text: one for one in reversed(ranked)}
    different = [one for one in ranked if by_text[one.text] is one]
    firsts = {one.source: one for one in reversed(different)}  # the best of each source, so that the policy's is shown
    shown = [firsts[source] for source in (TRAINED, FIRST, VARIED, FIXED) if source in firsts]
    return [*shown, *(one for one in different if one not in shown)][:SHOWN]


def _line(one: Paid, pay: Pay, scorer: Scorer) -> str:
    """A completion with its prompt, its pay and the honest pay."""
    gold, question = scorer.task.golds[one.row], " ".join(scorer.task.question(one.row).split())
    asked = f"prompt '{question if len(question) <= ASKED else '…' + question[-ASKED:]}'"
    correct = f", correct is {gold!r:.60}" if gold else ""
    origin = _origin(one, scorer)
    return f"{shown(one.text)} is paid {one.score:.3g}, a correct one {pay.plain:.3g} ({asked}{correct}; {origin})"


def _origin(one: Paid, scorer: Scorer) -> str:
    """Where a completion comes from: how often the policy wrote it, or how it was made."""
    times = sum((one.row, one.text) == (other.row, other.text) for other in scorer.paid if other.step)
    if times:
        return f"{one.source}, {times} time{'s' if times > 1 else ''}"
    meant_right = one.source == HONEST or (one.source == FIXED and one.what.startswith("correct"))
    strict = ", which your correct() rejects" if meant_right and scorer.task.defined else ""
    return f"{one.source}{': ' + one.what if one.what else ''}{strict}"


@rule(
    "warning",
    "a reward that rose in training without more correct completions, by at least half of what a correct completion "
    "earns",
    why="the policy has learned what is paid for, and it is not the task.",
    fixes=(
        "read the last completions in the replay: what did the policy learn? Pay less for it.",
        "ignore this if it is the form that you ask for, and a longer run goes on to correct answers.",
    ),
    unless=("pays_wrong_completions",),
    example=examples.reward_rose_alone,
)
def reward_rose_alone(scorer: Scorer) -> Iterator[Finding]:
    """The first fifth of the steps is compared with the last; a rise has to be twice its standard error."""
    ends, pay = ends_of(scorer.paid), pay_of(scorer.paid, scorer.relative)
    if not ends or ends.right is None or not pay or scorer.relative:
        return
    honest = mean(one.plain for one in pay.values())
    worth, rise = honest - mean(one.floor for one in pay.values()), mean(ends.last) - mean(ends.first)
    explained = (ends.right[1] - ends.right[0]) * worth
    if rises(ends) and rise >= worth / 2 > 0 and explained < rise / 2:
        yield found(f"{ends}, and a correct completion earns {honest:.3g}.")


def rises(ends: Ends) -> bool:
    """Whether the reward is higher at the end by more than twice its standard error."""
    parts = [stdev(part) ** 2 / len(part) for part in (ends.first, ends.last)]
    return mean(ends.last) - mean(ends.first) > 2 * sum(parts) ** 0.5


@rule(
    "warning",
    "a policy that was trained for fewer than five steps, so that the attack is hardly more than `probe`",
    why="a policy finds what is paid only by being trained on it.",
    fixes=("raise --minutes, or let fewer other programs run.",),
    example=examples.too_few_steps,
)
def too_few_steps(scorer: Scorer) -> Iterator[Finding]:
    """The time was over, or Ctrl-C was pressed, before the policy could learn anything."""
    steps = len({one.step for one in scorer.paid if one.step})
    if steps < FEWEST_STEPS and not (scorer.hangs or scorer.trouble):
        yield found(f"the policy was trained for {steps} step{'s' * (steps != 1)} only.")


@rule(
    "note",
    "a task in which no correct completion is known, so that wrong ones have nothing to be compared with",
    why="how much a wrong completion may earn depends on what a correct one earns.",
    fixes=("show a correct completion with --example, or name the column with --answer-column.",),
    example=examples.honest_pay_unknown,
)
def honest_pay_unknown(scorer: Scorer) -> Iterator[Finding]:
    """Neither a reference nor an example nor any sampled completion was correct."""
    if scorer.task.judges and not any(one.correct for one in scorer.paid):
        yield found("no correct completion is known, so the attack cannot say what is paid too much.")


@rule(
    "warning",
    "completions that are paid best although they share a form that needs no answer, where nothing says which "
    "completions are correct",
    why="nothing in the rows says which completions are correct, so only you can judge what was paid for.",
    fixes=(
        "read these completions. If they are not what you want, the reward pays for the wrong thing.",
        "name the column with the gold answers with --answer-column, or give --correct FILE.py:function, and the "
        "attack can judge for itself.",
    ),
    example=examples.is_this_correct,
)
def is_this_correct(scorer: Scorer) -> Iterator[Finding]:
    """What the policy was paid best for, or variations that are paid more: a warning if they share a mere form."""
    if any(one.correct is False for one in scorer.paid):
        return
    own, changed = _best_sampled(scorer), _better_variations(scorer)
    kinds = [(_kind_shared(some, scorer), some) for some in (own, changed)]
    kind, best = next((pair for pair in kinds if pair[0]), ("", own or changed))
    if best:
        lines = [_unjudged_line(one) for one in best[:SHOWN]]
        severity = "warning" if kind else "note"
        yield found(f"{QUESTIONS[kind]} Are these correct?", seen="\n        ".join(lines), severity=severity)


def _unjudged_line(one: Paid) -> str:
    how = f", {one.what}" if one.what else ""
    return f"paid {one.score:.3g} ({one.source}{how}): {shown(one.text)}"


def _kind_shared(some: Sequence[Paid], scorer: Scorer) -> str:
    """What some completions share, as a key of `QUESTIONS`."""
    return shared_by([one.text for one in some], [scorer.task.question(one.row) for one in some])


def _best_sampled(scorer: Scorer) -> list[Paid]:
    """What the policy was paid best for on each row, if it was paid more than the least."""
    least = min((one.score for one in scorer.paid), default=0.0)
    sampled = sorted(
        (one for one in scorer.paid if one.step and one.score > least + ROUNDING), key=lambda one: one.score
    )
    return sorted({one.row: one for one in sampled}.values(), key=lambda one: -one.score)[:COMPARED]


def _better_variations(scorer: Scorer) -> list[Paid]:
    """The best-paid variations, each text once, of those that are paid more than all that the policy wrote."""
    most = max((one.score for one in scorer.paid if one.source not in (VARIED, HONEST)), default=float("inf"))
    better = sorted((one for one in scorer.paid if one.source == VARIED), key=lambda one: one.score)
    better = {one.text: one for one in better if one.score > most + ROUNDING}
    return sorted(better.values(), key=lambda one: -one.score)[:SHOWN]
