"""Student copies record which exercises were solved, on this machine only; lessons record nothing."""

import nbformat
import pytest
from course import ROOT, cli

from grpo_utils import check_exercise
from grpo_utils.__main__ import without_solutions
from grpo_utils.exercises import RESULTS, exercise_table

CASES = [((2,), 4)]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(name, function, lesson):
    return check_exercise(name, function, CASES, [(2, "Double it.")], lesson=lesson)


def test_the_table_counts_the_checks_until_an_exercise_was_solved(folder):
    check("Exercise 2", lambda x: 1 / 0, "03_grpo_lora")
    for answer in (lambda x: None, lambda x: x, lambda x: 2 * x, lambda x: 3 * x):  # not attempted, wrong, right, wrong
        check("Exercise 1", answer, "00_start")
    shown = cli("exercises", ".", cwd=folder).stdout.splitlines()
    assert [line.split() for line in shown[:2]] == [
        ["00_start", "Exercise", "1:", "correct", "at", "check", "2"],
        ["03_grpo_lora", "Exercise", "2:", "not", "yet,", "1", "check"],
    ]
    assert shown[2].startswith("1 correct of 2 attempted")


def test_a_line_that_was_not_written_to_its_end_is_left_out(folder):
    check("Exercise 1", lambda x: 2 * x, "00_start")
    with (folder / RESULTS).open("a", encoding="utf-8") as records:
        records.write('{"lesson": "00_st')
    assert "1 correct of 1 attempted" in exercise_table(folder)


def test_the_answer_is_the_same_with_and_without_a_record(folder):
    for function in (lambda x: None, lambda x: x, lambda x: 2 * x):
        assert check("Exercise 1", function, "00_start") == check("Exercise 1", function, "")


def test_a_lesson_records_nothing_and_the_command_says_so(folder):
    check("Exercise 1", lambda x: 2 * x, "")
    done = cli("exercises", cwd=folder)
    assert not list(folder.iterdir())
    assert done.returncode == 1 and "no folder 'outputs/workshop'" in done.stderr


@pytest.mark.parametrize("here", [".", "outputs", "outputs/workshop", "outputs/workshop/docs"])
def test_the_results_are_found_from_the_course_and_from_a_terminal_in_the_copies(folder, monkeypatch, here):
    copies = folder / "outputs" / "workshop"
    (copies / "docs").mkdir(parents=True)
    monkeypatch.chdir(folder / here)
    assert exercise_table().startswith("No exercise was attempted in")
    monkeypatch.chdir(copies)
    check("Exercise 1", lambda x: None, "00_start")
    assert not list(copies.glob("outputs/*"))
    check("Exercise 1", lambda x: 2 * x, "00_start")
    monkeypatch.chdir(folder / here)
    assert "1 correct of 1 attempted" in exercise_table() and str(folder) not in exercise_table()


def test_copies_in_another_place_are_found_from_inside(folder):
    check("Exercise 1", lambda x: 2 * x, "00_start")
    assert "(outputs/exercises.jsonl)" in exercise_table()


def test_a_run_from_the_terminal_leaves_out_the_solutions_and_nothing_else(folder):
    lesson = ROOT / "notebooks" / "03_grpo_lora.ipynb"
    whole, run = (nbformat.read(path, as_version=4).cells for path in (lesson, without_solutions(lesson, folder)))
    kept = [cell.source for cell in whole if "solution" not in cell.metadata.get("tags", [])]
    assert [cell.source for cell in run] == kept and len(kept) < len(whole)
