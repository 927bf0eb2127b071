"""`probe` from a terminal, on a file that a user brings."""

import re
import sys
from functools import partial

import pytest
from grpo_check.probes.loading import find_reward, imports_from
from grpo_core.errors import CourseError

REWARDS = """
from grpo_utils import completion_text, correctness_reward, same_answer
from helpers import last

class Sound:
    __name__ = "sound"
    def __call__(self, completions, answer, **kwargs):
        return correctness_reward(completions, answer)

class Plain:
    pass

sound = Sound()
NUMBER = 3

def bad(completions, answer, **kwargs):
    return [float(a in completion_text(c)) for c, a in zip(completions, answer)]

def longer(completions, completion_ids, **kwargs):
    return [min(len(ids), 10_000) / 10_000 for ids in completion_ids]

def takes_one(completion):
    return 1.0

def runs(completions, tests, **kwargs):
    return [float(last(tests) in completion_text(c)) for c in completions]
"""
FILES = {
    "mine.py": REWARDS,
    "helpers.py": "def last(items):\n    return items[-1]\n",
    "notes.txt": "not Python",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("user")
    for name, text in FILES.items():
        (path / name).write_text(text)
    return path


@pytest.fixture
def probe(folder, monkeypatch, grpo_check):
    """The command `probe` in the user's folder."""
    monkeypatch.chdir(folder)
    return partial(grpo_check, "probe")


def test_a_sound_reward_exits_with_0(probe):
    code, said, _ = probe("mine.py:sound", "--answers", "42", "-5")
    assert code == 0 and said.startswith("ok: "), said


def test_a_bad_reward_exits_with_1_and_says_why(probe):
    code, said, _ = probe("mine.py:bad", "--answers", "42", "--answer-column", "answer")
    assert code == 1 and "error   wrong_beats_right" in said


def test_several_rewards_with_weights_are_judged_as_a_sum(probe):
    code, said, _ = probe("mine.py:sound", "mine.py:longer", "--weights", "0.01", "1", "--answers", "42")
    assert code == 1 and "sum of sound, longer" in said


def test_columns_and_tags_arrive(probe):
    _, said, _ = probe("mine.py:runs", "--answers", "yes", "no", "--column", "tests", '["yes", "no"]', "--tags")
    assert "format the answer alone" in said and "order_dependent" in said


WRONG = {
    "no such file": ("nine.py:sound", "There is no file 'nine.py'. Did you mean 'mine.py'?"),
    "no such folder": ("nowhere/mine.py:sound", "There is no file 'nowhere/mine.py'."),
    "no such function": ("mine.py:sund", "There is no 'sund' in mine.py. Did you mean 'sound'?"),
    "several rewards": ("mine.py", "mine.py has 4 rewards: Sound, bad, longer, runs."),
    "no reward": ("helpers.py", "helpers.py has no function with a parameter `completions`"),
    "an empty name": ("mine.py:", "'mine.py:' names no function"),
    "a class": ("mine.py:Plain", "'Plain' in mine.py is a class, and its objects are not rewards"),
    "a number": ("mine.py:NUMBER", "'NUMBER' in mine.py is a int, not a function."),
    "no Python": ("notes.txt:reward", "'notes.txt' is not a Python file"),
}


@pytest.mark.parametrize(("target", "message"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_file_is_one_sentence(target, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(CourseError, match=re.escape(message)), imports_from(folder):
        find_reward(target)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nine.py:sound",), "Error: There is no file 'nine.py'"),
        (("mine.py:takes_one",), "Error: takes_one(completion) has no parameter `completions`."),
        (("mine.py:runs",), "Error: runs needs 'tests', which TRL fills from a dataset column"),
        (("mine.py:runs", "--column", "tests", "yes"), "Error: column 'tests': 'yes' is not JSON"),
        (("mine.py:runs", "--column", "tests", '"yes"'), "is not a JSON list"),
        (("mine.py:sound", "--tags", "<a>"), "Error: tags=['<a>'] should be the four texts"),
        (("mine.py:sound", "mine.py:bad", "--weights", "1"), "Error: 1 weights were given for 2 rewards"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_mistake_on_the_command_line_is_one_sentence(arguments, message, probe):
    code, _, said = probe(*arguments)
    assert code == 2 and message in said and said.count("\n") == 1
