"""Compare two evaluations of the same prompts, or several seeds, and claim no more than was shown.

    >>> from datasets import Dataset
    >>> from grpo_utils.evaluation.judging import judge
    >>> rows = Dataset.from_dict({"prompt": ["15 + 27?"] * 20, "answer": ["42"] * 20})
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> old = judge([form] * 4 + ["42"] * 16, [form] * 20, rows)
    >>> new = judge([form] * 18 + ["42"] * 2, [form] * 20, rows)
    >>> print(compare(old, new).sentence)
    Strict accuracy rose by 0.700 (95% interval 0.500 to 0.900; exact McNemar test, p = 0.00012).

An improvement is claimed only if the paired bootstrap interval excludes zero **and** the exact
McNemar test gives p below 0.05. With few changed prompts, the bootstrap alone claims too much.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError
from grpo_core.intervals import Estimate, bootstrap_interval
from grpo_core.training.measuring import change_sentence, p_text

from .judging import Evaluation
from .statistics import Change, Rate, paired_change, t_interval

if TYPE_CHECKING:
    import numpy

_ENOUGH_IN_FORM = 20


@dataclass(frozen=True)
class Comparison:
    """Two evaluations of the same prompts.

    Attributes:
        before, after: the evaluations.
        difference: change of strict accuracy, with its paired bootstrap interval.
        better, worse: the number of prompts that only the later, or only the earlier policy answers correctly.
        p_value: of the exact McNemar test.
        format_part, answer_part: how much of the difference came from the format, and how much from correct
            answers in it (see `split_gain`), with bootstrap intervals. None if one side was never correctly
            formatted, or if fewer than 20 answers of a side were and all of these were correct, or all wrong. Then
            no resample can show how uncertain the part is.
    """

    before: Evaluation
    after: Evaluation
    difference: Estimate
    better: int
    worse: int
    p_value: float
    format_part: Estimate | None
    answer_part: Estimate | None

    @property
    def changed(self) -> bool:
        """Whether a change is shown, for better or worse: by the interval and by the test."""
        return Change(self.difference, self.better, self.worse, self.p_value).shown

    @property
    def improved(self) -> bool:
        """Whether an improvement is shown."""
        return self.changed and self.difference.value > 0

    @property
    def sentence(self) -> str:
        """What the comparison shows about strict accuracy."""
        return _sentence(self.difference, self.changed, f"exact McNemar test, {p_text(self.p_value)}")

    def __str__(self) -> str:
        """A table of the rates, the parts of the gain, and the sentence."""
        lines = [f"{'':22}{'before':37}after"]
        lines += [f"{name:22}{old!s:37}{new!s}" for name, old, new in self._rates()]
        lines += [f"{self.better} prompts got better, {self.worse} worse, of {self.before.n}"]
        return "\n".join([*lines, self._parts(), self.sentence])

    def _rates(self) -> list[tuple]:
        sides = self.before, self.after
        return [
            ("correctly formatted", *(side.format for side in sides)),
            ("correct, if formatted", *(side.accuracy_given_format or "none formatted" for side in sides)),
            ("strict accuracy", *(side.accuracy for side in sides)),
        ]

    def _parts(self) -> str:
        if not (any(self.before.formed) and any(self.after.formed)):
            return "the gain cannot be split: one side was never correctly formatted"
        if self.format_part is None:
            return f"the gain is not split: too few correctly formatted answers (below {_ENOUGH_IN_FORM}, all alike)"
        return f"gain from format {self.format_part.signed()}, from correctness {self.answer_part.signed()}"


def _sentence(change: Estimate, is_shown: bool, evidence: str) -> str:
    """The sentence about a change of strict accuracy, with its interval, which excludes zero if a change is shown."""
    interval = f"{change.low:+.3f} to {change.high:+.3f}"
    if is_shown:
        interval = "{:.3f} to {:.3f}".format(*sorted((abs(change.low), abs(change.high))))
    return change_sentence(change.value, is_shown, f"95% interval {interval}; {evidence}")


def compare(before: Evaluation, after: Evaluation, *, seed: int = 0) -> Comparison:
    """Compare two evaluations of the same prompts; ``seed`` draws the bootstrap's resamples.

    Raises:
        CourseError: they are not of the same prompts in the same order.
    """
    if before.asked != after.asked:
        raise CourseError(
            f"The two evaluations ({before.n} and {after.n} prompts) are of different prompts, or of the same in "
            "another order, so no prompt can be compared with itself. Evaluate both on the same rows."
        )
    difference, better, worse, p_value = paired_change(before.right, after.right, seed=seed)
    return Comparison(before, after, difference, better, worse, p_value, *_gain_parts(before, after, seed))


def split_gain(
    format_before: float, given_before: float, format_after: float, given_after: float
) -> tuple[float, float]:
    """How much of a gain in strict accuracy came from the format, and how much from correct answers.

    Strict accuracy is a product: the share ``f`` of formatted answers, times the share ``a`` of those that are correct.
    Kitagawa 1955 (J. Am. Stat. Assoc. 50:1168) splits the change of a product exactly. Each factor's change is
    weighted by the mean of the other:
    ``f1 a1 - f0 a0 = (f1 - f0) (a0 + a1) / 2 + (a1 - a0) (f0 + f1) / 2``.

    The parts add up, but they do not show a cause: the formatted answers before and after belong to different prompts.

    >>> form, answers = split_gain(0.25, 0.8, 1.0, 0.9)
    >>> round(form, 4), round(answers, 4), round(form + answers - (1.0 * 0.9 - 0.25 * 0.8), 12)
    (0.6375, 0.0625, 0.0)
    """
    by_form = (format_after - format_before) * (given_before + given_after) / 2
    by_answers = (given_after - given_before) * (format_before + format_after) / 2
    return by_form, by_answers


def _gain_parts(before: Evaluation, after: Evaluation, seed: int) -> tuple[Estimate | None, Estimate | None]:
    """Both parts with bootstrap intervals over the prompts; None if one side was formatted too rarely."""
    if not (_can_be_resampled(before.accuracy_given_format) and _can_be_resampled(after.accuracy_given_format)):
        return None, None
    shares = [(side.format.value, side.accuracy.value / side.format.value) for side in (before, after)]
    values = split_gain(*shares[0], *shares[1])
    columns = [before.formed, before.right, after.formed, after.right]
    ends = [bootstrap_interval(columns, _part(number), seed=seed) for number in (0, 1)]
    return Estimate(values[0], *ends[0]), Estimate(values[1], *ends[1])


def _can_be_resampled(given: Rate | None) -> bool:
    """Whether a bootstrap can show how certain this rate is: if the only formatted answer is correct, it cannot."""
    return given is not None and (given.n >= _ENOUGH_IN_FORM or 0 < given.hits < given.n)


def _part(number: int) -> Callable:
    """One part of the gain as a statistic of four columns; NaN if a resample has no formatted answer."""
    import numpy

    def statistic(*columns: "numpy.ndarray", axis: int) -> "numpy.ndarray":
        formed0, right0, formed1, right1 = (column.mean(axis=axis) for column in columns)
        with numpy.errstate(invalid="ignore", divide="ignore"):
            return split_gain(formed0, right0 / formed0, formed1, right1 / formed1)[number]

    return statistic


@dataclass(frozen=True)
class SeedsComparison:
    """Training runs that differ only in their seed, each compared with its own before.

    Attributes:
        differences: the change of strict accuracy of each seed.
        difference: their mean, with Student's t interval over the seeds.
    """

    differences: tuple[float, ...]
    difference: Estimate

    @property
    def improved(self) -> bool:
        """Whether an improvement is shown."""
        return self.difference.low > 0

    @property
    def sentence(self) -> str:
        """What the runs show about training, not about one policy."""
        change, count = self.difference, len(self.differences)
        few = "; wide, because the seeds are few" if count < 6 else ""
        return _sentence(change, not change.covers_zero, f"mean of {count} seeds, t interval{few}")

    def __str__(self) -> str:
        """The seeds' differences, and the sentence."""
        return f"seeds: {', '.join(f'{d:+.3f}' for d in self.differences)}\n{self.sentence}"


