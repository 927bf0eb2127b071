"""Draw the picture that chats and social networks show with a link to the site: docs/figures/card.png.

    python scripts/preview.py     # or: make figures

It shows the first recorded run of docs/watch-it-cheat.html. A test fails if it is older than that run.
"""

import io

from address import ROOT
from grpo_check.replay.page import runs_of
from matplotlib.figure import Figure

from grpo_utils.plots.base import DOUBTFUL, GOOD, NEUTRAL

CARD = ROOT / "docs" / "figures" / "card.png"
PAGE = ROOT / "docs" / "watch-it-cheat.html"
#: Pixels of what all networks show, and of one inch.
WIDTH, HEIGHT, DPI = 1200, 630, 100
FONT = {"family": "DejaVu Sans"}


def card() -> bytes:
    """The picture; equal runs give equal bytes."""
    run = runs_of(PAGE.read_text(encoding="utf-8"))[0]
    figure = Figure(figsize=(WIDTH / DPI, HEIGHT / DPI), facecolor="white")
    figure.text(0.05, 0.85, "A policy learns what it is paid for.", fontsize=38, weight="bold", **FONT)
    figure.text(
        0.05, 0.765, "Train language models with GRPO, on a laptop or a free T4", fontsize=23, color="#444444", **FONT
    )
    for left, kind, name, color, form in (
        (0.05, "reward", "what it is paid: 0.25 for each tag", DOUBTFUL, ".2f"),
        (0.545, "correctness", "what you wanted: correct sums", GOOD, ".0%"),
    ):
        steps, values = zip(*next(curve for curve in run["curves"] if curve["kind"] == kind)["points"], strict=True)
        axes = figure.add_axes((left, 0.1, 0.3, 0.48), xlim=(1, steps[-1]), ylim=(0, max(1, *values) * 1.04))
        axes.plot(steps, values, color=color, linewidth=7, solid_capstyle="round", clip_on=False)
        axes.set_xticks([]), axes.set_yticks([])
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(NEUTRAL)
        axes.set_title(name, loc="left", fontsize=19, pad=16, **FONT)
        said = {"fontsize": 33, "weight": "bold", "color": color, "va": "center", **FONT}
        axes.text(steps[-1] * 1.05, values[-1], f"{values[-1]:{form}}", **said)
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=DPI, metadata={"Software": None})
    return png.getvalue()


def main() -> None:
    CARD.write_bytes(card())
    print(f"wrote {CARD.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
