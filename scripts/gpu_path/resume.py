"""Run a second stage as on a GPU, once without a break and once stopped and resumed, and compare the results.

GPU_PATH_CARD=t4 python resume.py outputs/resume        # writes difference.json into the folder
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import start  # noqa: F401  before anything imports transformers or TRL
from grpo_core.training.resuming import load_adapter
from peft import PeftModel
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from grpo_utils import load_policy, load_rows, math_rewards, train_or_resume
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU, PROFILES

SIZES = dict(max_completion_length=24, per_device_train_batch_size=8, gradient_accumulation_steps=2, num_generations=4)
SIZES |= dict(lr_scheduler_type="linear", warmup_steps=0)  # a warmup would hide the first updates
PROFILE = replace(
    PROFILES[os.environ["GPU_PATH_CARD"]], **SIZES, dtype="float32", learning_rate=1e-3, models=CPU.models
)


class Stop(TrainerCallback):
    """End a run as if the machine had lost power."""

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 3:
            raise KeyboardInterrupt


def new_trainer(policy: PeftModel, tokenizer: object, folder: Path, weights: list[float], steps: int) -> GRPOTrainer:
    own = dict(output_dir=str(folder), max_steps=steps, reward_weights=weights, save_strategy="steps", save_steps=2)
    return GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(PROFILE, **own, save_total_limit=2)),
        train_dataset=load_rows("addition", "train", 64),
        reward_funcs=math_rewards().rewards,
    )


def first_stage(folder: Path) -> list[dict]:
    """Train for the form, and keep the adapter; the log."""
    policy, tokenizer = load_policy("tiny-qwen3", profile=PROFILE, load_in_4bit=False)
    trainer = new_trainer(policy, tokenizer, folder, [0.0, 0.5, 0.5], 2)
    trainer.train()
    policy.save_pretrained(folder / "adapter")
    return trainer.state.log_history


def second_stage(form: Path, folder: Path, callbacks: list) -> tuple[dict, list[dict]]:
    """Train for both from the kept adapter, or resume; the adapter at the end, and the log."""
    policy, tokenizer = load_policy("tiny-qwen3", profile=PROFILE, load_in_4bit=False)
    load_adapter(policy, form / "adapter")
    trainer = new_trainer(policy, tokenizer, folder, math_rewards().weights, 4)
    for callback in callbacks:
        trainer.add_callback(callback)
    train_or_resume(trainer)
    adapter = {name: p.detach().clone() for name, p in policy.named_parameters() if p.requires_grad}
    return adapter, trainer.state.log_history


def main(folder: Path) -> None:
    form = folder / "form"
    log = first_stage(form)
    whole, one = second_stage(form, folder / "whole", [])
    try:
        second_stage(form, folder / "cut", [Stop()])
    except KeyboardInterrupt:
        print("stopped")
    resumed, two = second_stage(form, folder / "cut", [])
    apart = max((whole[name] - resumed[name]).abs().max().item() for name in whole)
    rewards = [[entry["reward"] for entry in log + entries if "reward" in entry] for entries in (one, two)]
    least = min(entry["grad_norm"] for entry in log + one if "grad_norm" in entry)
    found = {"weights": apart, "rewards": rewards, "least_grad_norm": least}
    (folder / "difference.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
