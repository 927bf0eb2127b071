"""Save a figure as an SVG file that fits light and dark pages."""

import io
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

#: A browser that shows the picture on a dark page exchanges light and dark and keeps the colors; others ignore it.
DARK = "<style>@media (prefers-color-scheme: dark) { svg { filter: invert(0.93) hue-rotate(180deg) } }</style>"


def save_svg(figure: Figure, path: Path, alt: str) -> None:
    """Write a figure with its text; the same figure always gives the same bytes."""
    text = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Description": alt}
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "savefig.facecolor": "white"}):
        figure.savefig(text, format="svg", metadata=metadata)
    path.write_text(text.getvalue().replace("<metadata>", f"{DARK}\n <metadata>", 1), encoding="utf-8")
