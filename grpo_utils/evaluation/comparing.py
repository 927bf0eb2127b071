"""Two evaluations of the same prompts, or several seeds, and the sentence that is fair to say.

    >>> from grpo_utils.evaluation import judge
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> old = judge([form] * 4 + ["42"] * 16, [form] * 20, ["42"] * 20)
    >>> new = judge([form] * 18 + ["42"] * 2, [form] * 20, ["42"] * 20)
    >>> print(compare(old, new).sentence)
    Strict accuracy rose by +0.700 (+0.500 to +0.900); chance alone does this with p = 0.00012 (paired test).

An improvement is claimed only where the paired bootstrap interval leaves zero out **and** the exact
McNemar test gives p below 0.05. The two ask the same question, and on few changed prompts the
bootstrap is the more credulous.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import CourseError
from .judging import Evaluation, checksum
from .statistics import (
    SIGNIFICANT,
    Estimate,
    Rate,
    bootstrap_interval,
    mcnemar_p_value,
    p_text,
    paired_interval,
    shown,
    t_interval,
)

if TYPE_CHECKING:
    import numpy


ENOUGH_IN_FORM = 20
UNKNOWN_PROMPTS = (
    "Note: the prompts are not known to be the same on both sides, so the pairs are taken on trust. "
    "Give judge() the prompts."
)


@dataclass(frozen=True)
class Comparison:
    """Two evaluations of the same prompts.

    Attributes:
        before, after: how many of the prompts were in form and right.
        format_before, format_after: how many were in form.
        given_before, given_after: how many of those in form were right; None where none was in form.
        better, worse: prompts that only the later, only the earlier policy has right.
        difference: change of strict accuracy, with its paired bootstrap interval.
        p_value: of the exact McNemar test.
        format_part, answer_part: how much of the difference came from the form, how much from being right
            in it (see `split_gain`), with bootstrap intervals; None where one side was never in form, or too
            seldom: where fewer than 20 were in form and all of them alike right or wrong, no resample shows how
            far that may be off.
        asked: what is known of the prompts, as in `Evaluation`.
        prompts_known: whether both sides kept what they were asked; without it, equal gold answers are all that
            says that the prompts are the same.
        said: checksums of the sampled texts before and after, so that `compare_seeds` can tell results
            that were given to it twice.
        greedy_before: whether the texts before are the greedy ones: then no sampling noise is in them.
    """

    before: Rate
    after: Rate
    format_before: Rate
    format_after: Rate
    given_before: Rate | None
    given_after: Rate | None
    better: int
    worse: int
    difference: Estimate
    p_value: float
    format_part: Estimate | None
    answer_part: Estimate | None
    asked: tuple[str, ...]
    prompts_known: bool
    said: tuple[str, str]
    greedy_before: bool

    @property
    def changed(self) -> bool:
        """Whether a change is shown, for better or worse: by the interval and by the test."""
        return shown(self.difference, self.p_value)

    @property
    def improved(self) -> bool:
        """Whether an improvement is shown."""
        return self.changed and self.difference.value > 0

    @property
    def sentence(self) -> str:
        """What may be said of strict accuracy."""
        change = self.difference.signed()
        if not self.changed:
            return (
                f"No improvement shown: strict accuracy changed by {change}, "
                f"within chance (paired test, {p_text(self.p_value)})."
            )
        direction = "rose" if self.difference.value > 0 else "FELL"
        chance = f"chance alone does this with {p_text(self.p_value)} (paired test)"
        return f"Strict accuracy {direction} by {change}; {chance}."

    def __str__(self) -> str:
        """A table of the rates, the parts of the gain, and the sentence."""
        lines = [f"{'':18}{'before':37}after"]
        lines += [f"{name:18}{old!s:37}{new!s}" for name, old, new in self._rates()]
        lines += [f"{self.better} prompts got better, {self.worse} worse, of {self.before.n}"]
        lines += [self._parts(), self.sentence]
        return "\n".join(lines if self.prompts_known else [*lines, UNKNOWN_PROMPTS])

    def _rates(self) -> list[tuple]:
        given = [rate or "none in form" for rate in (self.given_before, self.given_after)]
        return [
            ("in form", self.format_before, self.format_after),
            ("right, if in form", *given),
            ("in form and right", self.before, self.after),
        ]

    def _parts(self) -> str:
        if self.given_before is None or self.given_after is None:
            return "the gain cannot be split: one side was never in form"
        if self.format_part is None or self.answer_part is None:
            return f"the gain is not split: too few in form (fewer than {ENOUGH_IN_FORM}, all alike)"
        return f"by form {self.format_part.signed()}, by answers {self.answer_part.signed()}"


def compare(before: Evaluation, after: Evaluation, *, seed: int = 0) -> Comparison:
    """Compare two evaluations of the same prompts; ``seed`` draws the bootstrap's resamples.

    Raises:
        CourseError: they are not of the same prompts in the same order, as far as that can be told; where it
            cannot, the printed comparison says so.
    """
    check_same_prompts(before, after)
    format_part, answer_part = _gain_parts(before, after, seed)
    pairs = list(zip(before.right, after.right, strict=True))
    return Comparison(
        before=before.accuracy,
        after=after.accuracy,
        format_before=before.format,
        format_after=after.format,
        given_before=before.accuracy_given_format,
        given_after=after.accuracy_given_format,
        better=pairs.count((False, True)),
        worse=pairs.count((True, False)),
        difference=paired_interval(before.right, after.right, seed=seed),
        p_value=mcnemar_p_value(before.right, after.right),
        format_part=format_part,
        answer_part=answer_part,
        asked=max(before.asked, after.asked, key=len),
        prompts_known=min(len(before.asked), len(after.asked)) == 2,
        said=(checksum(before.sampled), checksum(after.sampled)),
        greedy_before=before.sampled == before.greedy,
    )


def check_same_prompts(before: Evaluation, after: Evaluation) -> None:
    """Raise a CourseError where two evaluations are of different prompts, as far as that can be told."""
    if before.n != after.n:
        raise CourseError(f"{before.n} prompts before and {after.n} after. Evaluate both on the same rows.")
    for old, new in zip(before.asked, after.asked, strict=False):
        if old != new:
            raise CourseError(
                "The two evaluations are of different prompts, or of the same in another order, so no prompt can be "
                "compared with itself. Evaluate both on the same rows."
            )


def split_gain(
    format_before: float, given_before: float, format_after: float, given_after: float
) -> tuple[float, float]:
    """How much of a gain in strict accuracy came from the form, and how much from the answers.

    Strict accuracy is a product: the share ``f`` in form, times the share ``a`` of those that is right.
    Kitagawa 1955 (J. Am. Stat. Assoc. 50:1168) splits the change of a product, each factor's change
    weighed by the mean of the other:
    ``f1 a1 - f0 a0 = (f1 - f0) (a0 + a1) / 2 + (a1 - a0) (f0 + f1) / 2``, exactly.

    Arithmetic, not cause: the answers in form before and after stand on different prompts.

    >>> form, answers = split_gain(0.25, 0.8, 1.0, 0.9)
    >>> round(form, 4), round(answers, 4), round(form + answers - (1.0 * 0.9 - 0.25 * 0.8), 12)
    (0.6375, 0.0625, 0.0)
    """
    by_form = (format_after - format_before) * (given_before + given_after) / 2
    by_answers = (given_after - given_before) * (format_before + format_after) / 2
    return by_form, by_answers


def _gain_parts(before: Evaluation, after: Evaluation, seed: int) -> tuple[Estimate | None, Estimate | None]:
    """Both parts with bootstrap intervals over the prompts; None where one side was too seldom in form."""
    if not (_can_be_resampled(before.accuracy_given_format) and _can_be_resampled(after.accuracy_given_format)):
        return None, None
    columns = [before.formed, before.right, after.formed, after.right]
    both = split_gain(*_factors(*(sum(column) / before.n for column in columns)))
    return tuple(
        Estimate(value, *bootstrap_interval(columns, _part(number), seed=seed)) for number, value in enumerate(both)
    )


def _can_be_resampled(given: Rate | None) -> bool:
    """Whether a bootstrap can tell how sure this rate is: of 1 in form and right, each resample says 100 %."""
    return given is not None and (given.n >= ENOUGH_IN_FORM or 0 < given.hits < given.n)


def _factors(formed0: float, right0: float, formed1: float, right1: float) -> tuple[float, float, float, float]:
    """Shares in form, and shares right of those: the order of `split_gain`."""
    return formed0, right0 / formed0, formed1, right1 / formed1


def _part(number: int) -> Callable:
    """One part of the gain as a statistic for scipy, of four columns; NaN where a resample has none in form."""
    import numpy

    def statistic(*columns: "numpy.ndarray", axis: int = -1) -> "numpy.ndarray":
        with numpy.errstate(invalid="ignore", divide="ignore"):
            return split_gain(*_factors(*(column.mean(axis=axis) for column in columns)))[number]

    return statistic


@dataclass(frozen=True)
class SeedsComparison:
    """The same training from several seeds, each compared with its own before.

    Attributes:
        differences: the change of strict accuracy of each seed.
        difference: their mean, with Student's t interval over the seeds.
    """

    differences: tuple[float, ...]
    difference: Estimate

    @property
    def improved(self) -> bool:
        """Whether an improvement is shown."""
        return not self.difference.covers_zero and self.difference.value > 0

    @property
    def sentence(self) -> str:
        """What may be said of the training, not of one policy."""
        count = len(self.differences)
        few = "; so few seeds make it wide" if count < 6 else ""
        told = f"{self.difference.signed()}, the mean of {count} seeds with a t interval{few}"
        if self.difference.covers_zero:
            return f"No improvement shown: strict accuracy changed by {told}."
        return f"Strict accuracy {'rose' if self.improved else 'FELL'} by {told}."

    def __str__(self) -> str:
        """The seeds' differences, and the sentence."""
        return f"seeds: {', '.join(f'{d:+.3f}' for d in self.differences)}\n{self.sentence}"


def compare_seeds(comparisons: Sequence[Comparison]) -> SeedsComparison:
    """Does the training help, whatever its seed? From one `Comparison` for each seed.

    The interval is over seeds: it says what another training would do *on these prompts*. The seeds must be
    chosen before their results are seen, and all of them be counted.

    Each seed needs a sampled before of its own. The noise of a shared one is in all differences alike, so the
    interval, which knows only how the seeds differ, does not see it: where nothing happened (200 prompts, 23 %
    right), such intervals leave zero out in 16 of 100 cases with three seeds and in half of them with ten.
    Sample the afters with different seeds, too. Greedy texts have no such noise, and may be shared.

    >>> from grpo_utils.evaluation import judge
    >>> form = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> result = lambda n: judge([form] * n + ["42"] * (50 - n), [form] * 50, ["42"] * 50)
    >>> pairs = [(result(before), result(after)) for before, after in ((20, 21), (22, 21), (19, 23))]
    >>> print(compare_seeds([compare(*pair) for pair in pairs]))
    seeds: +0.020, -0.020, +0.080
    No improvement shown: strict accuracy changed by +0.027 (-0.098 to +0.152), the mean of 3 seeds with a t interval; so few seeds make it wide.

    Differences are multiples of ``1 / n`` (``n`` prompts), so seeds may agree by rounding: their standard deviation
    is taken to be ``1 / n`` at least. And three seeds may agree by luck more closely than any of their differences is
    known: the interval is never narrower than the sampling of the prompts alone would make it.

    Raises:
        CourseError: there are fewer than two comparisons, two of them share their sampled results, or they
            are of different prompts.
    """  # noqa: E501
    _check_seeds(comparisons)
    differences = tuple(comparison.difference.value for comparison in comparisons)
    finest = 1 / min((comparison.before.n for comparison in comparisons), default=1)
    mean, low, high = t_interval(differences, least_scatter=finest)
    least = 1.96 * _sampling_error(comparisons)
    return SeedsComparison(differences, Estimate(mean, min(low, mean - least), max(high, mean + least)))


