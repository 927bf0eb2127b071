"""The two wheels that go next to a lesson in Colab or Kaggle."""

import filecmp
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from course import ROOT
from grpo_check.sections import PAGES
from setuptools import find_packages

from grpo_utils.project import new_project, template_names
from grpo_utils.real.training import write_project

#: `new` for all templates and the project of `real`, and where the packages are. The arguments are the folder of the
#: installed wheels and that of the projects.
NEW = """
import sys
sys.path.insert(0, sys.argv[1])
import grpo_core, grpo_utils
from grpo_utils.project import new_project, template_names
from grpo_utils.real.training import write_project
for name in template_names():
    new_project(name, f"{sys.argv[2]}/{name}")
write_project(f"{sys.argv[2]}/real")
print(grpo_utils.__file__, grpo_core.__file__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels of grpo-check and of the course, built from a copy of what they are made of, with a used template."""
    source = tmp_path_factory.mktemp("source")
    ignored = shutil.ignore_patterns("__pycache__", "outputs", "*.egg-info", "build")
    for name in ("grpo_utils", "grpo_check", "templates"):
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    (source / "templates" / "basic_grpo" / "outputs").mkdir()
    for name in (".env", "outputs/report.json"):
        (source / "templates" / "basic_grpo" / name).write_text("mine")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for page in PAGES:
        (source / page).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / page, source / page)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "./grpo_check", "."]
    subprocess.run(build, cwd=source, check=True)
    # the names that the install cell looks for
    return [next(source.glob(f"{name}-*any.whl")) for name in ("grpo_check", "grpo_utils")]


@pytest.fixture(scope="module")
def wheel(wheels):
    """The wheel of the course."""
    return wheels[1]


def test_no_package_is_forgotten():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = find_packages(str(ROOT), include=["grpo_utils*"])
    assert sorted(listed) == sorted([*found, "grpo_utils.templates"])


@pytest.mark.slow
def test_each_wheel_holds_its_packages_and_nothing_of_the_other(wheels):
    held = [set(zipfile.ZipFile(wheel).namelist()) for wheel in wheels]
    for files, folder in zip(held, ("grpo_check/src", "grpo_utils"), strict=True):
        base = wheels[0].parent / folder
        top = base if folder.endswith("src") else base.parent
        made = {
            path.relative_to(top).as_posix()
            for path in base.rglob("*")
            if path.is_file() and ".egg-info" not in str(path)
        }
        assert made and made <= files
    assert not held[0] & held[1] and "grpo_utils/tiny/tiny-qwen3/model.safetensors" in held[1]


@pytest.mark.slow
def test_the_wheel_of_grpo_check_holds_the_pages_that_explain_searches(wheels):
    held = zipfile.ZipFile(wheels[0])
    assert all(held.read(f"grpo_check/pages/{page}") == (ROOT / page).read_bytes() for page in PAGES)


@pytest.mark.slow
def test_an_sdist_of_grpo_check_holds_all_that_its_wheel_needs(wheels, tmp_path):
    build = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=wheels[0].parent / "grpo_check", check=True, capture_output=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, str(next(tmp_path.glob("*.tar.gz")))], cwd=tmp_path, check=True)
    names = [set(zipfile.ZipFile(wheel).namelist()) for wheel in (wheels[0], next(tmp_path.glob("*.whl")))]
    assert names[0] == names[1]


@pytest.mark.slow
def test_the_wheel_holds_nothing_of_a_templates_user(wheel):
    parts = [Path(name).parts for name in zipfile.ZipFile(wheel).namelist() if "/templates/" in name]
    assert parts and not [names for names in parts if {"vendor", "outputs", ".env", "__pycache__"} & set(names)]


@pytest.mark.slow
def test_a_project_from_the_wheel_is_the_one_from_a_clone_byte_for_byte(wheels, tmp_path):
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tmp_path / "site")]
    subprocess.run([*install, *map(str, wheels)], check=True)
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", NEW, str(tmp_path / "site"), str(tmp_path / "from wheel")]
    said = subprocess.run(command, cwd=tmp_path, env=alone, check=True, capture_output=True, text=True).stdout
    assert all(Path(file).is_relative_to(tmp_path / "site") for file in said.split())
    projects = [new_project(name, tmp_path / "from clone" / name) for name in template_names()]
    for ours in (*projects, write_project(tmp_path / "from clone" / "real")):
        theirs = tmp_path / "from wheel" / ours.name
        paths = sorted(path.relative_to(ours) for path in ours.rglob("*"))
        assert paths == sorted(path.relative_to(theirs) for path in theirs.rglob("*"))
        files = [str(path) for path in paths if (ours / path).is_file()]
        assert filecmp.cmpfiles(ours, theirs, files, shallow=False) == (files, [], [])
        runnable = [[path for path in files if os.access(folder / path, os.X_OK)] for folder in (ours, theirs)]
        assert runnable[0] == runnable[1]
