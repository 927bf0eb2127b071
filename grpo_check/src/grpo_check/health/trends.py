"""Decide whether a change is more than noise, and how large it is compared with the reward's range."""

import itertools
import math
from collections.abc import Sequence
from statistics import fmean, pvariance

from ..logs.log import CONSTANT
from . import limits


def first(values: Sequence[float], at: int = 0) -> float:
    """The mean of the first few values, or of the few that begin at ``at``."""
    return fmean(values[at : at + limits.WINDOW])


def last(values: Sequence[float]) -> float:
    """The mean of the last few values."""
    return fmean(values[-limits.WINDOW :])


def noise(values: Sequence[float]) -> float:
    """The standard deviation of a single value about its trend, from the differences of neighbors (von Neumann 1941).

    The trend itself hardly counts. Rare lucky batches do: where most batches earn the same, they are the noise.

    >>> round(noise([0.0, 1.0, 0.0, 1.0, 0.0]), 2)
    0.71
    """
    squares = [(after - before) ** 2 for before, after in itertools.pairwise(values)]
    return math.sqrt(fmean(squares) / 2) if squares else 0.0


def sigmas(values: Sequence[float], at: int = 0, few: int | None = None) -> float:
    """How many standard errors the last few values (if not given: a window) lie above the few that begin at ``at``.

    >>> sigmas([0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, 0.2, 0.1, 0.2]) < 1
    True
    >>> sigmas([0.1, 0.2, 0.1, 0.2, 0.1, 0.9, 1.0, 0.9, 1.0, 0.9]) > 5
    True
    """
    few = few or limits.WINDOW
    return _in_errors(fmean(values[-few:]) - fmean(values[at : at + few]), noise(values) * math.sqrt(2 / few))


def _in_errors(change: float, error: float) -> float:
    return change / error if error else math.copysign(math.inf, change) if change else 0.0


def rises(values: Sequence[float], at: int = 0) -> bool:
    """Whether the last few values are clearly above those at ``at``."""
    return sigmas(values, at) >= limits.SURE


def falls(values: Sequence[float], at: int = 0) -> bool:
    """Whether the last few values are clearly below those at ``at``."""
    return sigmas(values, at) <= -limits.SURE


def best(values: Sequence[float]) -> tuple[float, int]:
    """The best mean over a window, and where that window begins."""
    window = limits.WINDOW
    means = [fmean(values[start : start + window]) for start in range(max(1, len(values) - window + 1))]
    return max(means), means.index(max(means))


def clearest_rise(values: Sequence[float]) -> float:
    """Standard errors of the clearest rise: the mean after a step above the mean before it, for a few such steps.

    The steps lie a tenth, a fifth and two fifths of the log from either end, at least a window, so an early rise
    counts in a long run, and so does a late one.

    >>> clearest_rise([0.3, 0.5] * 5 + [0.6, 0.8] * 100) > 4
    True
    >>> clearest_rise([0.3, 0.5] * 100) < 1
    True
    """
    return max((_step_up(values, split) for split in _splits(values)), default=0.0)


def clearest_fall(values: Sequence[float]) -> tuple[float, int]:
    """Standard errors of the clearest fall, as in `clearest_rise`, and how many values are before it.

    >>> errors, before = clearest_fall([0.7, 0.8] * 10 + [0.2, 0.3] * 20)
    >>> errors > 5, before
    (True, 24)
    """
    return max(((-_step_up(values, split), split) for split in _splits(values)), default=(0.0, 0))


def _splits(values: Sequence[float]) -> set[int]:
    few = min(max(limits.WINDOW, len(values) // 10), len(values) // 2)
    distances = [few * times for times in (1, 2, 4) if 0 < few * times <= len(values) // 2]
    return {*distances, *(len(values) - distance for distance in distances)}


def _step_up(values: Sequence[float], split: int) -> float:
    before, after = values[:split], values[split:]
    return _in_errors(fmean(after) - fmean(before), noise(values) * math.sqrt(1 / len(before) + 1 / len(after)))


def payable(means: Sequence[float], spreads: Sequence[float]) -> tuple[float, float]:
    """The minimum and maximum of a reward, as far as its means and standard deviations show them.

    A reward that pays ``low`` or ``high`` has variance ``(mean - low) (high - mean)`` at every step, so both follow
    from how the variance moves with the mean, on any scale. If the variance does not move, the minimum is taken as 0,
    or as the lowest mean if that is negative.

    >>> low, high = payable([-50 + 5 * p for p in (0.1, 0.2, 0.4)], [5 * (p - p * p) ** 0.5 for p in (0.1, 0.2, 0.4)])
    >>> round(low, 6), round(high, 6)
    (-50.0, -45.0)
    """
    center, spread = fmean(means), math.sqrt(fmean(s * s for s in spreads)) if spreads else 0.0
    if len(spreads) == len(means) and max(spreads) - min(spreads) > CONSTANT * (1 + spread):
        low, high = _from_variances([mean - center for mean in means], spreads)
        low, high = center + low, center + high
    elif min(means) >= 0:
        low, high = 0.0, center + spread**2 / center if center else spread
    else:
        low, high = min(means), min(means) + 4 * spread  # so far apart are two values of which one is rare
    return min(low, *means), max(high, *means)


def _from_variances(offsets: Sequence[float], spreads: Sequence[float]) -> tuple[float, float]:
    """The roots of the parabola ``spread² = constant + slope * offset - offset²`` that fits best."""
    squares = [spread**2 + offset**2 for offset, spread in zip(offsets, spreads, strict=True)]
    varies = pvariance(offsets, 0.0)
    slope = fmean(a * b for a, b in zip(offsets, squares, strict=True)) / varies if varies else 0.0
    half_width = math.hypot(slope / 2, math.sqrt(fmean(squares)))
    return slope / 2 - half_width, slope / 2 + half_width


def share_right(means: Sequence[float], spreads: Sequence[float]) -> float:
    """The share of a reward's range that is earned now; for a binary reward, the share of completions.

    >>> round(share_right([1.8], [0.6]), 3)  # pays 2.0 in nine of ten cases
    0.9
    """
    low, high = payable(means, spreads)
    return (last(means) - low) / (high - low) if high > low else 0.0


def matters(change: float, means: Sequence[float], spreads: Sequence[float]) -> bool:
    """Whether a change is more than a small part of the reward's range."""
    low, high = payable(means, spreads)
    return change >= limits.MATTERS * (high - low)


def span(values: Sequence[float], at: int = 0) -> str:
    """From first to last, in words; the two means never share a value.

    >>> span([1.0, 2.0]), span([1.0])
    ('1 -> 2', '1')
    """
    if len(values) == 1:
        return f"{values[0]:.3g}"
    few = ends(values)
    return f"{fmean(values[at : at + few]):.3g} -> {fmean(values[-few:]):.3g}"


def ends(values: Sequence[float]) -> int:
    """How many values at each end are compared: a window, a twentieth of a long log, or half of a short one."""
    return max(1, min(max(limits.WINDOW, len(values) // 20), len(values) // 2))
