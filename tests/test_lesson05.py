"""Lesson 05 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "05_stages.ipynb"
NUMBER = r"([+-]?\d\.\d{3})"
VERDICTS = (
    "groups of 4 tie more often than groups of 16",
    "hotter sampling has more entropy, at step 1",
    "clipped, each batch used twice, above zero",
)


@pytest.fixture(scope="module")
def committed() -> str:
    return said(nbformat.read(LESSON, as_version=4))


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=900, seconds=1800)
    assert result.returncode == 0, result.stdout[-4000:]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_committed_lesson_computes_its_verdicts(committed, verdict):
    assert f"{verdict}: True" in committed


def test_the_adapter_is_carried_and_the_optimizer_is_not(committed):
    assert "largest difference: 0.0\n" in committed
    assert "trained: 20 steps; counted by the optimizer: 10" in committed


def test_two_stages_and_one_are_compared_over_three_seeds_in_one_sentence(committed):
    seeds = re.search(rf"^seeds: {NUMBER}, {NUMBER}, {NUMBER}$", committed, re.MULTILINE)
    assert seeds
    mean = sum(map(float, seeds.groups())) / 3
    sentence = committed[seeds.end() :].strip().splitlines()[0]
    assert sentence.startswith(("No improvement shown", "Strict accuracy"))
    assert float(re.search(rf"by {NUMBER} \(", sentence)[1]) == pytest.approx(mean, abs=0.0015)


def test_a_killed_run_is_resumed_to_the_last_bit(committed):
    assert "killed: True\n1-format, finished: True\n2-both, finished: False" in committed
    assert "optimizer.pt is cut off or damaged" in committed and "is skipped" in committed
    assert "largest difference of a reward: 0.0\nlargest difference of a weight: 0.0" in committed


def test_each_training_has_one_bar_that_is_full(committed):
    bars = [line for line in committed.splitlines() if line.startswith("GRPO")]
    told = re.findall(r"^Stage .*(?:begins|resumes)", committed, re.MULTILINE)
    assert len(bars) == len(told) + 8  # the eight knobs tell no stage
    assert all(line.startswith("GRPO 100%") for line in bars)


def test_another_plan_is_refused_by_what_differs(committed):
    assert "LoRA rank was 16, is 8" in committed and "1.0 x strict_format_reward" in committed


def test_every_knob_of_the_table_is_an_argument_of_grpo_config_or_named_otherwise():
    from dataclasses import fields

    from trl import GRPOConfig

    text = LESSON.with_name("source").joinpath("05_stages.py").read_text(encoding="utf-8")
    table = [row for row in text[text.index("# | knob | here") :].splitlines()[2:] if row.startswith("# |")]
    names = {name for row in table for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert len(names) >= 13 and names - {"r"} <= {field.name for field in fields(GRPOConfig)}


def test_it_imports_no_unsloth():
    book = nbformat.read(LESSON, as_version=4)
    assert not [cell for cell in book.cells if cell.cell_type == "code" and "unsloth" in cell.source]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "2", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family):
    assert "tiny-gemma3, two stages of 2 steps, on the CPU" in other_family
    assert [int(seed) for seed in re.findall(r"seed (\d+), two stages:", other_family)] == [5, 6, 7]


def test_the_other_family_is_resumed_to_the_last_bit_too(other_family):
    assert "largest difference of a reward: 0.0\nlargest difference of a weight: 0.0" in other_family


def test_what_is_easiest_for_us_is_hardest_for_the_other_family_too(other_family):
    assert "hardest for the base: one digit" in other_family


@pytest.mark.parametrize("family", ["committed", pytest.param("other_family", marks=pytest.mark.upgrade)])
def test_a_carry_makes_a_sum_of_two_digits_harder(family, request):
    text = request.getfixturevalue(family)
    rate = {k: float(re.search(rf"two digits, {k} +(\d\.\d+) ", text)[1]) for k in ("no carry", "carry")}
    assert rate["carry"] < 0.5 < 0.85 < rate["no carry"]
