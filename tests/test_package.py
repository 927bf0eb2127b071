import ast
import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from course import ROOT, cli, judged
from grpo_core.errors import CourseError
from nbformat.v4 import new_code_cell, new_notebook

import grpo_utils
from grpo_utils.__main__ import LESSON, read_parameters
from grpo_utils.install import check_gpu, check_versions
from grpo_utils.lesson import setup, setup_tiny
from grpo_utils.profiles import T4

LIGHT = """
import sys
import grpo_utils
heavy = {"torch", "transformers", "trl", "scipy", "matplotlib", "datasets", "pandas", "numpy"}
print(sorted(heavy & set(sys.modules)))
"""


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return run.stdout


def test_the_import_loads_nothing_heavy():
    assert python(LIGHT).strip() == "[]"  # its seconds are in docs/results.md


@pytest.mark.parametrize("name", grpo_utils.__all__)
def test_every_public_name_is_reached_and_documented(name):
    thing = getattr(grpo_utils, name)
    assert not callable(thing) or thing.__doc__


def test_the_root_exports_what_a_lesson_a_template_or_a_page_imports_and_nothing_else():
    pages = [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *ROOT.glob("grpo_check/**/*.md"),
        *(ROOT / "notebooks/source").glob("*.py"),
    ]
    texts = [page.read_text(encoding="utf-8") for page in (*pages, *(ROOT / "templates").rglob("*.py"))]
    imports = re.findall(r"from grpo_utils import (\([^)]*\)|.*)", "\n".join(texts))
    assert not set(grpo_utils.__all__) - set(re.findall(r"\w+", " ".join(imports)))
    assert dir(grpo_utils) == grpo_utils.__all__


def test_a_reward_of_the_root_can_be_named_in_a_config_and_on_a_command_line():
    """The root loads its names when they are used, so they are not among its variables."""
    from grpo_check.probes.loading import find_reward, imports_from

    with imports_from():
        assert find_reward("grpo_utils.correctness_reward") is grpo_utils.correctness_reward


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'evalate'"):
        getattr(grpo_utils, "evalate")  # noqa: B009


def test_the_versions_that_are_installed_are_the_pinned_ones():
    assert "trl 1.14.0" in check_versions()


def test_another_version_says_what_to_do():
    with pytest.raises(
        CourseError, match=r"trl 1\.14\.0 \(tested with 0\.22\.2\).*restart the session once.*make setup"
    ):
        check_versions(wanted={"trl": "0.22.2"})
    with pytest.raises(CourseError, match="not-a-package is missing"):
        check_versions(wanted={"not-a-package": "1.0"})


def test_a_gpu_profile_on_a_torch_without_cuda():
    with pytest.raises(CourseError, match="torch .* sees none. On your own machine, delete .venv"):
        check_gpu(T4)


def test_cli_help_lists_the_commands():
    said = cli("--help").stdout
    assert all(command in said for command in ("run", "machine", "report", "new", "real"))


def test_cli_machine_says_profile_and_reason():
    assert cli("machine").stdout.startswith("profile: cpu\n")


def test_cli_report_without_a_run_is_one_sentence(tmp_path):
    run = cli("report", str(tmp_path))
    assert (
        run.returncode == 1
        and run.stderr.startswith("Error: There is no report.json")
        and "Traceback" not in run.stderr
    )


def report_of(rates: dict, folder) -> str:
    report = {"model": "m", "profile": "cpu", "steps": 1, "train_seconds": 1.0, "wall_seconds": 2.0, "p_value": 1.0}
    (folder / "report.json").write_text(json.dumps({**report, "before": rates, "after": rates}))
    run = cli("report", str(folder))
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_cli_report_shows_a_run_that_was_cut_off_before_its_merge(tmp_path):
    rates = {"n": 2, "format_rate": 0.5, "accuracy": 0.5, "accuracy_ci95": [0.1, 0.9], "greedy_accuracy": 0.5}
    said = report_of(rates, tmp_path)
    assert "No improvement shown" in said and "formatted answers" not in said


def test_cli_report_shows_ability_apart_from_form(tmp_path):
    rates = judged(["no", "no"], ["no", "no"], ["1", "2"], kind=["carry", "no carry"]).summary()
    assert re.search(r"^before +0 +- +0 +- +0 +-$", report_of(rates, tmp_path), re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("STEP", "3", "'STEP' is not a parameter of 03_grpo_lora.ipynb. Did you mean 'STEPS'"),
        ("STEPS", "ten", "STEPS='ten' must be of type int"),
    ],
)
def test_the_nearest_parameter_and_a_value_of_the_wrong_type_are_named(name, value, said):
    with pytest.raises(CourseError, match=said):
        read_parameters(ROOT / LESSON, [(name, value)])


