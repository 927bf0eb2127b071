"""Rules about tied groups, whose completions all score the same, so that they have no gradient."""

import itertools
from collections.abc import Iterator
from statistics import fmean

from grpo_utils.run.measuring import wilson_interval

from ...findings import Finding
from ...rules import adding_to
from .. import limits
from ..evidence import Evidence, evidence, is_at_top
from ..log import Log
from ..statistics import last
from .learning import is_learning
from .rule import LogRule, log_of, seen

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


def is_tied(log: Log) -> bool:
    """Whether nearly all groups tie, by their share or by a gradient of exactly zero without a KL term."""
    return bool(_nearly_all_tie(log)) or _gradient_is_zero(log)


def _gradient_is_zero(log: Log) -> bool:
    """Whether no gradient is left: several entries in a row have none, more than ties explain, and no KL term pulls.

    An entry has the ``grad_norm`` of its last step only, which is 0 if all groups of that step tie.
    """
    without = len(list(itertools.takewhile(lambda norm: norm == 0.0, reversed(log.values("grad_norm")))))
    if without < max(limits.WINDOW, log.entries_in(limits.FEWEST)) or any(log.values("kl")):
        return False
    return fmean(log.tied[-without:] or [0.0]) ** without <= limits.TIED_BY_CHANCE


def _nearly_all_tie(log: Log) -> str:
    """The ties of a few steps or of some more: with one group per step, nine of ten may tie by chance."""
    for steps in (limits.FEWEST, limits.TREND_STEPS):
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
    shares = log.tied[-max(2, log.entries_in(steps)) :]
    if len(shares) < 2:
        return 0.0, 0
    covered = log.steps_each[-len(shares) :]
    return min(max(fmean(shares, covered), 0.0), 1.0), sum(covered)


def _few_groups_teach(log: Log) -> bool:
    """Whether some groups do not tie, and the run still learns from them."""
    return not is_tied(log) and is_learning(log)


@rule(
    "error",
    "nearly every group is tied",
    why="every advantage is zero, and so is the gradient, so these steps train nothing",
    fixes=(
        "check that the reward reads the completion, not only the prompt",
        "drop prompts that are always or never solved",
        "use easier or harder prompts, or a reward with steps in between",
        "raise num_generations or temperature, so that the completions of a group differ",
    ),
    hides=("no_learning",),
    early=_few_groups_teach,
    example=log_of(10, frac_reward_zero_std=1.0),
)
def no_gradient(log: Log) -> Iterator[Finding]:
    """Groups tie although not all answers are correct, or there is no gradient although few groups tie.

    ``reward_std`` does not show ties: groups that tie can differ from each other.
    """
    said = _nearly_all_tie(log) or (_gradient_is_zero(log) and "grad_norm is 0") or _most_tie_for_long(log)
    spread = log.values("reward_std")[-1:]
    if said and not _at_top(log):
        yield seen(said + (f"; reward_std over the batch is {spread[0]:.3g}" if spread else ""))


@rule(
    "note",
    "the groups are tied because nearly all answers are correct",
    why="these prompts have nothing left to teach, and more steps only add noise",
    fixes=("stop here and evaluate", "continue with harder prompts"),
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
    """Groups tie because nearly all answers are correct, as a correctness reward or samples show."""
    said, shown = _at_top(log), evidence(log)
    if said and _shows_correct(shown):
        yield seen(said)


@rule(
    "note",
    "the groups are tied because the reward is at its top, which does not show that the answers are correct",
    why="the reward has nothing left to teach; a reward that was hacked looks the same",
    fixes=(
        "read samples next to their gold answers, or evaluate on held-out prompts",
        "in the next run, log a reward for correctness with weight 0 (name it in correctness=[…])",
        "attack the reward: python -m grpo_check probe FILE.py:function",
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
    said, shown = _at_top(log), evidence(log)
    if said and not _shows_correct(shown):
        yield seen(said)


def _shows_correct(shown: Evidence) -> bool:
    return bool(shown.rewards) or shown.samples_right


def _at_top(log: Log) -> str:
    """Why groups tie, if they tie because the reward is at its top."""
    tied = _nearly_all_tie(log) or _most_tie_for_long(log)
    if not tied or not is_at_top(log):
        return ""
    return ", ".join(filter(None, [tied, f"reward {last(log.values('reward')):.3g}", evidence(log).said]))
