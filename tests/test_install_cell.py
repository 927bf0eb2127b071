"""The install cell in a faked Colab and a faked Kaggle: only pip is replaced, by one that records its arguments."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from course import ROOT
from install_cell import CELL, MARKS, expand, install_cell, refreshed, with_address
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ADDRESS = "https://github.com/somebody/grpo-course"
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
#: `python -m pip` finds this first: a line per call, and one exit status after the other.
FAKE_PIP = """
import json, os, sys
calls = open(os.environ["PIP_CALLS"], "a+")
calls.write(json.dumps(sys.argv[1:]) + "\\n")
calls.seek(0)
statuses = json.loads(os.environ["PIP_STATUSES"])
sys.exit(statuses[len(calls.readlines()) - 1])
"""
#: Colab has a %pip of its own, which starts `pip`, not `python -m pip` (google/colab/_installation_commands.py).
COLABS_PIP = """
shell.register_magic_function(lambda line: shell.system(f"pip {line}"), magic_kind="line", magic_name="pip")
"""
KERNEL = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
if "COLAB_RELEASE_TAG" in __import__("os").environ:
    {colab}
result = shell.run_cell(sys.stdin.read())
print("STOPPED:" if result.error_in_exec else "WENT ON", result.error_in_exec or "", file=sys.stderr)
"""


@pytest.fixture
def session(tmp_path):
    """Runs a cell in a new session there; what pip was asked for, and how the cell ended."""
    folder, fakes = tmp_path / "content", tmp_path / "fakes"
    (fakes / "pip").mkdir(parents=True)
    folder.mkdir()
    (fakes / "pip" / "__main__.py").write_text(FAKE_PIP)
    (fakes / "pip" / "__init__.py").touch()
    script = fakes / "bin" / "pip"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    script.chmod(0o755)

    def run(cell: str, where: str = "COLAB_RELEASE_TAG", statuses: tuple = (0, 0), wheels: tuple = ()):
        calls = tmp_path / "calls"
        for name in wheels:
            (folder / name).touch()
        here = {where: "x"} if where else {}
        paths = {"PYTHONPATH": str(fakes), "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}"}
        pip = {"PIP_CALLS": str(calls), "PIP_STATUSES": json.dumps(statuses), "IPYTHONDIR": str(fakes / "ipython")}
        code = KERNEL.format(colab=COLABS_PIP.strip())
        how = dict(cwd=folder, env=os.environ | here | paths | pip, capture_output=True, text=True, timeout=60)
        done = subprocess.run([sys.executable, "-c", code], input=cell, **how)
        asked = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
        return asked, done.stderr.strip().splitlines()[-1]

    return run


WHEELS = ("grpo_check-0.1.0-py3-none-any.whl", "grpo_utils-0.1.0-py3-none-any.whl")


def both(address: str, extras: str = "colab") -> list[str]:
    """What pip is asked for: grpo-check, then the course, from a repository."""
    checks = f"grpo-check @ git+{address}#subdirectory=grpo_check"
    return ["install", "-q", checks, f"grpo_utils[{extras}] @ git+{address}"]


def from_wheels(folder: Path) -> list[str]:
    """The same, from wheels in a folder."""
    checks, course = ((folder / name).as_uri() for name in WHEELS)
    return ["install", "-q", f"grpo-check @ {checks}", f"grpo_utils[colab] @ {course}"]


UNSLOTH = ["install", "-q", "--no-deps", "unsloth==2026.10.9", "unsloth_zoo==2026.10.9"]
PLACES = pytest.mark.parametrize("where", ["COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"])


@PLACES
def test_with_an_address_the_course_comes_from_there(session, where):
    asked, ended = session(install_cell(ADDRESS), where)
    assert asked == [both(ADDRESS)] and ended.startswith("WENT ON")


def test_reasoning_gym_comes_second_and_without_its_dependencies(session):
    asked, ended = session(install_cell(ADDRESS, "reasoning-gym"))
    alone = ["install", "-q", "--no-deps", "reasoning-gym==0.1.25"]
    assert asked == [both(ADDRESS), alone] and ended.startswith("WENT ON")


@PLACES
def test_unsloth_comes_second_and_without_its_dependencies(session, where):
    asked, ended = session(install_cell(ADDRESS, "unsloth"), where)
    assert asked == [both(ADDRESS, "colab,unsloth"), UNSLOTH] and ended.startswith("WENT ON")


def test_a_repo_set_by_hand_is_used(session):
    cell = install_cell("")
    assert cell.startswith('REPO = ""')
    asked, _ = session(cell.replace('REPO = ""', 'REPO = "a-school/its-copy"'))
    assert asked == [both("https://github.com/a-school/its-copy")]


@pytest.mark.parametrize("address", [ADDRESS, ""])
def test_wheels_next_to_the_notebook_win(session, address, tmp_path):
    asked, ended = session(install_cell(address), wheels=WHEELS)
    assert asked == [from_wheels(tmp_path / "content")] and ended.startswith("WENT ON")


