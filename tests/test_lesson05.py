"""Lesson 05: its rewards are those of `make real`, and it runs with the real model and a few small steps."""

import re
from statistics import fmean
from types import SimpleNamespace

import nbformat
import pytest
from course import ROOT
from lessons import code_of, run_with_nbval
from real_completions import COMPLETIONS, earned_by

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "05_real_model.ipynb"
#: Small enough for a test; the stored outputs come from a whole run.
SMALL = {"STEPS": 2, "PROMPTS": 2, "TOKENS": 16, "EVAL_ROWS": 4}


@pytest.fixture(scope="module")
def rewards() -> SimpleNamespace:
    """What the lesson's cells of rewards define."""
    cells = code_of(nbformat.read(LESSON, as_version=4))
    names = {"fmean": fmean}  # imported in the cell that sets up the lesson
    for cell in cells:
        if re.search(r"^def \w+_reward\(", cell, flags=re.MULTILINE):
            exec(cell, names)
    return SimpleNamespace(**names)


@pytest.mark.parametrize("text, earned", [(text, earned) for text, *earned in COMPLETIONS])
def test_its_rewards_are_those_of_make_real(rewards, text, earned):
    assert earned_by(rewards, text) == pytest.approx(earned)
    assert list(rewards.REWARDS.values()) == [1.0, 1.0, 0.5, 0.5]


@pytest.mark.upgrade  # on every commit, test_gpu_path.py runs the same cells on a simulated T4
def test_it_runs_with_the_real_model_and_a_few_steps(real_model, tmp_path):
    run_with_nbval(LESSON, tmp_path, **SMALL)
    assert (tmp_path / "outputs/lesson05/merged/model.safetensors").stat().st_size > 250e6
