"""What all figures share: colors, a fresh figure, lines over steps, and the display with its text."""

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colors, which color-blind readers can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
#: Pixels of one inch.
DPI = 110
MARKERS = ("o", "s", "^", "D", "v", "P")


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


def step_lines(axes: "Axes", curves: Mapping[str, Sequence[float]]) -> None:
    """One line and one marker for each curve, from step 1.

    >>> figure, axes = new_figure(4, 3)
    >>> step_lines(axes, {"reward": [0.1] * 14})
    >>> [float(step) for step in axes.get_xticks()]  # matplotlib's own choice is 2.5, 5.0, 7.5 and so on
    [0.0, 5.0, 10.0, 15.0]
    """
    for (name, values), color, marker in zip(curves.items(), COLORS, MARKERS, strict=False):
        axes.plot(range(1, len(values) + 1), values, color=color, marker=marker, markersize=3, label=name)
    whole_steps(axes)
    axes.grid(alpha=0.3)


def whole_steps(axes: "Axes") -> None:
    """Put the ticks of the horizontal axis on whole numbers, because there is no step 2.5."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
