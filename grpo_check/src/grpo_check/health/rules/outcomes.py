"""What is said of a run in which no problem was found: the first of these rules that finds something."""

from collections.abc import Iterator
from math import isfinite

from ...findings import Finding
from ...logs.log import Log
from ...rule import adding_to, found
from .. import limits
from ..correctness import correctness_of, is_favorable
from ..remarks import remarks
from ..trends import ends, last, span
from .rule import LogRule, log_of

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule, at_the_end=True)
#: Rewards that rise.
_RISING = dict(steps=20, reward=lambda step: step / 20)


@rule(
    "note",
    "too few steps to judge",
    why="in so few steps, ordinary noise looks like a trend.",
    fixes=("log every step (logging_steps=1), and wait.",),
    steps=0,
    link="",
    example=log_of(5),
)
def too_short(log: Log) -> Iterator[Finding]:
    """The other rules need more steps."""
    if log.steps < limits.FEWEST_STEPS:
        enough = f"{log.steps} logged steps, at least {limits.FEWEST_STEPS} needed"
        so_far = "; ".join(filter(None, [_looked_at(log), _constant_rewards(log)])) if log.entries else ""
        yield found(seen=f"{enough}. So far: {so_far}" if so_far else enough)


@rule(
    "note",
    "no problem found",
    fixes=("evaluate on held-out prompts; a log alone proves nothing.",),
    link="",
    example=log_of(**_RISING, rewards__accuracy_reward__mean=lambda step: step / 20),
)
def healthy(log: Log) -> Iterator[Finding]:
    """Correctness rose or is high, and samples do not contradict it."""
    if is_favorable(log):
        yield found(seen=_looked_at(log))


@rule(
    "note",
    "no problem visible in this log, but correctness has not risen so far",
    why="the run may be young, or the reward may rise without more correct answers.",
    fixes=("train on, and look again after 20 steps.", "read samples next to their gold answers."),
    example=log_of(
        **_RISING,
        rewards__accuracy_reward__mean=lambda step: 0.2 + 0.01 * (step % 2),
        rewards__accuracy_reward__std=0.4,
    ),
)
def no_gain_shown(log: Log) -> Iterator[Finding]:
    """Something shows which answers are correct, and it does not speak for the run."""
    if correctness_of(log).known and not is_favorable(log):
        yield found(seen=_looked_at(log))


@rule(
    "note",
    "no problem visible in this log, but it does not show whether the answers are correct",
    why="a reward that pays for wrong answers rises in the same way.",
    fixes=(
        "log a reward for correctness; weight 0 is enough (name it in correctness=[…]).",
        "evaluate on held-out prompts; HealthCallback(test_rows) samples some, if they ask for tags.",
    ),
    example=log_of(**_RISING),
)
def unchecked(log: Log) -> Iterator[Finding]:
    """Neither a reward for correctness nor a sample shows which answers are correct."""
    if not correctness_of(log).known:
        yield found(seen=_looked_at(log))


def _looked_at(log: Log) -> str:
    """What the rows show, whether or not they are enough for a verdict."""
    rewards = log.values("reward")
    few, rows = ends(rewards), len(log.entries)
    compared = f"first and last {few} logged steps" if few > 1 else "first and last logged step"
    mean = f"mean reward {rewards[0]:.3g}" if rewards else "no finite reward"
    mean = f"mean reward {span(rewards)} ({compared})" if len(rewards) > 1 else mean
    said = [f"{'one entry, which shows no trend; ' * (rows == 1)}{'evaluations alone, ' * log.of_evaluation}{mean}"]
    said += [correctness_of(log).said]
    said += [f"{last(log.tied):.0%} of the latest groups tied"] if log.tied else []
    return "; ".join(filter(None, [*said, *remarks(log), _lost_gradients(log)]))


def _constant_rewards(log: Log) -> str:
    """The rewards that gave every completion the same so far."""
    logged = [name for name in log.rewards if log.means(name) and log.spreads(name)]
    names = [name for name in logged if not log.ever_varied(name)]
    same = ", ".join(f"{name} = {log.means(name)[-1]:.3g}" for name in names)
    return f"{same} for every completion" if same else ""


def _lost_gradients(log: Log) -> str:
    norms = [entry["grad_norm"] for entry in log.entries if "grad_norm" in entry]
    lost = sum(not isfinite(norm) for norm in norms)
    return f"grad_norm is not a number in {lost} of {len(norms)} entries" if lost else ""
