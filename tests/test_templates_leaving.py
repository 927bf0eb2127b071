"""A project leaves the course: what it needs travels with it, in a wheel, in its pins and in what runs elsewhere."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile

import nbformat
import pytest
import yaml
from course import ROOT
from grpo_core.errors import CourseError
from nbclient import NotebookClient
from template_projects import CONFIGURED, FAST, in_folder

from grpo_utils.__main__ import main
from grpo_utils.project import new_project, template_names, upgrade, write_wheel

TEMPLATES = ROOT / "templates"
#: One step on a CPU in place of `config.yaml`.
ONE_STEP = " ".join(["train.py", *FAST, "--max_steps", "1"])


def pins(path) -> dict[str, str]:
    """The packages that a file pins, with their versions."""
    return dict(re.findall(r"^([\w-]+)==([\w.]+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def test_the_same_modules_give_the_same_wheel(tmp_path):
    first = write_wheel(tmp_path / "a")
    time.sleep(2.1)  # a zip file counts time in steps of two seconds
    second = write_wheel(tmp_path / "b")
    assert first.read_bytes() == second.read_bytes() and first.name == second.name
    with zipfile.ZipFile(first) as wheel:
        assert {"grpo_run/start.py", "grpo_core/training/policy.py", "grpo_check/__main__.py"} <= set(wheel.namelist())
        assert not wheel.testzip()


@pytest.mark.parametrize("name", template_names())
def test_the_requirements_name_the_wheel_and_the_lock_has_their_versions(name, tmp_path):
    line = f"./vendor/{write_wheel(tmp_path).name}"
    for file in [one for one in ("requirements.txt", "requirements-colab.txt") if (TEMPLATES / name / one).exists()]:
        assert line in (TEMPLATES / name / file).read_text(encoding="utf-8"), file
    assert pins(TEMPLATES / name / "requirements.txt").items() <= pins(TEMPLATES / name / "constraints.txt").items()


def test_an_upgrade_names_what_changed_and_asks_for_a_project(tmp_path, monkeypatch, capsys):
    project = new_project("basic_grpo", tmp_path / "project")
    [wheel] = (project / "vendor").iterdir()
    unpacked = tmp_path / "older"
    shutil.unpack_archive(wheel, unpacked, "zip")
    (unpacked / "grpo_run" / "start.py").write_text("an older version")
    (unpacked / "grpo_run" / "gone.py").write_text("")
    shutil.make_archive(str(tmp_path / "older"), "zip", unpacked)
    shutil.move(tmp_path / "older.zip", wheel)
    monkeypatch.setattr("sys.argv", ["grpo_utils", "upgrade", str(project)])
    main()
    assert "grpo_run/gone.py\n    grpo_run/start.py\n" in capsys.readouterr().out
    assert upgrade(project) == []
    with pytest.raises(CourseError, match=r"has no vendor/grpo_check"):
        upgrade(tmp_path)


def test_code_that_a_project_takes_from_the_wheel_is_its_own(tmp_path):
    """The README says so: unpacked next to train.py, it is used, and an edit to it counts when a run resumes."""
    project = new_project("basic_grpo", tmp_path / "project")
    [wheel] = (project / "vendor").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(project, [name for name in archive.namelist() if name.startswith("grpo_run/")])
    code = "from grpo_run import folder; print(folder.__file__); print(*folder.identity({'dataset_name': ''})['files'])"
    used, files = in_folder(project, "-c", code).stdout.splitlines()
    assert used.startswith(str(project)) and "grpo_run/folder.py" in files.split()


@pytest.mark.slow
def test_a_project_trains_with_what_its_wheel_holds_alone(tmp_path):
    """An empty machine: of the course, only the wheel can be imported."""
    project = new_project("basic_grpo", tmp_path / "project")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([*install, *map(str, (project / "vendor").iterdir())], check=True)
    code = (
        "import importlib, runpy, sys\n"
        "sys.meta_path = [one for one in sys.meta_path if 'editable' not in str(one)]\n"
        f"sys.path[:] = [{str(project)!r}, {str(tmp_path / 'site')!r}, *(p for p in sys.path if {str(ROOT)!r} not in p"
        " or 'site-packages' in p)]\n"
        "import grpo_run\n"
        f"assert grpo_run.__file__.startswith({str(tmp_path / 'site')!r})\n"
        f"sys.argv = {ONE_STEP.split()!r}\n"
        "runpy.run_path('train.py', run_name='__main__')\n"
    )
    run = in_folder(project, "-c", code)
    assert run.returncode == 0, run.stderr[-3000:]
    assert json.loads((project / "outputs" / "basic" / "report.json").read_text())["steps"] == 1


@pytest.mark.slow
def test_the_notebook_for_colab_runs_from_its_second_cell_to_the_download(tmp_path, monkeypatch):
    """Its commands, with the config for a CPU; what Colab alone has, an upload and its image, is left out."""
    project = new_project("basic_grpo", tmp_path / "project")
    notebook = nbformat.read(project / "colab.ipynb", as_version=4)
    assert not nbformat.validate(notebook) and len(notebook.cells) == 6
    for cell in notebook.cells:
        cell.source = re.sub(r"^%pip .*$", "", cell.source, flags=re.MULTILINE)
        cell.source = re.sub(r"train.py --config config.yaml", ONE_STEP, cell.source)
    monkeypatch.setenv("PATH", os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]]))
    said = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(project)}}).execute()
    tested, trained = ("".join(out.get("text", "") for out in said.cells[n].outputs) for n in (3, 4))
    assert "passed" in tested and "Checked" in tested and "step    1" in trained, tested + trained
    with zipfile.ZipFile(project / "result.zip") as result:
        assert {"outputs/basic/report.json", "outputs/basic/held_out.jsonl"} <= set(result.namelist())
        assert not [name for name in result.namelist() if "checkpoint-" in name]


@pytest.mark.slow
@pytest.mark.parametrize("name", [one for one in CONFIGURED if (TEMPLATES / one / ".github").exists()])
def test_the_workflow_of_a_project_passes(name, tmp_path):
    """What it runs after it has installed the packages."""
    project = new_project(name, tmp_path / "project")
    steps = yaml.safe_load((project / ".github" / "workflows" / "test.yml").read_text())["jobs"]["test"]["steps"]
    for command in [step["run"] for step in steps if "run" in step and not step["run"].startswith("pip ")]:
        words = command.removeprefix("python ").split()
        run = in_folder(project, *(["-m", "pytest", "-q"] if words == ["pytest"] else words))
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-2000:]
