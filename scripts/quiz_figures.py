"""Draw the curves that docs/quiz.md asks about, as docs/figures/quiz-NN.svg, and put their alt texts into the page.

    python scripts/quiz_figures.py     # or: make figures

The curves are those of recorded runs: the replays in docs/watch-it-cheat.html, and the table that lesson 15's stored
run printed. That of lesson 08 is the loss itself. Neither a picture nor its alt text gives the answer away.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from address import ROOT
from figures import stored_text
from grpo_check.replay.page import runs_of

QUIZ, FIGURES = ROOT / "docs" / "quiz.md", ROOT / "docs" / "figures"
REPLAYS, CONTROLS = ROOT / "docs" / "watch-it-cheat.html", ROOT / "notebooks" / "15_controls.ipynb"
REWARD, TIED, LENGTH = "reward (total)", "tied groups (share)", "mean length (tokens)"
#: The width of a picture, and of a panel the distances to its edges, in pixels. A phone shows two thirds of it.
WIDTH, HEIGHT, LEFT, RIGHT, ABOVE, BELOW = 480, 172, 46, 40, 34, 26
STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --line: #d1d9e0; --A: #b34a00; --B: #1b5fa7; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --line: #3d444d; --A: #f5a15c; --B: #7fb6f2; }
}
text { font: 17px system-ui, sans-serif; fill: var(--ink); } .end { text-anchor: end; } .middle { text-anchor: middle; }
.head { font-weight: 600; } polyline { fill: none; stroke-width: 3; stroke-linejoin: round; }
.A { stroke: var(--A); } .B { stroke: var(--B); stroke-dasharray: 9 4; }
.axis { stroke: var(--line); } .limit { stroke: var(--ink); stroke-dasharray: 3 5; }
"""


class Panel(NamedTuple):
    """Lines over the same steps: a heading, each line's values, the highest value, and perhaps a dotted limit."""

    head: str
    lines: dict[str, Sequence[float]]
    top: float
    limit: float | None = None


class Curves(NamedTuple):
    """A picture: its panels, what is below them, the places with a mark there, and its text."""

    panels: list[Panel]
    below: str
    marks: dict[float, str]
    alt: str


def panel(part: Panel, top: float, marks: dict[float, str]) -> list[str]:
    """The elements of a panel whose upper edge is ``top``."""
    count = max(len(values) for values in part.lines.values())
    floor, wide, high = top + HEIGHT - BELOW, WIDTH - LEFT - RIGHT, HEIGHT - ABOVE - BELOW

    def x(place: float) -> float:
        return LEFT + wide * (place - 1) / (count - 1)

    def y(value: float) -> float:
        return floor - high * value / part.top

    drawn = [f'<text class="head" x="{LEFT}" y="{top + 20}">{escape(part.head)}</text>']
    for value in (0, part.top):
        drawn.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):g}" y2="{y(value):g}"/>')
        drawn.append(f'<text class="end" x="{LEFT - 8}" y="{y(value) + 6:g}">{value:g}</text>')
    if part.limit is not None:
        at = y(part.limit)
        drawn.append(f'<line class="limit" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:g}" y2="{at:g}"/>')
        if part.limit != part.top:
            drawn.append(f'<text class="end" x="{LEFT - 8}" y="{at + 6:g}">{part.limit:g}</text>')
    for place, said in marks.items():
        drawn.append(f'<text class="middle" x="{x(place):g}" y="{floor + 19:g}">{said}</text>')
    ends = [y(values[-1]) + 6 for values in part.lines.values()]
    if len(ends) > 1 and abs(ends[0] - ends[1]) < 18:  # the two names would cover each other
        middle, apart = sum(ends) / 2, 9 if ends[0] >= ends[1] else -9
        ends = [middle + apart, middle - apart]
    for kind, (name, values), end in zip("AB", part.lines.items(), ends, strict=False):
        points = " ".join(f"{x(place):.4g},{y(value):.4g}" for place, value in enumerate(values, 1))
        drawn.append(f'<polyline class="{kind}" points="{points}"/>')
        drawn.append(f'<text x="{WIDTH - RIGHT + 5}" y="{end:g}">{escape(name)}</text>')
    return drawn


