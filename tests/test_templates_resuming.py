"""Runs that stop and go on: after Ctrl-C, a kill, a full disk or an edit, to the same end; and one run per folder."""

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from course import ROOT
from grpo_run import folder
from lessons import report_in
from template_projects import ALONE, FAST, in_folder, stopped_at

from grpo_utils.project import new_project

pytestmark = pytest.mark.slow

#: With a reference, whose adapter transformers takes for the policy's when it resumes.
STEPS = [*FAST, "--logging_steps", "1", "--save_steps", "3", "--beta", "0.04"]
EIGHT = [*STEPS, "--max_steps", "8"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A project whose run of eight steps is in outputs/basic."""
    project = new_project("basic_grpo", tmp_path_factory.mktemp("whole") / "project")
    run = in_folder(project, "train.py", *EIGHT)
    assert run.returncode == 0, run.stderr[-2000:]
    return project


@pytest.fixture
def died(whole, tmp_path):
    """A copy of it, as if the run had died in its last evaluation."""
    project = shutil.copytree(whole, tmp_path / "project")
    (project / "outputs" / "basic" / "report.json").unlink()
    return project


def test_ctrl_c_saves_and_the_same_command_goes_on_to_the_same_end(whole):
    cut = [*EIGHT, "--output_dir", "outputs/cut"]
    stopped_at(whole, "step    4", sys.executable, "train.py", *cut)
    rest = in_folder(whole, "train.py", *cut)
    assert rest.returncode == 0 and "Resuming from" in rest.stdout, rest.stderr[-2000:]
    report = report_in(whole / "outputs" / "cut")
    assert report["after"] == report_in(whole / "outputs" / "basic")["after"] and report["steps"] == 8


def recorded(project) -> dict[str, str]:
    """The checksums of what a run was trained with."""
    return json.loads((project / "outputs" / "basic" / "run.json").read_text())["files"]


def edit_all(project, *names: str) -> None:
    for name in names:
        (project / name).write_text((project / name).read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def test_a_run_that_died_in_its_last_evaluation_ends_alike_also_after_an_edit_to_the_evaluation(whole, died):
    edit_all(died, "test_rewards.py")
    assert not {f"{name}.py" for name in folder.NOT_TRAINED_WITH} & {Path(name).name for name in recorded(died)}
    again = in_folder(died, "train.py", *EIGHT)
    assert again.returncode == 0 and "Resuming from" in again.stdout, again.stderr[-2000:]
    report = report_in(died / "outputs" / "basic")
    assert report["after"] == report_in(whole / "outputs" / "basic")["after"]
    assert report["steps"] == 8 and report["changes"] == [] and "step    9" not in again.stdout


def test_going_on_after_an_edit_says_what_changed_and_since_when_before_a_model_is_loaded(died):
    """It went on in silence: one run with two rewards. Then some edits were found only after the model was loaded, one
    to train.py never, and an own policy.py took the place of the library's.
    """
    (died / "policy.py").write_text("MINE = True\n")
    edit_all(died, "data.py", "rewards.py", "train.py")
    run = json.loads((died / "outputs" / "basic" / "run.json").read_text())
    for name in recorded(died):  # as if another version of the library had trained it
        if name in ("grpo_run/training.py", "training/policy.py"):
            run["files"][name] = "another"
    (died / "outputs" / "basic" / "run.json").write_text(json.dumps(run))
    changes = ["--learning_rate", "1e-4", "--top_p", "0.9", "--temperature", "0.7"]
    error = in_folder(died, "train.py", *EIGHT, *changes).stderr
    for said in (
        "learning_rate was 0.002 and is now 0.0001",
        "top_p was 1.0 and is now 0.9",
        "temperature was 1.0 and is now 0.7",
        "data.py was edited; grpo_run/training.py was edited; rewards.py was edited; and 2 more. Choose",
        "trained to checkpoint-8 with other settings",
        "--accept_changes true",
    ):
        assert said in error, error
    assert "Loading" not in error and (died / "outputs" / "basic" / "checkpoint-8").is_dir()


def test_accepted_changes_go_on_and_are_in_the_report_with_the_time_of_all_pieces(died):
    state = json.loads((died / "outputs" / "basic" / "checkpoint-8" / "trainer_state.json").read_text())
    first = state["stateful_callbacks"]["Clock"]["seconds"]
    longer = [*STEPS, "--max_steps", "9", "--learning_rate", "1e-4", "--accept_changes", "true"]
    run = in_folder(died, "train.py", *longer)
    assert run.returncode == 0 and "Resuming from" in run.stdout, run.stderr[-2000:]
    report = report_in(died / "outputs" / "basic")
    [change] = report["changes"]
    assert change.startswith("after checkpoint-8: ") and "learning_rate was 0.002 and is now 0.0001" in change
    assert "max_steps was 8 and is now 9" in change and report["steps"] == 9
    assert report["train_seconds"] > first > 0


def test_stages_go_on_where_they_were_also_with_a_reference(tmp_path):
    project = new_project("multi_stage", tmp_path / "project")
    plan = (project / "stages.cpu.yaml").read_text()
    short = plan.replace("max_steps: 15", "max_steps: 2").replace("max_steps: 30", "max_steps: 3")
    (project / "stages.cpu.yaml").write_text(short)
    first = in_folder(project, "train.py", *FAST, "--beta", "0.04")
    assert first.returncode == 0, first.stderr[-2000:]
    output = project / "outputs" / "stages"
    report = report_in(output)
    (output / "report.json").unlink()
    shutil.rmtree(output / "2-answers")
    again = in_folder(project, "train.py", *FAST, "--beta", "0.04")
    assert "1-form was finished before" in again.stdout, again.stderr[-2000:]
    assert "Stage 2-answers: 3 steps" in again.stdout and report_in(output)["after"] == report["after"]


def test_another_model_is_never_accepted_for_old_checkpoints(tmp_path):
    """--accept_changes loaded the old run's adapter over the one from sft.py."""
    (tmp_path / "run.json").write_text(json.dumps({"model_name_or_path": "base", "use_peft": True, "seed": 0}))
    (tmp_path / "checkpoint-1").mkdir()
    for change in ({"model_name_or_path": "outputs/basic-sft"}, {"use_peft": False}):
        with pytest.raises(SystemExit, match="with another model: .* Choose another output_dir, or delete") as stopped:
            folder.check_same(tmp_path, {"model_name_or_path": "base", "use_peft": True} | change, accept=True)
        assert " and is now " in str(stopped.value) and "accept_changes" not in str(stopped.value)
    assert folder.check_same(tmp_path, {"model_name_or_path": "base", "seed": 1}, accept=True)


def test_a_setting_that_a_new_library_adds_or_removes_does_not_refuse_a_resume(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"seed": 0, "removed": 1}))
    (tmp_path / "checkpoint-1").mkdir()
    assert folder.check_same(tmp_path, {"seed": 0, "added": 2}) == []


