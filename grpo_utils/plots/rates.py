"""Figures of rates and their intervals, and of rows of data."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

from .base import DOUBTFUL, GOOD, MARKERS, MEANINGS, NEUTRAL, WIDTH, colors_of, new_figure, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..evaluation.judging import Samples
    from ..evaluation.statistics import Change, Estimate


#: The color and the marker of each verdict. The markers differ in shape for those who cannot distinguish the colors.
VERDICTS = {
    "improved": (GOOD, ">"),
    "no change shown": (NEUTRAL, "o"),
    "got worse": (DOUBTFUL, "<"),
}

#: The color, hatch and color of the label of each part of a stacked bar: wanted, doubtful, neither.
PARTS = ((GOOD, "", "white"), (DOUBTFUL, "//", "white"), ("#D9D9D9", "", "black"))


def show_pass_at_k(samples: "Mapping[str, Samples]", ks: Sequence[int]) -> None:
    """Show pass@k against k, with a 95% interval as a band; one line for each name of ``samples``."""
    curves = {name: {k: found.pass_at_k(k) for k in ks} for name, found in samples.items()}
    ends = [f"{name}, from {of[ks[0]]} at k = {ks[0]} to {of[ks[-1]]} at k = {ks[-1]}" for name, of in curves.items()]
    show(pass_at_k_figure(curves), f"pass@k against k, with 95% intervals: {'; '.join(ends)}.")


def pass_at_k_figure(curves: "Mapping[str, Mapping[int, Estimate]]") -> "Figure":
    """The figure of `show_pass_at_k`, from an `Estimate` for each k."""
    figure, axes = new_figure(WIDTH, 3.6)
    for (name, points), color, marker in zip(curves.items(), colors_of(curves), cycle(MARKERS), strict=False):
        values, lows, highs = zip(*points.values(), strict=True)
        axes.plot(list(points), values, color=color, marker=marker, label=name)
        axes.fill_between(list(points), lows, highs, color=color, alpha=0.2)
    axes.set_xscale("log", base=2)
    ticks = sorted({k for points in curves.values() for k in points})
    axes.set_xticks(ticks, [str(k) for k in ticks])
    title = "At least one of k samples is correct"
    axes.set(xlabel="k, samples per prompt", ylabel="pass@k", ylim=(-0.04, 1.04), title=title)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def show_changes(changes: "Mapping[str, Change]", title: str) -> None:
    """Show changes and their 95% intervals next to the line of no change, in the color of their verdict."""
    texts = [f"{name} {change.estimate.signed()}, {change.verdict}" for name, change in changes.items()]
    show(change_figure(changes, title), f"{title}, with 95% intervals: {'; '.join(texts)}.")


def change_figure(changes: "Mapping[str, Change]", title: str) -> "Figure":
    """The figure of `show_changes`: one line for each name."""
    figure, axes = new_figure(WIDTH, 1.3 + 0.35 * len(changes))
    for row, change in enumerate(changes.values()):
        (value, low, high), (color, marker) = change.estimate, VERDICTS[change.verdict]
        axes.plot([low, high], [row, row], color=color, linewidth=2)
        axes.plot(value, row, color=color, marker=marker, markersize=8)
    shown = {change.verdict for change in changes.values()}
    for verdict in [verdict for verdict in VERDICTS if verdict in shown]:
        color, marker = VERDICTS[verdict]
        axes.plot([], [], color=color, marker=marker, markersize=8, label=verdict)
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(range(len(changes)), list(changes))
    axes.set(title=title, xlabel="change and its 95% interval", ylim=(len(changes) - 0.5, -0.5))
    axes.locator_params(axis="x", nbins=6)  # more labels would touch
    axes.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


def show_differences(differences: Mapping[str, float], title: str) -> None:
    """Display one bar per name on a logarithmic scale, which fits both rounding and larger differences."""
    figure, axes = new_figure(WIDTH, 0.8 + 0.4 * len(differences))
    bars = axes.barh(list(differences), list(differences.values()), color=NEUTRAL)
    axes.bar_label(bars, [f"{value:.2g}" for value in differences.values()], padding=3)
    axes.set_xscale("log")
    positive = [value for value in differences.values() if value > 0]
    axes.set_xlim(min([1e-7, *positive]) / 10, max([1, *positive]) * 100)
    axes.invert_yaxis()
    axes.set(title=title)
    axes.grid(alpha=0.3, axis="x")
    values = "; ".join(f"{name}: {value:.2g}" for name, value in differences.items())
    show(figure, f"{title}, as bars on a logarithmic scale. {values}.")


def show_shares(panels: Mapping[str, Mapping[str, Mapping[str, int]]], title: str) -> None:
    """Show what kinds of answers there are: a panel for each case, a bar for each policy, a part for each kind.

    ``panels`` maps a case to the policies in it, and a policy to how often it gave each kind of answer. The kinds come
    in the order *wanted*, *doubtful*, *neither*, and are the same everywhere.
    """
    texts = []
    for case, policies in panels.items():
        shares = {
            name: ", ".join(f"{kind} {count / sum(counts.values()):.2f}" for kind, count in counts.items())
            for name, counts in policies.items()
        }
        texts.append(f"{case}: {'; '.join(f'{name}, {parts}' for name, parts in shares.items())}.")
    show(shares_figure(panels, title), f"{title}, as stacked bars. {' '.join(texts)}")


def shares_figure(panels: Mapping[str, Mapping[str, Mapping[str, int]]], title: str) -> "Figure":
    """The figure of `show_shares`. A part of a twentieth or more carries its share."""
    figure, row = new_figure(WIDTH, 3.2, columns=len(panels), squeeze=False, sharey=True)
    for axes, (case, policies) in zip(row.flat, panels.items(), strict=True):
        below = [0.0] * len(policies)
        for kind, (color, hatch, text) in zip(next(iter(policies.values())), PARTS, strict=True):
            shares = [counts[kind] / sum(counts.values()) for counts in policies.values()]
            how = dict(color=color, hatch=hatch, edgecolor="white", label=kind)
            bars = axes.bar(list(policies), shares, bottom=below, **how)
            labels = [f"{share:.2f}" if share >= 0.05 else "" for share in shares]
            box = dict(facecolor=color, edgecolor="none", pad=1)
            axes.bar_label(bars, labels, label_type="center", color=text, bbox=box)
            below = [start + share for start, share in zip(below, shares, strict=True)]
        axes.set_title(case, fontsize="medium")
    row[0][0].set(ylabel="share of the answers", ylim=(0, 1))
    figure.suptitle(title)
    figure.legend(*row[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def show_points(points: Mapping[str, tuple[float, float]], horizontal: str, vertical: str, title: str) -> None:
    """Show named points, such as models with their cost and their accuracy."""
    figure, axes = new_figure(WIDTH, 2.8)
    for (name, (x, y)), marker in zip(points.items(), cycle(MARKERS), strict=False):
        axes.plot(x, y, color=GOOD, marker=marker, markersize=9)
        axes.annotate(name, (x, y), xytext=(0, -16), textcoords="offset points", ha="center")
    most_x, most_y = (max(values) for values in zip(*points.values(), strict=True))
    axes.set(xlabel=horizontal, ylabel=vertical, title=title)
    axes.set(xlim=(-0.15 * most_x, 1.2 * most_x), ylim=(0, 1.2 * most_y))
    axes.grid(alpha=0.3)
    places = "; ".join(f"{name}: {x:g} and {y:g}" for name, (x, y) in points.items())
    show(figure, f"{title}, as points: {horizontal} and {vertical}. {places}.")


def show_before_and_after(values: Mapping[str, tuple[float, float]], title: str) -> None:
    """Display two bars per name: a probability or a share before and after."""
    texts = [f"{name}: {old:.2f} to {new:.2f}" for name, (old, new) in values.items()]
    show(before_and_after(values, title), f"{title}, before and after, as bars. {'; '.join(texts)}.")


def before_and_after(values: Mapping[str, tuple[float, float]], title: str) -> "Figure":
    """The figure of `show_before_and_after`."""
    figure, axes = new_figure(WIDTH, 1.4 + 0.5 * len(values))
    for place, name in enumerate(("before", "after")):
        heights = [pair[place] for pair in values.values()]
        at = [row + 0.38 * place - 0.19 for row in range(len(values))]
        bars = axes.barh(at, heights, 0.36, color=MEANINGS[name], label=name)
        axes.bar_label(bars, [f"{height:.2f}" for height in heights], padding=3)
    axes.set_yticks(range(len(values)), list(values))
    axes.invert_yaxis()
    axes.set(xlim=(0, 1.1), title=title)
    axes.grid(alpha=0.3, axis="x")
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


def length_histogram(lengths: Sequence[int], limit: int) -> "Figure":
    """How many prompts have how many tokens; a dashed line at ``limit``, beyond which they would be dropped."""
    figure, axes = new_figure(WIDTH, 3)
    axes.hist(lengths, bins=min(40, max(lengths) - min(lengths) + 1), color=NEUTRAL, edgecolor="white")
    axes.axvline(limit, color="black", linestyle="--", label=f"limit: {limit}")
    axes.set(xlabel="tokens, chat template included", ylabel="prompts", title="Prompt lengths")
    axes.grid(alpha=0.3, axis="y")
    figure.legend(loc="outside lower center", frameon=False)
    return figure


def pass_rate_bars(rates: Mapping[str, Sequence[float]], samples: int) -> "Figure":
    """How many prompts were solved in 0, 1, … of ``samples`` tries; one bar for each name of ``rates``."""
    figure, axes = new_figure(WIDTH, 3)
    width, tries = 0.8 / len(rates), range(samples + 1)
    for place, ((name, values), color) in enumerate(zip(rates.items(), colors_of(rates), strict=True)):
        solved = [round(rate * samples) for rate in values]
        at = [k + (place - (len(rates) - 1) / 2) * width for k in tries]
        hatch = ("", "//", "..")[place % 3]
        axes.bar(at, [solved.count(k) for k in tries], width, color=color, hatch=hatch, label=name)
    axes.set(xlabel=f"correct answers of {samples}", ylabel="prompts", xticks=tries, title="Prompts by pass rate")
    axes.grid(alpha=0.3, axis="y")
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure
