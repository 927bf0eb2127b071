"""Lesson 05 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from lessons import code_of, run_with_nbval, said

from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "05_stages.ipynb"
NUMBER = r"([+-]?\d\.\d{3})"
EXACT = "largest difference of a reward: 0.0\nlargest difference of a weight: 0.0"


@pytest.fixture(scope="module")
def book() -> nbformat.NotebookNode:
    return nbformat.read(LESSON, as_version=4)


@pytest.fixture(scope="module")
def committed(book) -> str:
    return said(book)


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=900, seconds=1800)
    assert result.returncode == 0, result.stdout[-4000:]


def test_its_settings_are_those_of_the_profile_but_for_the_schedule(book):
    [cell] = [cell for cell in code_of(book) if cell.startswith("SHARED")]
    found = {}
    exec(cell, found)
    profile = training_arguments(CPU)
    differ = {name: value for name, value in found["SHARED"].items() if profile[name] != value}
    assert differ == {"lr_scheduler_type": "constant"}


def test_the_adapter_is_carried_and_the_optimizer_is_not(committed):
    assert re.search(r"is_trainable=False: 0 trainable.*\nis_trainable=True: [1-9]\d+ trainable", committed)
    assert re.search(r"both stages: +20\n.*counted: +10\n", committed)


def test_three_seeds_show_no_gain_from_two_stages(committed):
    seeds = re.search(rf"^seeds: {NUMBER}, {NUMBER}, {NUMBER}$", committed, re.MULTILINE)
    differences = [float(number) for number in seeds.groups()]
    verdict = committed[seeds.end() :].strip().splitlines()[0]
    change, low, high = (float(number) for number in re.findall(NUMBER, verdict)[:3])
    assert change == pytest.approx(sum(differences) / 3, abs=0.0015)
    assert verdict.startswith("No improvement shown") and low < 0 < high


def test_the_first_stage_teaches_format_and_answers_alike(book, committed):
    reward, correct = map(float, re.search(r"10/10 .*?reward=([\d.]+), correct=([\d.]+)", committed).groups())
    assert 0.8 < reward <= 1 and correct > 0.5
    [alt] = [o.data["text/plain"] for c in book.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    ends = [tuple(map(float, pair)) for pair in re.findall(r"stages? ([\d.]+) to (\d\.\d+)", alt)]
    assert len(ends) == 4 and all(last > first + 0.3 for first, last in ends)


def test_a_killed_run_is_resumed_to_the_last_bit(committed):
    assert "killed: True\nleft: checkpoint-2 checkpoint-4" in committed
    assert "optimizer.pt is cut off or damaged" in committed
    assert "is skipped" in committed and "resumes from: checkpoint-2" in committed
    assert f"steps: 8\n{EXACT}" in committed


def test_a_checkpoint_has_all_that_a_run_needs_to_continue(committed):
    needed = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")
    assert all(re.search(rf"^{re.escape(name)} +\d+ kB", committed, re.MULTILINE) for name in needed)


def test_each_run_has_one_bar_that_is_full(committed):
    bars = [line for line in committed.splitlines() if line.startswith("GRPO")]
    assert len(bars) == 9 and all(line.startswith("GRPO 100%") for line in bars)


def test_it_imports_no_unsloth(book):
    assert not [cell for cell in code_of(book) if "unsloth" in cell]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder: Path = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "2", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family):
    assert "tiny-gemma3, on the CPU. Steps of a training run: 2" in other_family
    assert re.search(r"both stages: +4\n.*counted: +2\n", other_family)
    assert [int(seed) for seed in re.findall(r"seed (\d+), two stages:", other_family)] == [5, 6, 7]


def test_the_other_family_is_resumed_to_the_last_bit_too(other_family):
    assert EXACT in other_family
