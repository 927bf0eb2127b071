"""The templates as files: self-contained, alike where they should be, and copied without loss."""

import sys

import pytest
from conftest import ROOT
from template_projects import in_folder

from grpo_utils.errors import CourseError
from grpo_utils.project import new_project, template_names

sys.path.insert(0, str(ROOT / "scripts"))
from share_templates import SHARED


@pytest.mark.parametrize("name", template_names())
def test_nothing_in_it_refers_to_the_courses_internals(name):
    for path in (ROOT / "templates" / name).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import grpo_utils" not in text and "from grpo_utils" not in text, path


@pytest.mark.parametrize("name", SHARED)
def test_what_it_shares_with_the_first_is_the_same_letter_by_letter(name):
    first, own = ROOT / "templates" / "basic_grpo", ROOT / "templates" / name
    different = [file for file in SHARED[name] if (own / file).read_text() != (first / file).read_text()]
    assert not different, f"edit {different} in basic_grpo, then: make templates"


def test_no_template_is_forgotten_when_shared_files_are_copied():
    assert template_names() == sorted(["basic_grpo", *SHARED])


@pytest.mark.parametrize("name", template_names())
def test_the_table_has_it_and_its_readme_says_what_to_change(name):
    assert f"[{name}]({name})" in (ROOT / "templates" / "README.md").read_text(encoding="utf-8")
    readme = (ROOT / "templates" / name / "README.md").read_text(encoding="utf-8")
    assert "**Change first:" in readme.split("##")[0] and "never run" in readme and "Licence: Apache-2.0" in readme


@pytest.mark.parametrize("name", template_names())
def test_every_line_of_its_configs_has_a_comment(name):
    for path in (ROOT / "templates" / name).glob("config*.yaml"):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        bare = [line for line in lines if "#" not in line and not line.startswith(("env:", "lora_target_modules"))]
        assert not [line for line in bare if "TOKENIZERS" not in line], (path, bare)


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(CourseError, match="not empty; nothing was written"):
        new_project("basic_grpo", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_template_is_named_with_the_nearest(tmp_path):
    with pytest.raises(CourseError, match="Did you mean 'basic_grpo'"):
        new_project("basic_gpro", tmp_path / "new")


def test_the_command_prints_what_to_type_next(tmp_path):
    run = in_folder(tmp_path, "-m", "grpo_utils", "new", "basic_grpo", "mine")
    assert "cd mine\n    pytest\n    python train.py --config config.cpu.yaml" in run.stdout, run.stderr
    assert (tmp_path / "mine" / "tiny-model" / "config.json").exists()
