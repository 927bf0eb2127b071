"""Rules about tied groups, whose completions all score the same, so that they have no gradient."""

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
    gradients = log.values("grad_norm", limits.FEWEST)
    nothing = bool(gradients) and max(gradients) == 0.0 and not any(log.values("kl"))
    return nothing or _groups_tie(log)


def _groups_tie(log: Log) -> bool:
    """Whether a few steps or some more show ties: with one group per step, nine of ten may tie by chance."""
    for steps in (limits.FEWEST, limits.TREND_STEPS):
        tied, known = _ties(log, steps)
        if known and wilson_interval(tied, known)[0] >= limits.TIED_SURELY:
            return True
    return False


def _groups_tied_long(log: Log) -> bool:
    """Whether most groups have tied for so long that it is not chance."""
    tied, known = _ties(log, limits.TIED_STEPS)
    return known >= limits.TIED_STEPS and tied >= limits.TIED_LONG * known


def _ties(log: Log, steps: int) -> tuple[int, int]:
    """The share of ties in the last so many steps as a count of steps, and the number of steps that are known."""
    share = log.tied[-log.entries_in(steps) :]
    known = min(steps, len(share) * log.per_entry)
    return (round(min(max(fmean(share), 0.0), 1.0) * known), known) if share else (0, 0)


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
    said, spread = _ties_in_words(log), log.values("reward_std")[-1:]
    if said and not _at_top(log):
        yield seen(said + (f"; reward_std over the batch is {spread[0]:.3g}" if spread else ""))


def _ties_in_words(log: Log) -> str:
    if _groups_tie(log):
        return f"{last(log.tied):.0%} of groups tied"
    if is_tied(log):
        return "grad_norm is 0"
    tied, known = _ties(log, limits.TIED_STEPS)
    return f"{tied / known:.0%} of groups tied over the last {known} steps" if _groups_tied_long(log) else ""


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
    if not (_groups_tie(log) or _groups_tied_long(log)) or not is_at_top(log):
        return ""
    said = f"{last(log.tied):.0%} of groups tied, reward {last(log.values('reward')):.3g}"
    return ", ".join(filter(None, [said, evidence(log).said]))
