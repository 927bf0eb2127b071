"""Lesson 00 as readers run it: the committed notebook, and the same with other parameters."""

import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said, text_of

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


def test_the_text_says_what_the_stored_evaluations_say(book):
    text, printed = text_of(book), said(book)
    before, after = rates("strict accuracy", printed)
    assert before["high"] < after["low"], "the two intervals do not overlap"
    assert f"rose from {before['value']:.2f} to {after['value']:.2f}, and the two" in text
    formatted, _ = rates("correctly formatted", printed)
    assert f"Only {formatted['hits']} of the 100 answers have it" in text
    assert f"formatted and correct, here {before['hits']} of 100." in text


def test_the_text_says_what_the_five_answers_say(book):
    shown = re.findall(r"^What is (\d+) \+ (\d+)\? -> (.*)$", said(book), re.MULTILINE)
    right = [is_strictly_right(answer, str(int(a) + int(b))) for a, b, answer in shown]
    assert len(right) == 10 and sum(right[5:]) == 4 and all("</answer>" in answer for *_, answer in shown[5:])
    assert "<answer>21<" in shown[1][2] and "6+5=12" in shown[6][2]  # the two that the text quotes


def test_the_text_says_what_the_bar_and_the_curve_say(book):
    text = text_of(book)
    reward, correct, tied = re.search(r"25/25 .*reward=(\S+), correct=(\S+), tied=(\S+)", said(book)).groups()
    assert f"mean `reward` was {reward} out of 3, and {float(correct):.0%} of the completions" in text
    assert f"In {float(tied):.0%} of the groups, all completions earned the full score" in text
    alts = [o.data["text/plain"] for c in book.cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
    [curve] = [alt for alt in alts if alt.startswith("Mean rewards")]
    assert all(
        float(first) < 0.5 and float(last) > 0.95 for first, last in re.findall(r"(\d\.\d+) to (\d\.\d+)", curve)
    )


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
