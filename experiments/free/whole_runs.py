"""What whole runs of GRPO on orders have reached, over seeds and processors."""

from benches import ROOT, read_stored
from checked.reading import percent

from grpo_utils.real.measuring import rates

from .prompts import TASK
from .table import of
from .training import STEPS

STORED = ROOT / "experiments" / "bench_real.json"
OTHERS = (0.945, 0.802)  # seed 0 on two other processors: docs/evaluation.md


def greedy_of_runs() -> list[float]:
    """The greedy accuracy of each run that was measured on 400 held-out prompts."""
    whole = [row for row in read_stored(STORED)["rows"] if (row["task"], row["steps"]) == (TASK, STEPS)]
    return [rates(each)["greedy"] for each in [*(row["after"] for row in whole), *of("GRPO")]] + [*OTHERS]


def span() -> dict[str, str]:
    """The least and the most of them in percent, and their number, by name."""
    reached = greedy_of_runs()
    return dict(least=percent(min(reached)), most=percent(max(reached)), runs=str(len(reached)))
