"""Lesson 09 as readers run it: the committed notebook, and the same with other parameters."""

import re

import pytest
from conftest import ROOT
from lessons import run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "09_sft_then_grpo.ipynb"
RATE = r"(\d\.\d{3}) \((\d\.\d{3}) to (\d\.\d{3})\)"


def rates(text: str, label: str) -> list[float]:
    """The rates on all lines that start with ``label``, without their intervals."""
    lines = re.findall(rf"^{re.escape(label)}.*$", text, re.MULTILINE)
    return [float(rate) for line in lines for rate, *_ in re.findall(RATE, line)]


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_grpo_alone_learns_nothing(printed):
    assert re.search(r"^rewards: \[0\.0(, 0\.0){4}\]\ntied:    \[1\.0(, 1\.0){4}\]$", printed, re.MULTILINE)
    assert "largest change of a weight: 0.0\n" in printed
    base, *_ = rates(printed, "strict accuracy, sampled:")
    assert base == 0


def test_only_the_completion_and_its_end_are_trained_on(printed):
    whole, trained = re.search(r"(\d+) tokens, trained on (\d+):\n", printed).groups()
    assert 10 < int(trained) < int(whole)
    assert re.search(r"'<reasoning>.*</answer><\|im_end\|>", printed)


def test_a_frozen_adapter_does_not_change_and_a_trainable_one_does(printed):
    frozen, trainable = printed.split("is_trainable=False")[1].split("is_trainable=True")[:2]
    changes = [float(re.search(r"change of a weight: (\S+)", part)[1]) for part in (frozen, trainable)]
    assert changes[0] == 0 < changes[1]
    assert "KL, by step: [0.0, 0.0, 0.0]" in frozen and "KL, by step: [0.0, 0.0, 0.0]" not in trainable
    assert re.search(r"KL, by step: \[0\.0, ", trainable)


def test_the_reference_is_the_sft_adapter(printed):
    assert "adapters: ['default', 'ref']\nref differs from the SFT adapter by 0.0\n" in printed


def test_sft_makes_the_pass_rate_usable(printed):
    after, formatted = rates(printed, "strict accuracy, sampled:")[1], rates(printed, "correctly formatted:")[0]
    assert 0.2 < after < 0.8 and formatted > 0.9


def test_only_prompts_that_are_solved_sometimes_are_kept(printed):
    mean, never, always, every = re.search(r"^new +(\S+) +(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE).groups()
    kept = int(re.search(r"^kept: (\d+) of (\d+)", printed, re.MULTILINE)[1])
    assert 0 < kept == int(every) - int(never) - int(always)
    memorized = re.search(r"^SFT rows +(\S+)", printed, re.MULTILINE)[1]
    assert float(memorized) > float(mean)


def test_grpo_improves_on_the_first_sft_run(printed):
    assert "Strict accuracy rose by" in printed
    first, last = re.search(r"mean reward: (\S+) in the first 5 steps, (\S+) in the last", printed).groups()
    assert float(last) > float(first) + 0.1


def test_all_samples_and_seconds_of_both_arms_are_counted(printed):
    samples = dict(re.findall(r"^samples, (.*): (\d+)$", printed, re.MULTILINE))
    assert samples == {"GRPO": "3200", "to choose its prompts": "3200"}
    seconds = dict(re.findall(r"^CPU seconds, (.*): (\d+)$", printed, re.MULTILINE))
    assert list(seconds) == ["GRPO", "to choose its prompts", "SFT"]
    assert int(seconds["GRPO"]) > int(seconds["SFT"]) > 0 < int(seconds["to choose its prompts"])


def test_only_the_merge_of_the_last_adapter_equals_the_policy(printed):
    merged = dict(re.findall(r"^(\S+) +logits +(\S+) ", printed, re.MULTILINE))
    assert float(merged["grpo"]) < 1e-4 < 0.1 < min(float(merged[name]) for name in ("sft+grpo", "sft"))
    twice, sft, right = (rates(printed, f"{name} ")[-1] for name in ("sft+grpo", "sft", "grpo"))
    assert twice < sft < right


@pytest.mark.upgrade
def test_the_other_family_takes_every_override(tmp_path):
    shown = run_other_family(LESSON, tmp_path, STEPS=2)
    assert re.search(r"tiny-gemma3.*\b2$", shown, re.MULTILINE)
    assert "adapters: ['default', 'ref']" in shown and "largest change of a weight: 0.00000" in shown
