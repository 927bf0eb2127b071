"""Reward files that misbehave give preflight one clear error each, and leave nothing behind."""

import random
import re
import sys
from pathlib import Path

import pytest
from grpo_check.preflights.config_file import preflight_file
from grpo_core.errors import CourseError
from preflight_runs import SOUND

RIGHT = """
from grpo_utils import correctness_reward

def right(completions, answer, **kwargs):
    return correctness_reward(completions, answer)
"""
SCALED = RIGHT.replace("return correct", "return SCALE and correct")
#: Files that cannot be used: what they hold, and what is said of them; test_reward_loading.py has more.
BAD = {
    "leaves": ("import sys\nSCALE = sys.exit(3)\n" + SCALED, "SystemExit: 3"),
    "needs": ("import no_such_package\nSCALE = no_such_package.SCALE\n" + SCALED, "'no_such_package'"),
    "empty": ("", "'right'"),
}
#: Files that can be used although they do odd things while they are imported.
GOOD = {
    "prints": "print('hello')\n" + RIGHT,
    "adds_a_path": "import sys\nsys.path.insert(0, '/nowhere')\n" + RIGHT,
    "needs_neighbor_later": RIGHT.replace("    return", "    import neighbor\n    return"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name, (text, _) in BAD.items():
        (tmp_path / f"{name}.py").write_text(text)
    for name, text in {**GOOD, "random": RIGHT, "neighbor": "number = 3\n"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "argv", ["pytest"])
    return tmp_path


def report_on(folder, reward):
    (folder / "config.yaml").write_text(SOUND.replace("mine.py:right", reward))
    return preflight_file(folder / "config.yaml")


@pytest.fixture
def nothing_left(folder):
    """Fails if the paths, the arguments or the user's modules are not as they were."""
    path, paths, argv = sys.path, list(sys.path), list(sys.argv)
    yield
    assert sys.path is path and sys.path == paths and sys.argv == argv
    left = [name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", None) or "")]
    assert not left, left
    assert sys.modules["random"] is random


@pytest.mark.parametrize("form", ["{}.py:right", "{}.right"])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_reward_file_is_one_clear_error(name, form, folder, nothing_left):
    [finding] = report_on(folder, form.format(name)).errors
    assert finding.code == "reward_not_found" and BAD[name][1] in finding.what and name in finding.what
    assert "Traceback" not in finding.what and len(finding.what.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["{}.py:right", "{}.right"])
@pytest.mark.parametrize("name", GOOD)
def test_a_reward_file_that_does_odd_things_is_tried_and_forgotten(name, form, folder, nothing_left, capsys):
    report = report_on(folder, form.format(name))
    assert report.ok and not report.skipped.keys() & {"rewards", "the rewards"}, str(report)
    assert "hello" not in capsys.readouterr().out


def test_a_reward_file_with_the_name_of_a_standard_module_shadows_nothing(folder, nothing_left):
    assert report_on(folder, "random.py:right").ok
    [finding] = report_on(folder, "random.right").errors
    assert re.search("There is no 'right' in random .*python", finding.what)


def test_the_folder_of_a_config_does_not_stay_on_the_path_when_something_else_fails(folder, nothing_left):
    (folder / "config.yaml").write_text(SOUND.replace("mine.py:right", "prints.right") + "num_processes: two")
    with pytest.raises(CourseError, match="processes='two'"):
        preflight_file(folder / "config.yaml")


@pytest.mark.parametrize("names", ["{a: 1}", "3", "true", "[3]", "[null]"])
def test_rewards_that_are_not_names_are_a_finding(names, folder, nothing_left):
    (folder / "config.yaml").write_text(SOUND.replace('["mine.py:right"]', names))
    assert {finding.code for finding in preflight_file(folder / "config.yaml").errors} == {"wrong_type"}


@pytest.mark.parametrize("name", ["", ":", ".", "a.py:"])
def test_names_of_rewards_that_are_none_are_one_sentence(name, folder, nothing_left):
    assert {finding.code for finding in report_on(folder, name).errors} == {"reward_not_found"}
