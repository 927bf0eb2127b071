"""A preflight on a YAML file, as ``trl grpo --config FILE`` reads it.

    model_name_or_path: Qwen/Qwen3-0.6B
    dataset_name: my_rows.jsonl
    reward_funcs: [my_rewards.correct]
    use_peft: true
    learning_rate: 1.0e-5

Keys are those of TRL's `GRPOConfig`, `ModelConfig`, `GRPOScriptArguments` and `DatasetMixtureConfig`, and
of ``accelerate launch``.
"""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from grpo_utils.arguments import REMOVED
from grpo_utils.data import load_rows, read_table
from grpo_utils.errors import CourseError, did_you_mean
from grpo_utils.models import check_model, model_path

from ..reward_lab.loading import as_users_code, folders_of, imports_from
from ..reward_lab.loading import find_reward as reward_in_file
from .arguments import as_argparse, field_types, wrong_types
from .checking import preflight
from .report import Finding, PreflightReport, in_order
from .rows import columns_of

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

#: Rewards that ``trl grpo`` knows by name.
OF_TRL = ("accuracy_reward", "reasoning_accuracy_reward", "think_format_reward", "get_soft_overlong_punishment")
#: Keys of other tools, and TRL's word for them.
OTHER_WORDS = {
    "model": "model_name_or_path",
    "model_name": "model_name_or_path",
    "dataset": "dataset_name",
    "rewards": "reward_funcs",
    "lora_rank": "lora_r",
    "rank": "lora_r",
    "target_modules": "lora_target_modules",
    "torch_dtype": "dtype",
    "lr": "learning_rate",
    "batch_size": "per_device_train_batch_size",
    "epochs": "num_train_epochs",
}
#: Datasets that come with the course, and how many rows of each split are looked at.
OF_THE_COURSE = ("addition", "gsm8k")
TRAIN_ROWS, HELDOUT_ROWS = 2000, 200


class Keys(NamedTuple):
    """The keys of a file by whose they are."""

    training: dict
    model: dict
    script: dict
    unknown: dict


@dataclass(frozen=True)
class Choices:
    """What the command line says beside the file; it wins over it."""

    model: str = ""
    train: str = ""
    heldout: str = ""
    rewards: tuple[str, ...] = ()
    gpu: str = ""


def read_config_file(path: Path) -> dict:
    """The mapping in a YAML file.

    Raises:
        CourseError: no such file, a folder, not UTF-8, no YAML (with the line), empty, or no mapping of names.
    """
    import yaml

    text = _read_text(path)
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise CourseError(f"{path} is no YAML{_where(error, text)}.") from error
    if config is None:
        raise CourseError(f"{path} is empty. Write one 'name: value' a line, such as 'learning_rate: 1.0e-5'.")
    if not isinstance(config, dict):
        raise CourseError(f"{path} holds a {type(config).__name__}, not a mapping. Write one 'name: value' a line.")
    odd = [key for key in config if not isinstance(key, str)]
    if odd:
        raise CourseError(
            f"{path} has the key {odd[0]!r}, which is no name; YAML reads yes, no, on and off as switches."
        )
    return config


def _read_text(path: Path) -> str:
    if path.is_dir():
        raise CourseError(f"{str(path)!r} is a folder; name the YAML file in it.")
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error


def _where(error: Exception, text: str) -> str:
    """The line that YAML stumbles over, and its reason; a tab is named."""
    import yaml

    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return f": {error}"
    number = error.problem_mark.line + 1
    lines = text.splitlines()
    line = lines[number - 1] if number <= len(lines) else ""
    if "\t" in line:
        return f": line {number} holds a tab, which YAML does not allow there; use spaces"
    return f": line {number}, {line.strip()!r}: {error.problem}"


def sort_keys(config: dict) -> Keys:
    """The keys of a file, each to the dataclass that it belongs to.

    Raises:
        CourseError: ``env`` is no mapping.
    """
    from trl import DatasetMixtureConfig, GRPOConfig, ModelConfig
    from trl.scripts.grpo import GRPOScriptArguments

    if not isinstance(config.get("env", {}), dict):
        raise CourseError(f"env: {config['env']!r} should be a mapping of variables, as 'trl grpo' wants it.")
    classes = {"training": GRPOConfig, "model": ModelConfig, "script": GRPOScriptArguments}
    names = {room: {one.name for one in fields(kind) if one.init} for room, kind in classes.items()}
    names["script"] |= {one.name for one in fields(DatasetMixtureConfig)} | _launch_names() | {"env"}
    sorted_keys = {room: {k: v for k, v in config.items() if k in known} for room, known in names.items()}
    valid, own = set().union(*names.values()), names["training"] | names["model"] | names["script"] - _launch_names()
    unknown = {k: sorted(own) for k in config if k not in valid}
    return Keys(**sorted_keys, unknown=unknown)


def _launch_names() -> set[str]:
    """The options of ``accelerate launch``, to which ``trl grpo`` hands on what it does not know itself."""
    from accelerate.commands.launch import launch_command_parser

    return {action.dest for action in launch_command_parser()._actions} | {"accelerate_config"}


