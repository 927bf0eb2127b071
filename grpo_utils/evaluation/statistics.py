"""Rates, intervals and tests of plain numbers. All intervals are 95% intervals.

    >>> str(Rate(190, 200)), paired_change([False] * 6, [True] * 6).p_value
    ('0.950 (0.910 to 0.973), 190 of 200', 0.03125)

Wilson for one rate, the exact sign test and a paired bootstrap for two results on the same
prompts, the unbiased estimator for pass@k, Student's t for a handful of seeds.
"""

import math
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import NamedTuple

from grpo_core.errors import CourseError
from grpo_core.intervals import CONFIDENCE, Estimate, finite, mean_interval
from grpo_core.rewards import same_answer
from grpo_core.training.measuring import SIGNIFICANT, mcnemar_p_value, p_text, wilson_interval


class Rate(NamedTuple):
    """``hits`` of ``n``."""

    hits: int
    n: int

    @property
    def value(self) -> float:
        """The share, from 0 to 1."""
        return self.hits / self.n

    @property
    def interval(self) -> list[float]:
        """Its 95% Wilson interval."""
        return wilson_interval(self.hits, self.n)

    def __str__(self) -> str:
        """The rate, its interval, and the counts behind it."""
        low, high = self.interval
        return f"{self.value:.3f} ({low:.3f} to {high:.3f}), {self.hits} of {self.n}"


class Change(NamedTuple):
    """A mean change on the same prompts, its interval and test, and whether a change is shown.

    Attributes:
        estimate: the mean change and its paired bootstrap interval.
        better, worse: prompts that scored higher, and lower, than before.
        p_value: of the exact two-sided sign test on those (see `paired_change`).
    """

    estimate: Estimate
    better: int
    worse: int
    p_value: float

    @property
    def shown(self) -> bool:
        """Whether the interval excludes zero **and** the test gives p below 0.05, both in the same direction.

        With few changed prompts, the bootstrap alone claims too much.

        >>> Change(Estimate(-0.04, -0.08, -0.01), 0, 4, p_value=0.125).shown
        False
        """
        same_way = (self.estimate.value > 0) == (self.better > self.worse)
        return same_way and self.p_value < SIGNIFICANT and not self.estimate.covers_zero

    @property
    def verdict(self) -> str:
        """``improved``, ``got worse`` or ``no change shown``."""
        if not self.shown:
            return "no change shown"
        return "improved" if self.estimate.value > 0 else "got worse"

    def __str__(self) -> str:
        """The change, its interval, p, and the verdict."""
        return f"{self.estimate.signed()}, {p_text(self.p_value)}: {self.verdict}"


def paired_change(before: Sequence[float], after: Sequence[float], *, seed: int = 0) -> Change:
    """The mean change of a score on the same prompts, with interval, test and verdict.

    The test is the exact sign test (Arbuthnot 1710; Dixon and Mood 1946), McNemar's for scores instead of right and
    wrong: under "no change", each prompt whose score changed would score higher as often as lower. The size of a
    change does not count.

    The bootstrap draws a prompt with both of its results, so what makes it hard counts on both sides. Results from 0
    to 1 (booleans, shares) are taken to be bounded, which matters if all prompts changed alike: see `mean_interval`.

    >>> print(paired_change([False] * 50, [False] * 50))
    +0.000 (-0.071 to +0.071), p = 1: no change shown
    >>> print(paired_change([1.0] * 100, [1.0] * 96 + [0.0] * 4))
    -0.040 (-0.080 to -0.010), p = 0.12: no change shown

    Raises:
        CourseError: the lists differ in length, are empty, or hold None or a value that is not finite.
    """
    if not len(before) == len(after) > 0:
        raise CourseError(
            f"{len(before)} results before and {len(after)} after: a paired test compares each prompt with itself. "
            "Evaluate both on the same rows, at least one."
        )
    changes = [new - old for old, new in zip(finite(before), finite(after), strict=True)]
    bounds = (-1.0, 1.0) if all(0 <= value <= 1 for value in (*before, *after)) else None
    better, worse = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    return Change(mean_interval(changes, bounds=bounds, seed=seed), better, worse, mcnemar_p_value(before, after))