def svg(curves: Curves) -> str:
    """A picture for light and dark pages; equal curves give equal bytes."""
    parts = [element for row, part in enumerate(curves.panels) for element in panel(part, row * HEIGHT, curves.marks)]
    high = len(curves.panels) * HEIGHT + 24
    below = f'<text class="middle" x="{(WIDTH - RIGHT + LEFT) / 2:g}" y="{high - 8}">{escape(curves.below)}</text>'
    size = f'width="{WIDTH}" height="{high}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {high}" role="img">'
    head += f"<title>{escape(curves.alt)}</title><style>{STYLE}</style>"
    paper = f'<rect {size} fill="var(--paper)"/>'
    return "\n".join([head, paper, *parts, below, "</svg>\n"])


def replayed(name: str, label: str, last: int) -> list[float]:
    """A curve of the replayed run of this name, up to a step."""
    [run] = [run for run in runs_of(REPLAYS.read_text(encoding="utf-8")) if run["name"] == name]
    [points] = [curve["points"] for curve in run["curves"] if curve["label"] == label]
    return [value for step, value in points if step <= last]


def spoken(values: Sequence[float], *steps: int) -> str:
    """Values at some steps, in words: "0.45 at step 1, 0.99 at step 19"."""
    return ", ".join(f"{values[step - 1]:.3g} at step {step}" for step in steps)


def over_steps(last: int, *others: int) -> dict[float, str]:
    """The marks of a horizontal axis of steps."""
    return {step: str(step) for step in (1, *others, last)}


def smooth_or_stop() -> Curves:
    """Lesson 00: a reward that has long reached its maximum."""
    reward = replayed("Each tag pays once, and a correct answer pays 2", REWARD, 38)
    alt = f"A curve of the mean reward over 38 steps; the maximum is 3: {spoken(reward, 1, 6, 10, 15, 19, 23, 31, 38)}."
    return Curves([Panel("mean reward (at most 3)", {"": reward}, 3, 3)], "step", over_steps(38, 10, 20, 30), alt)


def above_the_line() -> Curves:
    """Lesson 02: one of two rewards passes what a clean completion earns."""
    runs = {key: replayed(name, REWARD, 26) for key, name in (("A", "Every tag pays"), ("B", "Each tag pays once"))}
    a, b = (spoken(values, 1, 10, 19, 26) for values in runs.values())
    alt = f"Mean rewards of two runs over 26 steps. A clean completion earns 1. Run A: {a}. Run B: {b}."
    marks = over_steps(26, 5, 10, 15, 20)
    return Curves([Panel("mean reward; dotted: a clean completion", runs, 2, 1)], "step", marks, alt)


def two_ties() -> Curves:
    """Lesson 03: groups that are tied from the start, and groups that become tied."""
    names, most = ("The answer key is paid", "Each tag pays once, and a correct answer pays 2"), (1, 3)
    rewards = {
        key: [value / top for value in replayed(name, REWARD, 20)]
        for key, name, top in zip("AB", names, most, strict=True)
    }
    ties = {key: replayed(name, TIED, 20) for key, name in zip("AB", names, strict=True)}
    said = [
        f"Run {key}: reward {spoken(rewards[key], 1, 10, 20)}; tied groups {spoken(ties[key], 1, 10, 19)}."
        for key in "AB"
    ]
    alt = (
        f"Mean reward, as a share of its maximum, and share of tied groups of two runs over 20 steps. {' '.join(said)}"
    )
    panels = [Panel("mean reward (share of its maximum)", rewards, 1), Panel("share of tied groups", ties, 1)]
    return Curves(panels, "step", over_steps(20, 5, 10, 15), alt)


def up_to_the_limit() -> Curves:
    """Lesson 04: a reward that rises with the length."""
    reward, length = (replayed("Length pays", label, 13) for label in (REWARD, LENGTH))
    alt = (
        "Mean reward, at most 3, and mean length of a run over 13 steps. "
        f"Reward: {spoken(reward, 1, 6, 9, 10, 11, 13)}. "
        f"Length in tokens, with a limit of 64: {spoken(length, 1, 6, 9, 10, 11, 13)}."
    )
    panels = [
        Panel("mean reward (at most 3)", {"": reward}, 3, 3),
        Panel("mean length (limit: 64)", {"": length}, 64, 64),
    ]
    return Curves(panels, "step", over_steps(13, 5, 10), alt)


