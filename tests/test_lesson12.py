"""Lesson 12 as readers run it: the committed notebook, and the same with other parameters."""

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
LESSON = ROOT / "notebooks" / "12_tools.ipynb"
EVALUATED = re.compile(r"^calls per episode: ([\d.]+), correct: (\d+) of 200$", re.MULTILINE)
CHANGE = r"([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\), (p [=<] \S+): ([\w ]+)"


@pytest.fixture(scope="module")
def book() -> nbformat.NotebookNode:
    return nbformat.read(LESSON, as_version=4)


@pytest.fixture(scope="module")
def committed(book) -> str:
    return said(book)


@pytest.fixture(scope="module")
def costly(book) -> list[tuple[str, str]]:
    """The first and last value of each curve of the run in which a call costs 1, from left to right."""
    alts = [o.data["text/plain"] for c in book.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    [alt] = [alt for alt in alts if "a call costs 1" in alt]
    return re.findall(r"(-?\d+\.\d\d) to (-?\d+\.\d\d)", alt)


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=1200)
    assert result.returncode == 0, result.stdout[-4000:]


def test_its_settings_are_those_of_the_profile_with_limits_for_episodes(book):
    [cell] = [cell for cell in code_of(book) if "SETTINGS |= " in cell]
    found = {"run": type("Run", (), {"steps": 20}), "SEED": 0}
    exec("\n".join(line for line in cell.splitlines() if line.startswith("SETTINGS")), found)
    profile = training_arguments(CPU)
    differ = {name for name, value in found["SETTINGS"].items() if profile.get(name) != value}
    assert differ == {
        "max_steps", "max_completion_length", "max_tool_calling_iterations", "num_generations_eval",
        "per_device_eval_batch_size",
    }  # fmt: skip


def test_the_packages_scorer_pays_for_two_answers(committed):
    assert "1.00  -224\n0.00  224\n0.67  -224.0\n0.36  -224 or 224" in committed


def test_only_the_shortcut_pays_for_what_the_tool_wrote(committed):
    scored = re.findall(r"^shortcut (\S+), outcome (\S+): ", committed, re.MULTILINE)
    assert scored == [("1.0", "1.0"), ("1.0", "0.0"), ("1.0", "0.0"), ("1.0", "0.0")]


def test_the_tools_text_is_masked_and_the_calls_and_answers_are_not(committed):
    masked = re.findall(r"--- tool, masked\n(.*?)(?=--- model)", committed, re.DOTALL)
    own = re.findall(r"--- model, in the loss\n(.*?)(?=--- tool|\n\n)", committed, re.DOTALL)
    assert len(masked) == 1 and "<tool_response>" in masked[0] and "<tool_call>" in own[0]
    assert "<tool_response>" not in "".join(own)


def test_calls_that_worked_and_a_correct_answer_have_the_highest_advantages(committed):
    lines = re.findall(r"^advantage (\S+)  (.*)$", committed, re.MULTILINE)
    group = [(float(advantage), text) for advantage, text in lines]
    called = [advantage for advantage, text in group if text.startswith("(call) | ")]
    silent = [advantage for advantage, text in group if "(call)" not in text]
    assert len(group) == 8 and called and min(called) > max(silent, default=-9)
    best = max(group)[1]
    assert re.fullmatch(r"\(call\) \| (\d+) \| <answer>\1</answer>", best)


def test_both_runs_improve_and_a_reward_for_calls_makes_the_answers_worse(committed):
    evaluated = [(float(calls), int(right)) for calls, right in EVALUATED.findall(committed)]
    base, first, again, second, *_ = evaluated
    assert base == again and second[0] > first[0]
    changes = re.findall(rf"^[\w ]+ to [\w ]+: {CHANGE}$", committed, re.MULTILINE)
    assert [verdict for *_, verdict in changes] == ["improved", "improved", "got worse"]


def test_calls_fall_to_zero_while_the_reward_rises(committed, costly):
    (reward, right, calls) = [(float(first), float(last)) for first, last in costly]
    assert reward[1] > reward[0] + 0.5 and right[1] < right[0] and calls[1] <= 0.05 < calls[0]
    [step] = re.findall(r"step (\d+): [\d.]+ calls per episode", committed)
    assert int(step) < 20


def test_a_second_tool_lowers_the_calls_and_training_brings_them_back(committed):
    evaluated = [(float(calls), int(right)) for calls, right in EVALUATED.findall(committed)]
    (before, _), (calls, right), (_, later) = (evaluated[place] for place in (1, 4, 5))
    assert calls < before - 0.2 and later > right + 50


def test_an_environment_that_raises_is_told_and_its_steps_are_kept(committed):
    assert "calls that raised: 100%" in committed and "the model reads: {'error': " in committed
    assert "stopped after 2 steps: the server does not answer" in committed


def test_it_imports_no_unsloth(book):
    assert not [cell for cell in code_of(book) if "unsloth" in cell]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default."""
    folder: Path = tmp_path_factory.mktemp("other")
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "3", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.mark.upgrade
def test_every_override_arrives(other_family):
    assert "tiny-gemma3, on the CPU. Steps of a training run: 3" in other_family
    assert len(EVALUATED.findall(other_family)) == 6
    assert "stopped after 2 steps" in other_family
