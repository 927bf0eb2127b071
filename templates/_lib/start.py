"""The settings of a run, and what is checked before a model is loaded.

Settings are the fields of TRL's `GRPOConfig` and `ModelConfig`, and the few of `RunConfig`. TRL's parser reads them
from a YAML file and from options, which take precedence. Rewards and their weights are in rewards.py instead.
"""

import argparse
import difflib
import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from .small_yaml import SmallLoader, load_yaml

if TYPE_CHECKING:
    from datasets import Dataset
    from trl import GRPOConfig, ModelConfig

FEWEST_HELD_OUT = 10  # rows; fewer cannot show a change
COUNTS = ("train_rows", "eval_rows", "eval_batch", "max_prompt_tokens", "max_completion_length", "num_generations")
COUNTS += ("per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation")
COUNTS += ("generation_batch_size", "lora_r")
#: The settings of `ModelConfig` that loading.py uses; others are rejected.
LOADING = ("model_name_or_path", "load_in_4bit", "use_peft", "lora_r", "lora_alpha", "lora_dropout")
LOADING += ("lora_target_modules",)
#: What an adapter that loading.py continues cannot have, because it keeps only rank, scale and layers.
NOT_KEPT = ("use_rslora", "use_dora", "modules_to_save", "rank_pattern", "alpha_pattern", "target_parameters")
NOT_KEPT += ("layers_to_transform", "exclude_modules", "trainable_token_indices", "lora_bias")
#: The names that booleans stand for. As an option, a boolean would be the text "False", which these do not have.
NAMED_BOOLEANS = {
    "save_strategy": {False: "no"},
    "logging_strategy": {False: "no"},
    "eval_strategy": {False: "no"},
    "scale_rewards": {False: "none", True: "group"},
}


@dataclass
class RunConfig:
    """The settings that TRL does not have."""

    dataset_name: str = field(default="openai/gsm8k", metadata={"help": "addition, openai/gsm8k, or FILE.jsonl"})
    train_rows: int = field(default=2000, metadata={"help": "rows to train on, at most"})
    eval_rows: int = field(default=200, metadata={"help": "held-out rows to evaluate before and after training"})
    eval_batch: int = field(default=40, metadata={"help": "held-out prompts answered at once"})
    max_prompt_tokens: int = field(default=512, metadata={"help": "longer prompts are dropped; TRL never cuts them"})
    max_minutes: float = field(default=0, metadata={"help": "end training before it takes longer; 0: no limit"})
    reward_model: str = field(default="", metadata={"help": "a reward model in addition to REWARDS: hub id or folder"})
    reward_model_weight: float = field(default=0.1, metadata={"help": "its weight; its scores are unbounded"})
    use_unsloth: bool = field(default=True, metadata={"help": "load with Unsloth (false: plain transformers)"})
    accept_changes: bool = field(default=False, metadata={"help": "resume from checkpoints after an edit"})


@dataclass
class Settings:
    """What a run is started with; ``values`` has all settings by name, before TRL derives some from others."""

    run: RunConfig
    training: "GRPOConfig"
    model: "ModelConfig"
    values: dict
    profile: str  # the name of the config file


