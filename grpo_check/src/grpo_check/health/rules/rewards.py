"""Rules about rewards that do not tell completions apart: dead ones, and groups that tie."""

import itertools
from collections.abc import Iterator
from statistics import fmean

from grpo_core.training.measuring import wilson_interval

from ...findings import Finding
from ...logs.log import CONSTANT, Log
from ...rule import adding_to, found
from .. import limits
from ..correctness import correctness_of, is_at_top, is_learning
from ..trends import best, clearest_rise, falls, last, span
from .rule import UNPAID, LogRule, log_of

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


#: Kinds of rewards that every completion may satisfy without a word on it.
_CONSTRAINTS = ("penalty", "length", "other")


def _may_come(log: Log) -> bool:
    """Whether dead rewards may still be earned: none was so far, and the run is young or learns something else.

    If all are dead and so every group ties, that is as sure as the ties.

    A reward of 0 for anything but correctness does no harm in a run that has learned, even after it has leveled off: a
    format if the total reward has risen, anything else if correctness has. A constant penalty was most likely never
    triggered. Correct answers that nobody has given for long may still come only if they are near: if another reward
    for them has risen.
    """
    dead = dead_rewards(log)
    alive = [name for name in filter(log.means, log.rewards) if name not in dead]
    if any(log.ever_varied(name) for name in dead) or (not alive and is_tied(log)):
        return False
    if min(dead.values()) > 0 and not is_tied(log):  # all answers are correct, or it pays for all of them
        return True
    wanted = {log.kind(name) for name in dead} - {"penalty"}
    if "correctness" in wanted and log.steps >= limits.FLAT_STEPS:
        return any(clearest_rise(log.means(name)) >= limits.LIKELY for name in log.of_kind("correctness"))
    near = wanted <= {log.kind(name) for name in alive} - {"other"} and (log.steps < limits.FLAT_STEPS or not wanted)
    return near or log.steps < limits.TREND_STEPS or is_learning(log) or _learned_without(wanted, log)


def _learned_without(wanted: set[str], log: Log) -> bool:
    """Whether the run has learned what matters more than rewards of these kinds."""
    curves = [log.values("reward")] if wanted <= {"form"} else []
    curves += [] if "correctness" in wanted else [log.means(name) for name in log.of_kind("correctness")]
    return any(clearest_rise(curve) >= limits.RISEN for curve in curves)


@rule(
    "error",
    "a reward gives every completion the same score",
    why="it cannot tell better completions from worse ones, so the policy learns nothing from it.",
    fixes=(
        "probe it on a correct and a wrong completion written by hand.",
        "if it uses a regular expression over several lines, add re.DOTALL.",
        "check that it reads the format and the columns that the data has.",
        "a penalty that nothing triggered so far may stay as it is.",
    ),
    symptom=UNPAID,
    hides=("unpaid_reward",),
    early=_may_come,
    example=log_of(20, rewards__accuracy_reward__mean=0.0, rewards__accuracy_reward__std=0.0),
)
def dead_reward(log: Log) -> Iterator[Finding]:
    """A reward has had no spread for some time, and not because every completion has learned to earn it."""
    if dead := dead_rewards(log):
        said = ", ".join(f"{name} = {value:.3g}" for name, value in dead.items())
        yield found(seen=f"{said} for every completion of the last {limits.FEWEST_STEPS} steps or more")


def dead_rewards(log: Log) -> dict[str, float]:
    """The dead rewards by name, with the score that each gives every completion.

    Not dead are a reward that was learned (it varied once and has not clearly fallen), a penalty that was never
    triggered, a format that was always correct, and an accuracy of 1.0 from the start. The same holds for anything but
    correctness that every completion satisfies, where other rewards tell completions apart.
    """
    dead, others_vary = {}, any(log.ever_varied(name) for name in log.rewards if log.means(name))
    for name in filter(log.means, log.rewards):
        value, means = _constant(log, name), log.means(name)
        if value is None:
            continue
        satisfied = value > 0 and others_vary
        harmless = {"penalty": value == 0 or satisfied, "form": value > 0, "correctness": value == 1.0}
        varied = log.ever_varied(name)  # what is at its best was learned; what was hardly ever earned is rare
        alive = not falls(means, best(means)[1]) if varied else harmless.get(log.kind(name), satisfied)
        dead |= {} if alive else {name: value}
    return dead


