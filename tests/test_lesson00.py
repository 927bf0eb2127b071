"""Lesson 00 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU
from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "00_start.ipynb"
RATE = r"(\d\.\d{3}) \((\d\.\d{3}) to (\d\.\d{3})\), (\d+) of 100$"
#: Settings that change nothing about a run of 25 steps without a GPU: files, evaluation during training, spellings.
HOUSEKEEPING = {"output_dir", "save_steps", "save_total_limit", "per_device_eval_batch_size", "logging_nan_inf_filter"}
SAME = {"epsilon_high", "router_aux_loss_coef"}  # None is epsilon, and nothing for a model without experts


@pytest.fixture(scope="module")
def book():
    return nbformat.read(LESSON, as_version=4)


def rates(name: str, text: str) -> list[dict]:
    """A printed rate before and after training."""
    found = re.findall(rf"^{name}: +{RATE}", text, re.MULTILINE)
    return [dict(value=float(v), low=float(low), high=float(high), hits=int(n)) for v, low, high, n in found]


def cell_with(book, words: str) -> str:
    return next(cell.source for cell in book.cells if cell.cell_type == "code" and words in cell.source)


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]


def test_accuracy_rose_beyond_the_intervals(book):
    before, after = rates("strict accuracy", said(book))
    assert before["high"] < after["low"]


def test_a_sample_of_the_base_model_has_the_style_that_is_learned(book):
    shown = re.findall(r"^What is (\d+) \+ (\d+)\? -> (.*)$", said(book), re.MULTILINE)
    right = [is_strictly_right(answer, str(int(a) + int(b))) for a, b, answer in shown]
    assert len(right) == 10 and sum(right[5:]) > sum(right[:5])
    columns = [", " in answer for *_, answer in shown]
    assert sum(columns[5:]) > sum(columns[:5])
    count, sample, reward = re.search(r"^(\d+) of 100 answers, such as (.*)\nreward: (.*)$", said(book), re.M).groups()
    assert 0 < int(count) < 50 and ", " in sample and float(reward) == 3.0


def test_all_rewards_rise(book):
    alts = [o.data["text/plain"] for c in book.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    [curve] = [alt for alt in alts if alt.startswith("Mean rewards")]
    ends = re.findall(r"(\d\.\d+) to (\d\.\d+)", curve)
    assert len(ends) == 3 and all(float(first) < 0.5 and float(last) > 0.95 for first, last in ends)


def test_the_advantages_are_those_of_the_picture(book):
    [loop] = [o.data["text/plain"] for c in book.cells if 'diagram("loop")' in c.source for o in c.outputs]
    shown = re.findall(r"advantage: (\S+)", said(book))
    assert len(shown) == 4 and ", ".join(shown).replace("-", "−") in loop


def test_its_settings_are_those_of_the_cpu_profile(book, tmp_path):
    from trl import GRPOConfig

    names = dict(run=SimpleNamespace(steps=25), factors=[2.0, 0.5, 0.5], SEED=0)
    exec(cell_with(book, "config = GRPOConfig("), names)
    wanted = training_arguments(CPU, max_steps=25, reward_weights=[2.0, 0.5, 0.5], seed=0, output_dir=str(tmp_path))
    ours, profile = names["config"].to_dict(), GRPOConfig(**wanted).to_dict()
    assert {key for key in profile if ours[key] != profile[key]} <= HOUSEKEEPING | SAME


@pytest.mark.upgrade
def test_every_override_arrives_and_the_other_family_learns_too(book, tmp_path):
    pairs = ["-p", "PROFILE", "cpu", "-p", "FAMILY", "gemma", "-p", "STEPS", "20", "-p", "SEED", "5"]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *pairs]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert "Model: tiny-gemma3, on the CPU" in result.stdout and "20/20" in result.stdout
    before, after = rates("strict accuracy", result.stdout)
    assert before["value"] + 0.2 < after["value"]
    question = re.compile(r"^What is \d+ \+ \d+\?", re.MULTILINE)
    assert question.findall(result.stdout) != question.findall(said(book))


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["", "", "", ""], "not attempted yet"),
        (["SFT", "grpo ", "prompt", "dpo"], "correct."),
        (["sft", "grpo", "sft", "dpo"], "Hint: c: has anybody asked"),
        (["dpo", "grpo", "sft", "dpo"], "Hint: a: you have examples"),
    ],
)
def test_exercise_1_names_the_first_wrong_task(book, capsys, words, answer):
    exec(cell_with(book, "def first_mistake"), {"answers": dict(zip("abcd", words, strict=True))})
    assert answer in capsys.readouterr().out
