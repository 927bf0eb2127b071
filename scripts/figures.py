"""Draw the README's figure from what lesson 02 stored, with its alt text and caption.

    python scripts/figures.py     # or: make figures

Run it after `make notebooks`. Every number is read from the stored outputs of notebooks/02_rewards.ipynb, so none of
them can differ from the lesson. A test fails when README or figure are older than the lesson.
"""

import re
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot
import nbformat

ROOT = Path(__file__).parent.parent
LESSON, README = ROOT / "notebooks" / "02_rewards.ipynb", ROOT / "README.md"
FIGURE = ROOT / "docs" / "figures" / "hack.svg"
COLUMNS = ("Flawed reward:\nevery tag pays", "Fixed reward:\neach tag pays once", "Fixed reward\nand correctness")
#: Blue and vermilion of the Okabe-Ito palette, which color-blind readers can tell apart.
BLUE, VERMILION = "#0072B2", "#D55E00"
CURVE = re.compile(r"reward goes from (\S+) to (\S+) over (\d+) steps")
RATES = re.compile(r"^.{17} *[\d.]+ +([\d.]+) \(([\d.]+) to ([\d.]+)\)$", re.MULTILINE)
BLOCK = re.compile(r"(?<=<!-- written by make figures -->\n).*?(?=<!-- end -->)", re.DOTALL)


class Run(NamedTuple):
    """One run: reward at the first and the last step; strict held-out accuracy and its interval, before and after."""

    reward: tuple[str, str]
    accuracy: tuple[tuple[str, str, str], tuple[str, str, str]]

    @property
    def change(self) -> str:
        """What happened to the accuracy, in words."""
        before, after = (rates[0] for rates in self.accuracy)
        return f"{'rose' if float(after) > float(before) else 'fell'} from {before} to {after}"


def stored_text() -> str:
    """Everything that the lesson's cells printed, and the alt texts of its figures."""
    outputs = [output for cell in nbformat.read(LESSON, as_version=4).cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output["data"]["text/plain"] for output in outputs)


def read_runs(text: str) -> tuple[list[Run], int]:
    """The three runs of the lesson, and their number of steps."""
    curves, (before, *after) = CURVE.findall(text), RATES.findall(text)
    if len(curves) != 3 or len(after) != 3:
        raise SystemExit(f"error: expected 3 runs in {LESSON.name}, found {len(curves)} curves and {len(after)} rows")
    runs = [Run((first, last), (before, rates)) for (first, last, _), rates in zip(curves, after, strict=True)]
    return runs, int(curves[0][2])


def hacked_sample(text: str) -> str:
    """The beginning of what the policy writes after training on the flawed reward."""
    return re.search(r"^<reasoning>[^\n]{24,36}(?=<reas)", text, re.MULTILINE)[0]


def alt_text(runs: list[Run], steps: int) -> str:
    """The figure in words."""
    titles = [" ".join(title.split()).replace(":", ",") for title in COLUMNS]
    parts = [
        f"{title}: reward from {run.reward[0]} to {run.reward[1]}, accuracy {run.change}"
        for title, run in zip(titles, runs, strict=True)
    ]
    return f"Three training runs of {steps} steps. {'. '.join(parts)}."


def caption(runs: list[Run], sample: str) -> str:
    """What the figure shows."""
    flawed, fixed, both = runs
    first, last = flawed.reward
    return (
        "[Lesson 02](notebooks/02_rewards.ipynb) trains the same base model on three different rewards. The flawed\n"
        f"reward pays for every tag, such as `<answer>`. It rose from {first} to {last} while held-out accuracy\n"
        f"{flawed.change}: after training, the model writes\n"
        f"`{sample}…`. With the fixed reward, accuracy\n"
        f"{fixed.change}; with correctness added, it {both.change}.\n"
        "Lines join the first and the last value; bars are 95 % intervals. Each run is one seed; other seeds differ."
    )


def draw(runs: list[Run], steps: int):
    """Reward above, accuracy with its interval below, one column for each run."""
    figure, rows = matplotlib.pyplot.subplots(2, 3, figsize=(9, 5), sharex=True, sharey="row", layout="constrained")
    for upper, lower, title, run in zip(*rows, COLUMNS, runs, strict=True):
        values = [tuple(map(float, rates)) for rates in run.accuracy]
        middle, low, high = zip(*values, strict=True)
        below = [at - bound for at, bound in zip(middle, low, strict=True)]
        above = [bound - at for at, bound in zip(middle, high, strict=True)]
        upper.plot((0, 1), [float(value) for value in run.reward], color=VERMILION, marker="s", linewidth=3)
        lower.errorbar((0, 1), middle, [below, above], color=BLUE, marker="o", linewidth=3, capsize=4, elinewidth=1.5)
        label(upper, run.reward)
        label(lower, [rates[0] for rates in run.accuracy])
        upper.set_title(title, fontweight="bold")
    rows[0][0].set(ylabel="reward", ylim=(0, 4.6), xlim=(-0.5, 1.5))
    rows[1][0].set(ylabel="held-out accuracy", ylim=(-0.05, 1.22), yticks=(0, 0.5, 1))
    rows[1][0].set_xticks((0, 1), ("before", f"{steps} steps"))
    return figure


def label(axes, values) -> None:
    """Write each value above its point, and off the line."""
    for x, value in enumerate(values):
        place = {"xytext": (0, 10) if x else (-18, 10), "textcoords": "offset points"}
        axes.annotate(value, (x, float(value)), ha="center", fontweight="bold", **place)
    axes.grid(alpha=0.3)


def block(runs: list[Run], steps: int, sample: str) -> str:
    """The part of the README that this script writes."""
    return f"![{alt_text(runs, steps)}](docs/figures/hack.svg)\n\n{caption(runs, sample)}\n"


def main() -> None:
    text = stored_text()
    runs, steps = read_runs(text)
    matplotlib.use("svg")
    matplotlib.rcParams |= {"font.size": 12, "svg.hashsalt": "hack", "savefig.facecolor": "white"}
    metadata = {"Date": None, "Description": alt_text(runs, steps)}
    draw(runs, steps).savefig(FIGURE, metadata=metadata)
    page = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda _: block(runs, steps, hacked_sample(text)), page), encoding="utf-8")
    print(f"wrote {FIGURE.relative_to(ROOT)} and the README's caption")


if __name__ == "__main__":
    main()
