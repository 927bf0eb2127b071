"""Lesson 00 as readers run it: the committed notebook, and the same with other parameters."""

import re

import pytest
from course import ROOT
from lessons import alt_texts, defined_by, run_other_family, run_with_nbval

from grpo_utils import check_exercise
from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "00_start.ipynb"
RATE = r"(\d\.\d{3}) \((\d\.\d{3}) to (\d\.\d{3})\), (\d+) of 100$"


def rates(name: str, text: str) -> list[dict]:
    """A printed rate before and after training."""
    found = re.findall(rf"^{name}: +{RATE}", text, re.MULTILINE)
    return [dict(value=float(v), low=float(low), high=float(high), hits=int(n)) for v, low, high, n in found]


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_accuracy_rose_beyond_the_intervals(printed):
    before, after = rates("strict accuracy", printed)
    assert before["high"] < after["low"]


def test_a_sample_of_the_base_model_has_the_style_that_is_learned(printed):
    shown = re.findall(r"^What is (\d+) \+ (\d+)\? -> (.*)$", printed, re.MULTILINE)
    right = [is_strictly_right(answer, str(int(a) + int(b))) for a, b, answer in shown]
    assert len(right) == 10 and sum(right[5:]) > sum(right[:5])
    columns = [", " in answer for *_, answer in shown]
    assert sum(columns[5:]) > sum(columns[:5])
    [count] = re.findall(r"^(\d+) of 100 answers have the last style\.$", printed, re.MULTILINE)
    paid = re.findall(r"^(\d\.\d+)  (.*42.*)$", printed, re.MULTILINE)
    assert 0 < int(count) < 50 and len(paid) == 5 and ", " in paid[-1][1] and float(paid[-1][0]) == 3.0


def test_the_answers_end_in_the_right_number_more_often(printed):
    before, after = map(int, re.findall(r"^ends in the right number: (\d+) of 100$", printed, re.MULTILINE))
    assert before + 10 < after


def test_the_form_comes_with_correctness(printed):
    [(formatted, right)] = re.findall(
        r"^correctness alone: (\d+) formatted, (\d+) of them correct$", printed, re.MULTILINE
    )
    assert int(formatted) > 80 and int(right) > 80


def test_all_rewards_rise(book):
    [curve] = [alt for alt in alt_texts(book) if alt.startswith("Mean rewards")]
    ends = re.findall(r"(\d\.\d+) to (\d\.\d+)", curve)
    assert len(ends) == 3 and all(float(first) < 0.5 and float(last) > 0.95 for first, last in ends)


def test_the_advantages_are_those_of_the_picture(book, printed):
    [loop] = [o.data["text/plain"] for c in book.cells if 'diagram("loop")' in c.source for o in c.outputs]
    shown = re.findall(r"advantage: (\S+)", printed)
    assert len(shown) == 4 and ", ".join(shown).replace("-", "−") in loop


@pytest.mark.upgrade
def test_every_override_arrives_and_the_other_family_learns_too(printed, tmp_path):
    shown = run_other_family(LESSON, tmp_path, STEPS=20)
    assert "tiny-gemma3" in shown and "20/20" in shown
    before, after = rates("strict accuracy", shown)
    assert before["value"] + 0.2 < after["value"]
    question = re.compile(r"^What is \d+ \+ \d+\?", re.MULTILINE)
    assert question.findall(shown) != question.findall(printed)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["", "", "", ""], "nothing is filled in yet"),
        (["SFT", "grpo ", "prompt", "dpo"], "correct."),
        (["sft", "grpo", "sft", "dpo"], "Hint: c:"),
        (["dpo", "grpo", "sft", "dpo"], "Hint: a:"),
    ],
)
def test_exercise_1_names_the_first_wrong_task(book, words, answer):
    names = defined_by(book, "def first_mistake", answers=dict(zip("abcd", words, strict=True)))
    assert answer in check_exercise("1", names["first_mistake"], [((), "none")], names["HINTS"])
