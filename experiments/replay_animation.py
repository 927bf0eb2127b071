"""Draw some steps of a replayed run as an SVG that moves: what was paid most, and reward and correct answers over time.

It needs no script, follows the reader's light or dark mode, and stands still where a reader wants no motion.
"""

from html import escape
from textwrap import wrap

SECONDS = 2  # each step is shown for so long
TITLE = "A policy learns to cheat"
STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --line: #d1d9e0; --reward: #b34a00; --correct: #1b5fa7; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #3d444d; --reward: #f5a15c; --correct: #7fb6f2; }
}
text { font: 14px system-ui, sans-serif; fill: var(--ink); } .quiet { fill: var(--quiet); font-size: 12px; }
.said { font: 13px ui-monospace, monospace; white-space: pre; } .title { font-weight: 600; font-size: 16px; }
.reward { stroke: var(--reward); fill: none; stroke-width: 2; }
.correct { stroke: var(--correct); fill: none; stroke-width: 2; }
text.reward { fill: var(--reward); stroke: none; } text.correct { fill: var(--correct); stroke: none; }
.axis { stroke: var(--line); } .now { stroke: var(--ink); stroke-dasharray: 3 3; }
.frame { visibility: hidden; animation: show %(whole)ds step-end infinite; }
@keyframes show { 0%% { visibility: visible; } %(share)g%% { visibility: hidden; } 100%% { visibility: hidden; } }
@media (prefers-reduced-motion: reduce) { .frame { animation: none; } .last { visibility: visible; } }
"""
LEFT, RIGHT, TOP, HIGH, GAP, BOTTOM = 440, 700, 60, 80, 50, 308  # of the two charts, and of the picture
LINES, COLUMNS = 8, 46


def animation(run: dict, about: str, steps: list[int], keys: dict[str, str]) -> str:
    """The picture of a run, as the page's data has it.

    Args:
        run: one run of the page.
        about: what its reward pays for.
        steps: the steps to show, one after the other.
        keys: labels of the two curves, from the color's class to the label.
    """
    found = {step["step"]: step for step in run["steps"]}
    curves = {kind: next(c["points"] for c in run["curves"] if c["label"] == label) for kind, label in keys.items()}
    charts = "".join(chart(place, kind, points) for place, (kind, points) in enumerate(curves.items()))
    frames = "".join(
        frame(number, run, found[step], curves, last=step == steps[-1]) for number, step in enumerate(steps)
    )
    style = STYLE % {"whole": SECONDS * len(steps), "share": 100 / len(steps)}
    said = f"{TITLE}: {run['story']}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {BOTTOM}" role="img"><title>{escape(said)}</title>'
        f'<style>{style}</style><rect width="720" height="{BOTTOM}" fill="var(--paper)"/>'
        f'<text x="16" y="28" class="title">{escape(TITLE)}: {escape(about)}</text>{charts}{frames}</svg>\n'
    )


def chart(place: int, kind: str, points: list) -> str:
    """One curve with its ends."""
    label = {"reward": "mean reward", "correct": "correct and in the right form (share)"}[kind]
    most = highest(points)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(place, point, points) for point in points))
    low = base(place)
    return (
        f'<text x="{LEFT}" y="{low - HIGH - 8}" class="{kind}">{label}</text>'
        f'<line class="axis" x1="{LEFT}" x2="{RIGHT}" y1="{low}" y2="{low}"/>'
        f'<text class="quiet" x="{LEFT - 6}" y="{low + 4}" text-anchor="end">0</text>'
        f'<text class="quiet" x="{LEFT - 6}" y="{low - HIGH + 4}" text-anchor="end">{most:.2g}</text>'
        f'<text class="quiet" x="{LEFT}" y="{low + 16}">step {points[0][0]}</text>'
        f'<text class="quiet" x="{RIGHT}" y="{low + 16}" text-anchor="end">{points[-1][0]}</text>'
        f'<polyline class="{kind}" points="{line}"/>'
    )


def base(place: int) -> int:
    """The lower end of a chart."""
    return TOP + HIGH + 10 + place * (HIGH + GAP)


def highest(points: list) -> float:
    """The upper end of a chart's axis; 1 for a curve of zeros.

    >>> highest([[1, 0.0], [2, 2.5]]), highest([[1, 0.0], [2, 0.0]])
    (2.5, 1.0)
    """
    return max(value for _, value in points) or 1.0


def at(place: int, point: tuple[int, float], points: list) -> tuple[float, float]:
    """Where a point is drawn; the only step of a run, at the left."""
    (first, _), (last, _) = points[0], points[-1]
    x = LEFT + (point[0] - first) / max(1, last - first) * (RIGHT - LEFT)
    return x, base(place) - point[1] / highest(points) * HIGH


def frame(number: int, run: dict, step: dict, curves: dict, *, last: bool) -> str:
    """What is shown at one step."""
    rows = [row for group in step["groups"] for row in group["rows"]]
    text, _, _, paid, *_ = max(rows, key=lambda row: row[3])
    lines = wrap(run["texts"][text], COLUMNS, drop_whitespace=False)[:LINES]
    said = "".join(
        f'<text class="said" x="16" y="{138 + 20 * i}">{escape(part)}</text>' for i, part in enumerate(lines)
    )
    marks, values = "", {}
    for place, (kind, points) in enumerate(curves.items()):
        point = next(point for point in points if point[0] == step["step"])
        (x, y), low, values[kind] = at(place, point, points), base(place), point[1]
        marks += f'<line class="now" x1="{x:.1f}" x2="{x:.1f}" y1="{low - HIGH}" y2="{low}"/>'
        marks += f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--ink)"/>'
    return (
        f'<g class="frame{" last" * last}" style="animation-delay: {number * SECONDS}s">'
        f'<text x="16" y="62">Step {step["step"]}</text>'
        f'<text x="16" y="86">reward {values["reward"]:.2f}, correct {values["correct"]:.2f}</text>'
        f'<text x="16" y="114" class="quiet">The most paid completion (reward {paid:.2f}):</text>{said}{marks}</g>'
    )
