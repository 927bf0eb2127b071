"""The tokens of one episode, colored by who wrote them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from .base import GOOD, NEUTRAL, new_figure, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Characters in a row of the figure, the gap between two boxes in characters, and inches of a character and of a row.
COLUMNS, GAP, WIDE, HIGH = 80, 1.2, 0.068, 0.27


def show_tokens(tokens: Sequence[tuple[str, bool]]) -> None:
    """Display the tokens of an episode: blue if the model learns from them, gray if they are masked.

    ``tokens`` has the text of each token, and whether it is in the loss.
    """
    own = sum(learned for _, learned in tokens)
    masked = " ".join("".join(text for text, learned in tokens if not learned).split())
    alt = (
        f"The {len(tokens)} tokens of an episode. {own} are blue: the model wrote them, and they are in the loss. "
        f"{len(tokens) - own} are gray: they are masked. The gray ones read: {masked}"
    )
    show(token_figure(tokens), alt)


def token_figure(tokens: Sequence[tuple[str, bool]]) -> "Figure":
    """The figure of `show_tokens`: one box for each token.

    >>> len(token_figure([("<answer>", True), ("42", True), ("gold", False)]).axes[0].texts)
    3
    """
    shown = [text.replace("\n", "↵") for text, _ in tokens]
    places = list(_places(shown))
    rows = places[-1][1] + 1
    figure, axes = new_figure(WIDE * COLUMNS, HIGH * (rows + 1.2))
    axes.set(xlim=(-0.6, COLUMNS), ylim=(rows - 0.4, -0.6))
    axes.set_axis_off()
    axes.set_title("blue: written by the model, in the loss · gray: masked", fontsize="medium", loc="left")
    for text, (column, row), (_, learned) in zip(shown, places, tokens, strict=True):
        box = dict(boxstyle="round,pad=0.2", facecolor=GOOD if learned else "#E8E8E8", edgecolor=NEUTRAL, linewidth=0.6)
        how = dict(color="white" if learned else "#333333", family="DejaVu Sans Mono", fontsize=8, va="center")
        axes.text(column, row, text, bbox=box, **how)
    return figure


def _places(texts: Iterable[str]) -> Iterator[tuple[float, int]]:
    """The column and row of each token; a token that ends a line of the text starts a new row after it.

    >>> list(_places(["a" * 75, "<answer>", "42↵", "7"]))
    [(0, 0), (0, 1), (9.2, 1), (0, 2)]
    """
    column, row = 0, 0
    for text in texts:
        if column and column + len(text) > COLUMNS:
            column, row = 0, row + 1
        yield column, row
        column += len(text) + GAP
        if text.endswith("↵"):
            column, row = 0, row + 1
