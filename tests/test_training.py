import re
from dataclasses import fields
from importlib import metadata

import pytest
from grpo_core.errors import CourseError
from grpo_core.training.policy import keep_trainable_fp32

from grpo_utils import load_rows
from grpo_utils.arguments import check_report_to, training_arguments
from grpo_utils.models import load_policy
from grpo_utils.profiles import CPU, PROFILES, T4
from grpo_utils.rewards import math_rewards


def changed_by_unsloth() -> set[str]:
    """The fields of GRPOConfig that the installed Unsloth changes on a GPU, read from its source."""
    from trl import GRPOConfig

    source = metadata.distribution("unsloth").locate_file("unsloth/models/rl.py").read_text(encoding="utf-8")
    blocks = re.findall(r"^ +replacements = \{\n(.*?)^ +\}\n", source, flags=re.MULTILINE | re.DOTALL)
    names = {name for block in blocks for name in re.findall(r'^ +"(\w+)":', block, flags=re.MULTILINE)}
    assert {"learning_rate", "beta", "loss_type"} <= names  # the source still reads as expected
    return names & {field.name for field in fields(GRPOConfig)}


#: Its checks below those tables change these too, where they are left open.
CHANGED_ELSEWHERE = {"epsilon_high", "scale_rewards", "steps_per_generation", "gradient_checkpointing"}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_every_value_that_unsloth_changes_is_set(profile):
    left_open = (changed_by_unsloth() | CHANGED_ELSEWHERE) - training_arguments(profile).keys()
    assert left_open <= {"output_dir"}


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


def test_a_t4_trains_in_fp16_and_keeps_its_newest_adapter_and_a_cpu_run_needs_none():
    arguments = training_arguments(T4)
    assert (arguments["fp16"], arguments["bf16"], arguments["use_vllm"]) == (True, False, False)
    assert (arguments["save_strategy"], training_arguments(CPU)["save_strategy"]) == ("steps", "no")


def test_report_to_is_checked_before_anything_is_loaded():
    check_report_to("none")
    with pytest.raises(CourseError, match="REPORT_TO='wandbd' is unknown. Did you mean 'wandb'"):
        check_report_to("wandbd")
    with pytest.raises(CourseError, match="pip install trackio"):
        check_report_to("trackio")


@pytest.mark.slow
@pytest.mark.upgrade
def test_trl_casts_4_bit_adapters_to_bf16_and_we_cast_them_back(tmp_path):
    import torch
    from trl import GRPOConfig, GRPOTrainer

    policy, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="transformers")
    GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(CPU, output_dir=str(tmp_path))),
        train_dataset=load_rows("addition", "train", 16),
        reward_funcs=math_rewards().rewards,
    )
    trainable = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    assert {parameter.dtype for parameter in trainable} == {torch.bfloat16}, "TRL no longer casts: drop the helper"
    assert keep_trainable_fp32(policy) == 28
    assert {parameter.dtype for parameter in trainable} == {torch.float32}
