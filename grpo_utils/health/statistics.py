"""Is a change more than noise? Tests that may be asked at every step of a run."""

import itertools
import math
from collections.abc import Sequence
from statistics import fmean, median

from .thresholds import limit

#: No test looks at more points than this, so that a long run costs no more than a short one.
MOST_POINTS = 200


def first(values: Sequence[float]) -> float:
    """The mean of the first few values."""
    return fmean(values[: int(limit("window"))])


def last(values: Sequence[float]) -> float:
    """The mean of the last few values."""
    return fmean(values[-int(limit("window")) :])


def noise(values: Sequence[float]) -> float:
    """The standard deviation of a single value about its trend, from the differences of neighbours.

    The median makes it deaf to a few jumps, and the trend itself hardly counts.

    >>> round(noise([0.0, 1.0, 0.0, 1.0, 0.0]), 2)
    1.05
    """
    steps = [abs(after - before) for before, after in itertools.pairwise(values)]
    return 1.4826 * median(steps) / math.sqrt(2) if steps else 0.0


def sigmas(values: Sequence[float], at: int = 0) -> float:
    """How many standard errors the last few values lie above the few that begin at ``at``.

    >>> sigmas([0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, 0.2]) < 1
    True
    >>> sigmas([0.1, 0.2, 0.1, 0.2, 0.1, 0.9, 1.0, 0.9, 1.0, 0.9]) > 10
    True
    """
    window = int(limit("window"))
    change = last(values) - fmean(values[at : at + window])
    error = noise(values) * math.sqrt(2 / window)
    return change / error if error else math.copysign(math.inf, change) if change else 0.0


def rises(values: Sequence[float], at: int = 0) -> bool:
    """Whether the last few values are surely above those at ``at``."""
    return sigmas(values, at) >= limit("sure")


def falls(values: Sequence[float], at: int = 0) -> bool:
    """Whether the last few values are surely below those at ``at``."""
    return sigmas(values, at) <= -limit("sure")


def best(values: Sequence[float]) -> tuple[float, int]:
    """The best mean over a window, and where that window begins."""
    window = int(limit("window"))
    means = [fmean(values[start : start + window]) for start in range(max(1, len(values) - window + 1))]
    return max(means), means.index(max(means))


def trend(values: Sequence[float]) -> tuple[float, float]:
    """How far the values went from first to last, and the p of Kendall's tau against the step (Mann 1945).

    >>> change, p = trend([0.1, 0.2, 0.2, 0.4, 0.4, 0.5, 0.6, 0.6, 0.8, 0.9])
    >>> round(change, 2), p < 0.001
    (0.42, True)
    """
    from scipy.stats import kendalltau

    every = max(1, len(values) // MOST_POINTS)
    thinned = [fmean(values[start : start + every]) for start in range(0, len(values), every)]
    p = float(kendalltau(range(len(thinned)), thinned).pvalue)
    return last(values) - first(values), 1.0 if math.isnan(p) else p  # nan: all values are equal


def share_right(means: Sequence[float], spreads: Sequence[float]) -> float:
    """Which share of completions earns a reward that pays all or nothing, whatever it pays.

    A reward of ``s`` with probability ``p`` has mean ``s p`` and variance ``s² p (1 - p)``, so
    ``p = mean² / (mean² + variance)``; 0.0 where the mean is not above zero.

    >>> round(share_right([1.8], [0.6]), 3)  # pays 2.0 in nine of ten cases
    0.9
    """
    mean, spread = last(means), last(spreads)
    return mean**2 / (mean**2 + spread**2) if mean > 0 else 0.0


def span(values: Sequence[float]) -> str:
    """From first to last, in words."""
    return f"{first(values):.3g} -> {last(values):.3g}"
