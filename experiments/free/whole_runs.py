"""What whole runs of GRPO on orders have reached, over seeds and processors."""

from collections.abc import Sequence
from operator import itemgetter
from statistics import fmean

from benches import ROOT, read_stored
from checked.reading import percent

from grpo_utils.real.measuring import rates

from .arms import of
from .prompts import TASK
from .training import STEPS

STORED = ROOT / "experiments" / "bench_real.json"
IN_FLOAT32 = 0.802  # seed 0, and so are the others: docs/evaluation.md
OTHERS = (0.945, IN_FLOAT32)


def of_make_real() -> list[dict]:
    """The stored runs of `make real` on orders, by seed."""
    whole = [row for row in read_stored(STORED)["rows"] if (row["task"], row["steps"]) == (TASK, STEPS)]
    return sorted(whole, key=itemgetter("seed"))


def runs(arm: str) -> list[dict]:
    """What answered greedily, by seed: the cells of an arm, and for GRPO also `make real` with the other seeds."""
    stored = of(arm)
    if arm == "GRPO":
        had = {each["seed"] for each in stored}
        stored = stored + [row | row["after"] for row in of_make_real() if row["seed"] not in had]
    return sorted(stored, key=itemgetter("seed"))


def greedy_of_runs() -> list[float]:
    """The greedy accuracy of each run that was measured on 400 held-out prompts."""
    return [rates(each)["greedy"] for each in [*(row["after"] for row in of_make_real()), *of("GRPO")]] + [*OTHERS]


def elsewhere() -> str:
    """What seed 0 reached on other processors than the cell of GRPO, in words."""
    return listed([*OTHERS, *(rates(row["after"])["greedy"] for row in of_make_real() if row["seed"] == 0)])


def listed(shares: Sequence[float]) -> str:
    """Shares in words, the lowest first.

    >>> listed([0.945, 0.802])
    '0.802 and 0.945'
    """
    *low, high = (f"{share:.3f}" for share in sorted(shares))
    return f"{', '.join(low)} and {high}"


def span() -> dict[str, str]:
    """The least, the mean and the most of them in percent, by name."""
    reached = greedy_of_runs()
    return dict(least=percent(min(reached)), mean=f"{fmean(reached):.1%}", most=percent(max(reached)))
