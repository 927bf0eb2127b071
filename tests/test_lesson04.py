"""Lesson 04 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "04_reading_a_run.ipynb"
#: Each failure of the lesson, in its order.
FAILURES = [
    "dead_reward",
    "no_gradient",
    "mode_collapse",
    "kl_explosion",
    "all_truncated",
    "no_eos",
    "string_prompt",
    "length_hacking",
]
MENDED = (
    "the form is learned now: True",
    "still dead: False",
    "correctness rises now: True",
    "hacked: False",
    "the largest loss is below 0.000001: True",
    "reward_std above 0.1 on average: True",
    "gradient zero at every step: True",
    "kl logged with beta = 0: False",
    "stopped early: True",
    "without a meaning: []",
)


def named(text: str) -> list[str]:
    """The faults that were named rightly and in time."""
    return re.findall(r"^(\w+): True, within 20 steps: True$", text, re.MULTILINE)


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=1200)
    assert result.returncode == 0, result.stdout[-4000:]


def test_the_committed_lesson_names_every_failure_and_mends_it():
    text = said(nbformat.read(LESSON, as_version=4))
    assert named(text) == FAILURES
    assert all(line in text for line in MENDED)
    assert text.count("health: at the end: healthy") == 5  # the healthy run, two for the claims, two mended ones


def test_the_exercise_does_not_give_its_answer_away():
    cells = [cell for cell in nbformat.read(LESSON, as_version=4).cells if "mystery = {" in cell.source]
    assert len(cells) == 1 and cells[0].metadata.jupyter.source_hidden and not cells[0].outputs


@pytest.fixture(scope="module")
def other_family(tmp_path_factory):
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "30", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return folder, result.stdout


def test_every_override_arrives(other_family):
    _, text = other_family
    assert "tiny-gemma3, 30 healthy steps, on the CPU" in text
    committed = said(nbformat.read(LESSON, as_version=4))
    question = re.compile(r"^What is \d+ \+ \d+\? \d+$", re.MULTILINE)
    assert question.findall(text) != question.findall(committed)  # another seed, another prompt


def test_the_other_family_with_another_seed_fails_alike(other_family):
    _, text = other_family
    assert named(text) == FAILURES
    assert "healthy (reward" in text


def test_it_leaves_its_runs_where_the_reader_can_look(other_family):
    folder, _ = other_family
    runs = folder / "outputs" / "reading"
    assert (runs / "healthy" / "health" / "samples.txt").exists()
    assert len(list((runs / "away").glob("lost-at-step-*"))) == 1


def test_an_unknown_family_is_an_error(tmp_path):
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), "-p", "FAMILY", "quen"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1 and "Error: FAMILY='quen' is unknown." in result.stderr
