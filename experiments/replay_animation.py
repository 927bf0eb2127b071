"""Draw some steps of a replayed run as an SVG that moves: the question, the answer that is paid most, and two numbers.

It needs no script, follows the reader's light or dark mode, and stands still where a reader wants no motion. It ends
after two rounds with its last step. Its letters can be read on a phone, where it is 360 pixels wide.
"""

import re
from html import escape

SECONDS, ROUNDS = 2, 2  # each step is shown for so long, the last one twice as long
TITLE = "A policy learns to cheat"
STYLE = """
svg { --paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --line: #d1d9e0; --reward: #b34a00; --correct: #1b5fa7; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #3d444d; --reward: #f5a15c; --correct: #7fb6f2; }
}
text { font: 20px system-ui, sans-serif; fill: var(--ink); } .quiet { fill: var(--quiet); }
.question { font-weight: 600; font-size: 24px; } .mark { font-size: 40px; font-weight: 700; fill: var(--correct); }
.said { font: 20px ui-monospace, monospace; white-space: pre; } .tag { fill: var(--reward); font-weight: 600; }
.number { font-size: 54px; font-weight: 700; } .reward { fill: var(--reward); } .correct { fill: var(--correct); }
.line { stroke: var(--line); }
.frame { visibility: hidden; animation: show %(whole)ds step-end %(rounds)d; }
.last { animation-name: last; animation-fill-mode: forwards; }
@keyframes show { 0%% { visibility: visible; } %(share)g%% { visibility: hidden; } 100%% { visibility: hidden; } }
@keyframes last { 0%% { visibility: hidden; } %(start)g%% { visibility: visible; } 100%% { visibility: visible; } }
@media (prefers-reduced-motion: reduce) { .frame { animation: none; } .last { visibility: visible; } }
"""
WIDTH, HEIGHT, LEFT, MIDDLE = 480, 372, 20, 250
LINES, COLUMNS = 5, 36


def animation(run: dict, about: str, steps: list[int], keys: dict[str, str]) -> str:
    """The picture of a run, as the page's data has it.

    Args:
        run: one run of the page.
        about: what its reward pays for.
        steps: the steps to show, one after the other.
        keys: labels of two curves: of the ``reward``, and of the share that is ``correct``, which is a reward too.
    """
    found = {step["step"]: step for step in run["steps"]}
    frames = "".join(frame(number, run, found[step], steps, keys) for number, step in enumerate(steps))
    whole = SECONDS * (len(steps) + 1)
    share = dict(share=100 * SECONDS / whole, start=100 - 200 * SECONDS / whole)
    said = f"{TITLE}. {about}. {run['ending']}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'role="img">'
        f"<title>{escape(said)}</title><style>{STYLE % (dict(whole=whole, rounds=ROUNDS) | share)}</style>"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="var(--paper)"/>'
        f'<text x="{LEFT}" y="34" class="quiet">{escape(about)}</text>'
        f'<line class="line" x1="{LEFT}" x2="{WIDTH - LEFT}" y1="258" y2="258"/>'
        f'<text x="{LEFT}" y="290" class="quiet">mean pay of 64</text>'
        f'<text x="{MIDDLE}" y="290" class="quiet">right, of 64</text>{frames}</svg>\n'
    )


def frame(number: int, run: dict, step: dict, steps: list[int], keys: dict[str, str]) -> str:
    """What is shown at one step: the completion that was paid most, and the two numbers of all completions."""
    rows = [(row, group["prompt"]) for group in step["groups"] for row in group["rows"]]
    (text, _, _, paid, rewards, _), prompt = max(rows, key=lambda pair: pair[0][3])
    right = rewards[run["rewards"].index(keys["correct"])] == 1
    question = [line for line in run["texts"][prompt].splitlines() if line.strip() not in ("", "assistant")][-1]
    curves = {curve["label"]: dict(map(tuple, curve["points"])) for curve in run["curves"]}
    values = {kind: curves[label][step["step"]] for kind, label in keys.items()}
    said = "".join(
        f'<text class="said" x="{LEFT}" y="{122 + 30 * place}">{tinted(line)}</text>'
        for place, line in enumerate(lines(run["texts"][text]))
    )
    done = (WIDTH - 2 * LEFT) * (number + 1) / len(steps)
    last = " last" * (number == len(steps) - 1)
    delay = "" if last else f' style="animation-delay: {number * SECONDS}s"'
    return (
        f'<g class="frame{last}"{delay}>'
        f'<text x="{WIDTH - LEFT}" y="34" text-anchor="end">step {step["step"]}</text>'
        f'<text x="{LEFT}" y="80" class="question">{escape(question)}</text>'
        f'<text x="{WIDTH - LEFT}" y="80" class="question reward" text-anchor="end">paid {paid:.2f}</text>'
        f'<text x="{WIDTH - LEFT - 140}" y="84" class="mark" text-anchor="end">{"✓" if right else "✗"}</text>{said}'
        f'<rect x="{LEFT}" y="256" width="{done:.0f}" height="4" fill="var(--quiet)"/>'
        f'<text x="{LEFT}" y="350" class="number reward">{values["reward"]:.2f}</text>'
        f'<text x="{MIDDLE}" y="350" class="number correct">{values["correct"]:.0%}</text></g>'
    )


def lines(text: str) -> list[str]:
    """A completion in at most so many lines, broken between tags and words.

    >>> lines("<reasoning>2 + 2 = 4</reasoning><answer>4</answer>")
    ['<reasoning>2 + 2 = 4</reasoning>', '<answer>4</answer>']
    """
    found = [""]
    for part in re.findall(r"<[^<>\s]{1,40}>|\s+|[^\s<]+|<", text):
        if len(found[-1] + part) > COLUMNS:
            found.append("")
        found[-1] += part[:COLUMNS]
    kept = [line.strip() for line in found[:LINES]]
    return [*kept[:-1], f"{kept[-1][: COLUMNS - 2]} …"] if len(found) > LINES else kept


def tinted(line: str) -> str:
    """A line with its tags in the color of what is paid."""
    parts = re.split(r"(<[^<>\s]{1,40}>)", line)
    return "".join(
        f'<tspan class="tag">{escape(part)}</tspan>' if place % 2 else escape(part) for place, part in enumerate(parts)
    )
