"""Lesson 09 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said, text_of

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
    assert (
        "of the 95% interval is 0.019" in text_of(book)
        and f"{(1 - 0.019) ** 8:.0%} of the groups" in text_of(book)
        and "0.000 (0.000 to 0.019)" in committed
    )


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


def test_the_text_says_what_sft_reached(book, committed):
    after = rates(committed, "strict accuracy, sampled:")[1]
    formatted = rates(committed, "correctly formatted:")[0]
    assert f"SFT raised strict accuracy from 0 to {after:.2f}, and {formatted:.0%} of the answers" in text_of(book)


def test_the_text_counts_the_prompts(book, committed):
    mean, never, always, every = re.search(r"^new +(\S+) +(\d+) +(\d+) +(\d+)$", committed, re.MULTILINE).groups()
    kept = int(re.search(r"^kept: (\d+) of (\d+)", committed, re.MULTILINE)[1])
    assert kept == int(every) - int(never) - int(always)
    text = text_of(book)
    assert f"never solves {never} of the {every} new prompts and always solves {always}." in text
    assert f"`drop_tied` keeps the other {kept}" in text and f"used {kept} more prompts" in text
    old_mean, *counts = re.search(r"^SFT rows +(\S+) +(\d+) +(\d+) +(\d+)$", committed, re.MULTILINE).groups()
    old_never, old_always, old_every = map(int, counts)
    assert f"could use the {old_every - old_never - old_always} that are not tied" in text
    assert f"mean pass rate is {old_mean} on the SFT rows and {mean} on the new prompts" in text


def comparisons(committed: str) -> list[tuple[float, float, str]]:
    """For each comparison: the two strict accuracies, and its sentence."""
    found = re.findall(rf"^strict accuracy +{RATE}.*? {RATE}.*?$\n.*\n.*\n(.*)$", committed, re.MULTILINE)
    return [(float(row[0]), float(row[3]), row[6]) for row in found]


def test_the_text_says_what_grpo_added(book, committed):
    (before, after, sentence), _ = comparisons(committed)
    assert sentence.startswith("Strict accuracy rose by")
    rose, low, high = re.findall(r"\d\.\d{3}", sentence)[:3]
    text = text_of(book)
    assert f"strict accuracy rose by {rose}, from {before:.3f} to {after:.3f}" in text
    assert f"(95% interval of the change: {low} to {high})" in text


def test_the_text_says_what_the_budget_shows(book, committed):
    _, (more, grpo, sentence) = comparisons(committed)
    change, low, high = re.findall(r"[+-]\d\.\d{3}", sentence)[:3]
    text = text_of(book)
    assert sentence.startswith("No improvement shown") and "no difference is shown" in text
    assert f"SFT alone (`before` in the table) reaches {more:.3f}, and SFT with GRPO {grpo:.3f}" in text
    assert f"difference is {change}, with an interval from {low} to {high}" in text
    seconds = [int(re.search(rf"seconds, {name}: +(\d+)", committed)[1]) for name in ("GRPO", "SFT")]
    assert f"GRPO took {seconds[0]} seconds and SFT {seconds[1]}" in text


def test_only_the_merge_of_the_last_adapter_equals_the_policy(book, committed):
    merged = dict(re.findall(r"^(\S+) +logits +(\S+) ", committed, re.MULTILINE))
    assert float(merged["grpo"]) < 1e-4 < 0.1 < min(float(merged[name]) for name in ("sft+grpo", "sft"))
    twice, sft = (rates(committed, f"{name} ")[-1] for name in ("sft+grpo", "sft "))
    right = rates(committed, "grpo ")[-1]
    assert f"The correct merge reaches {right:.2f}, as the policy does" in text_of(book)
    assert f"adds the SFT part twice and gives {twice:.2f}" in text_of(book) and f"alone gives {sft:.2f}" in text_of(
        book
    )


@pytest.mark.upgrade
def test_the_other_family_takes_every_override(tmp_path: Path):
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "2", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "tiny-gemma3, on the CPU. Steps of a training run: 2" in result.stdout
    assert "adapters: ['default', 'ref']" in result.stdout and "largest change of a weight: 0.00000" in result.stdout
