"""What the benches of settings share: train the tiny model once, and evaluate it on held-out prompts."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from bench import processor

from grpo_utils import evaluate, load_policy, load_rows, math_rewards, show_progress, training_arguments
from grpo_utils.install import installed_version
from grpo_utils.profiles import CPU

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedTokenizerBase

    from grpo_utils.evaluation.judging import Evaluation
    from grpo_utils.evaluation.statistics import Estimate

Policy = tuple["PeftModel", "PreTrainedTokenizerBase"]


def train_tiny(
    changes: dict, seed: int, steps: int, rank: int = 16, rewards: Sequence[Callable] = ()
) -> tuple[Policy, list[dict]]:
    """Train with some arguments of the ``cpu`` profile changed: the policy with its tokenizer, and the log.

    ``rewards`` are used alone and unweighted; without them, the rewards are those of lesson 03.
    """
    from trl import GRPOConfig, GRPOTrainer

    profile = replace(CPU, lora_rank=rank, lora_alpha=2 * rank)
    how = dict(profile=profile, backend="transformers", load_in_4bit=False, seed=seed)
    policy, tokenizer = load_policy(CPU.models["qwen"], **how)
    functions, weights = (list(rewards), None) if rewards else math_rewards()
    usual = dict(output_dir="unused", max_steps=steps, lr_scheduler_type="constant", reward_weights=weights, seed=seed)
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(CPU, **usual | changes)),
        train_dataset=load_rows("addition", "train", 2000),
        reward_funcs=functions,
    )
    show_progress(trainer)
    trainer.train()
    return (policy, tokenizer), trainer.state.log_history


def held_out(policy: Policy, prompts: int, seed: int) -> "Evaluation":
    """The policy's answers to the first held-out prompts."""
    rows = load_rows("addition", "test", prompts)
    return evaluate(*policy, rows, max_new_tokens=32, temperature=1.0, seed=seed)


def measured_on() -> dict:
    """The date, the machine and the versions of a measurement."""
    versions = {name: installed_version(name) for name in ("trl", "transformers", "peft", "torch")}
    machine = dict(date=f"{date.today():%Y-%m-%d}", processor=processor(), python=platform.python_version())
    return machine | dict(versions=versions)


def difference_text(difference: "Estimate | Sequence[float]") -> str:
    """A difference with its interval, and whether it shows anything.

    >>> difference_text((0.1, 0.05, 0.15))
    '+0.100 (+0.050 to +0.150)'
    >>> difference_text((0.1, -0.05, 0.25))
    'no difference shown: +0.100 (-0.050 to +0.250)'
    """
    value, low, high = difference
    verdict = "" if low > 0 or high < 0 else "no difference shown: "
    return f"{verdict}{value:+.3f} ({low:+.3f} to {high:+.3f})"
