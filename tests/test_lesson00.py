"""Lesson 00 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "00_start.ipynb"


def rates(text: str) -> tuple[float, float]:
    """Strict accuracy before and after, from the comparison that the lesson prints."""
    line = re.search(r"^in form and right +([01]\.\d+) .* ([01]\.\d+) \(", text, re.MULTILINE)
    return float(line[1]), float(line[2])


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]


def test_the_committed_lesson_shows_a_success():
    text = said(nbformat.read(LESSON, as_version=4))
    before, after = rates(text)
    assert before < 0.4 < 0.7 < after
    assert re.search(r"^by form \+0\.\d+ .*, by answers ", text, re.MULTILINE)  # the prose below reads this line
    assert "improvement shown: True" in text


@pytest.mark.upgrade
def test_every_override_arrives_and_the_other_family_learns_too(tmp_path):
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "20", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "This machine: cpu (you asked for it)" in result.stdout
    assert "20/20" in result.stdout
    before, after = rates(result.stdout)
    assert before + 0.2 < after
    committed = said(nbformat.read(LESSON, as_version=4))
    question = re.compile(r"^What is \d+ \+ \d+\?", re.MULTILINE)
    assert question.findall(result.stdout) != question.findall(committed)


def test_a_fifth_word_in_exercise_1_is_wrong():
    cells = nbformat.read(LESSON, as_version=4).cells
    names = {"first_choice": list}
    exec(next(cell.source for cell in cells if "def right_of" in cell.source), names)
    assert names["right_of"](names["CHOICE"]) == [True] * 4
    assert names["right_of"]([*names["CHOICE"], "dpo"]) != [True] * 4
    assert names["right_of"](names["CHOICE"][:3]) != [True] * 4
