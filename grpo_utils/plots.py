"""The figures that the lessons share, each shown with a text for those who cannot see it."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .evaluation.statistics import Estimate

#: Okabe and Ito's colours, which stay apart for colour-blind readers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")


def logged(log_history: Sequence[dict], key: str) -> list[float]:
    """The values of one logged metric, in the order of the steps.

    >>> logged([{"reward": 0.5}, {"train_runtime": 3.0}, {"reward": 1.0}], "reward")
    [0.5, 1.0]
    """
    return [entry[key] for entry in log_history if key in entry]


def reward_curve(log_history: Sequence[dict], reward_names: Sequence[str]) -> "Figure":
    """The mean of every reward at every step; one line and one marker each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, colour, marker in zip(reward_names, COLOURS, MARKERS, strict=False):
        values = logged(log_history, f"rewards/{name}/mean")
        axes.plot(range(1, len(values) + 1), values, color=colour, marker=marker, markersize=3, label=name)
    axes.set(xlabel="step", ylabel="mean of the batch", title="Rewards during training")
    axes.grid(alpha=0.3)
    axes.legend(loc="center right", fontsize="small")
    return figure


def form_and_answers(in_form: Sequence[float], right: Sequence[float], length: Sequence[float]) -> "Figure":
    """Three shares or means at every step: in form, right among those in form and, below them, tokens per completion.

    A point is one batch; a line is the mean of the last five. NaN, where none was in form, is left out.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.8), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    _smooth_line(upper, in_form, "in form", 0)
    _smooth_line(upper, right, "right, among those in form", 1)
    _smooth_line(lower, length, "tokens per completion", 2)
    upper.set(ylabel="share of the batch", ylim=(0, 1.03), title="Form first, arithmetic second")
    lower.set(ylabel="mean length", xlabel="step (points: one batch; lines: mean of five)")
    return figure


def _smooth_line(axes: "Axes", values: Sequence[float], label: str, number: int) -> None:
    """Points, and the mean of the last five as a line."""
    from pandas import Series

    steps, smooth = range(1, len(values) + 1), Series(values, dtype=float).rolling(5, min_periods=1).mean()
    axes.plot(steps, values, color=COLOURS[number], marker=MARKERS[number], markersize=3, linestyle="none", alpha=0.35)
    axes.plot(steps, smooth, color=COLOURS[number], label=label)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right", fontsize="small")


def reward_and_truth(reward: Sequence[float], truth: Sequence[float], title: str) -> "Figure":
    """What a run was trained on, and the share of truly right answers below it: do they tell the same story?"""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, values, colour, marker in zip((upper, lower), (reward, truth), COLOURS, MARKERS, strict=False):
        axes.plot(range(1, len(values) + 1), values, color=colour, marker=marker, markersize=3)
        axes.grid(alpha=0.3)
    upper.set(ylabel="mean reward", ylim=(0, None), title=title)
    lower.set(ylabel="truly right", ylim=(0, 1), xlabel="step")
    return figure


def run_curves(runs: dict[str, Sequence[dict]], keys: Sequence[str]) -> "Figure":
    """The same metrics of several runs, one panel for each; ``runs`` holds a ``log_history`` by name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(keys), 2.8), layout="constrained")
    panels = figure.subplots(1, len(keys), squeeze=False)[0]
    for axes, key in zip(panels, keys, strict=True):
        for (name, history), colour, marker in zip(runs.items(), COLOURS, MARKERS, strict=False):
            values = logged(history, key)
            axes.plot(range(1, len(values) + 1), values, color=colour, marker=marker, markersize=3, label=name)
        axes.set(xlabel="step", title=key.removeprefix("completions/"))
        axes.grid(alpha=0.3)
    panels[0].legend(fontsize="small")
    return figure


