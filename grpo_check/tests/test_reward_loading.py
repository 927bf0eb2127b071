"""A user's reward file: whatever its name is, it replaces no module, and none of its own is left behind."""

import importlib.util
import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from grpo_check.probes import loading
from grpo_check.probes.loading import find_reward, folders_of, imports_from
from grpo_core.errors import CourseError

SOUND = """
from grpo_utils import correctness_reward

def my_reward(completions, answer, **kwargs):
    return correctness_reward(completions, answer)
"""
HELPED = """
from dataclasses import dataclass
import helpers

@dataclass
class Point:
    x: "int"

def point(x):
    return Point(x)

def my_reward(completions, **kwargs):
    import later
    return [later.SCORE + helpers.ZERO for _ in completions]
"""


def load_reward(target: str, *folders: Path):
    """What the command line does before it probes."""
    with imports_from(*folders_of(target), *folders):
        return find_reward(target)


def state() -> tuple:
    """What a user's file must leave as it is."""
    streams = sys.stdin, sys.stdout, sys.stderr
    return list(sys.path), dict(sys.modules), list(sys.argv), streams


@pytest.fixture
def write(tmp_path):
    """Write files of a user; afterwards there is nothing but them and what Python compiled."""
    written = {}

    def add(name: str, text: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        written[path.name] = path
        return path

    yield add
    assert {path.name for path in tmp_path.iterdir()} - {"__pycache__"} == set(written)


@pytest.mark.parametrize("name", ["random", "json", "numpy", "trl", "grpo_utils", "types"])
def test_a_file_with_the_name_of_a_module_does_not_replace_it(name, write):
    found, before = importlib.util.find_spec(name).origin, state()
    reward = load_reward(f"{write(f'{name}.py', SOUND)}:my_reward")
    assert reward(["<reasoning>x</reasoning><answer>42</answer>"], answer=["42"]) == [1.0]
    assert state() == before and importlib.util.find_spec(name).origin == found


def test_a_neighbor_with_the_name_of_a_module_does_not_replace_it(write):
    write("colorsys.py", "raise RuntimeError('the wrong one')")
    sys.modules.pop("colorsys", None)
    assert load_reward(f"{write('mine.py', 'from colorsys import rgb_to_hsv')}:rgb_to_hsv")(0, 0, 0) == (0, 0, 0)


def test_loading_leaves_everything_as_it_was(write):
    write("helpers.py", "ZERO = 0.0")
    write("later.py", "SCORE = 1.0")
    mine, before = write("mine.py", HELPED), state()
    assert callable(load_reward(f"{mine}:my_reward")) and state() == before
    with imports_from(mine.parent):
        assert find_reward(f"{mine}:my_reward")(["42"]) == [1.0], "a neighbor is imported when the reward is called"
        point = find_reward(f"{mine}:point")(3)
        assert pickle.loads(pickle.dumps(point)) == point
    assert state() == before


def test_two_files_of_one_name_have_their_own_neighbors(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helpers.py").write_text(f"def name():\n    return {folder!r}")
        (tmp_path / folder / "rewards.py").write_text("from helpers import name")
    assert [load_reward(f"{tmp_path / folder}/rewards.py:name")() for folder in ("a", "b")] == ["a", "b"]


def test_a_module_is_found_in_a_folder_that_is_given_and_only_there(write):
    folder, before = write("mine_only.py", SOUND).parent, state()
    assert load_reward("mine_only.my_reward", folder).__name__ == "my_reward" and state() == before
    with pytest.raises(CourseError, match="No module named 'mine_only'"):
        load_reward("mine_only.my_reward")
    write("random.py", SOUND)
    with pytest.raises(CourseError, match=r"There is no 'my_reward' in random \(.*lib/python.*random.py\)"):
        load_reward("random.my_reward", folder)


def test_what_a_file_prints_is_not_part_of_the_report(write, capsys):
    load_reward(f"{write('mine.py', 'print(chr(33) * 3)' + SOUND)}:my_reward")
    shown = capsys.readouterr()
    assert shown.out == "" and "!!!" not in shown.err


#: Files whose reward cannot be used, and what is said of them.
BROKEN = {
    "a syntax error": ("def reward(:\n", "cannot be imported: SyntaxError: invalid syntax"),
    "bytes that are not UTF-8": (b"NAME = 'caf\xe9'\n", "cannot be imported: SyntaxError: "),
    "a package that is not there": (
        "import no_such_package\ndef f(completions): return no_such_package.score(completions)\n",
        "needs the module 'no_such_package' (line 1), which is not installed here.",
    ),
    "a zero byte": (b"x = 1\0\n", "cannot be imported: "),
    "sys.argv": (
        "import sys\nN = int(sys.argv[1])\ndef f(completions): return [N]\n",
        "IndexError: list index out of range (line 2). During the import",
    ),
    "a command line": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('model')\na = p.parse_args()\n"
        "def f(completions): return [a.score]\n",
        "needs 'a', and line 4 would run p.parse_args()",
    ),
    "an exception": ("score = 1 / 0\ndef f(): 0\n", "ZeroDivisionError: division by zero (line 1)."),
    "an exception of its own kind": (
        "class Stop(BaseException): pass\nraise Stop('no')\ndef f(): 0\n",
        "Stop: no (line 2).",
    ),
    "a question": ("name = input('Which? ')\ndef f(): return name\n", "line 1 would run input('Which? ')"),
    "no such name": ("def grade(completions): 0\ndef g(): 0", "There is no 'f' in "),
    "no function": ("f = [1.0]\n", "is a list, not a function."),
    "an endless loop": ("f = [0 for _ in iter(int, 1)]\n", "not finished after 0.2 seconds."),
    "an endless recursion": ("def f(): return f()\nf()\n", "RecursionError: maximum recursion depth exceeded"),
    "a broken neighbor": (
        "import broken_neighbor\nf = broken_neighbor.f\n",
        "cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "a notebook that is none": (b"{}", "is not a notebook that Jupyter can read"),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_one_sentence_and_leaves_nothing_behind(text, message, write, monkeypatch):
    monkeypatch.setattr(loading, "LONGEST_IMPORT", 0.2 if "iter(int" in str(text) else 60)
    write("broken_neighbor.py", "import nowhere\n")
    mine, before = write("mine.ipynb" if text == b"{}" else "mine.py", text), state()
    with pytest.raises(CourseError, match=re.escape(message)) as caught:
        load_reward(f"{mine}:f")
    assert state() == before and "\n" not in str(caught.value)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(CourseError, match="is a folder; name a file in it"):
        load_reward(f"{tmp_path}:my_reward")


def test_probe_takes_a_file_named_like_a_module_from_its_own_folder(write):
    path = write("random.py", SOUND)
    command = [sys.executable, "-m", "grpo_check", "probe", "random.py:my_reward", "--answers", "42"]
    run = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout.startswith("ok: ") and not run.stderr, run.stderr
