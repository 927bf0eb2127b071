"""Lesson 02 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "02_rewards.ipynb"
VERDICTS = ("counted tags, reward rose", "counted tags, got worse", "tags in place, in form", "and correctness, better")


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]


def test_the_committed_lesson_shows_the_hack_and_the_mend():
    text = said(nbformat.read(LESSON, as_version=4))
    assert all(f"{verdict}: True" in text for verdict in VERDICTS)
    rows = re.findall(
        r"^(before|counted tags|tags in place|and correctness) +([01]\.\d+) +([01]\.\d+)", text, re.MULTILINE
    )
    form, right = ({name: float(row[i]) for name, *row in rows} for i in (0, 1))
    assert right["counted tags"] < 0.05 and form["counted tags"] < 0.05
    assert form["before"] < 0.4 and form["tags in place"] > 0.8
    assert right["before"] + 0.3 < right["and correctness"]
    assert right["tags in place"] + 0.03 < right["and correctness"]  # what is not paid is left to luck
    assert "TRL hands over: answer, completion_ids" in text


def test_it_imports_no_unsloth():
    book = nbformat.read(LESSON, as_version=4)
    assert not [cell for cell in book.cells if cell.cell_type == "code" and "unsloth" in cell.source]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "3", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return folder, result.stdout


def test_every_override_arrives(other):
    _, text = other
    assert "tiny-gemma3, 3 steps a training, on the CPU" in text
    committed = said(nbformat.read(LESSON, as_version=4))
    question = re.compile(r"^What is \d+ \+ \d+\? gold: \d+$", re.MULTILINE)
    assert question.findall(text) != question.findall(committed)  # another seed, another prompt


def test_a_lesson_without_a_report_is_kept_with_its_time(other):
    folder, text = other
    kept = list((folder / "outputs").iterdir())
    assert len(kept) == 1 and re.fullmatch(r"02_rewards-\d{8}-\d{6}\.ipynb", kept[0].name)
    assert f"{kept[0].name}: the executed lesson" in text


def test_an_unknown_profile_is_an_error(tmp_path):
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), "-p", "PROFILE", "t5"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1 and "Error: PROFILE='t5' is unknown." in result.stderr