def weight_curve(weights: Sequence[Sequence[float]], reward_names: Sequence[str]) -> "Figure":
    """The weight of every reward at every step; ``weights`` holds one list a step."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for values, name, colour, marker in zip(zip(*weights, strict=True), reward_names, COLOURS, MARKERS, strict=False):
        axes.plot(range(1, len(values) + 1), values, color=colour, marker=marker, markersize=3, label=name)
    axes.set(xlabel="step", ylabel="weight", ylim=(0, None), title="Adaptive weights")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    return figure


def pass_at_k_curve(curves: Mapping[str, Mapping[int, "Estimate"]]) -> "Figure":
    """pass@k against k, with intervals; ``curves`` holds, for every name, an `Estimate` for each k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, points), colour, marker in zip(curves.items(), COLOURS, MARKERS, strict=False):
        axes.plot(list(points), [point.value for point in points.values()], color=colour, marker=marker, label=name)
        lows, highs = ([point[end] for point in points.values()] for end in (1, 2))
        axes.fill_between(list(points), lows, highs, color=colour, alpha=0.2)
    axes.set_xscale("log", base=2)
    ticks = sorted({k for points in curves.values() for k in points})
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.set(xlabel="k, samples a prompt", ylabel="pass@k", ylim=(0, 1.03), title="At least one of k samples is right")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    return figure


def change_chart(changes: Mapping[str, "Estimate"], title: str) -> "Figure":
    """One line a name: a change and its interval, beside the line of no change."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.8 + 0.4 * len(changes)), layout="constrained")
    axes = figure.subplots()
    for row, change in enumerate(changes.values()):
        colour, marker = (COLOURS[0], MARKERS[0]) if change.covers_zero else (COLOURS[1], MARKERS[1])
        axes.plot([change.low, change.high], [row, row], color=colour)
        axes.plot(change.value, row, color=colour, marker=marker)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(changes)), list(changes))
    axes.invert_yaxis()
    axes.set(title=title, xlabel="change and its 95 % interval")
    axes.grid(alpha=0.3, axis="x")
    return figure


def difference_chart(differences: Mapping[str, float], title: str) -> "Figure":
    """One bar a name on a logarithmic scale, for differences that are rounding and others that are not."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.8 + 0.4 * len(differences)), layout="constrained")
    axes = figure.subplots()
    axes.barh(list(differences), list(differences.values()), color=COLOURS[0])
    axes.set_xscale("log")
    axes.set_xlim(left=1e-8)
    axes.invert_yaxis()
    axes.set(title=title)
    axes.grid(alpha=0.3, axis="x")
    return figure


def length_histogram(lengths: Sequence[int], limit: int, title: str = "Tokens of the prompts") -> "Figure":
    """How many prompts have how many tokens; a dashed line at ``limit``, beyond which they would be dropped."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.hist(lengths, bins=min(40, max(lengths) - min(lengths) + 1), color=COLOURS[0], edgecolor="white")
    axes.axvline(limit, color=COLOURS[1], linestyle="--", label=f"limit: {limit}")
    axes.set(xlabel="tokens, chat template included", ylabel="prompts", title=title)
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    return figure


def pass_rate_bars(rates: Mapping[str, Sequence[float]], samples: int) -> "Figure":
    """How many prompts were solved in 0, 1, … of ``samples`` tries; one bar for each name of ``rates``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    width, tries = 0.8 / len(rates), range(samples + 1)
    for place, (name, values) in enumerate(rates.items()):
        solved = [round(rate * samples) for rate in values]
        at = [k + (place - (len(rates) - 1) / 2) * width for k in tries]
        hatch = ("", "//", "..")[place % 3]
        axes.bar(at, [solved.count(k) for k in tries], width, color=COLOURS[place], hatch=hatch, label=name)
    axes.set(xlabel=f"right answers of {samples}", ylabel="prompts", xticks=tries, title="How often a prompt is solved")
    axes.grid(alpha=0.3, axis="y")
    axes.legend()
    return figure


def show(figure: "Figure", alt: str) -> None:
    """Display a figure in a notebook as a PNG that carries ``alt`` as its text."""
    from IPython.display import display

    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    display({"image/png": png.getvalue(), "text/plain": alt}, raw=True, metadata={"image/png": {"alt": alt}})
