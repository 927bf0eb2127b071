"""What the guide says about the lessons agrees with them: exercises, sections and numbers."""

import random
import re
from itertools import pairwise

import nbformat
import pytest
from course import ROOT
from grpo_check.replay.page import runs_of
from lessons import alt_texts, said
from minutes import with_seconds
from record_replays import PAGE, truth

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
    stored = stored_text(path) + (replayed() if "watch-it-cheat" in advice else "")
    assert not [number for number in numbers if number not in stored]


def hacked_run() -> tuple[dict[int, float], dict[int, float], dict[int, list[list]]]:
    """The mean reward, the share of correct answers, and the paid completions of each step of the replayed hack."""
    run = runs_of(PAGE.read_text(encoding="utf-8"))[0]
    curves = {curve["label"]: dict(curve["points"]) for curve in run["curves"]}
    rows = {int(step["step"]): [row for group in step["groups"] for row in group["rows"]] for step in run["steps"]}
    return curves["reward (total)"], curves[truth.__name__], rows


def replayed() -> str:
    """The numbers of the hacked run, with two decimals."""
    means, right, rows = hacked_run()
    paid = {row[3] for step in rows.values() for row in step}
    return " ".join(f"{value:.2f}" for value in (*means.values(), *right.values(), *paid))


def test_what_the_guide_says_of_the_hacked_run_is_in_its_replay():
    means, right, rows = hacked_run()
    said = " ".join(GUIDE.split())
    shares = {int(step): share for share, step in re.findall(r"(0\.\d\d) at step (\d+)", said)}
    assert len(shares) > 1 and all(f"{right[step]:.2f}" == share for step, share in shares.items())
    last, share = re.search(r"By step (\d+), when accuracy was (0\.\d\d)", said).groups()
    assert f"{right[int(last)]:.2f}" == share
    above = int(re.search(r"from step (\d+),? the mean[\w ]* is above 1\.0", said)[1])
    assert all((mean > 1) == (step >= above) for step, mean in means.items())
    overpaid = {step: [row[3] for row in paid if row[3] > 1] for step, paid in rows.items()}
    first, most = re.search(r"From step (\d+): one completion .*?earns (\d\.\d+)", said).groups()
    assert min(step for step, paid in overpaid.items() if paid) == int(first) and overpaid[int(first)] == [float(most)]
    step, count, each = re.search(r"At step (\d+), (\d+) of 64 completions earn (\d\.\d+)", said).groups()
    assert overpaid[int(step)] == [float(each)] * int(count) and len(rows[int(step)]) == 64


def test_the_numbers_in_answers_to_a_class_are_those_of_the_lesson_that_they_name():
    questions = re.search(r"^### Questions that a class may ask\n(.+?)^## ", GUIDE, re.MULTILINE | re.DOTALL)[1]
    found = 0
    for question in re.findall(r"^- (.+?)(?=^- |\Z)", questions, re.MULTILINE | re.DOTALL):
        lesson = re.search(r"[Ll]esson (\d\d)", question)
        for number in re.findall(r"\+?\d+\.\d\d|\d+ of\s+\d+", question) if lesson else ():
            stored = stored_text(next(path for path in LESSONS if path.stem.startswith(lesson[1])))
            assert " ".join(number.split()) in " ".join(stored.split()), question
            found += 1
    assert found >= 4


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
        ("Another 90 minutes: [^\\n]+", r"^\| (?P<minutes>\d+) \| (?P<start>\d+:\d+) \|", 90),
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


def test_no_run_of_a_plan_makes_a_slow_laptop_wait():
    assert with_seconds(GUIDE) == GUIDE
    runs = re.findall(r"^\| `\d\d_\w+`, [^|]+\| ([\d:]+) \| ([\d:]+) \| (\d+) \| (\d+);", GUIDE, re.MULTILINE)
    assert len(runs) >= 6 and len(runs) == len(re.findall(r"^\| `\d\d_", GUIDE, re.MULTILINE))
    for start, needed, seconds, slow in runs:
        assert 60 * minutes_of(start) + int(slow) <= 60 * minutes_of(needed) and int(slow) == 2 * int(seconds)
        for clock in (start, needed):
            assert f"| {clock} |" in GUIDE


def test_the_checklist_has_boxes_for_a_week_before_the_day_before_and_the_day():
    checklist = re.search(r"^## Checklist\n(.+?)^## ", GUIDE, re.MULTILINE | re.DOTALL)[1]
    parts = re.split(r"^A week before:|^The day before:|^On the day:", checklist, flags=re.MULTILINE)[1:]
    assert len(parts) == 3 and all(part.count("\n- [ ] ") >= 4 for part in parts)
