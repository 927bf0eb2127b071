"""What the landing page shows of other files: the README's table as doors, and the recorded runs as small curves."""

import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

DATA = re.compile(r'<script type="application/json"[^>]*>(.*?)</script>', re.DOTALL)
#: The curve of what is wanted, or the first of the kind that has this name.
WANTED, CORRECTNESS = "correct and in form", "correctness"
#: The size of a curve's box, with room for a thick line.
WIDTH, HEIGHT, EDGE = 150, 60, 3
#: The tag of a paragraph around rendered text.
PARAGRAPH = re.compile(r"^<p>|</p>\s*$")


def doors(app: Sphinx, overview: nodes.document) -> dict[str, list[list[str]]]:
    """The rows of the README's first table by their bold words: for whom, what to open, and how long it takes."""
    found = {}
    for row in next(overview.findall(nodes.tbody)).findall(nodes.row):
        bold = next(row.findall(nodes.strong))
        cells = [rendered(app, entry, leave_out=bold) for entry in row.findall(nodes.entry)]
        found.setdefault(bold.astext().capitalize(), []).append(cells)
    return found


def rendered(app: Sphinx, entry: nodes.entry, leave_out: nodes.strong) -> str:
    """A cell as HTML. A link to a section of the overview gets the name of its page."""
    parts = [part.deepcopy() for node in entry for part in node if part is not leave_out]
    text = PARAGRAPH.sub("", app.builder.render_partial(nodes.paragraph("", "", *parts))["fragment"].strip())
    return text.replace('href="#', 'href="README.html#').lstrip(", ")


def recorded_runs(page: Path) -> list[dict]:
    """The runs that a replay shows."""
    return [run for data in DATA.findall(page.read_text(encoding="utf-8")) for run in json.loads(data)]


def gallery(runs: Sequence[dict]) -> list[dict[str, str]]:
    """For each run its name, one sentence about its end, and two curves: what was paid, and what was right."""
    return [about(run) for run in runs]


def about(run: dict) -> dict[str, str]:
    """One run, for the landing page."""
    curves = {curve["label"]: curve for curve in run["curves"]}
    wanted = curves.get(WANTED) or next(curve for curve in run["curves"] if curve["kind"] == CORRECTNESS)
    paid = [value for _, value in next(curve for curve in run["curves"] if curve["kind"] == "reward")["points"]]
    right = [value for _, value in wanted["points"]]
    return {
        "name": run["name"],
        "said": re.split(r"(?<=[.]) ", run["ending"])[0],
        "paid": f"{paid[0]:.2f} → {paid[-1]:.2f}",
        "right": f"{right[0]:.0%} → {right[-1]:.0%}",
        "paid_curve": curve(
            paid,
            max(paid),
            f"The mean reward over {len(paid)} steps: {paid[0]:.2f} at first, {paid[-1]:.2f} at the end.",
        ),
        "right_curve": curve(
            right,
            1,
            f"The share of correct completions over {len(right)} steps: {right[0]:.0%} at first, {max(right):.0%} at "
            f"its highest, {right[-1]:.0%} at the end.",
        ),
    }


def curve(values: Sequence[float], top: float, alt: str) -> str:
    """A line from 0 to ``top`` as an SVG that takes its colors from the page."""
    across, up = (WIDTH - 2 * EDGE) / (len(values) - 1), (HEIGHT - 2 * EDGE) / top
    points = " ".join(
        f"{EDGE + step * across:.1f},{HEIGHT - EDGE - value * up:.1f}" for step, value in enumerate(values)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{escape(alt)}">'
        f'<polyline points="{points}"/></svg>'
    )
