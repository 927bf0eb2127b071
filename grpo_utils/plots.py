"""The figures that the lessons share, each shown with a text for those who cannot see it."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def show(figure: "Figure", alt: str) -> None:
    """Display a figure in a notebook as a PNG that carries ``alt`` as its text."""
    from IPython.display import display

    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=110)
    display({"image/png": png.getvalue(), "text/plain": alt}, raw=True, metadata={"image/png": {"alt": alt}})
