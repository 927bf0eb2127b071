"""Run lesson 05's two stages as on a GPU, once without a break and once stopped and resumed, and compare the results.

GPU_PATH_CARD=t4 python resume.py outputs/resume        # writes difference.json into the folder
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import start  # noqa: F401  before anything imports transformers or TRL
from transformers import TrainerCallback

from grpo_utils import Stage, load_policy, load_rows, math_rewards, run_stages
from grpo_utils.profiles import CPU, PROFILES

SIZES = dict(max_completion_length=24, per_device_train_batch_size=8, gradient_accumulation_steps=2, num_generations=4)
PROFILE = replace(
    PROFILES[os.environ["GPU_PATH_CARD"]], **SIZES, dtype="float32", learning_rate=1e-3, models=CPU.models
)


class Stop(TrainerCallback):
    """End a run as if the machine had lost power."""

    def on_step_end(self, args, state, control, **kwargs):
        if "2-both" in args.output_dir and state.global_step == 3:
            raise KeyboardInterrupt


def train(folder: Path, callbacks: list) -> tuple[dict, list[dict]]:
    """The adapter at the end, and the log entry of each step."""
    policy, tokenizer = load_policy("tiny-qwen3", profile=PROFILE, load_in_4bit=False)
    rows, (rewards, weights) = load_rows("addition", "train", 64), math_rewards()
    stages = [Stage("format", rewards[1:], weights[1:], 2, rows), Stage("both", rewards, weights, 4, rows)]
    logs = run_stages(policy, tokenizer, stages, folder, profile=PROFILE, save_every=2, callbacks=lambda: callbacks)
    adapter = {name: p.detach().clone() for name, p in policy.named_parameters() if p.requires_grad}
    return adapter, [entry for log in logs.values() for entry in log if "reward" in entry]


def main(folder: Path) -> None:
    whole, log = train(folder / "whole", [])
    try:
        train(folder / "cut", [Stop()])
    except KeyboardInterrupt:
        print("stopped")
    resumed, again = train(folder / "cut", [])
    apart = max((whole[name] - resumed[name]).abs().max().item() for name in whole)
    rewards = [[entry["reward"] for entry in entries] for entries in (log, again)]
    least = min(entry["grad_norm"] for entry in log)
    found = {"weights": apart, "rewards": rewards, "least_grad_norm": least}
    (folder / "difference.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
