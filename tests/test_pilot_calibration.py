"""The stored calibration of the pilot: the thresholds are the fitted ones, and the page says what was measured."""

import json

import bench_pilot
import pytest
from benches import CHECKS
from course import ROOT
from grpo_check.pilots.verdicts import LIMITS


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return json.loads(bench_pilot.STORED.read_text(encoding="utf-8"))["rows"]


def test_half_of_the_rule_is_fitted_and_the_rest_is_held_out(rows):
    half = bench_pilot.fitting_half()
    first = [row for row in rows if row["name"] in half]
    assert len(first) == len(half) == 20 and len(rows) == 62
    assert bench_pilot.fitted(first) == LIMITS


def test_the_page_has_the_stored_figures(rows):
    stored = json.loads(bench_pilot.STORED.read_text(encoding="utf-8"))
    section, page = bench_pilot.section(stored), (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"\n## {bench_pilot.TITLE}\n{section}" in page
    wrong = bench_pilot.hits(rows).count(False)
    assert section.count("**wrong**") == wrong and section.count(" | yes | ") == sum(map(bench_pilot.learned, rows))
    assert bench_pilot.in_short(stored) in CHECKS.read_text(encoding="utf-8")


def test_no_held_out_row_of_a_case_is_a_training_row():
    for name, case in bench_pilot.CASES.items():
        if name == "tool call" or "facts" in name:  # the facts have no held-out rows
            continue
        train, heldout = ({str(row["prompt"]) for row in case.rows(split)} for split in (True, False))
        assert not train & heldout, name
