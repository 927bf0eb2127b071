"""The checks are a package of their own: what they import, and that they work in any project on TRL."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT

import grpo_check

LIGHT = """
import sys
import grpo_check
print(sorted({"torch", "transformers", "trl", "scipy", "matplotlib", "datasets", "pandas"} & set(sys.modules)))
"""


def test_the_import_loads_nothing_heavy():
    run = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True, cwd="/")
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("name", grpo_check.__all__)
def test_every_public_name_is_reached_and_documented(name):
    assert getattr(grpo_check, name).__doc__


# A project on plain TRL, without grpo_utils, Unsloth and bitsandbytes

REWARDS = """
import re

FORM = re.compile(r"<reasoning>.+</reasoning><answer>(.+)</answer>", re.DOTALL)

def right(completions, answer, **kwargs):
    found = [FORM.fullmatch(completion[0]["content"] or "") for completion in completions]
    return [1.0 if one and one[1] == gold else 0.0 for one, gold in zip(found, answer)]
"""
SCRIPT = """
import json
from datasets import Dataset
from grpo_check import HealthCallback
from my_rewards import right
from trl import GRPOConfig, GRPOTrainer

rows = Dataset.from_list([json.loads(line) for line in open("rows.jsonl")])
trainer = GRPOTrainer(
    model={model!r},
    reward_funcs=[right],
    args=GRPOConfig(output_dir="out", max_steps=2, logging_steps=1, save_steps=2, use_cpu=True, bf16=False,
                    per_device_train_batch_size=4, num_generations=4, max_completion_length=8, report_to="none"),
    train_dataset=rows,
)
trainer.add_callback(HealthCallback(rows.select(range(2)), every=1, correctness=["right"]))
trainer.train()
"""
CONFIG = """
model_name_or_path: {model}
dataset_name: rows.jsonl
reward_funcs: [my_rewards.right]
use_peft: true
learning_rate: 1.0e-5
max_steps: 20
max_completion_length: 64
use_cpu: true
bf16: false
"""
ABSENT = ("grpo_utils", "unsloth", "unsloth_zoo", "bitsandbytes")
MODEL = str(ROOT / "grpo_utils" / "tiny" / "tiny-qwen3")
ROWS = [{"prompt": [{"role": "user", "content": f"What is {n} + 1?"}], "answer": str(n + 1)} for n in range(8)]
STEPS = [
    {"step": n, "loss": 0.1, "reward": 0.3 + n / 50, "reward_std": 0.2, "frac_reward_zero_std": 0.1}
    for n in range(1, 21)
]


@pytest.fixture
def project(tmp_path) -> Path:
    """A folder with a reward file, rows, a config, a script and a log; without Unsloth and bitsandbytes."""
    files = {
        "my_rewards.py": REWARDS,
        "train.py": SCRIPT.replace("{model!r}", repr(MODEL)),
        "config.yaml": CONFIG.format(model=MODEL),
        "rows.jsonl": "\n".join(map(json.dumps, ROWS)),
        "trainer_state.json": json.dumps({"log_history": STEPS}),
        "site/sitecustomize.py": f"import sys\nsys.modules.update(dict.fromkeys({ABSENT}))\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def python(project: Path, *arguments: str) -> subprocess.CompletedProcess:
    newest = os.environ.get("PYTHONPATH")  # `make check-newest` puts another TRL there
    paths = os.pathsep.join(filter(None, [str(project / "site"), newest]))
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, *arguments], cwd=project, capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--help"], ["probe", "attack", "preflight", "pilot", "health"]),
        (["probe", "my_rewards.py:right", "--answers", "42", "7"], ["ok: right, "]),
        (
            ["attack", "my_rewards.py:right", "--rows", "rows.jsonl", "--model", MODEL, "--minutes", "0.05"],
            ["completions of 8 rows", "ok: 0 errors"],
        ),
        (["preflight", "config.yaml"], ["`probe`", "0 errors"]),
        (["pilot", "config.yaml", "--prompts", "8", "--limit", "8"], ["raise_limit: "]),
        (["health", "trainer_state.json"], ["unchecked"]),
    ],
    ids=lambda value: value[0] if value[0] != "--help" else "help",
)
@pytest.mark.slow
def test_the_commands_work_in_a_project_on_plain_trl(arguments, said, project):
    run = python(project, "-m", "grpo_check", *arguments)
    stopped = arguments[0] == "pilot"  # its verdict on eight rows is not to start
    assert run.returncode == stopped and "Traceback" not in run.stderr, run.stdout + run.stderr
    assert all(text in run.stdout for text in said), run.stdout


@pytest.mark.slow
def test_the_callback_works_in_a_plain_trl_script(project):
    run = python(project, "train.py")
    assert run.returncode == 0, run.stdout + run.stderr
    samples = (project / "out" / "health" / "samples.txt").read_text(encoding="utf-8")
    assert "What is 0 + 1?" in samples
    said = python(project, "-m", "grpo_check", "health", "out/checkpoint-2")
    assert "Traceback" not in said.stderr and said.stdout, said.stderr
