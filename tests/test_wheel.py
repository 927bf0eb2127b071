"""The wheel that goes next to a lesson in Colab or Kaggle."""

import filecmp
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT
from setuptools import find_packages

from grpo_utils.project import new_project, template_names
from grpo_utils.real.training import write_project

#: `new` for all templates and the project of `real`, and where the package is. The arguments are the folder of the
#: installed wheel and that of the projects.
NEW = """
import sys
sys.path.insert(0, sys.argv[1])
import grpo_utils
from grpo_utils.project import new_project, template_names
from grpo_utils.real.training import write_project
for name in template_names():
    new_project(name, f"{sys.argv[2]}/{name}")
write_project(f"{sys.argv[2]}/real")
print(grpo_utils.__file__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built from a copy of what it is made of, in which a template was used."""
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__", "outputs", "*.egg-info")
    for name in ("grpo_utils", "grpo_check", "templates"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    (source / "templates" / "basic_grpo" / "outputs").mkdir()
    for name in (".env", "outputs/report.json"):
        (source / "templates" / "basic_grpo" / name).write_text("mine")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    subprocess.run(build, cwd=source, check=True)
    [built] = source.glob("grpo_utils-*.whl")  # the name that the install cell looks for
    return built


def test_no_package_is_forgotten():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = find_packages(str(ROOT), include=["grpo_utils*", "grpo_check*"])
    assert sorted(listed) == sorted([*found, "grpo_utils.templates"])


@pytest.mark.slow
def test_the_wheel_holds_the_packages_and_the_tiny_models(wheel):
    files = [path.relative_to(wheel.parent).as_posix() for name in ("grpo_utils", "grpo_check")
             for path in (wheel.parent / name).rglob("*") if path.is_file()]  # fmt: skip
    assert set(files) <= set(zipfile.ZipFile(wheel).namelist())
    assert "grpo_utils/tiny/tiny-qwen3/model.safetensors" in files


@pytest.mark.slow
def test_the_wheel_holds_no_lib_and_nothing_of_a_templates_user(wheel):
    parts = [Path(name).parts for name in zipfile.ZipFile(wheel).namelist() if "/templates/" in name]
    assert parts and not [names for names in parts if {"lib", "outputs", ".env", "__pycache__"} & set(names)]


@pytest.mark.slow
def test_a_project_from_the_wheel_is_the_one_from_a_clone_byte_for_byte(wheel, tmp_path):
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([*install, str(wheel)], check=True)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", NEW, str(tmp_path / "site"), str(tmp_path / "from wheel")]
    said = subprocess.run(command, cwd=tmp_path, env=alone, check=True, capture_output=True, text=True).stdout
    assert Path(said.strip()).is_relative_to(tmp_path / "site")
    projects = [new_project(name, tmp_path / "from clone" / name) for name in template_names()]
    for ours in (*projects, write_project(tmp_path / "from clone" / "real")):
        theirs = tmp_path / "from wheel" / ours.name
        paths = sorted(path.relative_to(ours) for path in ours.rglob("*"))
        assert paths == sorted(path.relative_to(theirs) for path in theirs.rglob("*"))
        files = [str(path) for path in paths if (ours / path).is_file()]
        assert filecmp.cmpfiles(ours, theirs, files, shallow=False) == (files, [], [])
        runnable = [[path for path in files if os.access(folder / path, os.X_OK)] for folder in (ours, theirs)]
        assert runnable[0] == runnable[1]
