"""The figures that the lessons share, each shown with a text for those who cannot see it."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .evaluation.statistics import Estimate

#: Okabe and Ito's colors, which color-blind readers can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")


def logged(log_history: Sequence[dict], key: str) -> list[float]:
    """The values of one logged metric, in the order of the steps.

    >>> logged([{"reward": 0.5}, {"train_runtime": 3.0}, {"reward": 1.0}], "reward")
    [0.5, 1.0]
    """
    return [entry[key] for entry in log_history if key in entry]


def reward_curve(log_history: Sequence[dict], reward_names: Sequence[str]) -> "Figure":
    """The mean of every reward at every step; one line and one marker each."""
    figure, axes = _figure(7, 3.6)
    _step_lines(axes, {name: logged(log_history, f"rewards/{name}/mean") for name in reward_names})
    axes.set(xlabel="step", ylabel="mean of the batch", title="Rewards during training")
    axes.legend(loc="center right", fontsize="small")
    return figure


def show_learning(log_history: Sequence[dict]) -> None:
    """Display three lines of a run in a notebook: share in form, right among those in form and, below them, tokens.

    A point is one batch; a line is the mean of the last five. NaN, where none was in form, is left out. The rewards
    are those of lesson 03.
    """
    in_form = logged(log_history, "rewards/strict_format_reward/mean")
    right = logged(log_history, "rewards/right_if_in_form/mean")
    length = logged(log_history, "completions/mean_length")
    figure, (upper, lower) = _figure(7, 4.8, rows=2, sharex=True, height_ratios=(3, 2))
    _smooth_line(upper, in_form, "in form", 0)
    _smooth_line(upper, right, "right, among those in form", 1)
    _smooth_line(lower, length, "tokens per completion", 2)
    upper.set(ylabel="share of the batch", ylim=(0, 1.03), title="Form first, arithmetic second")
    lower.set(ylabel="mean length", xlabel="step (points: one batch; lines: mean of five)")
    alt = (
        f"Three lines over {len(in_form)} steps. The share in form goes from {in_form[0]:.2f} to {in_form[-1]:.2f}. "
        f"The share of right answers among those in form goes from {right[0]:.2f} to {right[-1]:.2f}. The mean length "
        f"goes from {length[0]:.0f} to {length[-1]:.0f} tokens."
    )
    show(figure, alt)


def _smooth_line(axes: "Axes", values: Sequence[float], label: str, number: int) -> None:
    """Points, and the mean of the last five as a line."""
    from pandas import Series

    steps, smooth = range(1, len(values) + 1), Series(values, dtype=float).rolling(5, min_periods=1).mean()
    axes.plot(steps, values, color=COLORS[number], marker=MARKERS[number], markersize=3, linestyle="none", alpha=0.35)
    axes.plot(steps, smooth, color=COLORS[number], label=label)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize="small")


def reward_and_truth(reward: Sequence[float], truth: Sequence[float], title: str) -> "Figure":
    """What a run was trained on, and below it the share of truly right answers: do they agree?"""
    figure, (upper, lower) = _figure(7, 4, rows=2, sharex=True)
    _step_lines(upper, {"": reward})
    _step_lines(lower, {"": truth}, first=1)
    upper.set(ylabel="mean reward", ylim=(0, None), title=title)
    lower.set(ylabel="truly right", ylim=(0, 1), xlabel="step")
    return figure


def run_curves(runs: dict[str, Sequence[dict]], keys: Sequence[str]) -> "Figure":
    """The same metrics of several runs, one panel for each; ``runs`` holds a ``log_history`` by name."""
    figure, panels = _figure(3.4 * len(keys), 2.8, columns=len(keys), squeeze=False)
    for axes, key in zip(panels[0], keys, strict=True):
        _step_lines(axes, {name: logged(history, key) for name, history in runs.items()})
        axes.set(xlabel="step", title=key.removeprefix("completions/"))
    panels[0][0].legend(fontsize="small")
    return figure


def weight_curve(weights: Sequence[Sequence[float]], reward_names: Sequence[str]) -> "Figure":
    """The weight of every reward at every step; ``weights`` holds one list per step."""
    figure, axes = _figure(7, 3)
    _step_lines(axes, dict(zip(reward_names, zip(*weights, strict=True), strict=False)))
    axes.set(xlabel="step", ylabel="weight", ylim=(0, None), title="Adaptive weights")
    axes.legend(fontsize="small")
    return figure


def pass_at_k_curve(curves: Mapping[str, Mapping[int, "Estimate"]]) -> "Figure":
    """pass@k against k, with intervals; ``curves`` holds, for every name, an `Estimate` for each k."""
    figure, axes = _figure(7, 3.6)
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
    figure, axes = _figure(7, 0.8 + 0.4 * len(changes))
    for row, change in enumerate(changes.values()):
        kind = 0 if change.covers_zero else 1
        axes.plot([change.low, change.high], [row, row], color=COLORS[kind])
        axes.plot(change.value, row, color=COLORS[kind], marker=MARKERS[kind])
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(changes)), list(changes))
    axes.invert_yaxis()
    axes.set(title=title, xlabel="change and its 95 % interval")
    axes.grid(alpha=0.3, axis="x")
    return figure


def difference_chart(differences: Mapping[str, float], title: str) -> "Figure":
    """One bar per name on a logarithmic scale, for differences that are rounding and others that are not."""
    figure, axes = _figure(7, 0.8 + 0.4 * len(differences))
    axes.barh(list(differences), list(differences.values()), color=COLORS[0])
    axes.set_xscale("log")
    axes.set_xlim(left=1e-8)
    axes.invert_yaxis()
    axes.set(title=title)
    axes.grid(alpha=0.3, axis="x")
    return figure


def length_histogram(lengths: Sequence[int], limit: int, title: str = "Tokens of the prompts") -> "Figure":
    """How many prompts have how many tokens; a dashed line at ``limit``, beyond which they would be dropped."""
    figure, axes = _figure(7, 3)
    axes.hist(lengths, bins=min(40, max(lengths) - min(lengths) + 1), color=COLORS[0], edgecolor="white")
    axes.axvline(limit, color=COLORS[1], linestyle="--", label=f"limit: {limit}")
    axes.set(xlabel="tokens, chat template included", ylabel="prompts", title=title)
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    return figure


def pass_rate_bars(rates: Mapping[str, Sequence[float]], samples: int) -> "Figure":
    """How many prompts were solved in 0, 1, … of ``samples`` tries; one bar for each name of ``rates``."""
    figure, axes = _figure(7, 3)
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


def _figure(width: float, height: float, rows: int = 1, columns: int = 1, **panels: object) -> tuple:
    """A figure of so many inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **panels)


def _step_lines(axes: "Axes", curves: Mapping[str, Sequence[float]], first: int = 0) -> None:
    """One line and one marker for each curve, from step 1; ``first`` is the color to begin with."""
    for (name, values), color, marker in zip(curves.items(), COLORS[first:], MARKERS[first:], strict=False):
        axes.plot(range(1, len(values) + 1), values, color=color, marker=marker, markersize=3, label=name)
    axes.grid(alpha=0.3)


def show(figure: "Figure", alt: str) -> None:
    """Display a figure in a notebook as a PNG that carries ``alt`` as its text."""
    from IPython.display import display

    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    display({"image/png": png.getvalue(), "text/plain": alt}, raw=True, metadata={"image/png": {"alt": alt}})
