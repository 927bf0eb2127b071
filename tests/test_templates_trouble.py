"""What users try first in a template: a file of their own, with a typo too, all weights, and `trl grpo`."""

import subprocess
import sys
from pathlib import Path

import pytest
from template_projects import ALONE, FAST, in_folder

from grpo_utils.project import new_project


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    """The first template, with plain transformers and fp32: it starts faster."""
    return new_project("basic_grpo", tmp_path_factory.mktemp("basic") / "project")


@pytest.mark.slow
def test_a_typo_in_the_data_is_told_before_anything_is_loaded(basic):
    typo = ["--dataset_name", "no.jsonl", "--output_dir", "outputs/typo"]
    run = in_folder(basic, "train.py", "--config", "config.cpu.yaml", *typo)
    assert run.returncode and run.stderr.startswith("Error: dataset_name='no.jsonl' is not a file here"), run.stderr
    assert not (basic / "outputs" / "typo").exists()  # no mark that would refuse the right command


OWN_LINES = {
    "basic_grpo": (
        '{{"question": "What is {n} + 1?", "answer": "{n}"}}',
        '{"question": "Who?", "answer": "Ana"}',
        "no completion could be correct for the answer 'Ana'",
    ),
    "structured_output": (
        '{{"text": "Ana is {n}.", "answer": {{"name": "Ana", "age": {n}}}}}',
        '{"text": "Ana", "answer": {"name": "Ana"}}',
        "does not satisfy schema.json",
    ),
    "code_reward": (
        '{{"question": "f adds {n}.", "function": "f", "calls": [[1]], "expected": [{n}]}}',
        '{"question": "f adds nothing.", "function": "f", "calls": [[1]], "expected": []}',
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
    assert (
        "bad rows in own.jsonl: 1\n  line 62: " in run.stderr and said in run.stderr and "Traceback" not in run.stderr
    ), run.stderr


@pytest.mark.slow
def test_all_weights_can_be_trained(basic):
    change = ["--use_peft", "false", "--learning_rate", "1e-4", "--max_steps", "2", "--output_dir", "outputs/full"]
    run = in_folder(basic, "train.py", *FAST, *change)
    saved = basic / "outputs" / "full" / "model" / "model.safetensors"
    assert run.returncode == 0 and saved.exists(), run.stderr[-2000:]
    asked = in_folder(basic, "ask.py", "outputs/full", "What is 15 + 27?", "What is 1 + 1?")
    assert asked.returncode == 0 and len(asked.stdout.strip().split("\n\n")) == 2, asked.stderr[-2000:]
    assert "of which all weights were trained" in (saved.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_trl_grpo_trains_with_its_own_keys_and_the_same_rewards(basic):
    assert in_folder(basic, "for_trl.py", "addition", "rows").returncode == 0
    trl = str(Path(sys.executable).with_name("trl"))
    run = subprocess.run(
        [trl, "grpo", "--config", "configs/trl.yaml", "--max_steps", "2"],
        cwd=basic, env=ALONE | {"HF_HUB_OFFLINE": "1"}, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert run.returncode == 0 and (basic / "outputs" / "basic-trl" / "adapter_model.safetensors").exists(), run.stderr[
        -2000:
    ]
