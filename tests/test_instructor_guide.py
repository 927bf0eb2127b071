"""What the guide says about the lessons agrees with them: exercises, sections and numbers."""

import random
import re
from itertools import pairwise

import nbformat
import pytest
from conftest import ROOT
from lessons import alt_texts, said

GUIDE = (ROOT / "docs" / "instructor-guide.md").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def sections(path) -> dict[int, str]:
    """The numbered headings of a lesson."""
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    return {int(number): title for number, title in re.findall(r"^## (\d+)\. (.+)", text, flags=re.MULTILINE)}


def stored_text(path) -> str:
    """What a lesson says, and what its stored run printed and showed."""
    book = nbformat.read(path, as_version=4)
    return "\n".join([*(cell.source for cell in book.cells), said(book), *alt_texts(book)])


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_exercises_are_those_of_the_lesson(path):
    book = nbformat.read(path, as_version=4)
    row = re.search(rf"^\| \[\d\d .*{path.name}\) \| .+? \| (\d) \|", GUIDE, flags=re.MULTILINE)
    assert int(row[1]) == sum("solution" in cell.metadata.get("tags", []) for cell in book.cells)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_plan_names_sections_that_the_lesson_has(path):
    titles, number = sections(path), path.stem[:2]
    listed = re.findall(rf"Lesson {number}, sections? (\d+(?:(?:,| and| to) \d+)*)", GUIDE)
    assert {int(section) for numbers in listed for section in re.findall(r"\d+", numbers)} <= set(titles)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_the_advice_on_a_lesson_has_its_numbers(path):
    advice = re.search(rf"^### {path.stem[:2]} .+?(?=^###? )", GUIDE, flags=re.MULTILINE | re.DOTALL)[0]
    numbers = re.findall(r"-?\d+\.\d+|\d{3,}", advice)
    stored = stored_text(path)
    assert not [number for number in numbers if number not in stored]


def test_the_order_of_lesson_04s_faults_is_that_of_seed_0():
    faults = random.Random(1).sample(["dead_reward", "length_hacking", "no_learning"], k=3)
    found = re.search(r"a is `(\w+)`, b `(\w+)` and c `(\w+)`", " ".join(GUIDE.split()))
    assert list(found.groups()) == faults


def minutes_of(clock: str) -> int:
    hours, minutes = clock.split(":")
    return 60 * int(hours) + int(minutes)


@pytest.mark.parametrize(
    ("heading", "row", "in_all"),
    [
        ("90 minutes", r"^\| (?P<minutes>\d+) \| (?P<start>\d+:\d+) \|", 90),
        ("Half a day", r"^\| (?P<minutes>\d+) \| (?P<start>\d+:\d+) \|", 240),
        ("Two days", r"^\| (?P<start>\d+:\d+) \| (?P<minutes>\d+) \|", 455 + 450),
    ],
)
def test_each_part_of_a_plan_starts_when_the_one_before_it_ends(heading, row, in_all):
    plan = re.search(rf"^## {heading}\n(.+?)(?=^## )", GUIDE, re.MULTILINE | re.DOTALL)[1]
    parts = [(minutes_of(part["start"]), int(part["minutes"])) for part in re.finditer(row, plan, re.MULTILINE)]
    first = parts[0][0]
    gaps = [start for (begun, took), (start, _) in pairwise(parts) if start not in (begun + took, first)]
    assert parts and not gaps and sum(took for _, took in parts) == in_all
