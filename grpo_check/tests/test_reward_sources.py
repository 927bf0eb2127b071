"""Rewards where they really are: in training scripts, notebooks and packages, made by functions, in classes."""

import inspect
import json
import sys
from pathlib import Path

import pytest
from grpo_check.probes.loading import find_reward, folders_of, how_loaded, imports_from
from grpo_check.probes.trying.discovery import forms_of
from grpo_core.errors import CourseError

#: A training script that must never run: it imports what is not there, loads a model, and leaves a file behind.
SCRIPT = '''
import argparse
import re
from no_such_trainer import NoSuchTrainer
from unsloth import FastLanguageModel

parser = argparse.ArgumentParser()
args = parser.parse_args()
model, tokenizer = FastLanguageModel.from_pretrained(model_name="some/model", load_in_4bit=True)
dataset = load_dataset("some/data")["train"]
open("it_ran", "w").close()

OPEN, CLOSE = "<final>", "</final>"
PATTERN = re.compile("first version")
WORDS = ["one"]
WORDS.append("two")
PATTERN = re.compile(rf"{OPEN}\\s*(-?[0-9]+)\\s*{CLOSE}")
shown = 0
eos = tokenizer.eos_token


def said(completion):
    found = PATTERN.search(completion[0]["content"])
    return found and found[1]


def correct(completions, answer, **kwargs):
    """Compares numbers."""
    global shown
    shown += 1
    model = [said(one) for one in completions]  # a name of the script, but not its value
    return [float(one == gold) for one, gold in zip(model, answer)]


def counts_words(completions, **kwargs):
    return [float(len(WORDS)) for _ in completions]


def ends(completions, **kwargs):
    return [float(one.endswith(eos)) for one in completions]


def known(completions, **kwargs):
    return [float(one in dataset) for one in completions]


def strict(completions, **kwargs):
    return [args.weight for _ in completions]


def trained(completions, **kwargs):
    return [float(isinstance(one, NoSuchTrainer)) for one in completions]


trainer = NoSuchTrainer(model, reward_funcs=[correct], train_dataset=dataset)
trainer.train()
PATTERN.pattern.no_such_attribute
'''


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Write files, and load a target from among them as the command line does; nothing may have run or be left."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    opened = []

    def add_and_load(target: str, **files: str):
        for name, text in files.items():
            path = tmp_path / name.replace("__in__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(path.suffix or ".py").write_text(text)
        context = imports_from(*folders_of(target), Path.cwd())
        context.__enter__()
        opened.append(context)
        return find_reward(target)

    before = list(sys.path), dict(sys.modules)
    yield add_and_load
    for context in reversed(opened):
        context.__exit__(None, None, None)
    left = [name for name in set(sys.modules) - set(before[1]) if str(tmp_path) in str(vars(sys.modules[name]))[:2000]]
    assert sys.path == before[0] and not left and not (tmp_path / "it_ran").exists()


def chat(text: str) -> list[dict]:
    return [{"role": "assistant", "content": text}]


def notebook(*cells: str) -> str:
    code = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["# def no(completions):"]}, *code]})


def test_a_reward_is_taken_from_a_training_script_that_does_not_run(load):
    reward = load("train.py:correct", train=SCRIPT)
    assert reward([chat("<final> 42 </final>"), chat("42")], answer=["42", "42"]) == [1.0, 0.0]
    assert "without running the rest" in how_loaded(reward)
    assert inspect.getsource(reward).startswith("def correct(") and "global shown" in inspect.getsource(reward)
    assert "<final>…</final>" in " ".join(map(str, forms_of(reward))).replace("⏎", "")


def test_a_list_that_the_script_fills_is_complete(load):
    assert load("train.py:counts_words", train=SCRIPT)(["x"]) == [2.0]


@pytest.mark.parametrize(
    ("name", "needed", "fix"),
    [
        ("ends", "tokenizer", "AutoTokenizer.from_pretrained('some/model')"),
        ("known", "dataset", "column"),
        ("strict", "args", "value"),
        ("trained", "no_such_trainer", "not installed"),
    ],
)
def test_what_a_reward_needs_and_cannot_have_is_named_with_its_line(name, needed, fix, load):
    with pytest.raises(CourseError) as caught:
        load(f"train.py:{name}", train=SCRIPT)
    said = str(caught.value)
    line = next(i for i, text in enumerate(SCRIPT.splitlines(), 1) if needed in text)
    assert repr(needed) in said and f"line {line}" in said and fix in said and "\n" not in said


def test_a_package_that_only_other_functions_need_may_be_missing(load):
    text = "import re\nimport no_such_judge\n\ndef other():\n    return no_such_judge\n\n"
    text += "def my_reward(completions, **kwargs):\n    return [float(bool(re.search('x', c))) for c in completions]\n"
    reward = load("rewards.py:my_reward", rewards=text)
    assert reward(["x", "y"]) == [1.0, 0.0] and not how_loaded(reward), "nothing but imports was left out"