def pass_at_k(samples: int, right: int, k: int) -> float:
    """The chance that at least one of ``k`` is right, from ``samples`` of which ``right`` are.

    The unbiased estimator of Chen et al. 2021 (arXiv 2107.03374, equation 1): one minus the share of
    all choices of ``k`` among the samples that hold no right one. In whole numbers, which Python keeps
    exact, so nothing overflows or cancels. ``1 - (1 - right / samples) ** k`` is biased downwards.

    >>> pass_at_k(10, 3, 1), round(pass_at_k(10, 3, 5), 6), pass_at_k(10, 6, 5)
    (0.3, 0.916667, 1.0)

    Raises:
        CourseError: ``k`` is not between 1 and ``samples``.
    """
    if not 1 <= k <= samples:
        raise CourseError(
            f"pass@{k} cannot be estimated from {samples} samples per prompt. Draw at least {max(k, 1)}, "
            f"or ask for a k from 1 to {samples}."
        )
    choices = math.comb(samples, k)
    return (choices - math.comb(samples - right, k)) / choices


def majority_vote(answers: Sequence[str | None]) -> list[str]:
    """The answer with most votes, as a list: all of them where several tie, none where nobody answered.

    Self-consistency (Wang et al. 2022, arXiv 2203.11171) with equal votes. ``None`` does not vote. Two ways
    to write a number are one answer (`same_answer`), under the writing that came first.

    >>> majority_vote(["42", "41", "42.0", None]), majority_vote(["42", "41"]), majority_vote([None])
    (['42'], ['42', '41'], [])
    """
    votes: dict[str, int] = {}
    for answer in answers:
        if answer is not None:
            known = next((said for said in votes if said == answer or same_answer(answer, said)), answer)
            votes[known] = votes.get(known, 0) + 1
    return [answer for answer, count in votes.items() if count == max(votes.values())]


def majority_right(winners: Sequence[str], gold: str) -> float:
    """The chance that the majority is right: a tie is broken by lot, and no vote at all is wrong.

    >>> majority_right(["42"], "42"), majority_right(["42", "41"], "42"), majority_right([], "42")
    (1.0, 0.5, 0.0)
    """
    return sum(same_answer(winner, gold) for winner in winners) / len(winners) if winners else 0.0


def t_interval(values: Sequence[float], least_scatter: float, least_error: float = 0.0) -> Estimate:
    """The mean of a few independent numbers, one per training seed, with Student's t interval (1908).

    With two seeds the half-width is 12.7 standard errors, with three 4.3, with five 2.8. It assumes that the
    seeds scatter normally, which so few cannot show.

    Args:
        values: one number per seed.
        least_scatter: the standard deviation is taken to be at least this. Rates of ``n`` prompts are multiples
            of ``1 / n``, so equal values may differ by less than can be seen: give ``1 / n``.
        least_error: the standard error of the mean if seeds did not matter. Three seeds can agree by luck, so the
            interval is never narrower than this alone would make it.

    >>> str(t_interval([0.70, 0.72, 0.77], 1 / 200)), str(t_interval([0.01, 0.01], 1 / 200))
    ('0.730 (0.640 to 0.820)', '0.010 (-0.035 to 0.055)')

    Raises:
        CourseError: there are fewer than two.
    """
    from scipy.stats import t

    if len(values) < 2:
        raise CourseError(
            f"{len(values)} seed{'s' * (len(values) != 1)}: how much seeds differ shows only with two or more; "
            "train with three at least."
        )
    scatter = max(stdev(values), least_scatter)
    half = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * scatter / math.sqrt(len(values))
    half = max(half, 1.96 * least_error)
    return Estimate(fmean(values), fmean(values) - half, fmean(values) + half)


def paired_difference(ours: Sequence[float], theirs: Sequence[float], prompts: int) -> Estimate:
    """The mean difference of two accuracies, seed by seed, with Student's 95% interval over the seeds.

    ``ours`` and ``theirs`` have one accuracy per seed, each measured on ``prompts`` prompts. The interval is never
    narrower than the sampling of the prompts alone would make it.

    >>> str(paired_difference([0.9, 0.8], [0.8, 0.7], 200))
    '0.100 (0.045 to 0.155)'
    """
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    sampling_error = math.sqrt(sum(rate * (1 - rate) / prompts for rate in [*ours, *theirs])) / len(ours)
    return t_interval(differences, least_scatter=1 / prompts, least_error=sampling_error)
