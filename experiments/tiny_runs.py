"""Train the tiny model once for a bench, and evaluate it on held-out prompts."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import process_time
from typing import TYPE_CHECKING

from grpo_utils import evaluate, load_policy, load_rows, math_rewards, show_progress
from grpo_utils.arguments import training_arguments
from grpo_utils.profiles import CPU

if TYPE_CHECKING:
    from datasets import Dataset
    from peft import PeftModel
    from transformers import PreTrainedTokenizerBase, TrainerCallback
    from trl import GRPOTrainer, SFTTrainer

    from grpo_utils.evaluation.judging import Evaluation

Policy = tuple["PeftModel", "PreTrainedTokenizerBase"]
#: The settings of the benches that compare GRPO with other methods, whatever the method.
USUAL = {
    "lr_scheduler_type": "constant",
    "optim": "adamw_torch",
    "use_cpu": True,
    "bf16": False,
    "gradient_checkpointing": False,
    "save_strategy": "no",
    "report_to": "none",
    "disable_tqdm": True,
    "logging_steps": 1,
}


def untrained(seed: int, rank: int = CPU.lora_rank) -> Policy:
    """The tiny model with a fresh adapter.

    ``lora_alpha`` is that of the profile whatever the rank, because a step changes the weights by more if it grows with
    the rank.
    """
    how = dict(profile=replace(CPU, lora_rank=rank), backend="transformers", load_in_4bit=False, seed=seed)
    return load_policy(CPU.models["qwen"], **how)


def train_tiny(
    changes: dict,
    seed: int,
    steps: int,
    rank: int = CPU.lora_rank,
    rewards: Sequence[Callable] = (),
    milestones: Callable[[Policy], "TrainerCallback"] | None = None,
    trainer_type: Callable[..., "GRPOTrainer"] | None = None,
) -> tuple[Policy, list[dict]]:
    """Train with some arguments of the ``cpu`` profile changed: the policy with its tokenizer, and the log.

    ``rank`` is as in `untrained`. ``rewards`` are used alone and unweighted; without them, the rewards are those of
    lesson 03. ``milestones`` makes a callback of the trainer, given the policy. ``trainer_type`` makes the trainer,
    instead of `GRPOTrainer`.
    """
    from trl import GRPOConfig, GRPOTrainer

    policy, tokenizer = untrained(seed, rank)
    functions, weights = (list(rewards), None) if rewards else math_rewards()
    usual = dict(output_dir="unused", max_steps=steps, lr_scheduler_type="constant", reward_weights=weights, seed=seed)
    trainer = (trainer_type or GRPOTrainer)(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(CPU, **usual | changes)),
        train_dataset=load_rows("addition", "train", 2000),
        reward_funcs=functions,
        callbacks=[milestones((policy, tokenizer))] if milestones else None,
    )
    show_progress(trainer)
    trainer.train()
    return (policy, tokenizer), trainer.state.log_history


def sft_trainer(policy: Policy, shown: "Dataset", **changes: object) -> "SFTTrainer":
    """A trainer on worked answers that prints no log; ``changes`` are its settings besides the `USUAL` ones."""
    from transformers.trainer_callback import PrinterCallback
    from trl import SFTConfig, SFTTrainer

    settings = USUAL | dict(max_length=128, completion_only_loss=True) | changes
    config = SFTConfig(tempfile.mkdtemp(), **settings)
    trainer = SFTTrainer(policy[0], args=config, processing_class=policy[1], train_dataset=shown)
    trainer.remove_callback(PrinterCallback)
    return trainer


def held_out(policy: Policy, prompts: int, seed: int) -> "Evaluation":
    """The policy's answers to the first held-out prompts."""
    rows = load_rows("addition", "test", prompts)
    return evaluate(*policy, rows, max_new_tokens=32, temperature=1.0, seed=seed)


def milestones_at(steps: Sequence[int], accuracy: Callable[[], float], found: list[dict]) -> "TrainerCallback":
    """A callback that adds to ``found`` the CPU seconds of training and the held-out accuracy after each of ``steps``.

    Evaluating costs none of these seconds and draws none of the training's random numbers.
    """
    import torch
    from transformers import TrainerCallback

    class Milestones(TrainerCallback):
        seconds = 0.0

        def on_train_begin(self, *args: object, **kwargs: object) -> None:
            self.since = process_time()

        def on_step_end(self, args: object, state: object, control: object, **kwargs: object) -> None:
            if state.global_step in steps:
                self.seconds += process_time() - self.since
                with torch.random.fork_rng():
                    rate = accuracy()
                found.append(dict(step=state.global_step, seconds=round(self.seconds, 2), accuracy=rate))
                self.since = process_time()

    return Milestones()