@PLACES
def test_one_wheel_alone_is_not_enough(session, where):
    asked, ended = session(install_cell(""), where, wheels=WHEELS[1:])
    assert not asked and "upload grpo_check*.whl and grpo_utils*.whl" in ended


def test_on_kaggle_the_wheels_are_found_in_an_uploaded_dataset(session, tmp_path):
    uploaded = tmp_path / "input" / "datasets" / "grpo"
    uploaded.mkdir(parents=True)
    for name in WHEELS:
        (uploaded / name).touch()
    cell = install_cell("").replace("/kaggle/input", str(tmp_path / "input"))
    asked, _ = session(cell, "KAGGLE_KERNEL_RUN_TYPE")
    assert asked == [from_wheels(uploaded)]


@PLACES
def test_with_nothing_to_install_from_it_stops_and_names_each_way(session, where):
    asked, ended = session(install_cell("", "unsloth"), where)
    assert not asked and ended.startswith("STOPPED: To install the course, ")
    assert all(way in ended for way in ("owner/name", "REPO", "grpo_utils*.whl", "`make wheel`", "badge", "again"))


def test_run_all_ends_there_and_shows_one_sentence_without_a_traceback(tmp_path, monkeypatch):
    monkeypatch.setenv("COLAB_RELEASE_TAG", "x")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = new_notebook(cells=[new_code_cell(install_cell("")), new_code_cell("print('went on')")])
    with pytest.raises(CellExecutionError):
        NotebookClient(book, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    [[shown], nothing] = [cell.outputs for cell in book.cells]
    assert shown.output_type == "error" and shown.traceback == [shown.evalue] and not nothing
    assert shown.evalue.startswith("To install the course, ") and "\n" not in shown.evalue


@PLACES
@pytest.mark.parametrize("statuses", [(1, 0), (0, 1)])
def test_a_pip_that_fails_stops_the_notebook(session, where, statuses):
    asked, ended = session(install_cell(ADDRESS, "unsloth"), where, statuses)
    assert len(asked) == 1 + statuses[1], "nothing is installed after a failure"
    assert ended == "STOPPED: pip failed: see its error above, then run this cell again."


def test_elsewhere_it_does_nothing(session):
    asked, ended = session(install_cell(ADDRESS, "unsloth"), where="")
    assert not asked and ended.startswith("WENT ON")


# The cell in the lessons


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_has_it_once_and_only_three_install_more(lesson):
    cells = [cell.source for cell in nbformat.read(lesson, as_version=4).cells if "%pip" in cell.source]
    source = (ROOT / "notebooks" / "source" / f"{lesson.stem}.py").read_text(encoding="utf-8")
    marks = [line for line in source.splitlines() if line in MARKS]
    assert len(cells) == len(marks) == 1
    more = {"03_grpo_lora": "unsloth", "13_tools": "reasoning-gym", "05_real_model": "unsloth"}
    assert MARKS[marks[0]] == more.get(lesson.stem, "")
    assert with_address(cells[0], ADDRESS) == expand(marks[0], ADDRESS)


def test_another_address_changes_the_first_line_alone():
    before, now = (
        install_cell(ADDRESS, "unsloth"),
        with_address(install_cell(ADDRESS, "unsloth"), "https://github.com/x/y"),
    )
    assert now.splitlines()[0].startswith('REPO = "x/y"') and now.splitlines()[1:] == before.splitlines()[1:]
    assert with_address(install_cell(ADDRESS, "unsloth"), "") == install_cell("", "unsloth")
    assert with_address("REPO = 1", ADDRESS) == expand("REPO = 1", ADDRESS) == "REPO = 1"


def test_a_built_lesson_gets_the_cell_of_today_and_keeps_its_address_and_all_else():
    [mark] = [line for line in MARKS if "unsloth" in line]
    text, output = new_markdown_cell("REPO"), nbformat.v4.new_output("stream", text="hello")
    cells = [text, new_code_cell(with_address(CELL, ADDRESS).replace("git+", "")), new_code_cell("1", outputs=[output])]
    old = nbformat.writes(new_notebook(cells=cells)) + "\n"
    book = nbformat.reads(refreshed(old, f"# %%\n{mark}\n"), as_version=4)
    assert book.cells[1].source == install_cell(ADDRESS, "unsloth")
    assert [book.cells[0], book.cells[2]] == [cells[0], cells[2]]
    book.cells[1].source = cells[1].source
    assert nbformat.writes(book) + "\n" == old


def test_the_extras_it_asks_for_exist():
    asked = set(re.findall(r"grpo_utils\[([\w,]+)\]", CELL + install_cell("", "unsloth")))
    assert asked == {"colab", "colab,unsloth"}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in ("colab", "unsloth"))