def _constant(log: Log, name: str) -> float | None:
    """The one score that a reward gave all recent completions, or None.

    At least two entries count. One that is the mean of ten steps may hide that their scores differ.
    """
    few = max(2, log.entries_covering(limits.FEWEST_STEPS))
    means, spreads = (log.values(f"rewards/{name}/{kind}")[-few:] for kind in ("mean", "std"))
    constant = max(means) - min(means) <= CONSTANT and max(spreads, default=0.0) <= CONSTANT
    return means[-1] if constant and len(means) == few else None


@rule(
    "note",
    "a reward paid nothing in the whole run, while another one rose",
    why="the run learns without it; either nothing ever triggered it, or it cannot be triggered.",
    fixes=(
        "call it by hand on a completion that should trigger it.",
        "if it scores only some rows (None for the others), check the column that it reads.",
        "if nothing triggers it, leave it out.",
    ),
    steps=limits.TREND_STEPS,
    harmless=True,
    at_the_end=True,
    example=log_of(
        40,
        reward=lambda step: 0.2 if step < 20 else 0.6,
        rewards__overlong_penalty__mean=0.0,
        rewards__overlong_penalty__std=0.0,
        rewards__accuracy_reward__mean=lambda step: 0.2 if step < 20 else 0.6,
    ),
)
def unpaid_reward(log: Log) -> Iterator[Finding]:
    """A reward gave every completion 0, or None, in a run that learned; `dead_reward` has those that do harm."""
    named = [name for name in log.rewards if log.means(name)]
    zero = [name for name in named if log.means(name)[-1] == 0 and not log.ever_varied(name)]
    risen = [name for name in named if clearest_rise(log.means(name)) >= limits.RISEN]
    said = [f"{name} = 0 for every completion" for name in zero]
    said += [f"{name} scored no completion" for name in log.unscored]
    if said and risen:
        yield found(seen=f"{', '.join(said)} of {log.steps} steps, while {risen[0]} rose ({span(log.means(risen[0]))})")


@rule(
    "note",
    "a reward pays every completion the same, more than 0",
    why="what is the same in a group teaches nothing; if every completion satisfies it, that is as it should be.",
    fixes=("if some completions should not earn it, call it by hand on one of them.",),
    steps=limits.TREND_STEPS,
    harmless=True,
    at_the_end=True,
    example=log_of(
        20,
        rewards__runs_reward__mean=1.0,
        rewards__runs_reward__std=0.0,
        rewards__accuracy_reward__mean=lambda step: step / 20,
    ),
)
def constant_reward(log: Log) -> Iterator[Finding]:
    """A reward that is not for correctness or format never varied; `dead_reward` has those that pay 0 or less."""
    dead, named = dead_rewards(log), [name for name in log.rewards if log.means(name)]
    paid = {name: log.means(name)[-1] for name in named if name not in dead and not log.ever_varied(name)}
    same = [f"{name} = {value:.3g}" for name, value in paid.items() if value > 0 and log.kind(name) in _CONSTRAINTS]
    if same:
        yield found(seen=f"{', '.join(same)} for every completion of {log.steps} steps")


@rule(
    "error",
    "nearly every group is tied",
    why="every advantage is zero, and so is the gradient, so these steps train nothing.",
    fixes=(
        "check that the reward reads the completion, not only the prompt.",
        "drop prompts that are always or never solved.",
        "use easier or harder prompts, or a reward with steps in between.",
        "raise num_generations or temperature, so that the completions of a group differ.",
    ),
    symptom=UNPAID,
    hides=("no_learning",),
    early=lambda log: not is_tied(log) and is_learning(log),  # some groups differ, and they teach
    example=log_of(10, frac_reward_zero_std=1.0),
)
def no_gradient(log: Log) -> Iterator[Finding]:
    """Groups tie although not all answers are correct, or there is no gradient although few groups tie.

    ``reward_std`` does not show ties: groups that tie can differ from each other.
    """
    said = _nearly_all_tie(log) or (_gradient_is_zero(log) and "grad_norm is 0") or _most_tie_for_long(log)
    spread = log.values("reward_std")[-1:]
    if said and not _at_top(log):
        yield found(seen=said + (f"; reward_std over the batch is {spread[0]:.3g}" if spread else ""))
    elif not said and (half := _half_have_none(log)) and not _at_top(log):
        yield found("most steps have no gradient", seen=half, severity="warning")


def is_tied(log: Log) -> bool:
    """Whether nearly all groups tie, by their share or by a gradient of exactly zero without a KL term."""
    return bool(_nearly_all_tie(log)) or _gradient_is_zero(log)


