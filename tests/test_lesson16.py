"""Lesson 16: its tables are what the bench stored, and only a check of answers lets a student pass its teacher."""

import re
from statistics import fmean

import bench_distill
import benches
import pytest
from course import ROOT
from lessons import briefly_and_in_full, defined_by, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "16_distill.ipynb"
STORED = benches.read_stored(bench_distill.STORED)
ROWS = STORED["rows"]
LAST = bench_distill.STEPS[-1]


def mean(case: str, arm: str, step: int) -> float:
    return fmean(bench_distill.at(ROWS, case, arm, step))


@briefly_and_in_full(STEPS=3, STUDENT_STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


@pytest.mark.upgrade
def test_it_runs_with_the_other_family(tmp_path):
    run_other_family(LESSON, tmp_path, STEPS=2, STUDENT_STEPS=2)


#: The cases of the bench, as the lesson names them.
SHOWN = {"good": "good teacher", "weak": "weak teacher", "new task": "new task"}


@pytest.mark.parametrize("case", bench_distill.CASES)
def test_the_curves_of_the_lesson_are_what_is_stored(book, case):
    shown = defined_by(book, "BENCH = {")
    curves = shown["BENCH"][SHOWN[case]]
    assert list(curves) == bench_distill.arms_of(case) and shown["STEPS_SEEN"] == bench_distill.STEPS
    for arm, rates in curves.items():
        assert [f"{rate:.2f}" for rate in rates] == [f"{mean(case, arm, step):.2f}" for step in bench_distill.STEPS]
    assert f"{shown['TEACHERS'][SHOWN[case]]:.2f}" == f"{fmean(bench_distill.of_teacher(ROWS, case)):.2f}"


def test_the_results_have_what_the_bench_stored():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count(f"## {bench_distill.TITLE}\n{bench_distill.section(STORED)}") == 1


def test_every_arm_was_trained_with_every_seed_at_the_rate_of_the_search():
    found = {(row["case"], row["arm"], row["seed"], row["rate"]) for row in ROWS}
    for case, arms in bench_distill.MEASURED.items():
        seeds = bench_distill.NEW_SEEDS if case == "new task" else bench_distill.SEEDS
        rates = {arm: bench_distill.best_rate(ROWS, arm) for arm in arms}
        assert found >= {(case, arm, seed, rates[arm]) for arm in arms for seed in seeds}


def test_distillation_is_ahead_of_grpo_early_and_not_in_the_end():
    early = bench_distill.against_grpo(ROWS, bench_distill.EARLY, "distillation", bench_distill.EARLY_STEP)
    assert 0 < early.low < early.value < 0.15  # the rates of the tables, chosen late, would make it twice as large
    for arm in bench_distill.EARLY_ARMS:
        assert mean(bench_distill.EARLY, arm, bench_distill.EARLY_STEP) > mean("good", arm, bench_distill.EARLY_STEP)
    assert abs(mean("good", "distillation", LAST) - mean("good", "GRPO", LAST)) < 0.05


def test_only_what_reads_a_check_passes_the_weak_teacher():
    differences = {arm: bench_distill.against_teacher(ROWS, "weak", arm) for arm in bench_distill.ARMS}
    assert differences["GRPO"].low > 0.1 and differences["filtered SFT"].low > 0
    assert mean("weak", "filtered SFT", LAST) > mean("weak", "SFT", LAST) + 0.1


def test_grpo_alone_never_starts_on_a_task_that_the_student_never_solves():
    assert bench_distill.at(ROWS, "new task", "GRPO", LAST) == [0.0, 0.0, 0.0]
    assert min(bench_distill.at(ROWS, "new task", "distillation", LAST)) > 0.05
    assert max(mean("new task", arm, LAST) for arm in ("distillation", "SFT")) < 0.5  # a guess between two numbers


def row(seed: int, rate: float) -> dict:
    """What the bench stores of a student of the weak teacher, as far as a difference needs it."""
    points = [dict(step=LAST, accuracy=rate)]
    return dict(case="weak", arm="distillation", seed=seed, teacher=dict(sampled=0.5), points=points)


def test_a_difference_leaves_out_the_search_for_a_rate():
    rows = [row(1, 0.7), row(0, 0.6), row(bench_distill.SEARCH_SEED, 0.0)]
    assert bench_distill.against_teacher(rows, "weak", "distillation").value == pytest.approx(0.15)


def test_the_lesson_shows_a_ceiling_and_how_to_pass_it(printed):
    verdicts = dict(re.findall(r"^(distilled|filtered SFT|GRPO) +\S+ .+: ([a-z ]+)$", printed, re.MULTILINE))
    assert verdicts["filtered SFT"] == verdicts["GRPO"] == "improved"
    assert verdicts["distilled"] != "improved"


def test_padding_rows_are_refused_and_cutting_them_changes_nothing(printed):
    assert "vocab_size 512 but the teacher model has vocab_size 520" in printed
    assert float(re.search(r"largest difference to the teacher: (\S+)", printed)[1]) < 1e-5


def test_the_free_alternatives_stand_beside_the_gain(printed):
    """Greedy decoding lifts the weak teacher, and the student's own correct answers teach about as much as its."""
    sampled, greedy = map(
        float, re.search(r"^weak teacher +(\S+) sampled +(\S+) greedy", printed, re.MULTILINE).groups()
    )
    assert greedy > sampled + 0.2
    own = float(re.search(r"^predicted \S+, measured (\S+)$", printed, re.MULTILINE)[1])
    assert abs(own - float(re.search(r"student of the weak teacher: (\S+)", printed)[1])) < 0.1