NESTED = """
from pathlib import Path

def main(scale):
    bonus = 2.0

    def inner(completions, **kwargs):
        return [bonus for _ in completions]

    def scaled(completions, **kwargs):
        return [scale for _ in completions]

    Path("it_ran").touch()

if __name__ == "__main__":
    factor = 3.0

    def guarded(completions, **kwargs):
        return [factor for _ in completions]

    main(1.0)
"""


def test_a_reward_inside_main_is_found_if_it_does_not_read_its_arguments(load):
    assert load("train.py:inner", train=NESTED)(["x"]) == [2.0]
    assert load("train.py:guarded", train=NESTED)(["x"]) == [3.0]
    with pytest.raises(CourseError, match=r"inside main\(\), and needs 'scale'"):
        load("train.py:scaled", train=NESTED)


def test_a_notebook_without_its_magics_and_shell_lines(load):
    cells = [
        "%%capture\n!pip install trl \\\n    peft\nimport re",
        "%%bash\ntouch it_ran",
        "files = !touch it_ran\n%matplotlib inline\nre?\nDIGIT = re.compile('[0-9]')",
        "this cell is not Python",
        "def my_reward(completions, **kwargs):\n    if True:\n        !touch it_ran\n"
        "    return [float(bool(DIGIT.search(one))) for one in completions]",
        "open('it_ran', 'w')",
    ]
    reward = load("run.ipynb", **{"run.ipynb": notebook(*cells)})
    assert reward(["a 1", "b"]) == [1.0, 0.0] and "run.ipynb" in how_loaded(reward)
    assert "DIGIT.search" in inspect.getsource(reward)


def test_the_last_cell_that_defines_a_reward_counts(load):
    cells = [f"def f(completions, **kwargs):\n    return [{score}.0 for _ in completions]" for score in (1, 2)]
    assert load("run.ipynb:f", **{"run.ipynb": notebook(*cells)})(["x"]) == [2.0]


def test_a_cell_that_cannot_be_read_is_named_if_the_reward_is_not_found(load):
    with pytest.raises(CourseError, match=r"There is no 'f' .* cell 2 cannot be read"):
        load("run.ipynb:f", **{"run.ipynb": notebook("x = 1", "def f(completions: return 0")})


def test_an_error_in_a_notebook_names_the_cell(load):
    cells = ["x = 1", "y = 2\nz = 1 / 0", "def f(completions, **kwargs):\n    return [z]"]
    with pytest.raises(CourseError, match=r"ZeroDivisionError: division by zero \(cell 2, line 2\)"):
        load("run.ipynb:f", **{"run.ipynb": notebook(*cells)})


def test_colab_saves_shell_lines_in_a_python_file(load):
    text = "!pip install trl\n%cd work\ndef f(completions, **kwargs):\n    return [1.0 for _ in completions]\n"
    assert load("colab.py:f", colab=text)(["x"]) == [1.0]


def test_a_cell_of_marimo_is_a_function_without_being_one(load):
    text = "import marimo\napp = marimo.App()\n@app.cell\ndef _(app):\n    ONE = 1.0\n    return (ONE,)\n"
    text += "@app.cell\ndef _(ONE):\n    def f(completions, **kwargs):\n        return [ONE for _ in completions]\n"
    text += "@app.function\ndef g(completions, **kwargs):\n    return [2.0 for _ in completions]\n"
    assert load("run.py:f", run=text)(["x"]) == [1.0] and load("run.py:g", run=text)(["x"]) == [2.0]


REGISTERED = "from .words import ONE\nfrom ..top import TWO\n\ndef f(completions, **kwargs):\n    return [ONE + TWO]\n"


@pytest.mark.parametrize("inits", [True, False], ids=["package", "folders"])
def test_a_file_of_a_package_may_import_its_neighbors(inits, load):
    files = {"lab__in__a__in__mine": REGISTERED, "lab__in__a__in__words": "ONE = 1.0", "lab__in__top": "TWO = 2.0"}
    files |= {"lab__in____init__": "", "lab__in__a__in____init__": ""} if inits else {}
    assert load("lab/a/mine.py:f", **files)(["x"]) == [3.0]


def test_a_package_of_another_project_with_the_name_of_an_installed_one_is_not_mixed_with_it(load):
    files = {
        "yaml__in____init__": "",
        "yaml__in__mine": "from .words import ONE\nf = len\n",
        "yaml__in__words": "ONE = 1",
    }
    files["yaml__in__mine"] += "def g(completions): return [ONE]\n"
    with pytest.raises(CourseError, match="Python finds another yaml in"):
        load("yaml/mine.py:g", **files)