def preflight_file(path: Path, choices: Choices | None = None) -> PreflightReport:
    """`preflight` on a YAML file and what it names.

    Args:
        path: the file.
        choices: model, files of rows, rewards and GPU that win over it.

    Raises:
        CourseError: the file, or one of the files it names, cannot be read.
    """
    choices = choices or Choices()
    keys = sort_keys(read_config_file(path))
    names, problems = _reward_names(keys.script, choices)
    files = [folder for name in names for folder in folders_of(_found(name, path.parent))]
    with imports_from(*files, Path.cwd(), path.parent):  # a reward may import its neighbors only when it is called
        rewards = [find_reward(name, path.parent) for name in names]
        return _report(keys, choices, path.parent, rewards, problems)


def _report(keys: Keys, choices: Choices, folder: Path, rewards: list, problems: list[Finding]) -> PreflightReport:
    """The report on the keys of a file in a folder; its rewards are loaded already."""
    training, found = as_argparse(keys.training)
    model, texts = _read_model(keys.model)
    found += _unknown(keys.unknown) + texts + _model_keys(model)
    skipped, name = {}, choices.model or _word(model, "model_name_or_path")
    train, heldout = _datasets(keys, choices, folder, skipped)
    judge = _word(keys.script, "reward_model_name_or_path")
    tokenizer = _tokenizer(name, skipped)
    report = preflight(
        _with_attention(training, model),
        model=name,
        tokenizer=tokenizer,
        train=train,
        heldout=heldout,
        rewards=None if problems else [*([judge] if judge else []), *rewards],
        gpu=choices.gpu or None,
        backend="transformers",  # trl grpo knows no Unsloth
        answer_column=_answer_column(train),
        processes=_processes(keys.script),
        **_of_model(model),
    )
    findings = in_order([*found, *problems, *report.findings])
    return replace(report, findings=findings, skipped={**skipped, **report.skipped})


def _word(given: dict, name: str) -> str:
    """A value that is a name; "" if there is none."""
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise CourseError(f"{name}: {value!r} is a {type(value).__name__}; write one name, a number in quotes.")
    return value or ""


def _unknown(unknown: dict) -> list[Finding]:
    found = []
    for name, valid in unknown.items():
        if name in OTHER_WORDS:
            what, mend = f"{name!r} is no key that trl grpo knows.", f"Write {OTHER_WORDS[name]!r}."
        elif name in REMOVED:
            what, mend = f"{name!r} is gone from GRPOConfig.", f"{REMOVED[name]}."
        else:
            what, mend = f"{name!r} is no key that trl grpo knows.", did_you_mean(name, valid).strip() or "Take it out."
        why = "trl grpo hands it on to accelerate launch, which stops with a usage message."
        found.append(Finding("unknown_argument", what, why, mend))
    return found


def _read_model(given: dict) -> tuple[dict, list[Finding]]:
    """The keys of `ModelConfig` as TRL reads them; those of a wrong type are reported and left out."""
    from trl import ModelConfig

    wanted = field_types(ModelConfig)
    read, found = as_argparse(given, wanted)
    wrong = wrong_types(read, wanted, {one.name: one.default for one in fields(ModelConfig)})
    names = {finding.what.partition("=")[0] for finding in wrong}
    return {name: value for name, value in read.items() if name not in names}, found + wrong


def _model_keys(model: dict) -> list[Finding]:
    """Keys of the model that contradict each other, or are ignored."""
    found = []
    if model.get("load_in_4bit") and model.get("load_in_8bit"):
        why = "ModelConfig raises a ValueError."
        found.append(Finding("refused", "load_in_4bit and load_in_8bit are both on.", why, "One of them."))
    lora = [name for name in model if name.startswith("lora_")]
    if lora and not model.get("use_peft"):
        why = "without use_peft TRL makes no adapter: all weights are trained, at many times the memory."
        found.append(Finding("peft_off", f"{lora[0]} is given, and use_peft is not on.", why, "use_peft: true."))
    return found


def _of_model(model: dict) -> dict:
    """What the model's keys say of the run; a dtype of ``auto`` is known only when the weights are loaded."""
    dtype = model.get("dtype", "float32")
    return {
        "load_in_4bit": bool(model.get("load_in_4bit", False)),
        "lora_rank": int(model.get("lora_r", 16)) if model.get("use_peft") else 0,
        "dtype": None if dtype == "auto" else dtype,
    }


def _with_attention(training: dict, model: dict) -> dict:
    """The arguments with the model's attention, as TRL's script passes it on."""
    if not model.get("attn_implementation"):
        return training
    asked = training.get("model_init_kwargs")
    own = asked if isinstance(asked, dict) else {}
    return {**training, "model_init_kwargs": {**own, "attn_implementation": model["attn_implementation"]}}


def _processes(script: dict) -> int:
    number = script.get("num_processes", 0)
    if not isinstance(number, int) or number < 0:
        raise CourseError(f"num_processes: {number!r} should be a whole number.")
    return number


