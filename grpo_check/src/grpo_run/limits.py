"""What the settings of a run must be, alone and together, as far as that is known without TRL and a model."""

import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from math import gcd, lcm
from pathlib import Path

from .known import Field

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
#: The trackers that report_to may name; each needs a package of its name.
TRACKERS = ("tensorboard", "trackio", "wandb", "mlflow", "swanlab", "clearml", "comet_ml")
NO_SETTINGS = "Error: rewards and their weights are not settings; set them in REWARDS in rewards.py."


def check_names(known: Iterable[str], of_config: list[str], of_options: list[str]) -> None:
    """Reject an unknown setting, with the nearest name, and rewards among the settings."""
    names = [word[2:].partition("=")[0] for word in of_options if word.startswith("--")]
    if {"rewards", "reward_funcs", "reward-funcs"} & {*of_config, *names}:
        raise SystemExit(NO_SETTINGS)
    if wrong := of_config + names or of_options:
        near = difflib.get_close_matches(wrong[0], known, n=1)
        raise SystemExit(f"Error: unknown setting {wrong[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))


def check_values(values: dict, known: dict[str, Field], config: Path, alone: bool) -> None:
    """Reject values that are out of range, do not fit together, or need what is not there.

    ``known`` has all settings, and ``config`` is the file that most of them come from. With ``alone``, the run uses one
    process, and so Unsloth if ``use_unsloth`` says so.
    """
    if values["reward_weights"]:
        raise SystemExit(NO_SETTINGS)
    check_numbers(values)
    check_groups(values)
    check_model(values, config)
    check_loading(values, known)
    check_installed(values, alone)


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
    require(values, ["held_out"], lambda n: 0 <= n < 1, "a share, such as 0.2 for a fifth")
    if values["scale_rewards"] not in ("group", "batch", "none"):  # TRL finds it only in its first step
        raise SystemExit(f"Error: scale_rewards is {values['scale_rewards']!r}; it must be group, batch or none.")


def require(values: dict, names: Sequence[str], holds: Callable, wanted: str) -> None:
    """Reject a number that is out of range."""
    for name in names:
        value = values[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and holds(value)):
            raise SystemExit(f"Error: {name} is {value}; it must be {wanted}.")


def completions_of(values: dict) -> int:
    """The completions of a step."""
    steps = values["steps_per_generation"] or values["gradient_accumulation_steps"]
    return values["generation_batch_size"] or values["per_device_train_batch_size"] * steps * processes()


def processes() -> int:
    """How many processes train together, as the launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def check_groups(values: dict) -> None:
    """Check that the completions of a step are complete groups, and name numbers that fit.

    (TRL would name settings that the user did not set.)
    """
    group, count, batch = values["num_generations"], completions_of(values), values["per_device_train_batch_size"]
    if group >= 2 and count % group == 0:
        return
    group_fits = sorted((n for n in range(2, count + 1) if count % n == 0), key=lambda n: (abs(n - group), n))
    fixes = [f"num_generations: {group_fits[0]}"] if group_fits else []
    if group >= 2:
        name, now, unit = "per_device_train_batch_size", batch, group // gcd(group, count // batch)
        if values["generation_batch_size"]:
            name, now, unit = "generation_batch_size", count, lcm(group, batch * processes())
        fixes.append(f"{name}: {max(unit, round(now / unit) * unit)}")
    raise SystemExit(
        f"Error: num_generations is {group}, and a step has {count} completions (generation_batch_size, or "
        "per_device_train_batch_size x gradient_accumulation_steps x processes). A group needs at least 2 "
        f"completions, and every group must be complete. Set {', or '.join(fixes)}."
    )


def check_model(values: dict, config: Path) -> None:
    """Reject a model that is not there, or that cannot be trained or resumed with these settings."""
    name = values["model_name_or_path"]
    if not name:
        raise SystemExit("Error: model_name_or_path is missing. Add --config config.cpu.yaml, which sets it.")
    here, runs = Path(name), Path(values["output_dir"] or ".").parent
    if not here.is_dir() and (name.startswith(".") or here.parent == runs != Path(".") or len(here.parts) > 2):
        near = near_model(name)
        fix = "(`python -m grpo_utils new` copies ./tiny-model too.)" if here.parent != runs else "Run sft.py first."
        fix = f"Did you mean {near}?" if near else fix
        fix = "Fetch it: python -m grpo_core.smollm2 smollm2" if Path(name).name == "smollm2" else fix
        raise SystemExit(f"Error: there is no model in {name}. {fix}")
    if not here.is_dir():
        check_on_hub(name, config)
    elif not any((here / file).is_file() for file in ("config.json", "adapter_config.json")):
        fix = f"Did you mean {name}/model?" if (here / "model").is_dir() else "Did sft.py end well?"
        raise SystemExit(f"Error: {name} has no model: no config.json or adapter_config.json. {fix}")
    if values["load_in_4bit"] and not values["use_peft"]:
        raise SystemExit("Error: load_in_4bit needs use_peft: 4-bit weights cannot be trained, but an adapter can.")
    if Path(name, "adapter_config.json").is_file():
        check_adapter(Path(name), values["use_peft"])
    if values["save_only_model"]:
        raise SystemExit("Error: with save_only_model a run cannot resume; set it to false.")


def near_model(name: str) -> str:
    """The folder here or in the same folder that holds a model and is called almost so, or ""."""
    beside = Path(name).parent
    found = [*Path(".").glob("*/config.json"), *beside.glob("*/config.json"), *beside.glob("*/adapter_config.json")]
    models = {path.parent.as_posix() for path in found}
    near = difflib.get_close_matches(Path(name).as_posix(), sorted(models), n=1, cutoff=0.8)
    return near[0] if near and "/" in near[0] else f"./{near[0]}" if near else ""


def check_on_hub(name: str, config: Path) -> None:
    """Reject a model that is not a folder and cannot be downloaded, or that looks like a typo in a folder's name."""
    if near := near_model(name):
        raise SystemExit(f"Error: model_name_or_path is {name}, and there is no such folder. Did you mean {near}?")
    if os.environ.get("HF_HUB_OFFLINE", "").upper() not in ("1", "ON", "YES", "TRUE"):
        return
    from huggingface_hub import try_to_load_from_cache

    if not any(isinstance(try_to_load_from_cache(name, file), str) for file in ("config.json", "adapter_config.json")):
        in_file = config.is_file() and re.search(
            r"^\s+HF_HUB_OFFLINE:", config.read_text(encoding="utf-8"), re.MULTILINE
        )
        where = f"in {config}, under env" if in_file else "in the environment"
        raise SystemExit(
            f"Error: model_name_or_path is {name}, which is neither a folder here nor downloaded before, and "
            f"HF_HUB_OFFLINE is 1 ({where}), so nothing is downloaded. Correct the name, or set HF_HUB_OFFLINE: 0."
        )


def check_installed(values: dict, alone: bool) -> None:
    """Reject settings that need a package that is not installed: Unsloth, and the trackers of report_to."""
    if alone and values["use_unsloth"] and not find_spec("unsloth"):
        fix = "pip install --no-deps -r requirements-unsloth.txt, or set use_unsloth: false."
        raise SystemExit(f"Error: Unsloth is not installed: {fix}")
    named = values["report_to"]
    for name in [named] if isinstance(named, str) else named or []:
        if name in TRACKERS and not find_spec(name):
            fix = f"pip install {name}, or set report_to: none."
            raise SystemExit(f"Error: report_to is {name}, which is not installed: {fix}")
        if name not in TRACKERS and (near := difflib.get_close_matches(name, TRACKERS, n=1, cutoff=0.7)):
            raise SystemExit(f"Error: report_to is {name}. Did you mean {near[0]}?")


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


def check_loading(values: dict, known: dict[str, Field]) -> None:
    """Reject settings of TRL's `ModelConfig` that would have no effect, because loading.py loads the model."""
    for name, one in known.items():
        if one.owner == "ModelConfig" and name not in LOADING and values[name] != one.default:
            raise SystemExit(f"Error: {name} is {values[name]}, but the templates do not use this setting; delete it.")


def check_rows(values: dict, rows: Sequence, held_out: Sequence) -> None:
    """Check that there are enough rows for a step, and for an evaluation."""
    name, count, share = values["dataset_name"], len(held_out), values["held_out"]
    found = f"{name} has {len(rows)} training rows"
    if Path(name).is_file():
        found += f" and {count} held-out ones (held_out={share:g} of those without a split, chosen by a checksum)"
    check_enough(values, len(rows), found)
    if count < min(FEWEST_HELD_OUT, values["eval_rows"]):
        more = "Add rows, raise held_out, or give the rows a column split with train or test"
        more += f"; or continue anyway with --eval_rows {count}" if count else ""
        raise SystemExit(f"Error: {found}, and an evaluation needs {FEWEST_HELD_OUT}. {more}.")


def check_enough(values: dict, rows: int, found: str) -> None:
    """Check that there are enough training rows for a step, or TRL would end the run without one."""
    group = values["num_generations"]
    needed = completions_of(values) // group
    if rows < needed:
        smaller = f", or take smaller steps: {rows * group} completions" if rows else ""
        raise SystemExit(
            f"Error: {found}, and each step needs {needed} different prompts "
            f"({completions_of(values)} completions in groups of {group}). Add rows{smaller}."
        )
