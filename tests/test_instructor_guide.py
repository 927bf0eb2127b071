"""The guide's plans add up, and what it says about the lessons agrees with them."""

import random
import re
import sys
from itertools import pairwise

import nbformat
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from build_site import minutes_of

GUIDE = (ROOT / "docs" / "instructor-guide.md").read_text(encoding="utf-8")
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def part(heading: str) -> str:
    return re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", GUIDE, flags=re.MULTILINE | re.DOTALL)[1]


def sections(path) -> dict[int, str]:
    """The numbered headings of a lesson."""
    text = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "markdown")
    return {int(number): title for number, title in re.findall(r"^## (\d+)\. (.+)", text, flags=re.MULTILINE)}


def stored_text(path) -> str:
    """What a lesson says and what its stored run printed."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output.get("text", "") for cell in cells for output in cell.get("outputs", [])]
    alts = [str(output.get("metadata")) for cell in cells for output in cell.get("outputs", [])]
    return "\n".join([*(cell.source for cell in cells), *outputs, *alts])


def clock(rows: list[tuple[str, str, str]]) -> list[int]:
    """The minutes between the end of each row and the start of the next; all 0 in a complete plan."""
    times = [(int(hour) * 60 + int(minute), int(length)) for hour, minute, length in rows]
    return [start - before - length for (before, length), (start, _) in pairwise(times)]


@pytest.mark.parametrize("heading, whole", [("90 minutes", 90), ("Half a day", 240)])
def test_a_plan_fills_its_time_without_gap_or_overlap(heading, whole):
    found = re.findall(r"^\| (\d+) \| (\d+):(\d\d) \|", part(heading), flags=re.MULTILINE)
    rows = [(hour, minute, length) for length, hour, minute in found]
    assert sum(int(length) for *_, length in rows) == whole and set(clock(rows)) == {0}


def test_both_days_go_by_the_clock():
    days = re.split(r"^\| day 2", part("Two days"), flags=re.MULTILINE)
    for day in days:
        rows = re.findall(r"^\| (\d+):(\d\d) \| (\d+) \|", day, flags=re.MULTILINE)
        assert len(rows) > 5 and set(clock(rows)) == {0}


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_minutes_and_exercises_are_those_of_the_lesson(path):
    book = nbformat.read(path, as_version=4)
    row = re.search(rf"^\| \[\d\d .*{path.name}\) \| (.+?) \| (\d) \|", GUIDE, flags=re.MULTILINE)
    minutes = minutes_of(book).removeprefix("about ")
    assert row[1].split(" minute")[0] == minutes.split(" minute")[0]
    assert ("measured" in row[1]) == ("measured" in minutes)
    assert int(row[2]) == sum("solution" in cell.metadata.get("tags", []) for cell in book.cells)


#: What a section has to be about, where a plan names it.
PLANNED = {
    "00": {2: "See how GRPO learns", 3: "Train a model"},
    "02": {3: "naive reward", 4: "probe", 5: "Hack", 6: "Watch the policy", 7: "Fix the reward"},
    "03": {4: "rewards", 7: "base model", 9: "log", 10: "trained policy", 12: "does not show"},
    "04": {2: "healthy", 7: "truncation"},
    "06": {3: "one question", 4: "interval", 5: "prompt with itself"},
}


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_plan_names_sections_that_the_lesson_has(path):
    titles, number = sections(path), path.stem[:2]
    assert all(words in titles[section] for section, words in PLANNED.get(number, {}).items())
    listed = re.findall(rf"Lesson {number}, sections? (\d+(?:(?:,| and| to) \d+)*)", GUIDE)
    assert {int(section) for numbers in listed for section in re.findall(r"\d+", numbers)} <= set(titles)
    assert bool(listed) == (number in PLANNED)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_lesson_has_a_drawing_questions_and_answers_with_its_numbers(path):
    advice = re.search(rf"^### {path.stem[:2]} .+?(?=^###? )", GUIDE, flags=re.MULTILINE | re.DOTALL)[0]
    assert all(f"**{word}" in advice for word in ("Draw**", "Ask**", "Exercise 1:**", "Exercise 2:**"))
    numbers = re.findall(r"-?\d+\.\d+|\d{3,}", advice)
    stored = stored_text(path)
    assert not [number for number in numbers if number not in stored]


def test_the_order_of_lesson_04s_faults_is_that_of_seed_0():
    faults = random.Random(1).sample(["dead_reward", "length_hacking", "no_learning"], k=3)
    found = re.search(r"a is `(\w+)`, b `(\w+)` and c `(\w+)`", " ".join(GUIDE.split()))
    assert list(found.groups()) == faults


def test_it_is_short_and_says_that_it_was_never_used():
    assert len(GUIDE.split()) <= 3200 and "**No class has been taught with it yet.**" in " ".join(GUIDE.split())
