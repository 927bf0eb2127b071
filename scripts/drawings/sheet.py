"""A white sheet for diagrams: boxes, arrows, brackets and text, placed in inches from the upper left corner."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from grpo_utils.plots.base import COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A figure, and what it shows in words.
Drawn = tuple["Figure", str]
#: Inches. A phone's column shrinks such a figure to half its size; text of 14 points is then 11 pixels high.
WIDTH = 6.4

BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = COLORS
GRAY = "#666666"
#: Points of text and of small text, and inches of one line.
SIZE, SMALL, LINE = 14, 13, 0.24
Point = tuple[float, float]


class Place(NamedTuple):
    """A rectangle on the sheet: its left upper corner, its width and its height."""

    left: float
    top: float
    width: float
    height: float

    @property
    def middle(self) -> Point:
        """The center."""
        return self.left + self.width / 2, self.top + self.height / 2

    @property
    def right(self) -> float:
        """The right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.top + self.height


def pale(color: str) -> tuple[float, ...]:
    """A color mixed with six times as much white, so that black text on it is easy to read."""
    from matplotlib.colors import to_rgb

    return tuple(1 - (1 - part) / 7 for part in to_rgb(color))


class Sheet:
    """A figure of so many inches without axes."""

    def __init__(self, width: float, height: float) -> None:
        from matplotlib.figure import Figure

        self.figure = Figure(figsize=(width, height), facecolor="white")
        self.axes = self.figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()

    def text(self, x: float, y: float, said: str, **style: object) -> None:
        """Text around a point."""
        usual = {"ha": "center", "va": "center", "fontsize": SIZE, "family": "DejaVu Sans", "color": "black"}
        self.axes.text(x, y, said, **{**usual, **style})

    def box(self, place: Place, head: str = "", body: str = "", color: str = GRAY, **style: object) -> Place:
        """A box with a bold heading over a body; ``round``: with round ends; ``mono``: code; ``line``: the border."""
        from matplotlib.patches import FancyBboxPatch

        rounding = 0.45 * min(place.width, place.height) if style.get("round") else 0.06
        form = f"round,pad=0,rounding_size={rounding}"
        corner = (place.left, place.top)
        line = {"facecolor": pale(color), "edgecolor": color, "linewidth": 2, "linestyle": style.get("line", "-")}
        self.axes.add_patch(FancyBboxPatch(corner, place.width, place.height, boxstyle=form, **line))
        self._words(place, head, body, "DejaVu Sans Mono" if style.get("mono") else "DejaVu Sans")
        return place

    def _words(self, place: Place, head: str, body: str, family: str) -> None:
        heads, bodies = (said.count("\n") + bool(said) for said in (head, body))
        (x, y), offset = place.middle, 0.03 if heads and bodies else 0
        if head:
            self.text(x, y - bodies * LINE / 2 - offset, head, weight="bold")
        if body:
            self.text(x, y + heads * LINE / 2 + offset, body, family=family)

    def arrow(self, *points: Point) -> None:
        """An arrow along the points."""
        from matplotlib.patches import FancyArrowPatch
        from matplotlib.path import Path

        head = {"arrowstyle": "-|>", "mutation_scale": 18, "joinstyle": "miter", "capstyle": "butt"}
        self.axes.add_patch(FancyArrowPatch(path=Path(points), color="black", linewidth=2, **head))

    def join(self, *places: Place) -> None:
        """An arrow from each box to the next: straight across, or down or up in the middle of what they share."""
        for one, other in pairwise(places):
            x, y = (max(one.left, other.left) + min(one.right, other.right)) / 2, one.middle[1]
            if one.right < other.left:
                self.arrow((one.right, y), (other.left, y))
            elif other.right < one.left:
                self.arrow((one.left, y), (other.right, y))
            else:
                down = one.top < other.top
                self.arrow((x, one.bottom if down else one.top), (x, other.top if down else other.bottom))

    def bracket(self, x: float, tops: Sequence[float]) -> None:
        """A square bracket that closes to the right, from one height to another."""
        (top, bottom), right = tops, x + 0.12
        self.line((x, top), (right, top), (right, bottom), (x, bottom))

    def line(self, *points: Point) -> None:
        """A line along the points."""
        xs, ys = zip(*points, strict=True)
        self.axes.plot(xs, ys, color="black", linewidth=2)
