"""Rules about the time that steps take."""

from collections.abc import Iterator
from statistics import median

from ...findings import Finding
from ...rules import adding_to
from .. import limits
from ..log import Log
from .rule import LogRule, log_of, seen

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "error",
    "the steps take longer and longer",
    why="the run will take longer than planned",
    fixes=(
        "look for other processes on this machine and for swapping",
        "time the rewards; a slow one delays every step",
        "check the GPU temperature; a GPU that is too hot slows down",
    ),
    example=log_of(20, step_time=lambda step: 0.3 if step <= 10 else 1.5),
)
def slow_steps(log: Log) -> Iterator[Finding]:
    """Steps take several times as long as the first ones, and not because completions grew."""
    seconds, few = log.values("step_time"), limits.FEWEST
    if len(seconds) < 2 * few or median(seconds[:few]) <= 0:
        return
    # The third fastest of ten: a burst of other work on the machine does not count.
    slower = sorted(seconds[-few:])[2] / median(seconds[:few])
    lengths = [log.values(f"completions/{kind}_length") for kind in ("mean", "max")]
    grown = [median(some[-few:]) / median(some[:few]) for some in lengths if some and median(some[:few])]
    if slower >= limits.SLOWER * max([1.0, *grown]):
        yield seen(f"{median(seconds[:few]):.3g} -> {median(seconds[-few:]):.3g} seconds per step")


@rule(
    "error",
    "a step does not finish",
    why="the run hangs, and no log shows this",
    fixes=(
        "find out where the process hangs: health/verdicts.txt has the stack of every thread",
        "in a reward, limit its time (a regular expression with nested quantifiers, a request without a timeout)",
        "in generate or a collective call, check that every process is still running (nvidia-smi, py-spy)",
    ),
    steps=1,
    example=[*log_of(1), {"step": 1, "health/stalled": 312.0}],
)
def stalled(log: Log) -> Iterator[Finding]:
    """The callback's watchdog saw a step that took many times the median step."""
    if seconds := log.checked("stalled"):
        yield seen(f"a step had not finished after {seconds[-1]:.0f} seconds")
