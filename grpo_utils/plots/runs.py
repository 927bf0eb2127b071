"""Figures of a training run, drawn from its ``log_history``."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .base import (
    COLORS,
    DOUBTFUL,
    GOOD,
    MARKERS,
    WIDTH,
    new_figure,
    show,
    show_whole_share,
    step_axis,
    step_lines,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..evaluation.judging import Evaluation


def logged(log_history: Sequence[dict], key: str) -> list[float]:
    """The values of one logged metric, in the order of the steps.

    NaN stands for None, which TRL logs for a reward that scored no completion of a step.

    >>> logged([{"reward": 0.5}, {"train_runtime": 3.0}, {"reward": None}, {"reward": 1.0}], "reward")
    [0.5, nan, 1.0]
    """
    return [math.nan if entry[key] is None else entry[key] for entry in log_history if key in entry]


def path_of(values: Sequence[float]) -> str:
    """Where a curve starts and ends, and its extremes if they lie well outside. Steps count from 1; NaN is left out.

    >>> path_of([0.22, 0.34, 0.92, 0.91, 0.0])
    '0.22 to 0.00 (highest 0.92 at step 3)'
    """
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return "no value"
    first, last, far = known[0], known[-1], (max(known) - min(known)) / 5
    text = f"{first:.2f} to {last:.2f}"
    for name, value in (("highest", max(known)), ("lowest", min(known))):
        if min(abs(value - first), abs(value - last)) > far:
            text += f" ({name} {value:.2f} at step {values.index(value) + 1})"
    return text


def show_rewards(log_history: Sequence[dict], reward_names: Sequence[str]) -> None:
    """Display the mean of every reward at every step, in a notebook."""
    means = {name: logged(log_history, f"rewards/{name}/mean") for name in reward_names}
    steps = max(map(len, means.values()))
    paths = "; ".join(f"{name} {path_of(values)}" for name, values in means.items())
    show(reward_curve(log_history, reward_names), f"Mean rewards over {steps} steps: {paths}.")


def reward_curve(log_history: Sequence[dict], reward_names: Sequence[str]) -> "Figure":
    """The figure of `show_rewards`: one line and one marker for each reward."""
    figure, axes = new_figure(WIDTH, 3.6)
    curves = {name: logged(log_history, f"rewards/{name}/mean") for name in reward_names}
    step_lines(axes, curves)
    show_whole_share(axes, curves.values())
    axes.set(xlabel="step", ylabel="mean of the batch", title="Rewards during training")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def show_reward_and_truth(runs: Mapping[str, Sequence[dict]]) -> None:
    """Display what each run was paid, and its share of correct answers, in a notebook.

    ``runs`` maps a title to a ``log_history``. The reward function ``truth`` logged the correct answers.
    """
    curves = {name: (logged(log, "reward"), logged(log, "rewards/truth/mean")) for name, log in runs.items()}
    parts = [
        f"{' '.join(name.replace(':', ',').split())}: the reward goes from {path_of(reward)}, the "
        f"share of correct answers from {path_of(correct)}."
        for name, (reward, correct) in curves.items()
    ]
    steps = range(1, len(next(iter(curves.values()))[0]) + 1)
    counted = "a training run" if len(curves) == 1 else f"{len(curves)} training runs"
    alt = f"Curves of {counted} over {len(steps)} steps. {' '.join(parts)}"
    show(reward_and_truth(curves, steps), alt)


def reward_and_truth(curves: Mapping[str, tuple[Sequence[float], Sequence[float]]], steps: Sequence[int]) -> "Figure":
    """One column for each run: its reward above, its share of correct answers below. No point is cut off.

    >>> figure = reward_and_truth({"a run": ([-2.5, 4.0], [0.2, 0.1])}, steps=[1, 2])
    >>> bool(figure.axes[0].get_ylim()[0] < -2.5)
    True
    """
    figure, rows = new_figure(8, 4.8, rows=2, columns=len(curves), sharex=True, sharey="row", squeeze=False)
    for upper, lower, (name, (reward, correct)) in zip(*rows, curves.items(), strict=True):
        for axes, values, number, digits in ((upper, reward, 1, 1), (lower, correct, 0, 2)):
            axes.plot(steps, values, color=COLORS[number], marker=MARKERS[number], markersize=3)
            beside = dict(xytext=(5, -4), textcoords="offset points", fontweight="bold", color=COLORS[number])
            axes.annotate(f"{values[-1]:.{digits}f}", (steps[-1], values[-1]), **beside)
            axes.grid(alpha=0.3)
        upper.set_title(name, fontweight="bold", fontsize="medium")
        lower.set_xlabel("step")
    rows[0][0].set(ylabel="reward", xlim=(0, (1 + 0.08 * len(curves)) * steps[-1]))  # room for the last value
    step_axis(rows[0][0])
    if min(min(reward) for reward, _ in curves.values()) >= 0:
        rows[0][0].set_ylim(bottom=0)  # a reward below 0 must stay visible
    rows[1][0].set(ylabel="correct answers", ylim=(-0.06, 1.06), yticks=(0, 0.5, 1))
    return figure


def show_run_curves(runs: Mapping[str, Sequence[dict]], keys: Sequence[str], mark: float | None = None) -> None:
    """Display the same metrics of several runs, one panel for each.

    ``runs`` holds a ``log_history`` by name, logged at every step. A dashed line marks the step ``mark``. The figure's
    text is generated from the data.
    """
    curves = {key: {name: logged(history, key) for name, history in runs.items()} for key in keys}
    steps, texts = max(len(logged(history, "reward")) for history in runs.values()), []
    for key, of in curves.items():
        ends = [f"{name} {path_of(values)}" for name, values in of.items() if values]
        texts.append(f"{key}: {', '.join(ends)}")
    show(run_curves(curves, mark), f"Curves over {steps} steps. {'; '.join(texts)}.")


def run_curves(curves: Mapping[str, Mapping[str, Sequence[float]]], mark: float | None = None) -> "Figure":
    """The figure of `show_run_curves`, from the values of each run by metric: two panels in a row, more in a column."""
    rows, columns = (1, len(curves)) if len(curves) < 3 else (len(curves), 1)
    figure, panels = new_figure(WIDTH, 0.9 + 1.6 * rows, rows, columns, squeeze=False, sharex=True)
    for axes, (key, runs) in zip(panels.flat, curves.items(), strict=True):
        step_lines(axes, runs)
        short = key.removeprefix("completions/").removeprefix("rewards/").removesuffix("/mean")
        axes.set_title(short, fontsize="medium")
        if key.startswith(("rewards/", "frac_")) or key.endswith(("_ratio", "_frequency")):
            show_whole_share(axes, runs.values())
        if mark:
            axes.axvline(mark, color="gray", linestyle="--")
    for axes in panels[-1]:
        axes.set_xlabel("step")
    legend = panels[0][0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside upper center", ncols=4, frameon=False)
    return figure


def show_reward_and_accuracy(means: Sequence[float], evaluated: Mapping[int, "Evaluation"]) -> None:
    """Display the mean reward of every step, and held-out strict accuracy below; ``evaluated`` has the step of each."""
    figure, (upper, lower) = new_figure(WIDTH, 4.2, rows=2, sharex=True)
    upper.plot(range(1, len(means) + 1), means, color=DOUBTFUL, marker=MARKERS[1], markersize=3)
    upper.set_title("mean reward of the batch", fontsize="medium")
    rates, color = [evaluation.accuracy for evaluation in evaluated.values()], GOOD
    lower.plot(list(evaluated), [rate.value for rate in rates], color=color, marker=MARKERS[0])
    lower.fill_between(list(evaluated), *zip(*(rate.interval for rate in rates), strict=True), color=color, alpha=0.2)
    lower.set_title("held-out strict accuracy", fontsize="medium")
    lower.set(xlabel="step (band: 95% interval)", ylim=(-0.04, 1.04))
    step_axis(upper)
    step_axis(lower)
    alt = (
        f"Two line charts over {len(means)} steps. The mean reward goes from {path_of(means)}. "
        f"Held-out strict accuracy goes from {rates[0].value:.1%} to {rates[-1].value:.1%}."
    )
    show(figure, alt)
