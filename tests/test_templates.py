"""The templates as files: self-contained, alike where they should be, and copied without loss."""

import runpy
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


RESULT = {"formed": [True, True, False, False], "right": [True, False, True, False], "greedy_right": [True] * 4}


def rates_module() -> dict:
    return runpy.run_path(str(ROOT / "templates" / "basic_grpo" / "rates.py"))


def test_a_report_counts_ability_among_the_texts_in_form_alone():
    rates = rates_module()["summary"](RESULT)  # a task may call a text right that is not in form
    assert (rates["n"], rates["format_rate"], rates["accuracy"], rates["accuracy_given_format"]) == (4, 0.5, 0.5, 0.5)
    assert rates["accuracy_given_format_ci95"] == pytest.approx([0.0945, 0.9055], abs=1e-4)


def test_the_table_of_a_report_has_a_dash_where_nothing_is_in_form():
    rates = rates_module()
    none = rates["summary"]({"formed": [False] * 4, "right": [False] * 4})
    assert none["accuracy_given_format"] is none["accuracy_given_format_ci95"] is None
    heading, before, after, _ = rates["table"](
        {"before": none, "after": rates["summary"](RESULT), "p_value": 1.0}
    ).splitlines()
    assert heading.endswith("right if in form (95 %)") and before.endswith(" -")
    assert after.endswith("0.500 (0.095 to 0.905)") and len(heading) == len(before) == len(after) < 100
