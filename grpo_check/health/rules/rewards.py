"""The rule about a reward that gives every completion the same score; one that does no harm is in `notes`."""

from collections.abc import Iterator

from ...findings import Finding
from ...rules import adding_to
from .. import limits
from ..log import Log
from ..statistics import best, clearest_rise, falls
from .learning import is_learning
from .rule import LogRule, log_of, seen

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


def _may_come(log: Log) -> bool:
    """Whether dead rewards may still be earned: none was so far, and the run is young or learns something else.

    A reward of 0 for anything but correctness does no harm in a run that has learned, even after it has leveled off: a
    format if the total reward has risen, anything else if correctness has. A constant penalty was most likely never
    triggered.
    """
    dead = dead_rewards(log)
    if any(log.ever_varied(name) for name in dead):
        return False
    wanted = {log.kind(name) for name in dead} - {"penalty"}
    alive = {log.kind(name) for name in log.rewards if name not in dead} - {"other"}
    near = wanted <= alive and (log.steps < limits.PATIENCE or not wanted)
    return near or log.steps < limits.TREND_STEPS or is_learning(log) or _learned_without(wanted, log)


def _learned_without(wanted: set[str], log: Log) -> bool:
    """Whether the run has learned what matters more than rewards of these kinds."""
    curves = [log.values("reward")] if wanted <= {"form"} else []
    curves += [] if "correctness" in wanted else [log.means(name) for name in log.of_kind("correctness")]
    return any(clearest_rise(curve) >= limits.RISEN for curve in curves)


@rule(
    "error",
    "a reward gives every completion the same score",
    why="it cannot tell better completions from worse ones, so the policy learns nothing from it",
    fixes=(
        "probe it on a correct and a wrong completion written by hand",
        "if it uses a regular expression over several lines, add re.DOTALL",
        "check that it reads the format and the columns that the data has",
        "if it is a penalty that was never triggered, ignore this",
    ),
    hides=("unpaid_reward",),
    early=_may_come,
    example=log_of(20, rewards__accuracy_reward__mean=0.0, rewards__accuracy_reward__std=0.0),
)
def dead_reward(log: Log) -> Iterator[Finding]:
    """A reward has had no spread for some time, and not because every completion has learned to earn it."""
    if dead := dead_rewards(log):
        said = ", ".join(f"{name} = {value:.3g}" for name, value in dead.items())
        yield seen(f"{said} for every completion of the last {limits.FEWEST:g} steps or more")


def dead_rewards(log: Log) -> dict[str, float]:
    """The dead rewards by name, with the score that each gives every completion.

    Not dead are a reward that was learned (it varied once and has not clearly fallen), a penalty that was never
    triggered, a format that was always correct, and an accuracy of 1.0 from the start.
    """
    found = {}
    for name in filter(log.means, log.rewards):
        value, means = _constant(log, name), log.means(name)
        if value is None:
            continue
        harmless = {"penalty": value == 0, "form": value > 0, "correctness": value == 1.0}
        varied = log.ever_varied(name)  # what is at its best was learned; what was hardly ever earned is rare
        alive = not falls(means, best(means)[1]) if varied else harmless.get(log.kind(name), False)
        found |= {} if alive else {name: value}
    return found


def _constant(log: Log, name: str) -> float | None:
    """The one score that a reward gave all recent completions, or None."""
    means, spreads = (log.values(f"rewards/{name}/{kind}", limits.FEWEST) for kind in ("mean", "std"))
    constant = max(means) - min(means) <= limits.CONSTANT and max(spreads, default=0.0) <= limits.CONSTANT
    return means[-1] if constant and len(means) * log.per_entry >= limits.FEWEST else None
