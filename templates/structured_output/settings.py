"""The settings: a YAML file with every field of TRL's GRPOConfig and ModelConfig, and these few of ours."""

import argparse
import difflib
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path

import yaml

TINY = "./tiny-model"


def read_config(argv: list[str]) -> dict:
    """The YAML file that --config names, or nothing; before anything heavy is imported."""
    path = config_path(argv)
    if not path:
        return {}
    if not path.is_file():
        raise SystemExit(f"Error: there is no config file {str(path)!r}.")
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise SystemExit(f"Error: {path} should hold lines like `learning_rate: 1.0e-5`.")
    return config


def config_name(argv: list[str]) -> str:
    """The name of the config file, without its ending.

    >>> config_name(["--config", "config.cpu.yaml"])
    'config.cpu'
    """
    path = config_path(argv)
    return path.stem if path else ""


def config_path(argv: list[str]) -> Path | None:
    """The file after --config."""
    if any(word.startswith("--config=") for word in argv) or argv[-1:] == ["--config"]:
        raise SystemExit("Error: write --config FILE, with a space between.")
    return Path(argv[argv.index("--config") + 1]) if "--config" in argv else None


def prepare(argv: list[str], alone: bool = True) -> None:
    """What has to happen before torch and TRL are imported: the environment, and Unsloth's patches."""
    if alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("Error: this template trains in one process; start it without torchrun or accelerate.")
    config = read_config(argv)
    os.environ.update({name: str(value) for name, value in config.get("env", {}).items()})
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # it warns of a kernel that none needs
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--use_unsloth", nargs="?", const="true", default=str(config.get("use_unsloth", True)))
    wanted = early.parse_known_args(argv)[0].use_unsloth.lower() in ("true", "yes", "1")
    if wanted and "--no_use_unsloth" not in argv:
        if not find_spec("unsloth"):
            raise SystemExit("Error: Unsloth is not installed (see requirements.txt); or set use_unsloth: false.")
        import unsloth  # noqa: F401


@dataclass
class RunConfig:
    """What TRL has no name for."""

    dataset_name: str = field(default="openai/gsm8k", metadata={"help": "addition, openai/gsm8k, or FILE.jsonl"})
    train_rows: int = field(default=2000, metadata={"help": "rows to train on, at most"})
    eval_rows: int = field(default=200, metadata={"help": "held-out rows, judged before and after"})
    eval_batch: int = field(default=40, metadata={"help": "held-out prompts answered at once"})
    max_prompt_tokens: int = field(default=512, metadata={"help": "longer prompts are dropped; TRL never cuts them"})
    rewards: list[str] = field(default_factory=list, metadata={"help": "names of REWARDS in rewards.py; none: all"})
    reward_model: str = field(default="", metadata={"help": "a reward model beside the functions: hub id or folder"})
    use_unsloth: bool = field(default=True, metadata={"help": "load with Unsloth; false: plain transformers"})


def parse(argv: list[str]) -> tuple:
    """Our settings, TRL's GRPOConfig and its ModelConfig; a misspelled key is named with the nearest right one."""
    from trl import GRPOConfig, ModelConfig, TrlParser

    classes = (RunConfig, GRPOConfig, ModelConfig)
    names = {f.name for each in classes for f in fields(each)}
    known = names | {f"no_{name}" for name in names} | {"env", "config", "help"}
    given = [word[2:].split("=")[0].replace("-", "_") for word in argv if word.startswith("--")]
    for key in [*read_config(argv), *given]:
        if key not in known:
            near = difflib.get_close_matches(key, names, n=1)
            raise SystemExit(f"Error: unknown setting {key!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
    run, training, model = TrlParser(classes, allow_abbrev=False).parse_args_and_config(argv)
    check(run, training, model)
    return run, training, model


def check(run: RunConfig, training: object, model: object) -> None:
    """Stop now at what would fail later, or cost a night."""
    name = model.model_name_or_path
    if not name:
        raise SystemExit("Error: model_name_or_path is missing: a hub id or a folder.")
    if name == TINY and not Path(TINY, "config.json").is_file():
        raise SystemExit(
            f"Error: there is no {TINY}: it comes with `python -m grpo_utils new basic_grpo FOLDER`, or copy "
            "grpo_utils/tiny/tiny-qwen3 of the course here under that name."
        )
    weights, count = training.reward_weights, len(chosen_rewards(run)) + bool(run.reward_model)
    if weights is not None and len(weights) != count:
        raise SystemExit(f"Error: reward_weights has {len(weights)} numbers, and there are {count} rewards.")
    if model.load_in_4bit and not model.use_peft:
        raise SystemExit("Error: load_in_4bit needs use_peft: weights in 4 bits cannot be trained, adapters can.")
    if training.save_only_model:
        raise SystemExit("Error: save_only_model leaves nothing to go on from; set it to false.")
    if "wandb" in training.report_to and not os.environ.get("WANDB_API_KEY"):
        print("Note: WANDB_API_KEY is not set (see .env.example); wandb will ask.", file=sys.stderr)


def chosen_rewards(run: RunConfig) -> list[Callable]:
    """The rewards that the config names, in its order; all of rewards.py if it names none."""
    from rewards import REWARDS

    known = {reward.__name__: reward for reward in REWARDS}
    for name in run.rewards:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1) or [", ".join(known)]
            raise SystemExit(f"Error: the list REWARDS in rewards.py has no {name!r}. Did you mean {near[0]!r}?")
    return [known[name] for name in run.rewards] or list(REWARDS)


def identity(run: RunConfig, training: object, model: object) -> dict:
    """What a run cannot change on the way, and a checkpoint therefore has to share."""
    sizes = ("seed", "num_generations", "per_device_train_batch_size", "gradient_accumulation_steps", "reward_weights")
    loaded = ("model_name_or_path", "load_in_4bit", "use_peft", "lora_r", "lora_alpha")
    asked = {"dataset_name": run.dataset_name, "train_rows": run.train_rows}
    asked["rewards"] = [reward.__name__ for reward in chosen_rewards(run)]
    return asked | {n: getattr(training, n) for n in sizes} | {n: getattr(model, n) for n in loaded}


def as_written(run: RunConfig, training: object, model: object) -> dict:
    """All settings for the report, without tokens and keys."""
    return {"run": open_only(vars(run)), "training": open_only(training.to_dict()), "model": open_only(vars(model))}


def open_only(value: object) -> object:
    """A value without what its name says is secret, at any depth."""
    if isinstance(value, dict):
        secret = ("token", "api_key", "password", "secret")
        return {key: open_only(each) for key, each in value.items() if not str(key).lower().endswith(secret)}
    return [open_only(each) for each in value] if isinstance(value, list | tuple) else value
