"""Preflight on a script, a notebook or a shell script: what is written out is checked, and nothing else is guessed."""

import json
from pathlib import Path

import pytest
from grpo_check.preflights.config_file import preflight_file
from grpo_check.preflights.scripts import read_script
from grpo_core.errors import CourseError
from preflight_runs import TINY, write_addition

SCRIPT = f"""
import os, trl
from unsloth import FastLanguageModel
RATE = 1e-5
size = 6
shared = dict(bf16=False, use_cpu=True)

def main(steps):
    arguments = trl.GRPOConfig(
        output_dir=os.environ["OUT"], learning_rate=RATE, num_generations=size, max_steps=steps,
        per_device_train_batch_size=8, learnign_rate=3, **shared)
    trl.GRPOTrainer(model={TINY!r}, args=arguments).train()
"""
#: A line that makes the value of ``size`` unknown.
UNKNOWN = ["size = int(os.environ['SIZE'])", "size += 2", "def other(size): ..."]


def script_in(folder: Path, text: str = SCRIPT, name: str = "train.py") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_settings_that_are_given_to_the_trainer_are_named(tmp_path):
    text = SCRIPT.replace("args=arguments)", "args=arguments, bf16=True)")
    with pytest.raises(CourseError, match="passes bf16 to GRPOTrainer, which raises a TypeError"):
        preflight_file(script_in(tmp_path, text))


def test_the_arguments_of_a_script_are_read_without_running_it(tmp_path):
    script = read_script(script_in(tmp_path))
    given = {"learning_rate": 1e-5, "num_generations": 6, "per_device_train_batch_size": 8, "learnign_rate": 3}
    assert script.arguments == given | {"bf16": False, "use_cpu": True}
    assert script.unknown == ("output_dir", "max_steps") and script.model == TINY and script.unsloth


def test_a_script_is_checked_with_the_rows_of_an_option(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = preflight_file(script_in(tmp_path), train=str(write_addition(tmp_path)))
    assert {one.code for one in report.errors} == {"unknown_argument"}, str(report)
    [batch] = [one for one in report.findings if one.code == "batch"]  # Unsloth changes the batch and goes on
    assert batch.severity == "warning" and "Unsloth then sets" in batch.why
    assert "prompt lengths" in str(report) and "output_dir, max_steps" in report.skipped.values()


@pytest.mark.parametrize("line", UNKNOWN)
def test_what_only_a_run_would_show_is_no_fault(line, tmp_path):
    report = preflight_file(script_in(tmp_path, SCRIPT.replace("RATE = 1e-5", f"RATE = 1e-5\n{line}")))
    assert "batch" not in report.codes, str(report)
    assert "output_dir, num_generations, max_steps" in report.skipped.values()


def test_a_name_that_trl_does_not_know_counts_whatever_its_value(tmp_path):
    report = preflight_file(script_in(tmp_path, "GRPOConfig(bf16=False, learnign_rate=arguments.rate)"))
    assert report.codes == {"unknown_argument"} and "'learning_rate'" in str(report)


def test_arguments_of_unknown_names_make_all_others_unknown(tmp_path):
    report = preflight_file(script_in(tmp_path, "GRPOConfig(temperature=0.0, bf16=False, **options())"))
    assert report.codes == {"temperature_zero"}, str(report)


def test_a_notebook_is_read_without_its_commands(tmp_path):
    cells = ["%%capture\npip install trl", "!pip install trl\nsize = 6", "a b c", "GRPOConfig(num_generations=size)"]
    notebook = {"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]}
    path = script_in(tmp_path, json.dumps(notebook), "train.ipynb")
    assert read_script(path).arguments == {"num_generations": 6}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.py", "parser = TrlParser((GRPOConfig, ModelConfig))", "has no call of GRPOConfig"),
        ("train.py", "GRPOConfig(", "cannot be read: SyntaxError"),
        ("train.py", "a = " + "(" * 5_000, "cannot be read"),
        ("train.ipynb", "{}", "cannot be read: KeyError"),
    ],
)
def test_a_script_without_arguments_is_one_sentence(name, text, said, tmp_path):
    with pytest.raises(CourseError, match=said):
        read_script(script_in(tmp_path, text, name))


