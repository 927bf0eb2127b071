"""A preflight on a YAML file, as ``trl grpo --config FILE`` reads it.

    model_name_or_path: Qwen/Qwen3-0.6B
    dataset_name: my_rows.jsonl
    reward_funcs: [my_rewards.correct]
    use_peft: true
    learning_rate: 1.0e-5

Keys are those of TRL's `GRPOConfig`, `ModelConfig`, `GRPOScriptArguments` and `DatasetMixtureConfig`, and
of ``accelerate launch``.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError, did_you_mean
from grpo_core.tables import read_table

from ..packages import OF_A_RUN, require
from ..probes.loading import find_reward, folders_of, imports_from
from ..probes.targets import parse_target
from .checking import report_on
from .planned import PlannedRun, plan
from .report import PreflightReport
from .rows import columns_of
from .values import Values

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase

    from .planned import Rows

#: Rewards that ``trl grpo`` knows by name.
_OF_TRL = ("accuracy_reward", "reasoning_accuracy_reward", "think_format_reward", "get_soft_overlong_punishment")


def read_config_file(path: Path) -> dict:
    """The mapping in a YAML file.

    Raises:
        CourseError: no such file, a folder, not UTF-8, not YAML (with the line), empty, or not a mapping of names.
    """
    import yaml

    if path.is_dir():
        raise CourseError(f"{str(path)!r} is a folder; name the YAML file in it.")
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*.y*ml")]
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except yaml.YAMLError as error:
        raise CourseError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        hint = "one 'name: value' per line, such as 'learning_rate: 1.0e-5'; YAML reads yes, no, on and off as booleans"
        raise CourseError(f"{path} contains {config!r:.60}, not a mapping of names to values. Write {hint}.")
    return config


def preflight_file(
    path: Path, *, model: str = "", train: str = "", heldout: str = "", rewards: Sequence[str] = (), gpu: str = ""
) -> PreflightReport:
    """`preflight` on a YAML file and what it names.

    Args:
        path: the file.
        model, train, rewards: in place of the file's model, dataset and ``reward_funcs``.
        heldout: a file of held-out rows.
        gpu: that the run is for, if not this machine's.

    Raises:
        CourseError: the file, or one of the files it names, cannot be read.
    """
    require("preflight", OF_A_RUN)
    with run_of(path, model=model, train=train, heldout=heldout, rewards=rewards, gpu=gpu) as run:
        return report_on(run)


@contextmanager
def run_of(
    path: Path, *, model: str = "", train: str = "", heldout: str = "", rewards: Sequence[str] = (), gpu: str = "",
    changes: dict | None = None,
) -> Iterator[PlannedRun]:  # fmt: skip
    """The run that a config file plans; in the block, a reward may import its neighbors when it is called.

    Args:
        path, model, train, heldout, rewards, gpu: as for `preflight_file`.
        changes: keys in place of the file's.

    Raises:
        CourseError: the file, or one of the files it names, cannot be read.
    """
    config, folder, unread = read_config_file(path) | (changes or {}), path.parent, {}
    values, of_launch = values_of(config)
    keys = values.usable
    names = [_found(name, folder) for name in rewards or keys.get("reward_funcs") or []]
    near = [one for name in names for one in folders_of(name)]
    with imports_from(*near, Path.cwd(), folder):
        functions = [_reward_named(name, folder) for name in names]
        train_rows, heldout_rows = _datasets(keys, train, heldout, folder, unread)
        run = plan(
            values,
            model=model or keys.get("model_name_or_path"),
            train=train_rows,
            heldout=heldout_rows,
            rewards=_judges(keys) + functions if names or not config.get("reward_funcs") else None,
            gpu=gpu or None,
            load_in_4bit=keys.get("load_in_4bit", False),
            lora_rank=keys.get("lora_r", 16) if keys.get("use_peft") else 0,
            dtype=keys.get("dtype", "float32"),
            backend="transformers",  # trl grpo does not use Unsloth
            answer_column=_answer_column(train_rows),
            processes=of_launch.get("num_processes"),
            unread=unread,
        )
        tokenizer, why = _tokenizer_of(run)
        yield replace(run, tokenizer=tokenizer, unread=unread | ({"tokenizer": why} if why else {}))


def values_of(config: dict) -> tuple[Values, dict]:
    """The keys of a file that TRL reads, and those of ``accelerate launch``."""
    from accelerate.commands.launch import launch_command_parser
    from trl import DatasetMixtureConfig, GRPOConfig, ModelConfig
    from trl.scripts.grpo import GRPOScriptArguments

    kinds = (GRPOConfig, ModelConfig, GRPOScriptArguments, DatasetMixtureConfig)
    of_launch = {*vars(launch_command_parser().parse_args(["script.py"])), "accelerate_config", "env"}
    of_launch -= {one.name for kind in kinds for one in fields(kind)}
    of_trl = {name: one for name, one in config.items() if name not in of_launch}
    return Values(of_trl, kinds, from_yaml=True), {name: config[name] for name in config if name in of_launch}


def _tokenizer_of(run: PlannedRun) -> "tuple[PreTrainedTokenizerBase | None, str]":
    """The model's tokenizer, or why there is none; a Hub that has no configuration is not asked a second time."""
    from transformers import AutoTokenizer

    if not run.config:
        return None, "the model cannot be loaded" if run.model else ""
    try:
        return AutoTokenizer.from_pretrained(run.name), ""
    except (OSError, ValueError) as error:
        return None, f"the tokenizer of {run.name} cannot be loaded: {str(error).splitlines()[0]}"


