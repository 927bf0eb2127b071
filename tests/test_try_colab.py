"""`make colab-cpu` finds the Python of an image, and says when it finds none; the lesson itself runs in .ci/run."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import try_colab
import yaml
from course import ROOT
from nbformat.v4 import new_code_cell, new_output
from try_colab import PACKAGES, PLACES, TORCH, candidates, constraints, find_python, is_python, pip_errors

HERE = "{}.{}".format(*sys.version_info)


@pytest.fixture
def pyenv(tmp_path):
    """A folder like pyenv's, with these versions."""
    for name in ("3.12.1", "3.13.0", "3.13.9", "3.13.10", "3.13.10t", "3.13-dev", "3.1.3"):
        (tmp_path / "versions" / name / "bin").mkdir(parents=True)
    return tmp_path


def test_on_path_comes_before_pyenvs_newest(pyenv):
    found = candidates("3.13", "shims/python3.13", pyenv)
    names = [path.parts[-3] for path in found[1:]]
    assert found[0] == Path("shims/python3.13") and names == ["3.13.10", "3.13.9", "3.13.0"]
    assert candidates("3.11", None, pyenv) == [] == candidates("3.13", None, pyenv / "no-such-folder")


def test_colabs_python_is_preferred_and_one_that_does_not_run_is_passed_over(pyenv):
    def on_path(name: str) -> str:
        return f"shims/{name}"

    def none(name: str) -> None:
        return None

    def no_shim(path: Path, version: str) -> bool:
        return path.parent.name != "shims"

    wanted = ["3.13", "3.12"]
    assert find_python(wanted, pyenv, on_path, lambda *_: True) == ("3.13", Path("shims/python3.13"))
    assert find_python(wanted, pyenv, on_path, no_shim)[1].parts[-3] == "3.13.10"
    assert find_python(["3.14", "3.12"], pyenv, none, no_shim)[0] == "3.12"
    assert find_python(["3.14"], pyenv, none, no_shim) is None


def test_a_python_is_asked_for_its_version(tmp_path):
    shim = tmp_path / f"python{HERE}"
    shim.write_text("#!/bin/sh\necho 'command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    assert is_python(Path(sys.executable), HERE) and not is_python(Path(sys.executable), "3.99")
    assert not is_python(shim, HERE) and not is_python(tmp_path / "nothing", HERE)


@pytest.mark.parametrize(("where", "code"), [("", 0), ("true", 1)])
def test_without_a_python_nothing_runs_which_is_an_error_on_github(where, code, monkeypatch, capsys):
    monkeypatch.setenv("GITHUB_ACTIONS", where)
    monkeypatch.setattr(sys, "argv", ["try_colab.py"])
    monkeypatch.setattr(try_colab, "find_python", lambda *_: None)
    with pytest.raises(SystemExit) as ended:
        try_colab.main()
    said = capsys.readouterr().out
    assert ended.value.code == code and said.splitlines()[-1].endswith("has no Python 3.13 or 3.12")


def test_a_failure_is_an_error_and_the_last_line(monkeypatch, capsys):
    def fail(*_):
        raise try_colab.Failure("the reason")

    monkeypatch.setattr(sys, "argv", ["try_colab.py"])
    monkeypatch.setattr(try_colab, "find_python", lambda *_: ("3.13", Path("python3.13")))
    monkeypatch.setattr(try_colab, "try_lesson", fail)
    with pytest.raises(SystemExit) as ended:
        try_colab.main()
    said = capsys.readouterr().out
    assert ended.value.code == 1 and said.splitlines()[-1] == "colab-cpu: failed with Python 3.13: the reason"


def test_the_images_have_these_pythons_and_all_that_is_taken_from_them():
    for python, (name, _) in PLACES.items():
        image = json.loads((ROOT / "tests" / "images" / f"{name}.json").read_text(encoding="utf-8"))
        assert image["python"] == python and {*TORCH, *PACKAGES} <= set(image["packages"])


def test_versions_are_the_images_without_its_cuda():
    packages = {"torch": "2.11.0+cu128", "numpy": "2.1.3", "nvidia-cublas-cu12": "12.8.4.1", "cuda-python": "12.9.7"}
    assert constraints(packages) == "torch==2.11.0\nnumpy==2.1.3\n"


def test_an_error_of_pip_is_found_although_pip_ends_well():
    red = "\x1b[31mERROR: pip's dependency resolver ...\nomegaconf 2.3.1 requires antlr4\x1b[0m\n"
    note = "Note: you may need to restart the kernel to use updated packages.\n"
    outputs = [new_output("stream", text=red, name="stderr"), new_output("stream", text=note)]
    whole = "ERROR: pip's dependency resolver ... omegaconf 2.3.1 requires antlr4"
    assert pip_errors(new_code_cell(outputs=outputs)) == [whole]
    assert not pip_errors(new_code_cell(outputs=outputs[1:]))


# Where it runs

MAKE = """#!/bin/sh
echo "make $*"
case "$*" in *test) exit "$TESTS" ;; *) exit "$COLAB" ;; esac
"""


@pytest.mark.parametrize(("tests", "colab", "status"), [(0, 0, 0), (2, 0, 2), (0, 2, 2), (2, 1, 1)])
def test_ci_runs_it_last_whatever_the_tests_say_and_fails_if_one_of_them_does(tests, colab, status, tmp_path):
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)
    there = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "TESTS": str(tests), "COLAB": str(colab)}
    done = subprocess.run(["bash", tmp_path / ".ci" / "run"], env=os.environ | there, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert done.returncode == status and (lines[0], lines[-1]) == ("make test", "make colab-cpu")
    assert len(lines) == 2 + bool(tests)


def test_the_workflow_installs_a_python_for_it():
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["test"]["steps"]
    versions = [step["with"]["python-version"] for step in steps if "setup-python" in step.get("uses", "")]
    assert versions == ["3.13", "${{ matrix.python }}"]
