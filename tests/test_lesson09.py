"""Lesson 09 as readers run it: the committed notebook, and the same with other parameters."""

import re
from statistics import fmean

import bench_sft
import pytest
from benches import read_stored
from course import ROOT
from lessons import briefly_and_in_full, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "09_sft_then_grpo.ipynb"
RATE = r"(\d\.\d{3}) \((\d\.\d{3}) to (\d\.\d{3})\)"


def rates(text: str, label: str) -> list[float]:
    """The rates on all lines that start with ``label``, without their intervals."""
    lines = re.findall(rf"^{re.escape(label)}.*$", text, re.MULTILINE)
    return [float(rate) for line in lines for rate, *_ in re.findall(RATE, line)]


@briefly_and_in_full(STEPS=2)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


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


def test_some_groups_would_be_tied_and_the_sft_rows_are_memorized(printed):
    mean, never, always, every = re.search(r"^new +(\S+) +(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE).groups()
    kept = int(re.search(r"^drop_tied keeps (\d+) of 100", printed, re.MULTILINE)[1])
    assert 0 < kept == int(every) - int(never) - int(always)
    memorized = re.search(r"^SFT rows +(\S+)", printed, re.MULTILINE)[1]
    assert float(memorized) > float(mean)


def test_grpo_improves_on_the_first_sft_run(printed):
    assert "Strict accuracy rose by" in printed
    first, last = re.search(r"mean reward: (\S+) in the first 5 steps, (\S+) in the last", printed).groups()
    assert float(last) > float(first)


def test_all_samples_and_seconds_of_both_arms_are_counted(printed):
    costs = re.findall(r"^(pass rates|GRPO|more SFT) .*?(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE)
    assert [cost[:3] for cost in costs] == [
        ("pass rates", "800", "0"),
        ("GRPO", "3200", "3200"),
        ("more SFT", "0", "3200"),
    ]
    estimating, grpo, sft = (int(seconds) for *_, seconds in costs)
    assert grpo > sft > 0 < estimating


def test_grpo_wins_where_worked_answers_are_wrong(printed):
    start, grpo, more = (rates(printed, label)[0] for label in ("after the first SFT", "then GRPO:", "or more SFT:"))
    assert grpo > more > start
    assert printed.split("or more SFT:")[1].count("Strict accuracy rose by") == 1
    claims = re.findall(r"^<reasoning>(\d+) > (\d+)<", printed, re.MULTILINE)
    assert [int(left) > int(right) for left, right in claims] == [True, False]


# The table of seeds is what the bench stored

ROWS = read_stored(bench_sft.STORED)["rows"]


def seeds_row(case: str) -> str:
    """The mean accuracies of a case and the difference, as the lesson writes them."""
    arms = (("SFT", 0), ("GRPO", bench_sft.STEP), ("SFT", bench_sft.STEP))
    means = " | ".join(f"{fmean(bench_sft.at(ROWS, case, *arm)):.3f}" for arm in arms)
    value, low, high = bench_sft.difference(ROWS, case, bench_sft.STEP)
    return f"| {case} | {means} | {value:+.3f} ({low:+.3f} to {high:+.3f}) |"


def test_the_table_of_the_lesson_is_what_is_stored(book):
    text = "\n".join(cell.source for cell in book.cells)
    assert [row for case in bench_sft.CASES if (row := seeds_row(case)) not in text] == []


def test_the_seeds_show_what_the_lesson_concludes():
    correct, some_wrong, half_wrong = (bench_sft.difference(ROWS, case, bench_sft.STEP) for case in bench_sft.CASES)
    assert correct.high < 0 < half_wrong.low and some_wrong.covers_zero


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
