"""Every argument of a GRPO run, set explicitly.

Unsloth's GPU patch of TRL changes two dozen defaults. This module sets every value that Unsloth would
change, so a run has the same configuration with and without Unsloth.
"""

from importlib.util import find_spec

from grpo_core.errors import CourseError, check_choice

from .profiles import Profile

_REPORT_TO_CHOICES = ("none", "trackio", "tensorboard", "wandb")


def training_arguments(profile: Profile, **overrides: object) -> dict:
    """All arguments of `GRPOConfig` for a run on this profile; ``overrides`` take precedence.

    >>> from grpo_utils.profiles import CPU
    >>> arguments = training_arguments(CPU, max_steps=10)
    >>> arguments["max_steps"], arguments["num_generations"], arguments["loss_type"]
    (10, 8, 'dapo')

    `grpo_check.preflight` finds unknown names and sizes that do not fit together.
    """
    arguments = {**_sizes(profile), **_CHOSEN, **other_arguments(profile), **overrides}
    at_once = overrides.get("steps_per_generation", arguments["gradient_accumulation_steps"])
    return arguments | {"steps_per_generation": at_once}


def other_arguments(profile: Profile) -> dict:
    """The arguments of `GRPOConfig` that lesson 03 does not write out: schedule, precision, files, logs and `_PINNED`.

    >>> from grpo_utils.profiles import T4
    >>> arguments = other_arguments(T4)
    >>> arguments["fp16"], arguments["lr_scheduler_type"], arguments["warmup_steps"], arguments["save_steps"]
    (True, 'constant_with_warmup', 2, 25)
    """
    return {
        "lr_scheduler_type": profile.lr_scheduler_type,
        "warmup_steps": profile.warmup_steps,
        "optim": profile.optim,
        "steps_per_generation": profile.gradient_accumulation_steps,  # all completions of a step are sampled together
        "per_device_eval_batch_size": profile.per_device_train_batch_size,
        "use_vllm": profile.use_vllm,
        "vllm_mode": "colocate",
        # A GPU run is long enough to be interrupted, so its newest adapter is kept.
        "save_strategy": "no" if profile.name == "cpu" else "steps",
        **_precision(profile),
        **_PINNED,
    }


def _sizes(profile: Profile) -> dict:
    return {
        "max_steps": profile.steps,
        "per_device_train_batch_size": profile.per_device_train_batch_size,
        "gradient_accumulation_steps": profile.gradient_accumulation_steps,
        "num_generations": profile.num_generations,
        "max_completion_length": profile.max_completion_length,
        "learning_rate": profile.learning_rate,
    }


def _precision(profile: Profile) -> dict:
    """bf16, fp16 or neither. TRL alone would choose bf16, which a T4 only emulates."""
    return {
        "bf16": profile.dtype == "bfloat16",
        "fp16": profile.dtype == "float16",
        "use_cpu": profile.name == "cpu",
        "gradient_checkpointing": profile.name != "cpu",
    }


#: Settings that are the same on all machines and that the lessons do not discuss. Unsloth changes the defaults of many
#: of them on a GPU, so each has a value here, TRL's own where nothing else is said, and a run is the same with and
#: without Unsloth.
_PINNED = {
    # The loss
    "loss_type": "dapo",
    "epsilon": 0.2,
    "epsilon_high": 0.2,  # Unsloth would set 0.28 next to an explicit "dapo"
    "scale_rewards": "group",
    "mask_truncated_completions": False,
    "num_iterations": 1,  # one update from each batch of completions: on-policy
    "router_aux_loss_coef": 0.0,
    # Sampling
    "top_p": 1.0,
    "top_k": 0,
    "generation_kwargs": None,
    "vllm_importance_sampling_correction": True,
    # The optimizer
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    # What affects memory, files and logs, not the result
    "auto_find_batch_size": False,
    "dataloader_pin_memory": False,  # it would warn on a machine without a GPU
    "torch_empty_cache_steps": None,
    "eval_accumulation_steps": None,
    "save_steps": 25,
    "save_total_limit": 1,
    "logging_steps": 1,
    "logging_nan_inf_filter": False,  # as in Unsloth: a loss that is not finite shows in the log
    "include_num_input_tokens_seen": "no",
    "disable_tqdm": True,  # the lesson shows its own bar, which also reads well in a saved notebook
}

#: What the lessons choose, on every machine.
_CHOSEN = {
    "temperature": 1.0,
    "beta": 0.0,  # no reference model, no KL term
    "seed": 0,
    "report_to": "none",
}


def check_report_to(name: str) -> None:
    """Raise a CourseError unless ``name`` is a known logger whose package is installed."""
    check_choice("REPORT_TO", name, _REPORT_TO_CHOICES)
    if name != "none" and find_spec(name) is None:
        raise CourseError(f"REPORT_TO={name!r} needs the package {name!r}, which is not installed: pip install {name}.")
