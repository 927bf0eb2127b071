"""What all figures share: colors, a fresh figure, lines over steps, and the display with its text."""

import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from math import isnan
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colors, which color-blind readers can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE, VERMILION, GREEN, PURPLE, YELLOW, SKY = COLORS
MARKERS = ("o", "s", "^", "D", "v", "P")

# What a color means in every figure of the course:
#: What you want: correct answers, a healthy run, the policy after training, a gain.
GOOD = BLUE
#: What to distrust: the reward that is paid, a run with a fault, a loss.
DOUBTFUL = VERMILION
#: Neither: the policy before training, no change shown, the bars of a figure with one kind of bar.
NEUTRAL = "#767676"
#: Series without such a meaning, in this order.
OTHERS = (GREEN, PURPLE, "black", YELLOW)
#: The names of series that have a meaning.
MEANINGS = {
    "correctness_reward": GOOD,
    "healthy": GOOD,
    "after the fix": GOOD,
    "after": GOOD,
    "this run": DOUBTFUL,
    "before the fix": DOUBTFUL,
    "before": NEUTRAL,
}

#: Inches of a figure. A phone's column shrinks it to little more than half, and its text stays readable.
WIDTH = 5.6
#: Pixels of one inch.
DPI = 110


def colors_of(names: Iterable[str]) -> list[str]:
    """One color for each series: that of its meaning, or the next of those without a meaning.

    >>> colors_of(["healthy", "A", "B"]) == [GOOD, *OTHERS[:2]]
    True
    """
    others = cycle(OTHERS)
    return [MEANINGS.get(name) or next(others) for name in names]


def show(figure: "Figure", alt: str) -> None:
    """Display a figure in a notebook as a PNG that carries ``alt`` as its text."""
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=DPI)
    show_png(png.getvalue(), alt)


def show_png(png: bytes, alt: str) -> None:
    """Display a PNG in a notebook, with ``alt`` as its text."""
    from IPython.display import display

    display({"image/png": png, "text/plain": alt}, raw=True, metadata={"image/png": {"alt": alt}})


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1, **panels: object) -> tuple:
    """A figure of so many inches, and its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **panels)


def step_axis(axes: "Axes") -> None:
    """Steps on the horizontal axis: whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, steps=(1, 2, 5, 10)))
    axes.grid(alpha=0.3)


def step_lines(axes: "Axes", curves: Mapping[str, Sequence[float]]) -> None:
    """One line and one marker for each curve, from step 1."""
    for (name, values), color, marker in zip(curves.items(), colors_of(curves), cycle(MARKERS), strict=False):
        axes.plot(range(1, len(values) + 1), values, color=color, marker=marker, markersize=3, label=name)
    step_axis(axes)


def show_whole_share(axes: "Axes", curves: Iterable[Sequence[float]]) -> None:
    """Show 0 to 1 in full if all values are shares, so that a small change does not look large; NaN is left out."""
    if all(0 <= value <= 1 for values in curves for value in values if not isnan(value)):
        axes.set_ylim(-0.04, 1.04)