def _sampling_error(comparisons: Sequence[Comparison]) -> float:
    """The standard error of the mean difference, if seeds did not matter: how the prompts' -1, 0 and 1 scatter."""
    variances = [(c.better + c.worse - (c.better - c.worse) ** 2 / c.before.n) / c.before.n**2 for c in comparisons]
    return math.sqrt(sum(variances)) / len(comparisons)


def _check_seeds(comparisons: Sequence[Comparison]) -> None:
    """Raise a CourseError where two comparisons are of other prompts, or not independent."""
    for place, new in enumerate(comparisons, start=1):
        for earlier, old in enumerate(comparisons[: place - 1], start=1):
            _check_two_seeds(f"Comparisons {earlier} and {place}", old, new)


def _check_two_seeds(which: str, old: Comparison, new: Comparison) -> None:
    same_asked = all(a == b for a, b in zip(old.asked, new.asked, strict=False))
    if old.before.n != new.before.n or not same_asked:
        raise CourseError(f"{which} are of different prompts. Evaluate all seeds on the same rows.")
    if old is new or (old.said == new.said and not old.greedy_before):
        raise CourseError(f"{which} are of the same texts: one training counted twice. Give each training once.")
    if old.said[0] == new.said[0] and not old.greedy_before:
        raise CourseError(
            f"{which} share the same sampled before, whose noise the interval over the seeds cannot see. "
            "Sample the base anew for each training: evaluate(base, ..., seed=another)."
        )


