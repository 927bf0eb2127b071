"""Lesson 06 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "06_evaluation.ipynb"
VERDICTS = (
    "improvement shown",
    "A/A: no improvement shown",
    "false alarms at most 1 in 15",
    "\ncarry     improvement of the sums shown",
    "before, pass@16 above 0.9",
    "several seeds: improvement shown",
    "the chosen one looked better than it is",
)
NUMBER = r"([+-]?\d\.\d{3})"


@pytest.fixture(scope="module")
def committed() -> str:
    return said(nbformat.read(LESSON, as_version=4))


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]


@pytest.mark.parametrize("verdict", VERDICTS)
def test_the_committed_lesson_computes_its_verdicts(committed, verdict):
    assert f"{verdict}: True" in committed


def test_the_parts_of_the_gain_sum_to_it_and_both_are_real(committed):
    lines = [rf"^{name}: +{NUMBER}" for name in ("gain", "by form", "by answers")]
    gain, form, answers = (float(re.search(line, committed, re.MULTILINE)[1]) for line in lines)
    assert form + answers == pytest.approx(gain, abs=0.0011)
    assert gain > 0.5 and form > answers > 0.05


def test_every_held_out_question_counts_once_and_was_not_trained_on(committed):
    assert "held-out prompts: 200 different: 200" in committed and "of these in the training set: 0" in committed


def test_the_report_says_nothing_that_was_not_computed(committed):
    report = committed[committed.index("tiny-qwen3, GRPO, 40 steps") :]
    before, after = (re.search(rf"{name}: {NUMBER}", report)[1] for name in ("Strict accuracy before", "after"))
    assert committed.count(before) >= 3 and committed.count(after) >= 3
    assert "Elsewhere, gains:" in report and "losses:" in report and "no change shown:" in report


def test_no_gain_or_loss_is_claimed_by_the_interval_alone(committed):
    rows = re.findall(r"^(.{18}) *\d+ .*\), p [=<] (\S+)$", committed, re.MULTILINE)
    verdicts = dict(re.findall(r"^(.{18})(GAIN|LOSS|no change shown) ", committed, re.MULTILINE))
    assert len(rows) == 6 and all(float(p) < 0.05 for name, p in rows if verdicts[name] != "no change shown")
    vote = re.search(r"any form votes, change: .*p = (\S+): (.*)$", committed, re.MULTILINE)
    assert float(vote[1]) < 0.05 or vote[2] == "no change shown"


def test_one_sample_of_the_policy_passes_the_vote_of_the_base(committed):
    rows = re.findall(rf"^(?:before|after) +{NUMBER} .*?{NUMBER} \(.*?{NUMBER} \(", committed, re.MULTILINE)
    (_, in_form, any_form), (once, *votes) = [[float(rate) for rate in row] for row in rows]
    assert any_form < in_form < once < min(votes)


def test_a_paired_interval_is_narrower(committed):
    spans = [
        re.search(rf"^{name}: +\S+ \((\S+) to (\S+)\)", committed, re.MULTILINE) for name in ("paired", "unpaired")
    ]
    paired, unpaired = (float(span[2]) - float(span[1]) for span in spans)
    assert paired < 0.8 * unpaired


def test_each_seed_has_a_before_of_its_own(committed):
    gain = re.search(rf"^gain: +{NUMBER}", committed, re.MULTILINE)[1]
    seeds = re.search(r"^seeds: (.*)$", committed, re.MULTILINE)[1].split(", ")
    assert seeds[0] == gain and len(seeds) == 3
    assert not [cell for cell in nbformat.read(LESSON, as_version=4).cells if "compare(before, result)" in cell.source]


def test_the_system_prompt_is_not_said_to_have_become_needless(committed):
    without = float(re.search(rf"^no system prompt +100 +{NUMBER}", committed, re.MULTILINE)[1])
    before = float(re.search(r"Strict accuracy before: (\S+)", committed)[1])
    assert without == pytest.approx(before, abs=0.1)


def test_it_imports_no_unsloth():
    book = nbformat.read(LESSON, as_version=4)
    assert not [cell for cell in book.cells if cell.cell_type == "code" and "unsloth" in cell.source]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "3", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family):
    assert "tiny-gemma3, 3 steps a training, on the CPU" in other_family
    assert [int(seed) for seed in re.findall(r"seed (\d+), in form and right", other_family)] == [5, 6, 7]


def test_three_steps_are_no_triumph(other_family):
    gain = re.search(rf"^all 200 prompts: +{NUMBER.replace('3', '2')}", other_family, re.MULTILINE)[1]
    assert float(gain) < 0.4
