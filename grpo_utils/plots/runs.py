"""Figures of a training run, drawn from its ``log_history``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .base import COLORS, MARKERS, new_figure, show, step_lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def logged(log_history: Sequence[dict], key: str) -> list[float]:
    """The values of one logged metric, in the order of the steps.

    >>> logged([{"reward": 0.5}, {"train_runtime": 3.0}, {"reward": 1.0}], "reward")
    [0.5, 1.0]
    """
    return [entry[key] for entry in log_history if key in entry]


def reward_curve(log_history: Sequence[dict], reward_names: Sequence[str]) -> "Figure":
    """The mean of every reward at every step; one line and one marker each."""
    figure, axes = new_figure(7, 3.6)
    step_lines(axes, {name: logged(log_history, f"rewards/{name}/mean") for name in reward_names})
    axes.set(xlabel="step", ylabel="mean of the batch", title="Rewards during training")
    axes.legend(loc="center right", fontsize="small")
    return figure


def show_learning(log_history: Sequence[dict]) -> None:
    """Display three lines of a run in a notebook: share formatted, correct among those and, below them, tokens.

    A point is one batch; a line is the mean of the last five. NaN, where none was formatted, is left out. The rewards
    are those of lesson 03.
    """
    formatted = logged(log_history, "rewards/strict_format_reward/mean")
    correct = logged(log_history, "rewards/correct_if_formatted/mean")
    length = logged(log_history, "completions/mean_length")
    figure, (upper, lower) = new_figure(7, 4.8, rows=2, sharex=True, height_ratios=(3, 2))
    _smooth_line(upper, formatted, "correctly formatted", 0)
    _smooth_line(upper, correct, "correct, among those", 1)
    _smooth_line(lower, length, "tokens per completion", 2)
    upper.set(ylabel="share of the batch", ylim=(0, 1.03), title="Format first, arithmetic second")
    lower.set(ylabel="mean length", xlabel="step (points: one batch; lines: mean of five)")
    alt = (
        f"Three lines over {len(formatted)} steps. The share of correctly formatted answers goes from "
        f"{formatted[0]:.2f} to {formatted[-1]:.2f}. The share of correct answers among those goes from "
        f"{correct[0]:.2f} to {correct[-1]:.2f}. The mean length goes from {length[0]:.0f} to {length[-1]:.0f} tokens."
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
    figure, (upper, lower) = new_figure(7, 4, rows=2, sharex=True)
    step_lines(upper, {"": reward})
    step_lines(lower, {"": truth}, first=1)
    upper.set(ylabel="mean reward", ylim=(0, None), title=title)
    lower.set(ylabel="truly correct", ylim=(0, 1), xlabel="step")
    return figure


def run_curves(runs: dict[str, Sequence[dict]], keys: Sequence[str]) -> "Figure":
    """The same metrics of several runs, one panel for each; ``runs`` holds a ``log_history`` by name."""
    figure, panels = new_figure(3.4 * len(keys), 2.8, columns=len(keys), squeeze=False)
    for axes, key in zip(panels[0], keys, strict=True):
        step_lines(axes, {name: logged(history, key) for name, history in runs.items()})
        axes.set(xlabel="step", title=key.removeprefix("completions/"))
    panels[0][0].legend(fontsize="small")
    return figure


def show_run_curves(runs: dict[str, Sequence[dict]], keys: Sequence[str], mark: float | None = None) -> None:
    """Display `run_curves`, with first and last values as alt text and a dashed line at the step ``mark``."""
    figure = run_curves(runs, keys)
    for axes in figure.axes if mark else []:
        axes.axvline(mark, color="gray", linestyle="--")
    curves = {(key, name): logged(history, key) for key in keys for name, history in runs.items()}
    ends = [f"{key}, {name}: {values[0]:.2f} to {values[-1]:.2f}" for (key, name), values in curves.items()]
    show(figure, f"Curves over the steps. {'; '.join(ends)}.")


def weight_curve(weights: Sequence[Sequence[float]], reward_names: Sequence[str]) -> "Figure":
    """The weight of every reward at every step; ``weights`` holds one list per step."""
    figure, axes = new_figure(7, 3)
    step_lines(axes, dict(zip(reward_names, zip(*weights, strict=True), strict=False)))
    axes.set(xlabel="step", ylabel="weight", ylim=(0, None), title="Adaptive weights")
    axes.legend(fontsize="small")
    return figure
