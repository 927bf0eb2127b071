"""Lesson 05 as readers run it: the committed notebook, and the same with other parameters."""

import re

import pytest
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "05_stages.ipynb"
NUMBER = r"([+-]?\d\.\d{3})"
EXACT = "largest difference of a reward: 0.0\nlargest difference of a weight: 0.0"


@briefly_and_in_full(STEPS=2)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_the_adapter_is_carried_and_the_optimizer_is_not(printed):
    assert re.search(r"is_trainable=False: 0 trainable.*\nis_trainable=True: [1-9]\d+ trainable", printed)
    assert re.search(r"both stages: +20\n.*counted: +10\n", printed)


def test_three_seeds_show_no_gain_from_two_stages(printed):
    seeds = re.search(rf"^seeds: {NUMBER}, {NUMBER}, {NUMBER}$", printed, re.MULTILINE)
    differences = [float(number) for number in seeds.groups()]
    verdict = printed[seeds.end() :].strip().splitlines()[0]
    change, low, high = (float(number) for number in re.findall(NUMBER, verdict)[:3])
    assert change == pytest.approx(sum(differences) / 3, abs=0.0015)
    assert verdict.startswith("No improvement shown") and low < 0 < high


def test_the_first_stage_teaches_format_and_answers_alike(book, printed):
    reward, correct = map(float, re.search(r"10/10 .*?reward=([\d.]+), correct=([\d.]+)", printed).groups())
    assert 0.8 < reward <= 1 and correct > 0.5
    [alt] = alt_texts(book)
    ends = [tuple(map(float, pair)) for pair in re.findall(r"stages? ([\d.]+) to (\d\.\d+)", alt)]
    assert len(ends) == 4 and all(last > first + 0.3 for first, last in ends)


def test_a_killed_run_is_resumed_to_the_last_bit(printed):
    assert "killed: True\nleft: checkpoint-2 checkpoint-4" in printed
    assert "resumes from: checkpoint-2" in printed
    assert f"steps: 8\n{EXACT}" in printed


def test_a_checkpoint_has_all_that_a_run_needs_to_continue(printed):
    needed = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")
    assert all(re.search(rf"^{re.escape(name)} +\d+ kB", printed, re.MULTILINE) for name in needed)


def test_each_run_has_one_bar_that_is_full(printed):
    bars = [line for line in printed.splitlines() if line.startswith("GRPO")]
    assert bars and all(line.startswith("GRPO 100%") for line in bars)


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=2)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b2$", other_family, re.MULTILINE)
    assert re.search(r"both stages: +4\n.*counted: +2\n", other_family)
    assert [int(seed) for seed in re.findall(r"seed (\d+), two stages:", other_family)] == [5, 6, 7]


def test_the_other_family_is_resumed_to_the_last_bit_too(other_family):
    assert EXACT in other_family
