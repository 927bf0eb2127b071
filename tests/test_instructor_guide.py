"""The guide's plans add up, and what it says of the lessons is what they say."""

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


def clock(rows: list[tuple[str, str, str]]) -> list[int]:
    """Where a row begins, less where the row before ends, in minutes; 0 throughout in a sound plan."""
    times = [(int(hour) * 60 + int(minute), int(length)) for hour, minute, length in rows]
    return [start - before - length for (before, length), (start, _) in pairwise(times)]


@pytest.mark.parametrize("heading, whole", [("Plan A: 90 minutes", 90), ("Plan B: half a day", 240)])
def test_a_plan_fills_its_time_without_gap_or_overlap(heading, whole):
    found = re.findall(r"^\| (\d+) \| (\d+):(\d\d) \|", part(heading), flags=re.MULTILINE)
    rows = [(hour, minute, length) for length, hour, minute in found]
    assert sum(int(length) for *_, length in rows) == whole and set(clock(rows)) == {0}


def test_both_days_go_by_the_clock():
    days = re.split(r"^\| day 2", part("Plan C: two days"), flags=re.MULTILINE)
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
