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


def rate(text: str, when: str) -> float:
    return float(re.search(rf"in form and right, {when}: ([01]\.\d+)", text)[1])


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]


def test_the_committed_lesson_shows_a_success():
    text = said(nbformat.read(LESSON, as_version=4))
    assert rate(text, "before") < 0.4 < 0.7 < rate(text, "after")
    assert "improvement shown: True" in text


def test_every_override_arrives_and_the_other_family_learns_too(tmp_path):
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "30", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "This machine: cpu (you asked for it)" in result.stdout
    assert "30/30" in result.stdout
    assert rate(result.stdout, "before") + 0.2 < rate(result.stdout, "after")
    committed = said(nbformat.read(LESSON, as_version=4))
    question = re.compile(r"^What is \d+ \+ \d+\?", re.MULTILINE)
    assert question.findall(result.stdout) != question.findall(committed)
