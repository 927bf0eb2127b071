"""The 95% interval of a mean, and of any statistic, by resampling prompts; a bootstrap in numpy.

`scipy.stats.bootstrap` draws the same resamples, but takes seconds to import.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

from .errors import CourseError
from .training.measuring import wilson_interval

CONFIDENCE = 0.95
RESAMPLES, BATCH = 9999, 1000


class Estimate(NamedTuple):
    """A number and its 95% interval.

    >>> str(Estimate(0.1, -0.02, 0.22)), Estimate(0.1, -0.02, 0.22).covers_zero
    ('0.100 (-0.020 to 0.220)', True)
    """

    value: float
    low: float
    high: float

    @property
    def covers_zero(self) -> bool:
        """Whether zero is in the interval: then no change is shown."""
        return self.low <= 0 <= self.high

    def __str__(self) -> str:
        """The number and its interval."""
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"

    def signed(self) -> str:
        """The same with signs, for a change.

        >>> Estimate(0.1, -0.02, 0.22).signed()
        '+0.100 (-0.020 to +0.220)'
        """
        return f"{self.value:+.3f} ({self.low:+.3f} to {self.high:+.3f})"


def finite(values: Sequence[float]) -> list[float]:
    """The values as floats, all of them finite: the mean of a None or NaN would be NaN, and hide it."""
    for place, value in enumerate(values, start=1):
        if value is None or not math.isfinite(value):
            raise CourseError(
                f"Value {place} of {len(values)} is {value}, and has no mean. Score what gave no result as wrong "
                "(0.0), or leave its prompt out before and after, and report how many those were."
            )
    return [float(value) for value in values]


def mean_interval(values: Sequence[float], *, bounds: tuple[float, float] | None = None, seed: int = 0) -> Estimate:
    """The mean of one number per prompt, with a percentile bootstrap interval over the prompts (Efron 1979).

    Every resample draws as many prompts as there are, with replacement. The percentile interval, because
    BCa is undefined where all values are equal.

    Args:
        values: one number per prompt.
        bounds: the least and the largest possible value. If all ``n`` values are equal, the bootstrap sees no
            spread, which does not prove that there is none. Up to ``1 - low`` of all prompts may then behave
            otherwise, where ``low`` is the lower end of ``wilson_interval(n, n)``, and the interval reaches as far
            towards the bounds as that allows. Without bounds it has no width there. If all but a few values are
            equal, the bootstrap's interval is still too narrow: trust the exact test more.
        seed: of the resamples.

    >>> str(mean_interval([0.0, 1.0] * 50)), str(mean_interval([1.0] * 50, bounds=(0.0, 1.0)))
    ('0.500 (0.400 to 0.600)', '1.000 (0.929 to 1.000)')

    Raises:
        CourseError: a value is None or not finite.
    """
    import numpy

    mean = fmean(finite(values))
    if len(set(values)) > 1:
        return Estimate(mean, *bootstrap_interval([values], numpy.mean, seed=seed))
    least, largest = bounds or (mean, mean)
    otherwise = 1 - wilson_interval(len(values), len(values))[0]
    return Estimate(mean, mean + otherwise * (least - mean), mean + otherwise * (largest - mean))


def bootstrap_interval(columns: Sequence[Sequence[float]], statistic: Callable, *, seed: int = 0) -> list[float]:
    """The percentile bootstrap interval of a statistic of columns that are resampled together, row by row.

    Args:
        columns: one or more lists of one number per prompt.
        statistic: takes as many arrays and ``axis=``. Resamples where it is undefined (NaN) do not count.
        seed: of the resamples.
    """
    import numpy

    data = [numpy.asarray(column, dtype=float) for column in columns]
    count, random, found = len(data[0]), numpy.random.default_rng(seed), []
    if count == 1:
        return [float(statistic(*data, axis=-1))] * 2
    for start in range(0, RESAMPLES, BATCH):
        drawn = random.integers(0, count, (min(BATCH, RESAMPLES - start), count))
        found.append(statistic(*(column[drawn] for column in data), axis=-1))
    outside = (1 - CONFIDENCE) / 2
    return [float(end) for end in numpy.nanquantile(numpy.concatenate(found), [outside, 1 - outside])]