@pytest.mark.parametrize("name", ["steps", "eval_rows", "minutes"])
def test_a_negative_count_is_refused_before_the_folder_is_made(name, tmp_path):
    with pytest.raises(CourseError, match=f"{name.upper()}=-5 is negative"):
        setup("cpu", "qwen", output_dir=tmp_path / "run", **{name: -5})
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [(("t5", "qwen"), "PROFILE='t5'"), (("cpu", "quen"), "FAMILY='quen'"), (("cpu", "qwen", -5), "STEPS=-5")],
)
def test_a_lesson_on_the_tiny_model_refuses_what_is_unknown(given, said):
    with pytest.raises(CourseError, match=said):
        setup_tiny(*given)


def test_the_transformers_backend_does_not_ask_for_unsloth():
    check_versions("transformers", {"unsloth": "0.0", "trl": "1.14.0"})
    with pytest.raises(CourseError, match="unsloth"):
        check_versions("unsloth", {"unsloth": "0.0", "trl": "1.14.0"})


def test_cli_run_elsewhere_says_where_to_go(tmp_path):
    assert "Run this command from the course's folder" in cli("run", cwd=tmp_path).stderr


def write_small(folder, parameters):
    cell = new_code_cell(parameters, metadata={"tags": ["parameters"]})
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = new_notebook(cells=[cell, new_code_cell("print(STEPS)")], metadata={"kernelspec": kernel})
    nbformat.write(book, folder / "small.ipynb")


@pytest.mark.slow
def test_a_lesson_that_leaves_a_model_and_no_report_ends_without_an_error(tmp_path):
    write_small(tmp_path, 'STEPS: int = 0\nOUTPUT_DIR: str = "outputs/small"')
    run = cli("run", "small.ipynb", cwd=tmp_path)
    assert run.returncode == 0 and "outputs/small/small.ipynb: the executed lesson" in run.stdout


@pytest.mark.slow
def test_a_lesson_without_a_report_is_kept_with_its_time(tmp_path):
    write_small(tmp_path, "STEPS: int = 0")
    run = cli("run", "small.ipynb", "-p", "STEPS", "3", cwd=tmp_path)
    [kept] = (tmp_path / "outputs").iterdir()
    assert re.fullmatch(r"small-\d{8}-\d{6}\.ipynb", kept.name) and f"{kept.name}: the executed lesson" in run.stdout
    assert nbformat.read(kept, as_version=4).cells[-1].outputs[0].text == "3\n"


def test_a_lesson_that_fails_shows_its_error_and_leaves_an_earlier_run_as_it_was(tmp_path):
    earlier = tmp_path / "outputs" / "run"
    earlier.mkdir(parents=True)
    (earlier / "report.json").write_text("{}")
    (earlier / "03_grpo_lora.ipynb").write_text("the notebook of a finished run")
    run = cli("run", str(ROOT / "notebooks/03_grpo_lora.ipynb"), "-p", "FAMILY", "lama", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr.strip().endswith("Error: FAMILY='lama' is unknown. Valid: qwen, gemma.")
    assert (earlier / "03_grpo_lora.ipynb").read_text() == "the notebook of a finished run"
    assert [path.name for path in (tmp_path / "outputs").iterdir()] == ["run"]


@pytest.mark.parametrize("command", ["grpo_utils", "grpo_check"])
def test_a_start_moves_the_current_folder_behind_all_others_and_nothing_else(command, tmp_path):
    """Each of two packages moved the first folder once, and the second one was that of PYTHONPATH."""
    first, here = tmp_path / "first", tmp_path / "here"
    first.mkdir()
    here.mkdir()
    (first / "sitecustomize.py").write_text("import atexit, sys\natexit.register(lambda: print(sys.path))\n")
    environment = {**os.environ, "PYTHONPATH": str(first)}
    run = subprocess.run(
        [sys.executable, "-m", command, "--help"], cwd=here, env=environment, capture_output=True, text=True
    )
    path = ast.literal_eval(run.stdout.splitlines()[-1])
    assert path[0] == str(first) and path[-1] in ("", str(here)), path
