"""Lesson 09 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from lessons import code_of, run_with_nbval, said, text_of

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "09_sft_then_grpo.ipynb"
RATE = r"(\d\.\d{3}) \((\d\.\d{3}) to (\d\.\d{3})\)"


@pytest.fixture(scope="module")
def book() -> nbformat.NotebookNode:
    return nbformat.read(LESSON, as_version=4)


@pytest.fixture(scope="module")
def committed(book) -> str:
    return said(book)


def rates(printed: str, label: str) -> list[float]:
    """The rates on all lines that start with ``label``, without their intervals."""
    lines = re.findall(rf"^{re.escape(label)}.*$", printed, re.MULTILINE)
    return [float(rate) for line in lines for rate, *_ in re.findall(RATE, line)]


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=900, seconds=1800)
    assert result.returncode == 0, result.stdout[-4000:]


def test_grpo_alone_learns_nothing(book, committed):
    assert re.search(r"^rewards: \[0\.0(, 0\.0){4}\]\ntied:    \[1\.0(, 1\.0){4}\]$", committed, re.MULTILINE)
    assert "largest change of a weight: 0.0\n" in committed
    base, *_ = rates(committed, "strict accuracy, sampled:")
    assert base == 0 and "solves 0 of 200 prompts" in text_of(book)
    assert "of the 95% interval is 0.019" in text_of(book) and "0.000 (0.000 to 0.019)" in committed


def test_only_the_completion_and_its_end_are_trained_on(committed):
    whole, trained = re.search(r"(\d+) tokens, trained on (\d+):\n", committed).groups()
    assert 10 < int(trained) < int(whole)
    assert re.search(r"'<reasoning>.*</answer><\|im_end\|>", committed)


def test_a_frozen_adapter_does_not_change_and_a_trainable_one_does(committed):
    frozen, trainable = committed.split("is_trainable=False")[1].split("is_trainable=True")[:2]
    changes = [float(re.search(r"change of a weight: (\S+)", part)[1]) for part in (frozen, trainable)]
    assert changes[0] == 0 < changes[1]
    assert "KL, by step: [0.0, 0.0, 0.0]" in frozen and "KL, by step: [0.0, 0.0, 0.0]" not in trainable
    assert re.search(r"KL, by step: \[0\.0, ", trainable)


def test_the_reference_is_the_sft_adapter(committed):
    assert "adapters: ['default', 'ref']\nref differs from the SFT adapter by 0.0\n" in committed