def before_after(before: dict, after: dict, p_value: float, merged: dict | None = None) -> str:
    """The before/after tables as plain text, from summaries, and one sentence that reads them.

    >>> from grpo_utils.evaluation import judge
    >>> old = judge(["It is 42."] * 20, ["It is 42."] * 20, ["42"] * 20).summary()
    >>> print(before_after(old, old, p_value=1.0))
               n   format    accuracy (95 % interval)   greedy
    before    20    0.000      0.000 (0.000 to 0.161)    0.000
    after     20    0.000      0.000 (0.000 to 0.161)    0.000
    <BLANKLINE>
    right among the n answers in form (95 % interval):
               n                     all
    before     0                       -
    after      0                       -
    No improvement shown: strict accuracy changed by +0.000, within chance (paired test, p = 1).
    """
    return "\n".join([rates_table(before, after, merged), verdict(before, after, p_value)])


def rates_table(before: dict, after: dict, merged: dict | None = None) -> str:
    """The tables of `before_after` without its sentence: strict accuracy, then how many answers in form are right.

    The second table separates ability from form, with a column for each kind of prompt. It is left out where a
    summary lacks its figures, as those of older reports do.

    >>> old = {"n": 20, "format_rate": 0.5, "accuracy": 0.45, "accuracy_ci95": [0.258, 0.658], "greedy_accuracy": 0.0}
    >>> print(rates_table(old, old))
               n   format    accuracy (95 % interval)   greedy
    before    20    0.500      0.450 (0.258 to 0.658)    0.000
    after     20    0.500      0.450 (0.258 to 0.658)    0.000
    """
    rows = {"before": before, "after": after} | ({"merged": merged} if merged else {})
    lines = [f"{'':7}{'n':>5}{'format':>9}{'accuracy (95 % interval)':>28}{'greedy':>9}"]
    lines += [_line(name, summary) for name, summary in rows.items()]
    if all("accuracy_given_format" in summary for summary in rows.values()):
        lines += _in_form_lines(rows)
    return "\n".join(lines)


def _line(name: str, summary: dict) -> str:
    rate = _share(summary["accuracy"], summary["accuracy_ci95"])
    return f"{name:7}{summary['n']:>5}{summary['format_rate']:>9.3f}{rate:>28}{summary['greedy_accuracy']:>9.3f}"


def _in_form_lines(rows: dict[str, dict]) -> list[str]:
    """How many answers in form are right: of all prompts, and of each kind that all summaries have."""
    first, *others = (summary.get("by_kind", {}) for summary in rows.values())
    kinds = [kind for kind in first if all(kind in other for other in others)]
    lines = ["", "right among the n answers in form (95 % interval):"]
    lines.append(f"{'':7}" + "".join(f"{'n':>5}{heading:>24}" for heading in ("all", *kinds)))
    for name, summary in rows.items():
        cells = [summary, *(summary["by_kind"][kind] for kind in kinds)]
        lines.append(f"{name:7}" + "".join(map(_in_form_cell, cells)))
    return lines


def _in_form_cell(counts: dict) -> str:
    """The number of answers in form and how many of them are right.

    >>> _in_form_cell({"formed": 0, "accuracy_given_format": None, "accuracy_given_format_ci95": None})
    '    0                       -'
    """
    rate = _share(counts["accuracy_given_format"], counts["accuracy_given_format_ci95"])
    return f"{counts['formed']:>5}{rate:>24}"


def _share(value: float | None, interval: Sequence[float] | None) -> str:
    """A rate with its interval; "-" for a share of nothing.

    >>> _share(0.45, [0.258, 0.658]), _share(None, None)
    ('0.450 (0.258 to 0.658)', '-')
    """
    return "-" if value is None else f"{value:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"


def verdict(before: dict, after: dict, p_value: float) -> str:
    """What the paired test says of the change in strict accuracy, in one sentence."""
    change = after["accuracy"] - before["accuracy"]
    if p_value >= SIGNIFICANT:
        return (
            f"No improvement shown: strict accuracy changed by {change:+.3f}, "
            f"within chance (paired test, {p_text(p_value)})."
        )
    direction = "rose" if change > 0 else "FELL"
    return f"Strict accuracy {direction} by {change:+.3f}; chance alone does this with {p_text(p_value)} (paired test)."
