"""What the benches share: train the tiny model once, evaluate it on held-out prompts, store rows, compare seeds."""

import json
import math
import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

from bench import processor

from grpo_utils import evaluate, load_policy, load_rows, math_rewards, show_progress, training_arguments
from grpo_utils.evaluation.statistics import Estimate, t_interval
from grpo_utils.install import installed_version
from grpo_utils.profiles import CPU

if TYPE_CHECKING:
    from peft import PeftModel
    from transformers import PreTrainedTokenizerBase, TrainerCallback

    from grpo_utils.evaluation.judging import Evaluation

Policy = tuple["PeftModel", "PreTrainedTokenizerBase"]


def train_tiny(
    changes: dict,
    seed: int,
    steps: int,
    rank: int = 16,
    rewards: Sequence[Callable] = (),
    milestones: Callable[[Policy], "TrainerCallback"] | None = None,
) -> tuple[Policy, list[dict]]:
    """Train with some arguments of the ``cpu`` profile changed: the policy with its tokenizer, and the log.

    ``lora_alpha`` is that of the profile whatever the rank, because a step changes the weights by more if it grows with
    the rank. ``rewards`` are used alone and unweighted; without them, the rewards are those of lesson 03.
    ``milestones`` makes a callback of the trainer, given the policy.
    """
    from trl import GRPOConfig, GRPOTrainer

    profile = replace(CPU, lora_rank=rank)
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
        callbacks=[milestones((policy, tokenizer))] if milestones else None,
    )
    show_progress(trainer)
    trainer.train()
    return (policy, tokenizer), trainer.state.log_history


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


def train_missing(path: Path, runs: Sequence[dict], train: Callable[..., dict], **about: object) -> dict:
    """Train the ``runs`` that the file does not have yet, and store each as soon as it is complete."""
    stored = read_stored(path) if path.exists() else dict(rows=[])
    for run in runs:
        if any(run.items() <= row.items() for row in stored["rows"]):
            continue
        print(", ".join(f"{name} {value}" for name, value in run.items()), flush=True)
        stored = measured_on() | about | dict(rows=[*stored["rows"], run | train(**run)])
        path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return stored


def read_stored(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def provenance(stored: dict) -> str:
    """When, where and with which packages the rows were measured."""
    versions = ", ".join(f"{name} {version}" for name, version in stored["versions"].items())
    return f"{stored['date']}, {stored['processor']}, one core,\nPython {stored['python']}, {versions}."


def paired_difference(ours: Sequence[float], theirs: Sequence[float], prompts: int) -> Estimate:
    """The mean difference of two accuracies, seed by seed, with Student's 95% interval over the seeds.

    The interval is never narrower than the sampling of the prompts alone would make it.

    >>> str(paired_difference([0.9, 0.8], [0.8, 0.7], 200))
    '0.100 (0.045 to 0.155)'
    """
    differences = [one - other for one, other in zip(ours, theirs, strict=True)]
    sampling_error = math.sqrt(sum(rate * (1 - rate) / prompts for rate in [*ours, *theirs])) / len(ours)
    return t_interval(differences, least_scatter=1 / prompts, least_error=sampling_error)


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
