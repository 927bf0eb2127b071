"""What goes wrong in a template: slips, Ctrl-C, folders of another run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import ROOT
from template_projects import ALONE, FAST, in_folder, stopped_at

from grpo_utils.project import new_project


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    """The first template, with plain transformers and fp32: it starts faster."""
    return new_project("basic_grpo", tmp_path_factory.mktemp("basic") / "project")


@pytest.mark.slow
def test_a_typo_in_the_data_is_told_before_anything_is_loaded(basic):
    typo = ["--dataset_name", "no.jsonl", "--output_dir", "outputs/typo"]
    run = in_folder(basic, "train.py", "--config", "config.cpu.yaml", *typo)
    assert run.returncode and run.stderr.startswith("Error: dataset_name='no.jsonl' is neither a file here"), run.stderr
    assert not (basic / "outputs" / "typo").exists()  # no mark that would refuse the right command


OWN_LINES = {
    "basic_grpo": (
        '{{"question": "What is {n} + 1?", "answer": "{n}"}}',
        '{"question": "Who?", "answer": "Ana"}',
        "Ana",
    ),
    "structured_output": (
        '{{"text": "Ana is {n}.", "answer": {{"name": "Ana", "age": {n}}}}}',
        '{"text": "Ana", "answer": {"name": "Ana"}}',
        "does not satisfy schema.json",
    ),
    "code_reward": (
        '{{"question": "Add {n}.", "function": "f", "calls": [[1]], "expected": [{n}]}}',
        '{"question": "Add 1.", "function": "f", "calls": [[1]], "expected": []}',
        "a result for each",
    ),
}
LOADED = "from data import load_rows; print(*[len(load_rows('own.jsonl', s, 99, 0)) for s in ('train', 'test')])"


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN_LINES)
def test_a_file_of_ones_own_is_read_and_a_bad_line_is_named(tmp_path, name):
    """Every file was refused: a loop variable hid the function that reads a number."""
    good, bad, said = OWN_LINES[name]
    folder = new_project(name, tmp_path / "project")
    lines = [good.format(n=n) for n in range(60)]
    (folder / "own.jsonl").write_text("\n".join(lines))
    counts = [int(word) for word in in_folder(folder, "-c", LOADED).stdout.split()]
    assert sum(counts) == 60 and min(counts) > 0
    (folder / "own.jsonl").write_text("\n".join([*lines, "", bad]))
    run = in_folder(folder, "-c", LOADED)
    assert "own.jsonl, line 62: " in run.stderr and said in run.stderr and "Traceback" not in run.stderr, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("beta", [pytest.param("0.0", marks=pytest.mark.upgrade), "0.04"])
def test_ctrl_c_saves_and_the_same_command_goes_on_to_the_same_end(basic, beta):
    steps = [*FAST, "--max_steps", "8", "--logging_steps", "1", "--save_steps", "3", "--beta", beta]
    for name in ("whole", "cut"):
        shutil.rmtree(basic / "outputs" / name, ignore_errors=True)
    whole = in_folder(basic, "train.py", *steps, "--output_dir", "outputs/whole")
    assert whole.returncode == 0, whole.stderr[-2000:]
    stopped_at(basic, "step    4", sys.executable, "train.py", *steps, "--output_dir", "outputs/cut")
    rest = in_folder(basic, "train.py", *steps, "--output_dir", "outputs/cut")
    assert rest.returncode == 0 and "Resuming from" in rest.stdout, rest.stderr[-2000:]
    reports = [json.loads((basic / "outputs" / name / "report.json").read_text()) for name in ("whole", "cut")]
    assert reports[0]["after"] == reports[1]["after"] and reports[1]["steps"] == 8
    (basic / "outputs" / "cut" / "report.json").unlink()  # as if it had died in the last evaluation
    again = in_folder(basic, "train.py", *steps, "--output_dir", "outputs/cut")
    report = json.loads((basic / "outputs" / "cut" / "report.json").read_text())
    assert report["after"] == reports[1]["after"] and report["steps"] == 8 and "step    9" not in again.stdout


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
    short = plan.replace("max_steps: 15", "max_steps: 2").replace("max_steps: 30", "max_steps: 3")
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
def test_trl_grpo_trains_with_its_own_keys_and_the_same_rewards(basic):
    assert in_folder(basic, "data.py", "addition", "rows").returncode == 0
    trl = str(Path(sys.executable).with_name("trl"))
    run = subprocess.run(
        [trl, "grpo", "--config", "configs/trl.yaml", "--max_steps", "2"],
        cwd=basic, env=ALONE | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0 and (basic / "outputs" / "basic-trl" / "adapter_model.safetensors").exists(), run.stderr[
        -2000:
    ]


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


@pytest.mark.slow
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
    assert run.returncode == 0 and json.loads((folder / "report.json").read_text())["steps"] == 6


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_final_model_is_saved_is_named(tmp_path, monkeypatch):
    """Only checkpoints had the message; the last save ended in a traceback."""
    monkeypatch.syspath_prepend(ROOT / "templates" / "basic_grpo")
    from lib import training

    def full(folder):
        raise OSError(28, "No space left on device")

    trainer = SimpleNamespace(args=SimpleNamespace(output_dir=tmp_path), save_model=full)
    monkeypatch.setattr(training.shutil, "disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(SystemExit, match="Error: the disk is full .* Free some space; the same command continues"):
        training.save(trainer, tmp_path / "model")
    monkeypatch.setattr(training.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10**9))
    with pytest.raises(OSError, match="No space left"):
        training.save(trainer, tmp_path / "model")
