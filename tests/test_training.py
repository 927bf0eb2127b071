from dataclasses import fields

import pytest

from grpo_utils.errors import CourseError
from grpo_utils.profiles import CPU, PROFILES, T4
from grpo_utils.training import REMOVED, check_batch, check_report_to, training_arguments

#: What Unsloth 2026.10.9 changes in GRPOConfig on a GPU (its models/rl.py), as far as TRL knows the name.
CHANGED_BY_UNSLOTH = {
    "logging_nan_inf_filter", "per_device_train_batch_size", "gradient_accumulation_steps", "weight_decay", "seed",
    "optim", "learning_rate", "per_device_eval_batch_size", "eval_accumulation_steps", "torch_empty_cache_steps",
    "logging_steps", "num_generations", "bf16", "fp16", "report_to", "warmup_steps", "loss_type", "beta",
    "vllm_importance_sampling_correction", "router_aux_loss_coef", "mask_truncated_completions", "epsilon_high",
    "scale_rewards", "steps_per_generation", "vllm_mode", "generation_kwargs", "include_num_input_tokens_seen",
    "auto_find_batch_size", "dataloader_pin_memory",
}  # fmt: skip


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_value_that_unsloth_changes_is_set(profile):
    assert CHANGED_BY_UNSLOTH <= training_arguments(profile).keys()


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_name_is_one_of_grpo_config(profile):
    from trl import GRPOConfig

    assert training_arguments(profile).keys() <= {field.name for field in fields(GRPOConfig)}


def test_trl_takes_the_arguments_as_they_are(tmp_path):
    from trl import GRPOConfig

    arguments = training_arguments(CPU, output_dir=str(tmp_path))
    config = GRPOConfig(**arguments)
    kept = {name: getattr(config, name) for name in arguments}
    differing = {name for name in arguments if kept[name] != arguments[name]}
    assert differing <= {"report_to", "loss_type"} and config.report_to in ("none", [])


def test_a_t4_trains_in_fp16_and_not_in_bf16():
    arguments = training_arguments(T4)
    assert (arguments["fp16"], arguments["bf16"], arguments["use_vllm"]) == (True, False, False)


def test_overrides_win():
    assert training_arguments(CPU, learning_rate=3e-4)["learning_rate"] == 3e-4


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("learnign_rate", "learning_rate"), ("num_generation", "num_generations"), ("max_step", "max_steps")],
)
def test_a_misspelled_name_suggests_the_right_one(wrong, right):
    with pytest.raises(CourseError, match=f"'{wrong}' is no argument of GRPOConfig. Did you mean '{right}'"):
        training_arguments(CPU, **{wrong: 1})


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_name_says_what_to_write(name):
    with pytest.raises(CourseError, match=f"'{name}' is gone from GRPOConfig: "):
        training_arguments(CPU, **{name: 1})


def test_the_removed_names_are_really_gone():
    from trl import GRPOConfig

    assert not REMOVED.keys() & {field.name for field in fields(GRPOConfig)}


def test_what_replaces_a_removed_name_is_real():
    for name in ("use_liger_kernel", "eval_strategy", "generation_kwargs", "log_unique_prompts", "warmup_steps"):
        training_arguments(CPU, **{name: None})


@pytest.mark.parametrize(("batch", "steps", "group"), [(64, 1, 8), (1, 8, 8), (2, 4, 8), (8, 1, 2)])
def test_whole_groups_are_accepted(batch, steps, group):
    check_batch(batch, steps, group)


@pytest.mark.parametrize(("batch", "steps", "group"), [(4, 1, 8), (1, 4, 8), (8, 1, 1), (8, 1, 3), (7, 1, 2)])
def test_a_batch_that_does_not_divide_names_valid_numbers(batch, steps, group):
    with pytest.raises(CourseError) as error:
        check_batch(batch, steps, group)
    valid = str(error.value).split("Valid num_generations here: ")[1].split(".")[0]
    for number in valid.split(", "):
        check_batch(batch, steps, int(number))
    sizes = str(error.value).split("batch_size of ")[1].rstrip(".")
    for size in sizes.split(", "):
        check_batch(int(size), steps, max(group, 2))


def test_accumulation_counts_towards_the_groups():
    arguments = training_arguments(CPU, per_device_train_batch_size=2, gradient_accumulation_steps=4)
    assert arguments["steps_per_generation"] == 4


def test_report_to_is_checked_before_anything_is_loaded():
    check_report_to("none")
    with pytest.raises(CourseError, match="REPORT_TO='wandbd' is unknown. Did you mean 'wandb'"):
        check_report_to("wandbd")
    with pytest.raises(CourseError, match="pip install trackio"):
        check_report_to("trackio")
