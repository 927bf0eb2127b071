"""Figures of rates and their intervals, and of rows of data."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .base import COLORS, MARKERS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..evaluation.statistics import Estimate


def pass_at_k_curve(curves: Mapping[str, Mapping[int, "Estimate"]]) -> "Figure":
    """pass@k against k, with intervals; ``curves`` holds, for every name, an `Estimate` for each k."""
    figure, axes = new_figure(7, 3.6)
    for (name, points), color, marker in zip(curves.items(), COLORS, MARKERS, strict=False):
        values, lows, highs = zip(*points.values(), strict=True)
        axes.plot(list(points), values, color=color, marker=marker, label=name)
        axes.fill_between(list(points), lows, highs, color=color, alpha=0.2)
    axes.set_xscale("log", base=2)
    ticks = sorted({k for points in curves.values() for k in points})
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.set(xlabel="k, samples a prompt", ylabel="pass@k", ylim=(0, 1.03), title="At least one of k samples is right")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def change_chart(changes: Mapping[str, "Estimate"], title: str) -> "Figure":
    """One line per name: a change and its interval, next to the line of no change."""
    figure, axes = new_figure(7, 0.8 + 0.4 * len(changes))
    for row, change in enumerate(changes.values()):
        kind = 0 if change.covers_zero else 1
        axes.plot([change.low, change.high], [row, row], color=COLORS[kind])
        axes.plot(change.value, row, color=COLORS[kind], marker=MARKERS[kind])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(changes)), list(changes))
    axes.invert_yaxis()
    axes.set(title=title, xlabel="change and its 95% interval")
    axes.grid(alpha=0.3, axis="x")
    return figure


def difference_chart(differences: Mapping[str, float], title: str) -> "Figure":
    """One bar per name on a logarithmic scale, for differences that are rounding and others that are not."""
    figure, axes = new_figure(7, 0.8 + 0.4 * len(differences))
    axes.barh(list(differences), list(differences.values()), color=COLORS[0])
    axes.set_xscale("log")
    axes.set_xlim(left=1e-8)
    axes.invert_yaxis()
    axes.set(title=title)
    axes.grid(alpha=0.3, axis="x")
    return figure


def length_histogram(lengths: Sequence[int], limit: int, title: str = "Prompt lengths") -> "Figure":
    """How many prompts have how many tokens; a dashed line at ``limit``, beyond which they would be dropped."""
    figure, axes = new_figure(7, 3)
    axes.hist(lengths, bins=min(40, max(lengths) - min(lengths) + 1), color=COLORS[0], edgecolor="white")
    axes.axvline(limit, color=COLORS[1], linestyle="--", label=f"limit: {limit}")
    axes.set(xlabel="tokens, chat template included", ylabel="prompts", title=title)
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    return figure


def pass_rate_bars(rates: Mapping[str, Sequence[float]], samples: int) -> "Figure":
    """How many prompts were solved in 0, 1, … of ``samples`` tries; one bar for each name of ``rates``."""
    figure, axes = new_figure(7, 3)
    width, tries = 0.8 / len(rates), range(samples + 1)
    for place, (name, values) in enumerate(rates.items()):
        solved = [round(rate * samples) for rate in values]
        at = [k + (place - (len(rates) - 1) / 2) * width for k in tries]
        hatch = ("", "//", "..")[place % 3]
        axes.bar(at, [solved.count(k) for k in tries], width, color=COLORS[place], hatch=hatch, label=name)
    axes.set(xlabel=f"right answers of {samples}", ylabel="prompts", xticks=tries, title="How often a prompt is solved")
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    return figure