def _tokenizer(name: str, skipped: dict) -> "PreTrainedTokenizerBase | None":
    """The model's tokenizer, if there is one to be had."""
    from transformers import AutoTokenizer

    if not name:
        return None
    try:
        check_model(name)
    except CourseError:
        return None  # `preflight` reports it
    try:
        return AutoTokenizer.from_pretrained(model_path(name))
    except (OSError, ValueError) as error:
        skipped["tokenizer"] = f"{name} has none that can be loaded: {str(error).splitlines()[0]}"
        return None


def _datasets(keys: Keys, choices: Choices, folder: Path, skipped: dict) -> tuple:
    """Training and held-out rows, from files or from the course's own datasets."""
    name = choices.train or _word(keys.script, "dataset_name")
    if not name:
        skipped["the dataset"] = "the file has no dataset_name; --train FILE gives one"
        return None, None
    heldout = None if not choices.heldout else read_rows(choices.heldout, folder, "test", HELDOUT_ROWS)
    if not choices.train and name not in OF_THE_COURSE and not _find(name, folder):
        skipped["the dataset"] = f"{name!r} is no file here, and nothing is downloaded; --train FILE gives one"
        return None, heldout
    train = read_rows(name, folder, "train", TRAIN_ROWS)
    if heldout is None and name in OF_THE_COURSE:
        heldout = read_rows(name, folder, "test", HELDOUT_ROWS)
    return train, heldout


def _find(name: str, folder: Path) -> Path | None:
    """A file by its name, from where you are or from beside the config file."""
    return next((path for path in (Path(name), folder / name) if path.is_file()), None)


def read_rows(name: str, folder: Path, split: str, count: int) -> list[dict]:
    """Rows from a ``.jsonl``, ``.json``, ``.csv`` or ``.tsv`` file, or ``count`` of a dataset of the course.

    Raises:
        CourseError: no such file, or one that `read_table` refuses.
    """
    if name in OF_THE_COURSE:
        return list(load_rows(name, split, count))
    path = _find(name, folder)
    if path is None:
        raise CourseError(
            f"There is no file {name!r} with rows. Give a .jsonl, .json or .csv file, or addition or gsm8k."
        )
    return read_table(path)


def _reward_names(script: dict, choices: Choices) -> tuple[list[str], list[Finding]]:
    """The names of the rewards, and what is wrong with how they are given."""
    names = list(choices.rewards) or script.get("reward_funcs") or []
    if isinstance(names, str):
        why = "TRL goes through it letter by letter and cannot load a reward of one letter."
        return [], [Finding("not_a_reward", f"reward_funcs: {names!r} is no list.", why, f"reward_funcs: [{names}]")]
    if not isinstance(names, list):
        raise CourseError(f"reward_funcs: {names!r} is a {type(names).__name__}; give a list of names.")
    return [str(name) for name in names], []


def find_reward(name: str, folder: Path) -> Callable:
    """A reward by TRL's own name, by ``FILE.py:function``, or by a dotted path, inside `imports_from`.

    >>> find_reward("think_format_reward", Path(".")).__name__
    'think_format_reward'

    Raises:
        CourseError: there is none of that name.
    """
    if name in OF_TRL:
        return _of_trl(name)
    if ":" in name:
        return reward_in_file(_found(name, folder))
    if "." not in name:
        hint = did_you_mean(name, OF_TRL)
        raise CourseError(
            f"{name!r} is no reward of trl grpo.{hint} Valid: {', '.join(OF_TRL)}, a dotted path such as "
            "my_rewards.my_reward, or FILE.py:function."
        )
    return _import_dotted(name, folder)


def _found(name: str, folder: Path) -> str:
    """``FILE.py:function`` with the file where it lies: where you are, or next to the config file."""
    path, colon, function = name.rpartition(":")
    return f"{_find(path, folder) or path}:{function}" if colon else name


def _of_trl(name: str) -> Callable:
    from trl import rewards

    if name == "get_soft_overlong_punishment":
        return rewards.get_soft_overlong_punishment(max_completion_len=1280, soft_punish_cache=256)
    return getattr(rewards, name)


def _import_dotted(name: str, folder: Path) -> Callable:
    """``package.module.function``, found where you are or next to the config file."""
    module, _, function = name.rpartition(".")
    with as_users_code(repr(name), None):
        found = importlib.import_module(module)
    if not callable(getattr(found, function, None)):
        own = [name for name in dir(found) if not name.startswith("_")]
        hint = did_you_mean(function, own) + _of_python(module, function, folder)
        raise CourseError(f"There is no function {function!r} in {module}.{hint}")
    return getattr(found, function)


def _of_python(module: str, function: str, folder: Path) -> str:
    """What to do if a file of the user has the name of a module that is found first; "" if none has."""
    own = _find(f"{module.replace('.', '/')}.py", folder)
    file = getattr(sys.modules[module], "__file__", None)
    if own is None or (file and Path(file).resolve() == own.resolve()):
        return ""
    return f" That name belongs to {file or 'a Python module'}: rename {own}, or write {own}:{function}."


def _answer_column(train: list[dict] | None) -> str:
    """``answer``, or ``solution``, which TRL's own rewards read, where the rows have only that."""
    there = columns_of(train) if train else []
    return "solution" if "solution" in there and "answer" not in there else "answer"
