"""Every argument of a GRPO run, set explicitly and checked before a model is loaded.

Unsloth's GPU patch of TRL changes two dozen defaults and drops a misspelled name with a
warning. This module sets every value that Unsloth would change and checks every name, so a
run has the same configuration with and without Unsloth, and a typo is an error at once.
"""

import math
from collections.abc import Iterable
from importlib.util import find_spec

from .errors import CourseError, did_you_mean
from .profiles import Profile, check_choice

#: Names that tutorials still use, and their replacement in TRL 1.x and transformers 5.
REMOVED = {
    "max_prompt_length": "TRL no longer truncates prompts; filter the dataset with drop_long_prompts(rows, …)",
    "warmup_ratio": "use warmup_steps; a value below 1 is a fraction of all steps: warmup_steps=0.1",
    "torch_dtype": "set dtype=… when you load the model",
    "vllm_sampling_params": "use generation_kwargs",
    "tokenizer": "pass processing_class=tokenizer to GRPOTrainer",
    "max_seq_length": "set it when you load the model; GRPOConfig has max_completion_length",
}

REPORT_TO_CHOICES = ("none", "trackio", "tensorboard", "wandb")


def training_arguments(profile: Profile, **overrides: object) -> dict:
    """All arguments of `GRPOConfig` for a run on this profile; ``overrides`` take precedence.

    >>> from grpo_utils.profiles import CPU
    >>> arguments = training_arguments(CPU, max_steps=10)
    >>> arguments["max_steps"], arguments["num_generations"], arguments["loss_type"]
    (10, 8, 'dapo')

    Raises:
        CourseError: an override is not (or no longer) an argument of `GRPOConfig`, or the
            group size does not divide the batch.
    """
    check_names(overrides)
    arguments = {**_sizes(profile), **_precision(profile), **ALGORITHM, **HOUSEKEEPING, **overrides}
    arguments.setdefault("steps_per_generation", arguments["gradient_accumulation_steps"])
    check_batch(
        arguments["per_device_train_batch_size"],
        arguments["steps_per_generation"],
        arguments["num_generations"],
    )
    return arguments


def _sizes(profile: Profile) -> dict:
    return {
        "max_steps": profile.steps,
        "per_device_train_batch_size": profile.per_device_train_batch_size,
        "per_device_eval_batch_size": profile.per_device_train_batch_size,
        "gradient_accumulation_steps": profile.gradient_accumulation_steps,
        "num_generations": profile.num_generations,
        "max_completion_length": profile.max_completion_length,
        "learning_rate": profile.learning_rate,
        "optim": profile.optim,
        "use_vllm": profile.use_vllm,
        "vllm_mode": "colocate",
        # A GPU run is long enough to be interrupted, so its newest adapter is kept.
        "save_strategy": "no" if profile.name == "cpu" else "steps",
    }


def _precision(profile: Profile) -> dict:
    """bf16, fp16 or neither. TRL alone would choose bf16, which a T4 only emulates."""
    return {
        "bf16": profile.dtype == "bfloat16",
        "fp16": profile.dtype == "float16",
        "use_cpu": profile.name == "cpu",
        "gradient_checkpointing": profile.name != "cpu",
    }


#: The algorithm. Values equal to TRL's defaults are listed because Unsloth's defaults differ.
ALGORITHM = {
    "loss_type": "dapo",
    "beta": 0.0,  # no reference model, no KL term
    "epsilon": 0.2,
    "epsilon_high": 0.2,  # Unsloth would set 0.28 next to an explicit "dapo"
    "scale_rewards": "group",
    "mask_truncated_completions": False,
    "num_iterations": 1,  # one update from each batch of completions: on-policy
    "temperature": 1.0,
    "top_p": 1.0,
    "top_k": 0,
    "vllm_importance_sampling_correction": True,
    "router_aux_loss_coef": 0.0,
    "lr_scheduler_type": "linear",  # decays to zero; a constant rate ends in noise
    "warmup_steps": 0,
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "generation_kwargs": None,
    "auto_find_batch_size": False,
}

#: Arguments that affect a run's logs and files, not its result.
HOUSEKEEPING = {
    "seed": 0,
    "logging_steps": 1,
    "logging_nan_inf_filter": False,
    "report_to": "none",
    "disable_tqdm": True,  # the lesson shows its own bar, which also reads well in a saved notebook
    "dataloader_pin_memory": False,
    "torch_empty_cache_steps": None,
    "eval_accumulation_steps": None,
    "include_num_input_tokens_seen": "no",
    "save_steps": 25,
    "save_total_limit": 1,
}


def check_report_to(name: str) -> None:
    """Raise a CourseError unless ``name`` is a known logger whose package is installed."""
    check_choice("REPORT_TO", name, REPORT_TO_CHOICES)
    if name != "none" and find_spec(name) is None:
        raise CourseError(f"REPORT_TO={name!r} needs the package {name!r}, which is not installed: pip install {name}.")


def check_names(names: Iterable[str]) -> None:
    """Raise a CourseError at the first name that is not an argument of `GRPOConfig`.

    >>> check_names(["warmup_ratio"])
    Traceback (most recent call last):
    ...
    grpo_utils.errors.CourseError: 'warmup_ratio' is gone from GRPOConfig: use warmup_steps; a value below 1 is a fraction of all steps: warmup_steps=0.1.
    """  # noqa: E501
    valid = _config_names()
    for name in names:
        if name in REMOVED:
            raise CourseError(f"{name!r} is gone from GRPOConfig: {REMOVED[name]}.")
        if name not in valid:
            raise CourseError(f"{name!r} is not an argument of GRPOConfig.{did_you_mean(name, valid)}")


def _config_names() -> set[str]:
    from dataclasses import fields

    from trl import GRPOConfig

    return {field.name for field in fields(GRPOConfig) if field.init}


def check_batch(per_device_train_batch_size: int, steps_per_generation: int, num_generations: int) -> None:
    """Raise a CourseError unless the completions that one device generates at once form complete groups.

    >>> check_batch(4, 1, 8)
    Traceback (most recent call last):
    ...
    grpo_utils.errors.CourseError: 4 completions (per_device_train_batch_size 4 x steps_per_generation 1) is not divisible by num_generations=8; every group must be complete. Valid num_generations here: 2, 4. Or use a per_device_train_batch_size of 8, 16, 24.
    """  # noqa: E501
    completions = per_device_train_batch_size * steps_per_generation
    if num_generations >= 2 and completions % num_generations == 0:
        return
    groups = [str(size) for size in range(2, completions + 1) if completions % size == 0] or ["none"]
    wanted = max(num_generations, 2)
    least = wanted // math.gcd(wanted, steps_per_generation)
    sizes = ", ".join(str(least * times) for times in (1, 2, 3))
    raise CourseError(
        f"{completions} completions (per_device_train_batch_size {per_device_train_batch_size} x "
        f"steps_per_generation {steps_per_generation}) is not divisible by num_generations={num_generations}; "
        f"every group must be complete. Valid num_generations here: {', '.join(groups)}. "
        f"Or use a per_device_train_batch_size of {sizes}."
    )
