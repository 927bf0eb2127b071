"""The settings of a run. `read` checks them before anything heavy is imported, and `parse` gives them to TRL.

Settings are the fields of TRL's `GRPOConfig` and `ModelConfig`, and the few of `RunConfig`. They come from a YAML file
and from options, which take precedence. Rewards and their weights are in rewards.py instead.
"""

import argparse
import difflib
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

import yaml
from grpo_core.training.small_yaml import SmallLoader, load_yaml

from .known import Field, of_trl
from .limits import check_groups, check_names, check_values

if TYPE_CHECKING:
    from trl import GRPOConfig, ModelConfig

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

    dataset_name: str = field(
        default="openai/gsm8k", metadata={"help": "one that data.py knows, or a file of your own"}
    )
    train_rows: int = field(default=2000, metadata={"help": "rows to train on, at most"})
    eval_rows: int = field(default=200, metadata={"help": "held-out rows to evaluate before and after training"})
    held_out: float = field(default=0.2, metadata={"help": "share of the rows of your own file to evaluate with"})
    examples: int = field(default=0, metadata={"help": "training rows that each prompt shows, with their gold answers"})
    eval_batch: int = field(default=40, metadata={"help": "held-out prompts answered at once"})
    max_prompt_tokens: int = field(default=512, metadata={"help": "longer prompts are dropped; TRL never cuts them"})
    max_minutes: float = field(default=0, metadata={"help": "end training before it takes longer; 0: no limit"})
    reward_model: str = field(default="", metadata={"help": "a reward model in addition to REWARDS: hub id or folder"})
    reward_model_weight: float = field(default=0.1, metadata={"help": "its weight; its scores are unbounded"})
    use_unsloth: bool = field(default=True, metadata={"help": "load with Unsloth (false: plain transformers)"})
    accept_changes: bool = field(default=False, metadata={"help": "resume from checkpoints after an edit"})
    check: bool = field(default=False, metadata={"help": "check all that can be known before loading, and stop"})


@dataclass
class Settings:
    """What a run is started with; ``values`` has all settings by name, before TRL derives some from others."""

    run: RunConfig
    training: "GRPOConfig"
    model: "ModelConfig"
    values: dict
    profile: str  # the name of the config file


def read(argv: list[str], stage: Sequence[str] = (), alone: bool = True) -> dict:
    """All settings by name, checked, and the environment set; an invalid setting raises `SystemExit`.

    It imports nothing heavy, so that a mistake is reported within a second. ``stage`` has options that take precedence
    over ``argv``. With ``alone``, the run uses one process and one GPU.
    """
    if {"-h", "--help"} & set(argv):
        parse(argv, stage, alone)  # TRL's parser prints the help, and ends the program
    if alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("Error: this template trains in one process; run it without torchrun or accelerate.")
    check_repeated(argv)
    path, config, options = given(argv)
    prepare(config.pop("env", {}), alone)
    known = known_settings()
    of_options, unknown = read_options([*options, *stage], known)
    check_names(known, [name for name in config if name not in known], unknown)
    values = {name: one.default for name, one in known.items()}
    for name, value in {**config, **of_options}.items():
        try:
            values[name] = known[name].read(value)
        except ValueError as error:
            where = f"--{name}" if name in of_options else f"{path}, line {line_of(path, name)}: {name}"
            raise SystemExit(f"Error: {where} is {value}; {error}.") from None
    check_values(values, known, path, alone)
    return values


def parse(argv: list[str], stage: Sequence[str] = (), alone: bool = True) -> Settings:
    """The settings as TRL's dataclasses, after `read`; it imports Unsloth before TRL, which Unsloth patches."""
    asks_for_help = bool({"-h", "--help"} & set(argv))
    if not asks_for_help and read(argv, stage, alone)["use_unsloth"] and alone:
        import unsloth  # noqa: F401
    from trl import GRPOConfig, ModelConfig, TrlParser

    parser = TrlParser((RunConfig, GRPOConfig, ModelConfig), allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--config", default=argparse.SUPPRESS, help="a YAML file of settings; options replace its own")
    path, config, options = given(argv)
    config.pop("env", None)
    try:
        unknown = parser.set_defaults_with_config(**config)
        found, more = parser.parse_known_args([*options, *stage])
        check_names(vars(found), [], [*unknown, *more])
        check_groups(vars(found))  # again, because Unsloth changes defaults of TRL on a GPU
        return Settings(*parser.parse_dict(vars(found)), vars(found), path.stem)
    except (argparse.ArgumentError, ValueError) as error:  # ValueError: from TRL's dataclasses
        raise SystemExit(f"Error: {error}") from None


def given(argv: list[str]) -> tuple[Path, dict, list[str]]:
    """The path of the config, the settings in it, and the options next to it."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config", default="")
    found, options = early.parse_known_args(argv)
    path = Path(found.config)
    return path, read_config(path) if found.config else {}, options


def known_settings() -> dict[str, Field]:
    """Every setting, by name."""
    own = {one.name: Field(one.type.__name__, one.default, "RunConfig") for one in fields(RunConfig)}
    return own | of_trl()


def read_options(options: list[str], known: dict[str, Field]) -> tuple[dict, list[str]]:
    """The values of options by name, as text, and the words that are none; a switch may have no value."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name, one in known.items():
        switch = one.kinds == {"bool"}
        how = {"nargs": "?", "const": True} if switch else {"nargs": "+"} if "list[" in one.kind else {}
        parser.add_argument(f"--{name}", f"--{name.replace('_', '-')}", dest=name, default=argparse.SUPPRESS, **how)
        if switch:
            off = dict(dest=name, action="store_const", const=False, default=argparse.SUPPRESS)
            parser.add_argument(f"--no_{name}", f"--no-{name.replace('_', '-')}", **off)
    try:
        found, unknown = parser.parse_known_args(options)
    except argparse.ArgumentError as error:
        raise SystemExit(f"Error: {error}") from None
    return vars(found), unknown


def prepare(environment: dict, alone: bool) -> None:
    """Set the environment before torch and the Hub's client read it."""
    os.environ.update({name: str(value) for name, value in environment.items()})
    if alone:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # a second GPU would double the batch
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # it suggests a kernel that no run needs


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


def line_of(path: Path, name: str) -> int:
    """The line of a config that has a setting."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((n for n, line in enumerate(lines, start=1) if line.partition(":")[0].strip("'\" ") == name), 1)


def read_yaml(path: Path) -> object:
    """Read a YAML file; an error names the file and the line, or the nearest file that exists."""
    if not path.is_file():
        here = [str(other) for other in (*path.parent.glob("*.yaml"), *path.parent.glob("*.yml"))]
        near = difflib.get_close_matches(str(path), here, n=1)
        raise SystemExit(f"Error: there is no file {path}." + (f" Did you mean {near[0]}?" if near else ""))
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