@pytest.fixture
def running(whole):
    """A run that has taken its first step, in outputs/busy."""
    long = [*FAST, "--max_steps", "500", "--logging_steps", "1", "--output_dir", "outputs/busy"]
    process = subprocess.Popen(
        [sys.executable, "train.py", *long], cwd=whole, env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    next(line for line in process.stdout if line.startswith("step"))
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_run_in_one_folder_is_refused_until_the_first_is_killed(whole, running):
    said = in_folder(whole, "train.py", *FAST, "--output_dir", "outputs/busy").stderr
    assert f"in use by process {running.pid} on " in said and "started 20" in said
    running.send_signal(signal.SIGKILL)
    running.wait()
    after = in_folder(whole, "train.py", *FAST, "--max_steps", "1", "--output_dir", "outputs/busy")
    assert after.returncode == 0, after.stderr[-2000:]


HOLD = """
from pathlib import Path
from grpo_run.folder import hold
[hold(Path({!r})) for _ in range({})]
print('went on')
"""


def test_a_lock_file_that_cannot_be_written_is_noted_and_the_run_goes_on():
    """It ended with a traceback where output_dir is a mounted disk in a parent that only root may write."""
    run = in_folder(ROOT / "templates" / "basic_grpo", "-c", HOLD.format("/proc/self/outputs", 1))  # also for root
    assert "outputs.lock cannot be written" in run.stdout and "do not start two runs" in run.stdout, run.stderr
    assert "went on" in run.stdout


def test_a_process_that_starts_twice_is_not_refused_by_its_own_lock(tmp_path):
    """%run train.py twice in one notebook was "in use by" the notebook itself."""
    run = in_folder(ROOT / "templates" / "basic_grpo", "-c", HOLD.format(str(tmp_path / "outputs" / "mine"), 2))
    assert run.stdout == "went on\n", run.stderr


FULL_DISK = """
set -e
mkdir -p outputs
mount -t tmpfs -o size=2500k tmpfs outputs
"$@" && exit 99
ls outputs/full
mount -o remount,size=64m outputs
"$@"
cp outputs/full/report.json .
"""


def test_a_full_disk_leaves_the_last_good_checkpoint_and_the_run_goes_on_when_there_is_room(tmp_path):
    alone = ["unshare", "--user", "--map-root-user", "--mount"]  # a mount that nobody else sees
    if subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True).returncode:
        pytest.skip("a small disk cannot be made here")
    folder = new_project("basic_grpo", tmp_path / "project")
    steps = ["--max_steps", "6", "--save_steps", "2", "--save_total_limit", "3", "--output_dir", "outputs/full"]
    run = subprocess.run(
        [*alone, "bash", "-c", FULL_DISK, "bash", sys.executable, "train.py", *FAST, *steps],
        cwd=folder, env=ALONE, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert "Error: the disk is full" in run.stderr and "the same command continues" in run.stderr, run.stderr[-3000:]
    assert "checkpoint-2\n" in run.stdout and "Resuming from outputs/full/checkpoint-" in run.stdout, run.stdout
    assert run.returncode == 0 and report_in(folder)["steps"] == 6


def test_a_disk_that_is_full_when_the_final_model_is_saved_is_named(tmp_path, monkeypatch):
    """Only checkpoints had the message; the last save ended in a traceback."""
    monkeypatch.syspath_prepend(ROOT / "templates" / "basic_grpo")
    from grpo_run import training

    def full(folder):
        raise OSError(28, "No space left on device")

    trainer = SimpleNamespace(args=SimpleNamespace(output_dir=tmp_path), save_model=full)
    monkeypatch.setattr(training.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(SystemExit, match="Error: the disk is full .* Free some space; the same command continues"):
        training.save(trainer, tmp_path / "model")
    monkeypatch.setattr(training.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10**9))
    with pytest.raises(OSError, match="No space left"):
        training.save(trainer, tmp_path / "model")


@pytest.mark.parametrize(("base", "kept"), [("None", False), ("unsloth/Qwen2.5-1.5B-Instruct", True)])
def test_a_card_that_names_no_base_is_removed_when_the_run_ends(tmp_path, monkeypatch, base, kept):
    """TRL wrote links to https://huggingface.co/None for a base in a local folder."""
    monkeypatch.syspath_prepend(ROOT / "templates" / "basic_grpo")
    from grpo_run import training

    card = tmp_path / "README.md"
    card.write_text(f"This model is a fine-tuned version of [{base}](https://huggingface.co/{base}).")
    arguments = SimpleNamespace(output_dir=tmp_path)
    trainer = SimpleNamespace(args=arguments, save_model=lambda folder: None, is_world_process_zero=lambda: True)
    training.save(trainer, tmp_path / "model")
    assert card.exists() is kept