def parse(argv: list[str], stage: Sequence[str] = (), alone: bool = True) -> Settings:
    """Set the environment, import Unsloth and then TRL, and read the settings; an invalid one raises `SystemExit`.

    ``stage`` has options that take precedence over ``argv``. With ``alone``, the run uses one process and one GPU.
    """
    if alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("Error: this template trains in one process; run it without torchrun or accelerate.")
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", default="")
    early.add_argument("--use_unsloth", "--use-unsloth", nargs="?", const="true")
    early.add_argument("--no_use_unsloth", "--no-use-unsloth", dest="use_unsloth", action="store_const", const="false")
    check_repeated(argv)
    first, options = early.parse_known_args(argv)
    config = read_config(Path(first.config)) if first.config else {}
    if first.use_unsloth:
        config["use_unsloth"] = first.use_unsloth
    if not {"-h", "--help"} & set(argv):  # help asks for nothing
        prepare(config.pop("env", {}), str(config.get("use_unsloth", "true")), alone)
    from trl import GRPOConfig, ModelConfig, TrlParser

    parser = TrlParser((RunConfig, GRPOConfig, ModelConfig), allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", default=argparse.SUPPRESS, help="a YAML file of settings; options replace its own")
    try:
        unknown = parser.set_defaults_with_config(**config)
        found, more = parser.parse_known_args([*options, *stage])
        check_names(vars(found), [*unknown, *more])
        check_numbers(vars(found))
        check_groups(vars(found))
        check_model(vars(found))
        check_loading(vars(found), ModelConfig())
        return Settings(*parser.parse_dict(vars(found)), vars(found), Path(first.config).stem)
    except (argparse.ArgumentError, ValueError) as error:  # ValueError: from TRL's dataclasses
        raise SystemExit(f"Error: {error}") from None


def prepare(environment: dict, use_unsloth: str, alone: bool) -> None:
    """Set the environment before torch reads it, and import Unsloth before TRL, which it patches.

    A run in several processes never imports Unsloth: engine.py rejects use_unsloth.
    """
    os.environ.update({name: str(value) for name, value in environment.items()})
    if alone:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # a second GPU would double the batch
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # it suggests a kernel that no run needs
    if not alone or use_unsloth.lower() in ("false", "f", "no", "n", "0"):
        return
    if not find_spec("unsloth"):
        fix = "pip install --no-deps -r requirements-unsloth.txt, or set use_unsloth: false."
        raise SystemExit(f"Error: Unsloth is not installed: {fix}")
    import unsloth  # noqa: F401


class StrictLoader(SmallLoader):
    """A YAML loader that rejects repeated keys, of which PyYAML silently takes the last, and keys without a value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """Reject a repeated key, and a key without a value."""
        lines = {}
        for key, value in node.value:
            name, line = key.value, key.start_mark.line + 1
            if name in lines:
                raise yaml.YAMLError(f"{name!r} is set twice, in lines {lines[name]} and {line}; delete one.")
            if value.tag.endswith(":null") and not value.value:
                raise yaml.YAMLError(f"{name!r} in line {line} has no value; add one, or delete the line.")
            lines[name] = line
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> object:
    """Read a YAML file; an error names the file and the line."""
    try:
        return load_yaml(path, StrictLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SystemExit(f"Error: {path}: {error}") from None


def read_config(path: Path) -> dict:
    """The settings in a YAML file: numbers as text, which TRL's parser converts and checks like that of options."""
    config = read_yaml(path)
    if not isinstance(config, dict) or not isinstance(config.get("env", {}), dict):
        raise SystemExit(f"Error: {path} must have lines like `learning_rate: 1.0e-5`, and under env `  NAME: value`.")
    given = as_meant(config).items()
    return {name: value if isinstance(value, dict | list | bool) else str(value) for name, value in given}


def as_meant(settings: dict) -> dict:
    """Settings as they are meant in YAML, which reads ``no`` as false. A null sets nothing, so it is left out.

    >>> as_meant({"save_strategy": False, "scale_rewards": False, "vllm_mode": None, "use_cpu": False})
    {'save_strategy': 'no', 'scale_rewards': 'none', 'use_cpu': False}
    """
    meant = {}
    for name, value in settings.items():
        if isinstance(value, bool):
            value = NAMED_BOOLEANS.get(name, {}).get(value, value)
        if value is not None:
            meant[str(name)] = value
    return meant


def check_repeated(argv: list[str]) -> None:
    """Reject an option that is given twice, of which argparse silently takes the last.

    >>> check_repeated(["--max_steps", "5", "--max-steps=9"])
    Traceback (most recent call last):
    SystemExit: Error: --max_steps is given twice; delete one.
    """
    names = [word.partition("=")[0].replace("-", "_") for word in argv if word.startswith("--")]
    for name in names:
        if names.count(name) > 1:
            raise SystemExit(f"Error: --{name[2:]} is given twice; delete one.")


def check_names(values: dict, unknown: list[str]) -> None:
    """Reject an unknown setting, with the nearest name, and rewards among the settings."""
    names = [word[2:].partition("=")[0] for word in unknown if word.startswith("--")]
    if {"rewards", "reward_funcs", "reward-funcs"} & set(names) or values["reward_weights"]:
        raise SystemExit("Error: rewards and their weights are not settings; set them in REWARDS in rewards.py.")
    if wrong := names or unknown:
        near = difflib.get_close_matches(wrong[0], values, n=1)
        raise SystemExit(f"Error: unknown setting {wrong[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))


def check_numbers(values: dict) -> None:
    """Check that counts and rates are in range."""
    if values["max_steps"] == -1:
        require(values, ["num_train_epochs"], lambda n: n > 0, "above 0")
    else:
        require(values, ["max_steps"], lambda n: n >= 1, "a positive integer, or -1 to count epochs")
    used = [f"{name}_steps" for name in ("logging", "save") if values[f"{name}_strategy"] == "steps"]
    require(values, COUNTS, lambda n: n >= 1, "a positive integer")
    require(values, ["temperature", *used], lambda n: n > 0, "above 0")
    require(values, ["learning_rate", "warmup_steps", "beta", "max_minutes"], lambda n: n >= 0, "0 or more")
    if values["scale_rewards"] not in ("group", "batch", "none"):  # TRL finds it only in its first step
        raise SystemExit(f"Error: scale_rewards is {values['scale_rewards']!r}; it must be group, batch or none.")


def require(values: dict, names: Sequence[str], holds: Callable, wanted: str) -> None:
    """Reject a number that is out of range."""
    for name in names:
        value = values[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and holds(value)):
            raise SystemExit(f"Error: {name} is {value}; it must be {wanted}.")


def check_groups(values: dict) -> None:
    """Check that the completions of a step are complete groups. (TRL would name settings that the user did not set.)"""
    group, steps = values["num_generations"], values["steps_per_generation"] or values["gradient_accumulation_steps"]
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    count = values["generation_batch_size"] or values["per_device_train_batch_size"] * steps * processes
    if group < 2 or count % group:
        raise SystemExit(
            f"Error: num_generations is {group}, and a step has {count} completions (generation_batch_size, or "
            "per_device_train_batch_size x gradient_accumulation_steps x processes). A group needs at least 2 "
            "completions, and every group must be complete: change one, so that num_generations divides the other."
        )


def check_model(values: dict) -> None:
    """Reject a model that is not there, or that cannot be trained or resumed with these settings."""
    name = values["model_name_or_path"]
    if not name:
        raise SystemExit("Error: model_name_or_path is missing. Add --config config.cpu.yaml, which sets it.")
    if name.startswith(".") and not Path(name).is_dir():
        raise SystemExit(f"Error: there is no model in {name}. (`python -m grpo_utils new` copies ./tiny-model too.)")
    if values["load_in_4bit"] and not values["use_peft"]:
        raise SystemExit("Error: load_in_4bit needs use_peft: 4-bit weights cannot be trained, but an adapter can.")
    if Path(name, "adapter_config.json").is_file():
        check_adapter(Path(name), values["use_peft"])
    if values["save_only_model"]:
        raise SystemExit("Error: with save_only_model a run cannot resume; set it to false.")


def check_adapter(folder: Path, use_peft: bool) -> None:
    """Reject an adapter that cannot be trained further as it is."""
    if not use_peft:
        raise SystemExit(f"Error: {folder} is an adapter, so use_peft must be true.")
    adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    found = [f"{name}={adapter[name]!r}" for name in NOT_KEPT if adapter.get(name)]
    if adapter.get("peft_type", "LORA") != "LORA":
        found = [f"peft_type={adapter['peft_type']!r}"]
    if found:
        raise SystemExit(
            f"Error: {folder} is an adapter with {', '.join(found)}, and only a plain LoRA adapter can be trained "
            "further. Merge it into its base model, and start from the merged model."
        )


def check_loading(values: dict, default: "ModelConfig") -> None:
    """Reject settings of TRL's `ModelConfig` that would have no effect, because loading.py loads the model."""
    for name, usual in vars(default).items():
        if name not in LOADING and values[name] != usual:
            raise SystemExit(f"Error: {name} is {values[name]}, but the templates do not use this setting; delete it.")


def check_rows(settings: Settings, rows: "Dataset", held_out: "Dataset") -> None:
    """Check that there are enough rows for a step, and for an evaluation."""
    check_enough(settings, len(rows), f"{settings.run.dataset_name} has {len(rows)} training rows")
    count = len(held_out)
    if count < min(FEWEST_HELD_OUT, settings.run.eval_rows):
        raise SystemExit(
            f"Error: {settings.run.dataset_name} has {count} held-out rows, and an evaluation needs {FEWEST_HELD_OUT}. "
            f"Add rows, or continue anyway with --eval_rows {count}."
        )


def check_enough(settings: Settings, rows: int, found: str) -> None:
    """Check that there are enough training rows for a step, or TRL would end the run without one."""
    needed = settings.training.generation_batch_size // settings.training.num_generations
    if rows < needed:
        raise SystemExit(
            f"Error: {found}, and each step needs {needed} different prompts "
            "(completions / num_generations). Add rows, or use a smaller batch."
        )
