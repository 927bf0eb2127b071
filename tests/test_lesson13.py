"""Lesson 13: its table is what the bench stored, its corrections are TRL's, and a completion's ratio spreads most."""

import re
from functools import partial

import bench_reuse
import bench_stale
import benches
import pytest
import torch
from course import ROOT
from lessons import briefly_and_in_full, run_other_family, run_with_nbval
from stale_trainer import CAP, WEIGHTS, Delay, StaleTrainer, swapped
from tiny_runs import train_tiny

from grpo_utils.evaluation.statistics import paired_difference

LESSON = ROOT / "notebooks" / "13_when_the_log_lies.ipynb"
STORED = benches.read_stored(bench_stale.STORED)
ROWS = STORED["rows"]


@pytest.mark.slow
@briefly_and_in_full(STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


@pytest.mark.slow
@pytest.mark.upgrade
def test_it_runs_with_the_other_family(tmp_path):
    run_other_family(LESSON, tmp_path, STEPS=2, DELAY=1)


def test_the_table_of_the_lesson_is_what_is_stored(book):
    text = "\n".join(cell.source for cell in book.cells)
    assert bench_stale.short_table(STORED) in text


def test_the_results_have_what_the_bench_stored():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count(f"## {bench_stale.TITLE}\n{bench_stale.section(STORED)}") == 1


def test_every_arm_was_trained_and_no_run_is_stored_twice():
    found = [(row["arm"], row["seed"]) for row in ROWS]
    assert len(set(found)) == len(found) and {arm for arm, _ in found} == set(bench_stale.ARMS)


def test_without_a_correction_a_delay_costs_every_run_and_the_ratio_repairs_most():
    fresh, ratio = (bench_stale.of(ROWS, arm, "sampled") for arm in ("fresh", "delay 4, ratio"))
    harmed = [rate for arm in ("delay 4", "delay 8") for rate in bench_stale.of(ROWS, arm, "sampled")]
    corrected = [row["sampled"] for row in ROWS if row["arm"].startswith("delay 8, ")]
    assert max(harmed) + 0.3 < min(ratio) < min(fresh) and min(corrected) > max(
        bench_stale.of(ROWS, "delay 8", "sampled")
    )


def test_the_lesson_says_by_how_much_a_mask_repairs_more_than_the_ratio(book):
    mask, ratio = (bench_stale.of(ROWS, f"delay 8, {name}", "sampled") for name in ("sequence_mask", "ratio"))
    difference = benches.difference_text(paired_difference(mask, ratio, bench_stale.PROMPTS))
    assert difference in "\n".join(cell.source for cell in book.cells)


def test_a_hot_sampler_is_harmless_and_its_ratios_are_far_from_those_of_a_delay():
    assert min(bench_stale.of(ROWS, "temperature 1.3", "sampled")) > 0.85
    hot, delayed = (effective_shares(arm) for arm in ("temperature 1.3", "delay 4"))
    assert min(hot) > 0.7 > 0.6 > max(delayed)


def effective_shares(arm: str) -> list[float]:
    """The effective sample size of the completions' ratios as a share of their number, for each seed of an arm."""
    runs = [row["ratios"] for row in ROWS if row["arm"] == arm]
    return [
        sum(one["share"] * one["completions"] for one in run) / sum(one["completions"] for one in run) for run in runs
    ]


def test_the_lesson_names_the_difference_that_reuse_made(book):
    text = "\n".join(cell.source for cell in book.cells)
    rows = benches.read_stored(bench_reuse.STORED)["rows"]
    best = bench_reuse.best_rates(rows)
    samples = bench_reuse.difference(rows, best, bench_reuse.SAMPLE_STEPS).value
    minutes = bench_reuse.difference(rows, best, bench_reuse.TIME_STEPS).value
    reuse = text[text.index("**Reuse.**") :]
    assert f"{samples:.3f} higher" in reuse and f"{-minutes:.3f} lower" in reuse


def test_a_completion_spreads_more_than_its_tokens(printed):
    rows = re.findall(r"^\d+-\d+ +\d+ +(\S+) +(\S+)$", printed, re.M)
    assert rows and all(float(whole) > float(token) for token, whole in rows)


def test_one_odd_token_is_truncated_or_drops_its_completion():
    log_ratios = torch.tensor([[0.5, -0.5], [2.0, 0.0], [0.6, 0.6]])
    assert WEIGHTS["token_truncate"](log_ratios)[1].tolist() == [CAP, 1.0]
    assert WEIGHTS["sequence_mask"](log_ratios).flatten().tolist() == [1.0, 0.0, 0.0]


def test_a_sampler_gives_the_weights_back_even_after_an_error():
    layer = torch.nn.Linear(3, 2)
    before = layer.weight.clone()
    with pytest.raises(KeyError), swapped([layer.weight], [torch.zeros(2, 3)]):
        assert not layer.weight.any()
        raise KeyError
    assert torch.equal(layer.weight, before)


@pytest.mark.slow
def test_without_a_delay_all_corrections_train_as_grpo_does():
    """With fresh samples every ratio is 1, so each correction must leave the training run as it is."""
    makers = [None, *(partial(StaleTrainer, sampler=Delay(0), correct=name) for name in ("none", "ratio", *WEIGHTS))]
    trained = [train_tiny({}, seed=0, steps=2, trainer_type=make)[0][0] for make in makers]
    adapters = [torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad]) for model in trained]
    assert all(torch.allclose(adapters[0], adapter, atol=1e-6) for adapter in adapters[1:])