def _gradient_is_zero(log: Log) -> bool:
    """Whether no gradient is left: several entries in a row have none, more than ties explain, and no KL term pulls.

    An entry has the ``grad_norm`` of its last step only, which is 0 if all groups of that step tie.
    """
    without = len(list(itertools.takewhile(lambda norm: norm == 0.0, reversed(log.values("grad_norm")))))
    if without < max(limits.WINDOW, log.entries_covering(limits.FEWEST_STEPS)) or any(log.values("kl")):
        return False
    return fmean(log.tied[-without:] or [0.0]) ** without <= limits.TIED_BY_CHANCE


def _half_have_none(log: Log) -> str:
    """In how many entries the gradient is exactly zero, if in most of them, and no KL term pulls."""
    norms = log.values("grad_norm")
    without = norms.count(0.0)
    if len(norms) < limits.TIED_STEPS or 2 * without <= len(norms) or any(log.values("kl")):
        return ""
    return f"grad_norm is 0 in {without} of {len(norms)} entries, {fmean(log.tied or [0.0]):.0%} of all groups tied"


def _nearly_all_tie(log: Log) -> str:
    """The ties of a few steps or of some more: with one group per step, nine of ten may tie by chance."""
    for steps in (limits.FEWEST_STEPS, limits.TREND_STEPS):
        share, covered = _tied_share(log, steps)
        known = min(steps, covered)
        if known and wilson_interval(round(share * known), known)[0] >= limits.TIED_SURELY:
            return f"{share:.0%} of groups tied over the last {covered} steps"
    return ""


def _most_tie_for_long(log: Log) -> str:
    """The ties of so many steps that they are not chance, though some groups still differ."""
    share, covered = _tied_share(log, limits.TIED_STEPS)
    if covered < limits.TIED_STEPS or round(share * covered) < limits.TIED_LONG * covered:
        return ""
    return f"{share:.0%} of groups tied over the last {covered} steps"


def _tied_share(log: Log, steps: int) -> tuple[float, int]:
    """The mean share of tied groups in entries that cover so many steps, and how many steps these entries cover.

    At least two entries count. One that stands for ten steps is a single look at the run, not ten.
    """
    shares = log.tied[-max(2, log.entries_covering(steps)) :]
    if len(shares) < 2:
        return 0.0, 0
    covered = log.steps_each[-len(shares) :]
    return min(max(fmean(shares, covered), 0.0), 1.0), sum(covered)


@rule(
    "note",
    "nearly all answers are correct, and the groups are tied",
    why="these prompts have nothing left to teach with this reward, and more steps only add noise.",
    fixes=(
        "stop here and evaluate.",
        "continue with harder prompts.",
        "if wrong answers are paid as much as correct ones, add a reward that reads the answer.",
    ),
    hides=("no_learning",),
    example=log_of(
        20,
        reward=1.0,
        frac_reward_zero_std=1.0,
        rewards__correctness_reward__mean=1.0,
        rewards__correctness_reward__std=0.0,
    ),
)
def saturated(log: Log) -> Iterator[Finding]:
    """Groups tie and nearly all answers are correct, as samples or a correctness reward, paid or only logged, show."""
    if (said := _at_top(log)) and correctness_of(log).confirms_top:
        yield found(seen=said)


@rule(
    "note",
    "the groups are tied because the reward is at its top, which does not show that the answers are correct",
    why="the reward has nothing left to teach; a reward that was hacked looks the same.",
    fixes=(
        "read samples next to their gold answers, or evaluate on held-out prompts.",
        "in the next run, log a reward for correctness with weight 0 (name it in correctness=[…]).",
        "attack the reward: grpo-check probe FILE.py:function.",
    ),
    hides=("no_learning",),
    example=log_of(
        20,
        reward=lambda step: min(1.0, 0.5 + step / 20),
        reward_std=lambda step: 0.5 if step < 10 else 0.0,
        frac_reward_zero_std=lambda step: 0.0 if step < 10 else 1.0,
    ),
)
def reward_at_top(log: Log) -> Iterator[Finding]:
    """Groups tie because the reward is near its maximum, and nothing shows that the answers are correct."""
    if (said := _at_top(log)) and not correctness_of(log).confirms_top:
        yield found(seen=said)


def _at_top(log: Log) -> str:
    """Why groups tie, if they tie because the reward is at its top."""
    tied = _nearly_all_tie(log) or _most_tie_for_long(log)
    if not tied or not is_at_top(log):
        return ""
    return ", ".join(filter(None, [tied, f"reward {last(log.values('reward')):.3g}", correctness_of(log).said]))