def partial_credit() -> Curves:
    """Lesson 05: correct answers are still rare when the partial credit rises."""
    labels = {"correct": "correctness_reward", "keys": "keys_reward"}
    lines = {name: replayed("A real model, partial credit", label, 14) for name, label in labels.items()}
    said = [f"{name}: {spoken(values, 1, 5, 8, 11, 14)}" for name, values in lines.items()]
    alt = f"Shares of completions over 14 steps. With the {said[1]}. {said[0].capitalize()}."
    parts = [Panel(f"share: {name}", {"": lines[name]}, 1) for name in ("correct", "keys")]
    return Curves(parts, "step", over_steps(14, 5, 10), alt)


def tries() -> Curves:
    """Lesson 06: pass@k before and after training, as lesson 15 printed it."""
    printed = stored_text(CONTROLS)
    ks = [int(k) for k in re.search(r"^ +((?:pass@\d+ *)+)$", printed, re.MULTILINE)[1].replace("pass@", "").split()]
    rows = {
        name: [float(value) for value in re.findall(r"\d\.\d\d", found)]
        for name, found in re.findall(r"^(before|correctness) +((?:\d\.\d\d *){6})$", printed, re.MULTILINE)
    }
    lines = {"A": rows["before"], "B": rows["correctness"]}
    said = [f"{key}: " + ", ".join(f"{v:g} at k = {k}" for k, v in zip(ks, lines[key], strict=True)) for key in "AB"]
    alt = f"pass@k of a model before training (A) and after it (B). {'. '.join(said)}."
    marks = {place: str(k) for place, k in enumerate(ks, 1)}
    return Curves([Panel("pass@k; A: before training, B: after", lines, 1)], "k", marks, alt)


def clipped() -> Curves:
    """Lesson 08: the loss of a token with a negative advantage, against its ratio."""
    ratios = [place / 10 for place in range(17)]
    loss = [max(ratio, min(max(ratio, 0.8), 1.2)) for ratio in ratios]
    alt = (
        "The loss of one token against its ratio: a horizontal line at 0.8 up to a ratio of 0.8, "
        "then a line that rises to 1.6 at a ratio of 1.6."
    )
    marks = {1 + 10 * ratio: f"{ratio:g}" for ratio in (0, 0.4, 0.8, 1.2, 1.6)}
    return Curves([Panel("loss of the token", {"": loss}, 1.6)], "ratio", marks, alt)


def first_stage() -> Curves:
    """Lesson 09: a first stage that has nothing left to teach."""
    reward, ties = (replayed("Each tag pays once", label, 38) for label in (REWARD, TIED))
    alt = (
        "A stage that pays for the format alone, over 38 steps. "
        f"Mean reward, at most 1: {spoken(reward, 1, 6, 10, 19, 30, 38)}. "
        f"Share of tied groups: {spoken(ties, 1, 6, 10, 19, 30, 38)}."
    )
    panels = [Panel("mean reward (at most 1)", {"": reward}, 1), Panel("share of tied groups", {"": ties}, 1)]
    return Curves(panels, "step", over_steps(38, 10, 20, 30), alt)


DRAWN = {
    "quiz-00": smooth_or_stop,
    "quiz-02": above_the_line,
    "quiz-03": two_ties,
    "quiz-04": up_to_the_limit,
    "quiz-05": partial_credit,
    "quiz-06": tries,
    "quiz-08": clipped,
    "quiz-09": first_stage,
}


def main() -> None:
    page = QUIZ.read_text(encoding="utf-8")
    for name, draw in DRAWN.items():
        curves = draw()
        (FIGURES / f"{name}.svg").write_text(svg(curves), encoding="utf-8")
        page = re.sub(
            rf"!\[.*\]\(figures/{name}\.svg\)", lambda _, c=curves, n=name: f"![{c.alt}](figures/{n}.svg)", page
        )
    QUIZ.write_text(page, encoding="utf-8")
    print(f"wrote {', '.join(DRAWN)} into docs/figures, and their alt texts into docs/quiz.md")


if __name__ == "__main__":
    main()
