"""Each template as its user has it: copied out of the course, tested there, and trained on a CPU."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from grpo_utils.errors import CourseError
from grpo_utils.project import new_project, template_names

TRAINED = ["basic_grpo", "structured_output", "code_reward", "multi_stage"]
SHARED = [
    "settings.py",
    "policy.py",
    "trainer.py",
    "checkpoints.py",
    "guard.py",
    "evaluate.py",
    "report.py",
    ".gitignore",
]
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


@pytest.mark.parametrize("file", SHARED)
def test_what_the_templates_share_is_the_same_letter_by_letter(file):
    texts = {name: (ROOT / "templates" / name / file).read_text(encoding="utf-8") for name in TRAINED}
    different = [name for name, text in texts.items() if text != texts["basic_grpo"]]
    assert not different, f"edit {file} in basic_grpo, and copy it to {different}"


TWINS = {"structured_output": ["train.py"], "code_reward": ["train.py"]}
TWINS["multi_stage"] = ["rewards.py", "data.py", "test_rewards.py"]


@pytest.mark.parametrize("name", TWINS)
def test_what_a_template_takes_over_from_the_first_stays_the_same(name):
    first, own = ROOT / "templates" / "basic_grpo", ROOT / "templates" / name
    assert [file for file in TWINS[name] if (own / file).read_text() != (first / file).read_text()] == []


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
        (["--learning_rat", "1"], "unknown setting 'learning_rat'. Did you mean 'learning_rate'?"),
        (["--dataset_name", "no.jsonl"], "'no.jsonl' is no file here"),
        (["--reward_weights", "1"], "reward_weights has 1 number"),
        (["--rewards", "corectness_reward"], "Did you mean 'correctness_reward'?"),
        (["--model_name_or_path", ""], "model_name_or_path is missing"),
        (["--use_peft", "false"], "load_in_4bit needs use_peft"),
    ],
)
def test_a_slip_is_told_before_anything_is_loaded(basic, change, said):
    run = in_folder(basic, "train.py", "--config", "config.cpu.yaml", *change)
    assert run.returncode and said in run.stderr and "Traceback" not in run.stderr, run.stderr[-2000:]


@pytest.mark.slow
def test_a_misspelled_key_is_named_with_the_nearest(basic):
    (basic / "slip.yaml").write_text((basic / "config.cpu.yaml").read_text().replace("max_steps:", "max_step:"))
    run = in_folder(basic, "train.py", "--config", "slip.yaml")
    assert "unknown setting 'max_step'. Did you mean 'max_steps'?" in run.stderr, run.stderr[-2000:]


@pytest.mark.slow
def test_it_trains_until_held_out_accuracy_has_risen(project):
    run = in_folder(project, "train.py", "--config", "config.cpu.yaml")
    assert run.returncode == 0, run.stderr[-3000:]
    [written] = (project / "outputs").glob("*/report.json")
    report = json.loads(written.read_text(encoding="utf-8"))
    assert report["before"]["accuracy_ci95"][1] < report["after"]["accuracy_ci95"][0]
    assert report["p_value"] < 1e-6 and "Accuracy rose" in run.stdout
    assert {"profile", "family", "model", "steps", "train_seconds", "seed", "before", "after", "p_value"} <= set(report)
    assert report["versions"].keys() >= {"unsloth", "trl", "transformers", "peft", "bitsandbytes", "torch"}


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    """The first template, with plain transformers and fp32: it starts faster."""
    return new_project("basic_grpo", tmp_path_factory.mktemp("basic") / "project")


FAST = ["--config", "config.cpu.yaml", "--use_unsloth", "false", "--load_in_4bit", "false", "--eval_rows", "20"]


@pytest.mark.slow
@pytest.mark.parametrize("beta", ["0.0", "0.04"])
def test_ctrl_c_saves_and_the_same_command_goes_on_to_the_same_end(basic, beta):
    steps = [*FAST, "--max_steps", "8", "--logging_steps", "1", "--save_steps", "3", "--beta", beta]
    for name in ("whole", "cut"):
        shutil.rmtree(basic / "outputs" / name, ignore_errors=True)
    whole = in_folder(basic, "train.py", *steps, "--output_dir", "outputs/whole")
    assert whole.returncode == 0, whole.stderr[-2000:]
    command = [sys.executable, "train.py", *steps, "--output_dir", "outputs/cut"]
    process = subprocess.Popen(command, cwd=basic, env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("step    4"):
            process.send_signal(signal.SIGINT)
            break
    said, error = process.communicate(timeout=300)
    assert process.returncode and "The same command goes on from there" in error, said + error
    rest = in_folder(basic, "train.py", *steps, "--output_dir", "outputs/cut")
    assert rest.returncode == 0 and "Going on from" in rest.stdout, rest.stderr[-2000:]
    reports = [json.loads((basic / "outputs" / name / "report.json").read_text()) for name in ("whole", "cut")]
    assert reports[0]["after"] == reports[1]["after"] and reports[1]["steps"] == 8
    (basic / "outputs" / "cut" / "report.json").unlink()  # as if it had died in the last evaluation
    again = in_folder(basic, "train.py", *steps, "--output_dir", "outputs/cut")
    report = json.loads((basic / "outputs" / "cut" / "report.json").read_text())
    assert report["after"] == reports[1]["after"] and report["steps"] == 8 and "step    9" not in again.stdout


@pytest.mark.slow
def test_a_folder_of_another_model_is_refused(basic):
    (basic / "outputs" / "other" / "checkpoint-1").mkdir(parents=True)
    (basic / "outputs" / "other" / "run.json").write_text(json.dumps({"model_name_or_path": "other/model"}))
    run = in_folder(basic, "train.py", *FAST, "--output_dir", "outputs/other")
    assert "was begun otherwise: " in run.stderr and "'other/model'" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_slip_leaves_no_mark_that_refuses_the_right_command(basic):
    slip = in_folder(basic, "train.py", *FAST, "--dataset_name", "no.jsonl", "--output_dir", "outputs/slip")
    assert slip.returncode and not (basic / "outputs" / "slip").exists()


@pytest.mark.slow
def test_all_weights_can_be_trained(basic):
    change = ["--use_peft", "false", "--learning_rate", "1e-4", "--max_steps", "2", "--output_dir", "outputs/full"]
    run = in_folder(basic, "train.py", *FAST, *change)
    saved = basic / "outputs" / "full" / "model" / "model.safetensors"
    assert run.returncode == 0 and saved.exists(), run.stderr[-2000:]


@pytest.mark.slow
def test_stages_go_on_where_they_were_also_with_a_reference(tmp_path):
    folder = new_project("multi_stage", tmp_path / "project")
    plan = (folder / "stages.cpu.yaml").read_text()
    short = plan.replace("max_steps: 30", "max_steps: 2").replace("max_steps: 60", "max_steps: 3")
    (folder / "stages.cpu.yaml").write_text(short)
    first = in_folder(folder, "train.py", *FAST, "--beta", "0.04")
    assert first.returncode == 0, first.stderr[-2000:]
    report = json.loads((folder / "outputs" / "stages" / "report.json").read_text())
    for path in (folder / "outputs" / "stages" / "report.json", folder / "outputs" / "stages" / "2-answers"):
        path.unlink() if path.is_file() else shutil.rmtree(path)
    again = in_folder(folder, "train.py", *FAST, "--beta", "0.04")
    assert "1-form was finished before" in again.stdout, again.stderr[-2000:]
    assert "Stage 2-answers: 3 steps" in again.stdout
    assert json.loads((folder / "outputs" / "stages" / "report.json").read_text())["after"] == report["after"]


@pytest.mark.slow
def test_a_stage_that_changes_what_all_share_is_refused(tmp_path):
    folder = new_project("multi_stage", tmp_path / "project")
    (folder / "stages.cpu.yaml").write_text("- name: one\n  lora_r: 4\n")
    run = in_folder(folder, "train.py", *FAST)
    assert "stage 'one' changes lora_r, which all stages share" in run.stderr and "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_reward_that_raises_names_the_row_and_the_checkpoint_stays(basic):
    broken = "def raising_reward(completions, answer, **kwargs):\n    return [1 / (int(a) % 7) for a in answer]\n\n\n"
    text = (basic / "rewards.py").read_text()
    broken = text.replace("#: What", f"{broken}#: What").replace("REWARDS = [", "REWARDS = [raising_reward, ")
    (basic / "rewards.py").write_text(broken)
    change = ["--rewards", "raising_reward", "--reward_weights", "1", "--output_dir", "outputs/raises"]
    run = in_folder(basic, "train.py", *FAST, *change)
    (basic / "rewards.py").write_text(text)
    assert run.returncode and "raising_reward raised." in run.stderr and "ZeroDivisionError" in run.stderr
    assert "Row: {" in run.stderr and "Completion: " in run.stderr and "checkpoints stay" in run.stderr


@pytest.mark.slow
def test_trl_grpo_trains_with_its_own_keys_and_the_same_rewards(basic):
    assert in_folder(basic, "data.py", "addition", "rows").returncode == 0
    trl = str(Path(sys.executable).with_name("trl"))
    run = subprocess.run(
        [trl, "grpo", "--config", "config.trl.yaml", "--max_steps", "2"],
        cwd=basic, env=ALONE | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0 and (basic / "outputs" / "basic-trl" / "adapter_model.safetensors").exists(), run.stderr[
        -2000:
    ]
