"""Quote lesson 14's stored run in lesson 03: a real model's answer to one order, before, early in and after training.

In a source, `{{transcript}}` is the place of the quote. `make notebooks` reads it from the built notebook of lesson 14.
"""

import re

import nbformat
from address import ROOT

REAL = ROOT / "notebooks" / "14_real_model.ipynb"
MARK = "{{transcript}}"
ANSWER = re.compile(r"^after (\d+) steps: ", re.MULTILINE)
ACCURACY = re.compile(r"^greedy +([\d.]+) +([\d.]+) ", re.MULTILINE)


def with_transcript(cell: str) -> str:
    """The text of a Markdown cell, with the quote in its place."""
    return cell.replace(MARK, quote(stored_text())) if MARK in cell else cell


def stored_text() -> str:
    """Everything that lesson 14 printed in its stored run."""
    cells = nbformat.read(REAL, as_version=4).cells
    return "\n".join(output.get("text", "") for cell in cells for output in cell.get("outputs", []))


def quote(text: str) -> str:
    """Markdown with the first order, three answers to it, and greedy accuracy on all held-out orders."""
    order, answers = first_transcript(text)
    before, after = ACCURACY.search(text).groups()
    first, second, *_, last = answers.items()
    lines = [f"order: {order}", *(f"after {step} steps: {answer}" for step, answer in (first, second, last))]
    return "```text\n{}\n```\n\n{}".format(
        "\n\n".join(lines),
        "(Source: the stored run of [lesson 14](14_real_model.ipynb), which also shows the steps between. On all\n"
        f"held-out orders, greedy accuracy rose from {before} to {after}, with one seed.)",
    )


def first_transcript(text: str) -> tuple[str, dict[int, str]]:
    """The first order that the lesson shows, and the answer to it after each number of steps."""
    said, *pieces = ANSWER.split(text)
    order = said.strip().splitlines()[-1].strip()
    steps, answers = [int(step) for step in pieces[::2]], pieces[1::2]
    shown = steps.index(0, 1)  # the second order starts at step 0 again
    answers[shown - 1] = answers[shown - 1].strip().rpartition("\n\n")[0]  # without that order
    return order, {step: answer.strip() for step, answer in zip(steps[:shown], answers[:shown], strict=True)}
