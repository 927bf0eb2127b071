"""Write the figure with its caption into docs/rewards.md, and what `make run` prints into the README.

    python scripts/figures.py     # or: make figures

They come from the stored outputs of lessons 02 and 03. Run it after `make notebooks`. A test fails if the README or the
figure is older than the lessons.
"""

import re
from pathlib import Path
from typing import NamedTuple

import matplotlib
import nbformat
from address import ROOT
from svg import save_svg

from grpo_utils.plots.runs import reward_and_truth

LESSON, RUN_LESSON = ROOT / "notebooks" / "02_rewards.ipynb", ROOT / "notebooks" / "03_grpo_lora.ipynb"
README, REWARDS = ROOT / "README.md", ROOT / "docs" / "rewards.md"
FIGURE = ROOT / "docs" / "figures" / "hack.svg"
COLUMNS = ("Flawed reward:\nevery tag pays", "Fixed reward:\neach tag pays once", "Fixed reward\nand correctness")
#: A line of the lesson's table of curves: every third step, or a run's values at these steps.
STEPS, CURVE = re.compile(r"^step +([\d ]+)$", re.MULTILINE), r"^.+, {} +([\d. ]+)$"
RATES = re.compile(r"^\w+ +[\d.]+ +([\d.]+) \(([\d.]+) to ([\d.]+)\)$", re.MULTILINE)
#: A held-out prompt of lesson 03, with the policy's answers before and after training.
SAMPLE = re.compile(r"^What is .*gold: (\d+)\n  before: '(.*)'\n  after:  '(.*)'$", re.MULTILINE)
#: The part of a page that this script writes.
BLOCK = re.compile(r"(?<=<!-- written by make figures -->\n).*?(?=<!-- end -->)", re.DOTALL)


class Run(NamedTuple):
    """One run: its curves; strict held-out accuracy and its interval, before and after."""

    reward: list[float]
    correct: list[float]
    accuracy: tuple[list[float], list[float]]

    @property
    def paid(self) -> str:
        """The change of the reward, in words."""
        return f"from {self.reward[0]:.2f} to {self.reward[-1]:.2f}"

    @property
    def reached(self) -> str:
        """The accuracy after training and its interval, in words."""
        rate, low, high = self.accuracy[1]
        return f"{rate:.1%} (95% interval {low:.1%} to {high:.1%})"


def stored_text(lesson: Path = LESSON) -> str:
    """Everything that the lesson's cells printed, and the alt texts of its figures."""
    outputs = [output for cell in nbformat.read(lesson, as_version=4).cells for output in cell.get("outputs", [])]
    return "\n".join(output.get("text") or output["data"]["text/plain"] for output in outputs)


def read_runs(text: str) -> tuple[list[Run], list[int]]:
    """The three runs of the lesson, and the steps at which it printed their curves."""
    steps = [int(step) for step in STEPS.search(text)[1].split()]
    rewards, correct = (
        [[float(value) for value in line.split()] for line in re.findall(CURVE.format(what), text, re.MULTILINE)]
        for what in ("reward", "correct")
    )
    before, *after = ([float(rate) for rate in row] for row in RATES.findall(text))
    runs = [Run(*curves, (before, rates)) for *curves, rates in zip(rewards, correct, after, strict=True)]
    if len(runs) != len(COLUMNS):
        raise SystemExit(f"error: expected {len(COLUMNS)} runs in {LESSON.name}, found {len(runs)}")
    return runs, steps


def alt_text(runs: list[Run], steps: list[int]) -> str:
    """The figure in words."""
    titles = [" ".join(title.split()).replace(":", ",") for title in COLUMNS]
    parts = [
        f"{title}: reward {run.paid}, correct answers in training from {run.correct[0]:.2f} to {run.correct[-1]:.2f}"
        for title, run in zip(titles, runs, strict=True)
    ]
    return f"Curves of three training runs of {steps[-1]} steps. {'. '.join(parts)}."


def caption(runs: list[Run]) -> str:
    """What the first and the last column of the figure show; the lesson explains the one between."""
    flawed, _, both = runs
    return (
        "One model, three rewards, one run each ([lesson 02](../notebooks/02_rewards.ipynb)). While the flawed reward\n"
        f"rose {flawed.paid}, accuracy on 200 held-out prompts fell from {flawed.accuracy[0][0]:.1%} to "
        f"{flawed.reached};\nwith the fixed reward and one for correctness, it rose to {both.reached}. With a reward "
        "for the format alone, other\nseeds [end anywhere](../notebooks/15_controls.ipynb) between hardly any and most "
        "answers correct."
    )


def draw(runs: list[Run], steps: list[int]):
    """The lesson's figure, at the steps that the lesson printed."""
    return reward_and_truth({name: (run.reward, run.correct) for name, run in zip(COLUMNS, runs, strict=True)}, steps)


def block(runs: list[Run], steps: list[int]) -> str:
    """The figure with its text and caption."""
    return f"![{alt_text(runs, steps)}](figures/hack.svg)\n\n{caption(runs)}\n"


def corrected_sample(text: str) -> str:
    """The first prompt of lesson 03 with a formatted, wrong answer before training and a correct one after it."""
    for found in SAMPLE.finditer(text):
        gold, before, after = (f"<answer>{found[1]}</answer>", found[2], found[3])
        if "</answer>" in before and gold not in before and gold in after:
            return found[0]
    raise SystemExit(f"error: no sample in {RUN_LESSON.name} shows a wrong answer before and a correct one after")


def run_block(text: str) -> str:
    """What `make run` prints, shortened, and what it means."""
    progress = re.search(r"^GRPO 100%\S+ \S+ .*?, (reward=.*)$", text, re.MULTILINE)
    steps = re.search(r"^GRPO 100%\S+ (\d+)/", text, re.MULTILINE)[1]
    head, before, after = re.search(r"^( +n +format .*)\n(before .*)\n(after .*)$", text, re.MULTILINE).groups()
    lines = [
        *(re.search(rf"^{start}.*$", text, re.MULTILINE)[0] for start in ("Profile cpu:", "Model:")),
        f"GRPO 100%|██████████| {steps}/{steps} ..., {progress[1]}",
        *(corrected_sample(text), head, before, after),
    ]
    prompts, rates = before.split()[1], [row.split()[3] for row in (before, after)]
    formed = [row.split()[2] for row in (before, after)]
    return "```\n{}\n```\n\n{}\n".format(
        "\n".join(lines),
        f"Accuracy on {prompts} held-out addition problems rose from {rates[0]} to {rates[1]}, mostly because the "
        f"format rose from\n{formed[0]} to {formed[1]} ([measured](docs/results.md) on two CPU cores, seed 0). A "
        "calculator adds without training:\nthe task only shows how GRPO works.",
    )


def main() -> None:
    text = stored_text()
    runs, steps = read_runs(text)
    matplotlib.use("svg")
    matplotlib.rcParams["font.size"] = 11
    save_svg(draw(runs, steps), FIGURE, alt_text(runs, steps))
    for page, text in ((REWARDS, block(runs, steps)), (README, run_block(stored_text(RUN_LESSON)))):
        page.write_text(BLOCK.sub(lambda _, text=text: text, page.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"wrote {FIGURE.relative_to(ROOT)}, its caption and the run in the README")


if __name__ == "__main__":
    main()