def _judges(keys: dict) -> list[str]:
    """The reward model, of which TRL's script takes one."""
    return [keys["reward_model_name_or_path"]] if keys.get("reward_model_name_or_path") else []


def _datasets(keys: dict, train: str, heldout: str, folder: Path, unread: dict) -> tuple:
    """Training and held-out rows, from files or from a folder."""
    name = train or keys.get("dataset_name") or ""
    held = read_rows(heldout, folder, _split(keys, "test")) if heldout else None
    if not (train or _find(name, folder)):
        missing = f"{name!r} is not here, and nothing is downloaded" if name else "the file has no dataset_name"
        unread["dataset"] = f"{missing}; pass --train FILE"
        return None, held
    if held is None and _is_folder(name, folder) and keys.get("eval_strategy", "no") != "no":
        held = read_rows(name, folder, _split(keys, "test"))  # as trl grpo does
    return read_rows(name, folder, _split(keys, "train")), held


def _split(keys: dict, split: str) -> str:
    """The name that the file gives to a split."""
    return keys.get(f"dataset_{split}_split") or split


def _find(name: str, folder: Path) -> Path | None:
    """A file or a folder by its name, from where you are or from next to the config file."""
    return next((path for path in (Path(name), folder / name) if name and path.exists()), None)


def _is_folder(name: str, folder: Path) -> bool:
    path = _find(name, folder)
    return path is not None and path.is_dir()


def read_rows(name: str, folder: Path, split: str) -> "Rows":
    """Rows from a file, or a split of a folder of files.

    Files end in ``.jsonl``, ``.json``, ``.csv`` or ``.tsv``. A folder is read with `datasets.load_dataset`, as
    ``trl grpo`` reads it.

    Raises:
        CourseError: no such file, or one that `read_table` or `load_dataset` rejects.
    """
    path = _find(name, folder)
    if path is None:
        raise CourseError(f"There is no file {name!r}. Pass a .jsonl, .json or .csv file, or a folder of them.")
    return _rows_in(path, split) if path.is_dir() else read_table(path)


def _rows_in(folder: Path, split: str) -> "Dataset":
    """A split of a folder of files."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetGenerationError

    saved = [name for name in ("dataset_dict.json", "state.json") if (folder / name).is_file()]
    if saved:
        raise CourseError(
            f"{str(folder)!r} was written by save_to_disk ({saved[0]}), and trl grpo cannot read that. Write one file "
            "per split instead: dataset['train'].to_json('rows/train.jsonl'), and dataset_name: rows."
        )
    try:
        splits = load_dataset(str(folder))
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise CourseError(f"datasets.load_dataset cannot read {str(folder)!r}: {error}") from error
    if split not in splits:
        raise CourseError(
            f"{str(folder)!r} has no split {split!r}; it has {', '.join(splits)}. Name the file {split}.jsonl, or set "
            "dataset_train_split (or dataset_test_split) in the config."
        )
    return splits[split]


def _reward_named(name: str, folder: Path) -> Callable:
    """A reward by TRL's own name, by ``FILE.py:function``, or by a dotted path, inside `imports_from`.

    >>> _reward_named("think_format_reward", Path()).__name__
    'think_format_reward'

    Raises:
        CourseError: there is none of that name.
    """
    from trl import rewards

    if name == "get_soft_overlong_punishment":
        return rewards.get_soft_overlong_punishment(max_completion_len=1280, soft_punish_cache=256)
    if name in _OF_TRL:
        return getattr(rewards, name)
    if not {":", "."} & {*name.partition("(")[0]}:
        raise CourseError(
            f"{name!r} is not a reward of trl grpo.{did_you_mean(name, _OF_TRL)} Valid: {', '.join(_OF_TRL)}, a dotted "
            "path such as my_rewards.my_reward, or FILE.py:function."
        )
    _refuse_module_elsewhere(name, folder)
    return find_reward(name)


def _refuse_module_elsewhere(name: str, folder: Path) -> None:
    """Raise a `CourseError` if the module of a dotted path is not here, but in a folder above the config file."""
    module = name.partition(".")[0]
    if ":" in name or not module.isidentifier() or find_spec(module):
        return
    above = next((one for one in folder.resolve().parents if (one / f"{module}.py").is_file()), None)
    if above:
        raise CourseError(
            f"reward_funcs names {name}, and {module}.py is in {str(above)!r}. trl grpo imports it only if you run it "
            "there, so change to that folder and run this command again."
        )


def _found(name: str, folder: Path) -> str:
    """``FILE.py:function`` with the file where it is: where you are, or next to the config file."""
    target = parse_target(name)
    found = _find(target.where, folder) if target.is_file else None
    return str(replace(target, where=str(found))) if found else name


def _answer_column(train: "Rows | None") -> str:
    """``answer``, or ``solution``, which TRL's own rewards read, where the rows have only that."""
    there = columns_of(train)
    return "solution" if "solution" in there and "answer" not in there else "answer"