def test_a_file_may_import_from_the_root_of_its_project(load):
    files = {"tasks__in__deep__in__mine": "import shared_words\ndef f(completions): return [shared_words.ONE]\n"}
    assert load("tasks/deep/mine.py:f", **files, shared_words="ONE = 1.0")(["x"]) == [1.0]


KINDS = """
from functools import partial


def length_reward(completions, most=10, **kwargs):
    return [min(len(one) / most, 1.0) for one in completions]


def get_scaled(low=0.0, high=1.0):
    def scaled(completions, **kwargs):
        return [high if one else low for one in completions]

    return scaled


def get_partial(most=2):
    return partial(length_reward, most=most)


def get_window(size):
    return lambda completions, **kwargs: [float(size) for _ in completions]


def get_rewards(settings):
    REGISTRY = {"length": length_reward, "scaled": get_scaled(low=settings.low), "short": get_partial(4)}
    return [REGISTRY[name] for name in settings.names]


class Judged:
    def __call__(self, completions, solution, **kwargs):
        return [float(one == gold) for one, gold in zip(completions, solution)]


class Scaled:
    def __init__(self, power):
        self.power = power

    def __call__(self, completions, **kwargs):
        return [float(self.power) for _ in completions]


class Tools:
    @staticmethod
    def has_box(completions, **kwargs):
        return [float("box" in one) for one in completions]


orms = {}
orms["judged"] = Judged


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(solution_str == ground_truth)
"""


@pytest.mark.parametrize(
    ("target", "scores"),
    [
        ("length_reward", [0.3]),
        ("get_scaled", [1.0]),
        ("get_scaled(0.0, high=5.0)", [5.0]),
        ("get_partial", [1.0]),
        ("get_window(7)", [7.0]),
        ("length", [0.3]),
        ("short", [0.75]),
        ("Judged", [0.0]),
        ("judged", [0.0]),
        ("Scaled(2)", [2.0]),
        ("Tools.has_box", [1.0]),
        ("has_box", [1.0]),
    ],
)
def test_a_target_is_what_makes_a_reward_too(target, scores, load):
    assert load(f"kinds.py:{target}", kinds=KINDS)(completions=["box"], solution=["x"]) == scores


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("get_window", "get_window in kinds.py makes a reward, and needs size"),
        ("Scaled", "'Scaled' in kinds.py is a class that needs power"),
        ("scaled", r"is made with 'settings', .* 'kinds.py:get_scaled\(…\)'"),
        ("get_scaled(most)", "must be plain values"),
        ("get_scaled(most=1)", "cannot be called: TypeError"),
        ("orms", "is a dictionary of rewards, .*kinds.py:judged"),
        ("lenght_reward", "Did you mean 'length_reward'"),
        ("Tools", "its objects are not rewards"),
    ],
)
def test_what_makes_no_reward_says_what_to_write(target, message, load):
    with pytest.raises(CourseError, match=message) as caught:
        load(f"kinds.py:{target}", kinds=KINDS)
    assert "def get_" not in str(caught.value) and "\n" not in str(caught.value)


SHARES = """
import os

def main():
    calls = 0

    def counted(completions, **kwargs):
        nonlocal calls
        calls += 1
        return [float(calls) for _ in completions]

if __name__ == "__main__":
    os.environ["MODE"] = os.sys.argv[3]

def plain(completions, **kwargs):
    return [float(len(os.sep)) for _ in completions]
"""


def test_a_reward_that_counts_in_the_function_around_it_is_found_and_a_main_guard_is_not_run(load):
    assert load("shares.py:counted", shares=SHARES)(completions=["a"]) == [1.0]
    assert load("shares.py:plain", shares=SHARES)(completions=["a"]) == [1.0]


def test_the_wrapper_for_a_reward_of_verl_works(load):
    with pytest.raises(CourseError, match="reward of verl") as caught:
        load("kinds.py:compute_score", kinds=KINDS)
    code = "\n".join(line[4:] for line in str(caught.value).splitlines()[1:])
    reward = load("wrapped.py:as_trl", wrapped=f"from kinds import compute_score\n{code}\n")
    assert reward(completions=["a", chat("b")], answer=["a", "a"]) == [1.0, 0.0]


def test_a_config_next_to_its_rewards_may_name_a_call(tmp_path, monkeypatch):
    from grpo_check.preflights.named_rewards import _found

    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "kinds.py").write_text(KINDS)
    target = _found("kinds.py:get_window('a:b')", Path("sub"))
    assert target == f"{Path('sub') / 'kinds.py'}:get_window('a:b')"


def test_two_rewards_of_one_notebook_and_none(load):
    text = notebook("def f(completions): 0", "def g(completions): 0", "def _h(completions): 0")
    with pytest.raises(CourseError, match="has 2 rewards: f, g"):
        load("run.ipynb", **{"run.ipynb": text})
    with pytest.raises(CourseError, match="no function with a parameter `completions`"):
        load("none.py", none="def score(text): 0")
