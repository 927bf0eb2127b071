"""Lesson 15: its table is what the bench stored, a format can pay while accuracy is lost, and a leaked test shows."""

import re

import bench_controls
import benches
import pytest
from course import ROOT
from lessons import briefly_and_in_full, defined_by, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "15_controls.ipynb"
STORED = benches.read_stored(bench_controls.STORED)
ROWS = STORED["rows"]


@briefly_and_in_full(STEPS=2, LEAK_STEPS=2)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


@pytest.mark.upgrade
def test_it_runs_with_the_other_family(tmp_path):
    run_other_family(LESSON, tmp_path, STEPS=2, LEAK_STEPS=2)


def test_the_dots_of_the_lesson_are_what_is_stored(book):
    shown = defined_by(book, "FIVE_SEEDS = {")["FIVE_SEEDS"]
    assert list(shown) == list(bench_controls.REWARDS)
    for arm, rates in shown.items():
        assert [f"{rate:.2f}" for rate in rates] == [f"{rate:.2f}" for rate in bench_controls.of(ROWS, arm, "sampled")]


def test_a_format_reward_ends_high_with_a_seed_that_loses(printed):
    before, after = map(float, re.search(r"^seed 1: accuracy (\S+) to (\S+)$", printed, re.MULTILINE).groups())
    assert after < 0.1 < before and float(re.search(r"the reward ends at (\S+)", printed)[1]) > 0.9
    assert "You predicted 'fall'; the run shows 'fall'." in printed


def test_the_results_have_what_the_bench_stored():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count(f"## {bench_controls.TITLE}\n{bench_controls.section(STORED)}") == 1


def test_every_arm_was_trained_with_every_seed():
    found = sorted((row["arm"], row["seed"]) for row in ROWS)
    arms = [*bench_controls.REWARDS, bench_controls.LEAK]
    assert found == sorted((arm, seed) for arm in arms for seed in bench_controls.SEEDS)


def test_only_the_true_reward_helps_with_every_seed():
    assert min(bench_controls.of(ROWS, "correctness", "sampled")) > 0.9
    by_format = bench_controls.of(ROWS, "format", "sampled")
    assert min(by_format) < 0.2 < 0.8 < max(by_format)
    assert all(row["reward"][-1] > 0.9 for row in ROWS if row["arm"] == "format")


def test_the_controls_lose_prompts_that_the_base_solves():
    lost = {arm: bench_controls.passed(ROWS, arm, 32) for arm in bench_controls.REWARDS}
    assert lost["before"] > 0.99 and lost["correctness"] > 0.99 and max(lost["format"], lost["random"]) < 0.95
    assert bench_controls.passed(ROWS, "format", 1) > bench_controls.passed(ROWS, "before", 1)


def test_the_leaked_questions_are_answered_better_with_every_seed(printed):
    leaks = [row for row in ROWS if row["arm"] == bench_controls.LEAK]
    assert all(row["leaked"] > row["fresh"] + 0.05 for row in leaks)
    leaked, fresh = (float(rate) for rate in re.findall(r"greedy accuracy: (\S+)", printed))
    assert leaked > fresh + 0.05