def compare_seeds(comparisons: Sequence[Comparison]) -> SeedsComparison:
    """Whether training helps with any seed, from one `Comparison` for each seed.

    The interval is over seeds: it says what another training run would do *on these prompts*. Choose the seeds
    before you see their results, and count all of them.

    Each seed needs its own sampled before. A shared one shifts all differences by the same noise, and an interval
    over the seeds cannot see that. If training does nothing (200 prompts, 23% correct), such intervals exclude zero
    in 16 of 100 cases with three seeds and in half of the cases with ten. Sample the afters with different seeds,
    too. Greedy texts have no such noise and may be shared.

    >>> from datasets import Dataset
    >>> from grpo_utils.evaluation.judging import judge
    >>> rows = Dataset.from_dict({"prompt": ["15 + 27?"] * 50, "answer": ["42"] * 50})
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> result = lambda n: judge([form] * n + ["42"] * (50 - n), [form] * 50, rows)
    >>> pairs = [(result(before), result(after)) for before, after in ((20, 21), (22, 21), (19, 23))]
    >>> print(compare_seeds([compare(*pair) for pair in pairs]))
    seeds: +0.020, -0.020, +0.080
    No improvement shown: strict accuracy changed by +0.027 (95% interval -0.098 to +0.152; mean of 3 seeds, t interval; wide, because the seeds are few).

    Differences are multiples of ``1 / n`` (``n`` prompts), so seeds can agree by rounding. Their standard deviation is
    taken to be at least ``1 / n``. Three seeds can also agree by luck. The interval is never narrower than the sampling
    of the prompts alone would make it.

    Raises:
        CourseError: there are fewer than two comparisons, two of them share their sampled results, or they
            are of different prompts.
    """  # noqa: E501
    for (earlier, old), (place, new) in combinations(enumerate(comparisons, start=1), 2):
        _check_two_seeds(f"Comparisons {earlier} and {place}", old, new)
    differences = tuple(comparison.difference.value for comparison in comparisons)
    finest = 1 / min((comparison.before.n for comparison in comparisons), default=1)
    return SeedsComparison(differences, t_interval(differences, finest, _sampling_error(comparisons)))


def _sampling_error(comparisons: Sequence[Comparison]) -> float:
    """The standard error of the mean difference if seeds did not matter, from each prompt's -1, 0 or 1."""
    variances = [(c.better + c.worse - (c.better - c.worse) ** 2 / c.before.n) / c.before.n**2 for c in comparisons]
    return math.sqrt(sum(variances)) / len(comparisons)


def _check_two_seeds(which: str, old: Comparison, new: Comparison) -> None:
    """Raise a CourseError if two comparisons are of different prompts, or not independent."""
    if old.before.asked != new.before.asked:
        raise CourseError(f"{which} are of different prompts. Evaluate all seeds on the same rows.")
    shared = old.before.sampled == new.before.sampled and old.before.sampled != old.before.greedy
    if old is new or (shared and old.after.sampled == new.after.sampled):
        raise CourseError(f"{which} are of the same texts: one training run counted twice. Give each run once.")
    if shared:
        raise CourseError(
            f"{which} share the same sampled before, whose noise the interval over the seeds cannot see. "
            "Sample the base again for each training run: evaluate(base, ..., seed=another)."
        )
