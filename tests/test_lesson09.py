"""Lesson 09 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

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


def test_grpo_alone_learns_nothing(committed):
    assert re.search(r"^rewards: \[0\.0(, 0\.0){4}\]\ntied:    \[1\.0(, 1\.0){4}\]$", committed, re.MULTILINE)
    assert "largest change of a weight: 0.0\n" in committed
    base, *_ = rates(committed, "strict accuracy, sampled:")
    assert base == 0


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


def test_sft_makes_the_pass_rate_usable(committed):
    after, formatted = rates(committed, "strict accuracy, sampled:")[1], rates(committed, "correctly formatted:")[0]
    assert 0.2 < after < 0.8 and formatted > 0.9


def test_only_prompts_that_are_solved_sometimes_are_kept(committed):
    mean, never, always, every = re.search(r"^new +(\S+) +(\d+) +(\d+) +(\d+)$", committed, re.MULTILINE).groups()
    kept = int(re.search(r"^kept: (\d+) of (\d+)", committed, re.MULTILINE)[1])
    assert 0 < kept == int(every) - int(never) - int(always)
    memorized = re.search(r"^SFT rows +(\S+)", committed, re.MULTILINE)[1]
    assert float(memorized) > float(mean)


def test_grpo_improves_on_the_first_sft_run(committed):
    assert "Strict accuracy rose by" in committed
    first, last = re.search(r"mean reward: (\S+) in the first 5 steps, (\S+) in the last", committed).groups()
    assert float(last) > float(first) + 0.1


def test_all_samples_and_seconds_of_both_arms_are_counted(committed):
    samples = dict(re.findall(r"^samples, (.*): (\d+)$", committed, re.MULTILINE))
    assert samples == {"GRPO": "3200", "to choose its prompts": "3200"}
    seconds = dict(re.findall(r"^CPU seconds, (.*): (\d+)$", committed, re.MULTILINE))
    assert list(seconds) == ["GRPO", "to choose its prompts", "SFT"]
    assert int(seconds["GRPO"]) > int(seconds["SFT"]) > 0 < int(seconds["to choose its prompts"])


def test_only_the_merge_of_the_last_adapter_equals_the_policy(committed):
    merged = dict(re.findall(r"^(\S+) +logits +(\S+) ", committed, re.MULTILINE))
    assert float(merged["grpo"]) < 1e-4 < 0.1 < min(float(merged[name]) for name in ("sft+grpo", "sft"))
    twice, sft, right = (rates(committed, f"{name} ")[-1] for name in ("sft+grpo", "sft", "grpo"))
    assert twice < sft < right


@pytest.mark.upgrade
def test_the_other_family_takes_every_override(tmp_path: Path):
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "2", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "tiny-gemma3, on the CPU. Steps of a training run: 2" in result.stdout
    assert "adapters: ['default', 'ref']" in result.stdout and "largest change of a weight: 0.00000" in result.stdout
