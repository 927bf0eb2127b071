"""Each template as its user has it: copied out of the course, tested there, and trained on a CPU."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT

from grpo_utils.errors import CourseError
from grpo_utils.project import new_project, template_names

TRAINED = ["basic_grpo"]
#: A user's machine: none of what these tests have set for themselves.
ALONE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHONPATH", "OMP_", "HF_"))}


def in_folder(folder, *command: str, seconds: int = 600) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=ALONE, capture_output=True, text=True, timeout=seconds
    )


@pytest.mark.parametrize("name", template_names())
def test_nothing_in_it_refers_to_the_courses_internals(name):
    for path in (ROOT / "templates" / name).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "import grpo_utils" not in text and "from grpo_utils" not in text, path


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


@pytest.fixture(scope="module", params=TRAINED)
def project(request, tmp_path_factory):
    return new_project(request.param, tmp_path_factory.mktemp(request.param) / "project")


@pytest.mark.slow
def test_its_own_tests_pass(project):
    run = in_folder(project, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert run.returncode == 0, run.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, said",
    [
        (["--learning_rat", "1"], "learning_rat"),
        (["--dataset_name", "no.jsonl"], "'no.jsonl' is no file here"),
        (["--reward_weights", "1"], "reward_weights has 1 number"),
        (["--use_peft", "false"], "load_in_4bit needs use_peft"),
    ],
)
def test_a_slip_is_told_before_anything_is_loaded(project, change, said):
    run = in_folder(project, "train.py", "--config", "config.cpu.yaml", *change)
    assert run.returncode and said in run.stderr and "Traceback" not in run.stderr, run.stderr[-2000:]


@pytest.mark.slow
def test_a_misspelled_key_is_named_with_the_nearest(project):
    (project / "slip.yaml").write_text((project / "config.cpu.yaml").read_text().replace("max_steps:", "max_step:"))
    run = in_folder(project, "train.py", "--config", "slip.yaml")
    assert "unknown setting 'max_step'. Did you mean 'max_steps'?" in run.stderr, run.stderr[-2000:]


@pytest.mark.slow
def test_it_trains_until_held_out_accuracy_has_risen(project):
    run = in_folder(project, "train.py", "--config", "config.cpu.yaml")
    assert run.returncode == 0, run.stderr[-3000:]
    report = json.loads((project / "outputs" / "basic" / "report.json").read_text(encoding="utf-8"))
    assert report["before"]["accuracy_ci95"][1] < report["after"]["accuracy_ci95"][0]
    assert report["p_value"] < 1e-6 and "Accuracy rose" in run.stdout
    assert {"profile", "family", "model", "steps", "train_seconds", "seed", "before", "after", "p_value"} <= set(report)
    assert report["versions"].keys() >= {"unsloth", "trl", "transformers", "peft", "bitsandbytes", "torch"}