SHELL = """#!/bin/bash
export RATE=1e-6
# python old.py --num_generations 5
accelerate launch --num_processes 2 --config_file zero2.yaml \\
    src/train.py --learning_rate $RATE --num_generations 6 --per_device_train_batch_size=1 \\
    --deepspeed zero3.json --model_name_or_path <PATH-TO-MODEL> \\
    --bf16 false --use_cpu true --temperature 0.9 --max_pixels 401408 --reward_names accuracy format > log.txt
"""


def test_the_options_in_a_shell_script_are_arguments(tmp_path):
    report = preflight_file(script_in(tmp_path, SHELL, "run.sh"))
    assert {one.code for one in report.errors} == {"batch"} and "2 processes" in str(report), str(report)
    assert "did not check what TRL has no argument for: max_pixels, reward_names" in str(report)


def test_each_option_of_trl_grpo_must_be_one_of_trl(tmp_path):
    command = "trl grpo --model_name_or_path none --bf16 false --use_cpu --learnign_rate 1e-6\n"
    report = preflight_file(script_in(tmp_path, command, "run.sh"))
    assert "unknown_argument" in report.codes and "Did you mean 'learning_rate'" in str(report)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("trl grpo --config none.yaml --seed 1", "names the config file 'none.yaml', which is not here"),
        ("CUDA_VISIBLE_DEVICES=0 swift rlhf --rlhf_type grpo --model Qwen/Qwen3-0.6B", "starts ms-swift"),
        ("python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo", "starts verl"),
        (
            "# --model Qwen \
swift rlhf --rlhf_type grpo",
            "starts ms-swift",
        ),
        ("docker run x bash -c 'python3 -m recipe.dapo.main actor_rollout_ref.rollout.n=8'", "starts verl"),
        ("python train.py --base.model Qwen --base.rate 1e-6", "none of which is an argument of TRL's"),
        ("cd run && echo 'train.py", "has no command such as"),
        ("python -c 1", "has no command such as"),
    ],
)
def test_a_shell_script_without_such_options_is_one_sentence(text, said, tmp_path):
    with pytest.raises(CourseError, match=said):
        preflight_file(script_in(tmp_path, text, "run.sh"))


def test_a_command_ends_at_a_comment_among_its_lines(tmp_path):
    lines = "python train.py \\\n--use_cpu --bf16 false \\\n# --beta 0.1 \\\n--num_generations 7\n"
    assert "batch" not in preflight_file(script_in(tmp_path, lines, "run.sh")).codes


def test_a_comma_behind_a_name_in_a_list_is_an_error(tmp_path):
    command = 'python train.py --lora_target_modules "q_proj", "v_proj" --use_cpu --bf16 false'
    report = preflight_file(script_in(tmp_path, command, "run.sh"))
    assert any("'q_proj,'" in one.what for one in report.errors)


def test_what_a_shell_does_with_a_command_is_no_option(tmp_path):
    lines = [
        "if [ -d /data/slime ]; then echo 'training", "now'; fi",
        "accelerate launch --num_processes $N train.py --seed 42 --num-generations 8 --learning-rate 1e-6 "
        "--per_device_train_batch_size 2 --no_gradient_checkpointing --use_cpu --no_bf16 --run_name 7 >> log 2>&1 &",
        "python eval.py --temperature 0; echo done",
    ]  # fmt: skip
    report = preflight_file(script_in(tmp_path, "\n".join(lines), "run.sh"))
    assert not report.codes, str(report)  # with so many processes, the batch may fit
    assert "num_processes" in report.skipped.values()


def test_the_config_file_of_a_command_is_read(tmp_path):
    (tmp_path / "grpo.yaml").write_text("use_cpu: true\nbf16: false\nnum_generations: 6\nseed: 3\n")
    command = "trl grpo --config grpo.yaml --reward_funcs accuracy_reward --per_device_train_batch_size 4\n"
    report = preflight_file(script_in(tmp_path, command, "run.sh"))
    assert {one.code for one in report.errors} == {"batch"}, str(report)
