"""Lesson 16: its table is what the bench stored, its corrections are TRL's, and a completion's ratio spreads most."""

import re

import bench_stale
import benches
import pytest
import torch
from conftest import ROOT
from lessons import run_other_family, run_with_nbval
from stale_trainer import CAP, WEIGHTS, Rounded, Temperature, swapped

LESSON = ROOT / "notebooks" / "16_stale_samples.ipynb"
STORED = benches.read_stored(bench_stale.STORED)
ROWS = STORED["rows"]


@pytest.mark.slow
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


@pytest.mark.slow
def test_it_runs_with_the_other_family(tmp_path):
    run_other_family(LESSON, tmp_path, STEPS=2, DELAY=1)


def test_the_table_of_the_lesson_is_what_is_stored(book):
    text = "\n".join(cell.source for cell in book.cells)
    assert bench_stale.short_table(STORED) in text


def test_the_results_have_what_the_bench_stored():
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert page.count(f"## {bench_stale.TITLE}\n{bench_stale.section(STORED)}") == 1
