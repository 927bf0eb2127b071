"""A preflight on a YAML file, as ``trl grpo --config FILE`` reads it.

    model_name_or_path: Qwen/Qwen3-0.6B
    dataset_name: my_rows.jsonl
    reward_funcs: [my_rewards.correct]
    use_peft: true
    learning_rate: 1.0e-5

Keys are those of TRL's `GRPOConfig`, `ModelConfig`, `GRPOScriptArguments` and `DatasetMixtureConfig`, and
of ``accelerate launch``. The file becomes a mapping, the mapping becomes `Values`, and with the model, the rows and the
rewards that they name these become a `PlannedRun`.
"""

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple, get_origin

from grpo_core.errors import CourseError, did_you_mean
from grpo_core.training.small_yaml import load_yaml

from ..packages import OF_A_RUN, require
from ..probes.signatures import read_by_any
from .checking import report_on
from .columns import ANSWERS
from .foreign import SYNONYMS, in_trl, refuse_foreign
from .misfits import OF_THE_TRAINER
from .models import look_up, tokenizer_of
from .named_rewards import rewards_named
from .named_rows import holds_rows, named_rows
from .own_script import Project, made_by, project_of
from .planned import PlannedRun, plan
from .report import PreflightReport
from .rows import columns_of
from .scripts import ENDINGS as OF_SCRIPTS
from .scripts import read_script
from .sections import without_sections
from .shell import ENDINGS as OF_SHELL
from .shell import read_shell
from .values import Values, as_number, hints_of, kinds_of

#: Settings of an adapter. A name that only means one of them shows that there is one, whatever reads the file.
_OF_AN_ADAPTER = ("lora_r", "lora_target_modules", "use_peft")


def read_config_file(path: Path) -> dict:
    """The mapping in a YAML file.

    Raises:
        CourseError: no such file, a folder, not UTF-8, not YAML (with the line), empty, not a mapping of names, or a
            config for another tool.
    """
    import yaml

    if path.is_dir():
        raise CourseError(f"{str(path)!r} is a folder; name the YAML file in it.")
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*.y*ml")]
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    try:
        loads = {".toml": tomllib.loads, ".json": json.loads}.get(path.suffix)  # YAML reads JSON's 1e-05 as a text
        config = loads(path.read_text(encoding="utf-8")) if loads else load_yaml(path)
    except (tomllib.TOMLDecodeError, json.JSONDecodeError) as error:
        raise CourseError(f"{path} is not valid {path.suffix[1:].upper()}: {error}.") from error
    except UnicodeDecodeError as error:
        raise CourseError(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    except yaml.YAMLError as error:
        raise CourseError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        hint = "one 'name: value' per line, such as 'learning_rate: 1.0e-5'; YAML reads yes, no, on and off as booleans"
        raise CourseError(f"{path} contains {config!r:.60}, not a mapping of names to values. Write {hint}.")
    refuse_foreign(path, config)
    if path.suffix == ".toml":
        raise CourseError(
            f"{path} is TOML, and trl grpo reads YAML. Write its settings under TRL's names into a .yaml."
        )
    return config


def preflight_file(
    path: Path, *, model: str = "", train: str = "", heldout: str = "", rewards: Sequence[str] = (), gpu: str = ""
) -> PreflightReport:
    """`preflight` on a YAML file, or a training script, and what it names.

    Args:
        path: the file; of a script (``.py``) or notebook (``.ipynb``), the call of `GRPOConfig` in it is read, and of a
            shell script (``.sh``) the options of its last command. A file of rows is checked as training rows.
        model, train, rewards: in place of the file's model, dataset and ``reward_funcs``.
        heldout: a file of held-out rows.
        gpu: that the run is for, if not this machine's.

    Raises:
        CourseError: the file cannot be read, is a config for another tool, or a script without such a call.
    """
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
        CourseError: the file cannot be read, or is a config for another tool.
    """
    of_rows = not train and holds_rows(path)
    by_ending = _read_script if path.suffix in OF_SCRIPTS else _read_shell if path.suffix in OF_SHELL else _read_yaml
    source, folder = (_no_settings if of_rows else by_ending)(path, changes or {}), path.parent
    train = str(path) if of_rows else train
    found = look_up(model or source.model)
    tokenizer, no_tokenizer = tokenizer_of(found)
    with ExitStack() as stack:
        made = stack.enter_context(made_by(source.project, source.config))
        of_project = {"reward_weights": list(made.weights)} if made.weights and not rewards else {}
        values = replace(source.values, given=source.values.given | of_project)
        keys = values.usable
        named = rewards or made.rewards or keys.get("reward_funcs") or []
        rows = named_rows(keys, train or made.train, heldout or made.heldout, folder)
        unread = {"rows": (rows.unread and made.unread) or rows.unread, "tokenizer": no_tokenizer}
        functions = stack.enter_context(rewards_named(named, folder))
        yield plan(
            values,
            model=found,
            tokenizer=tokenizer,
            train=rows.train,
            heldout=rows.heldout,
            rewards=_judges(keys) + functions if named or source.names_rewards else None,
            gpu=gpu or None,
            answer_column=_answer_column(columns_of(rows.train), functions),
            unread={need: why for need, why in unread.items() if why},
            bad_rows=rows.bad,
            unknown=source.unknown,
            notes=source.notes,
            in_terminal=True,
            **source.loading,
        )


class _Source(NamedTuple):
    """What a file says about a run.

    Attributes:
        values: the arguments.
        model: the model's name or folder.
        loading: how it is loaded, as arguments of `plan`.
        names_rewards: whether it says that there are no others than those it names.
        unknown: arguments that are given without showing their values.
        notes: on what was read how.
        project: of a template of the course, if the file is the config of its ``train.py``.
        config: what that config says.
    """

    values: Values
    model: str
    loading: dict
    names_rewards: bool = False
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    project: Project | None = None
    config: dict = {}  # noqa: RUF012


def _no_settings(path: Path, changes: dict) -> _Source:
    """No config: only rows are looked at, and the rewards and the model that options name."""
    require("preflight", OF_A_RUN)
    from trl import GRPOConfig

    note = f"read {path.name} as training rows, without settings; for both: config.yaml --train {path.name}"
    return _Source(Values(changes, (GRPOConfig,)), "", {}, notes=(note,))


def _read_script(path: Path, changes: dict) -> _Source:
    """A training script or a notebook, which makes the model, the rows and the rewards itself."""
    require("preflight", OF_A_RUN)
    from trl import GRPOConfig

    script = read_script(path, {one.name for one in fields(GRPOConfig)} - {*OF_THE_TRAINER})

    notes = [f"read the arguments that {path.name} writes out; --model, --train and --reward add what it makes itself"]
    if script.misplaced:
        raise CourseError(
            f"{path.name} passes {', '.join(script.misplaced)} to GRPOTrainer, which raises a TypeError. They are "
            "arguments of GRPOConfig: GRPOTrainer(args=GRPOConfig(…), …)."
        )
    if script.calls > 1:
        notes.append(f"{path.name} has {script.calls} calls of GRPOConfig; this is the last one")
    backend = "unsloth" if script.unsloth else "transformers"
    values = Values(script.arguments | changes, (GRPOConfig,))
    return _Source(values, script.model, {"backend": backend}, unknown=script.unknown, notes=tuple(notes))


def _read_shell(path: Path, changes: dict) -> _Source:
    """A shell script with the options of ``trl grpo``, or of a script of one's own, whose other options it has."""
    require("preflight", OF_A_RUN)
    kinds = _kinds()
    hints = {name: hint for kind in kinds for name, hint in hints_of(kind).items()}
    command = read_shell(path, hints)
    options = {name: _typed(texts, hints.get(name, str)) for name, texts in command.options.items()}
    off = [name for name in options if name.startswith("no_") and name[3:] in hints]  # --no_bf16, as its parser has it
    options = {name: value for name, value in options.items() if name not in off} | {name[3:]: False for name in off}
    config = _config_of(path, options.pop("config", None))
    refuse_foreign(path, options)
    values, of_launch, notes = values_of(config | options, changes)
    unknown = tuple(name for name in command.unknown if name in hints)
    if command.processes.isdigit():
        of_launch["num_processes"] = int(command.processes)
    elif command.processes:
        unknown += ("num_processes",)
    notes = (f"read the options of a command in {path.name}{' and its config file' if config else ''}", *notes)
    own = [] if command.for_trl else [name for name in (*values.given, *command.unknown) if name not in values.hints]
    if own:
        said = ", ".join(in_trl(name, values.hints) for name in own)
        notes += (f"did not check what TRL has no argument for: {said}",)
        values = replace(values, given={name: value for name, value in values.given.items() if name not in own})
    loading = _loading(values, of_launch, command.for_trl)
    return _Source(values, values.usable.get("model_name_or_path") or "", loading, False, unknown, notes)


def _typed(texts: list[str], hint: object) -> object:
    """The value of an option of this type: its texts, as numbers or switches where the type has some.

    >>> _typed(["1e-6"], float), _typed([], bool), _typed(["7"], str), _typed(["accuracy_reward"], list[str] | None)
    (1e-06, True, '7', ['accuracy_reward'])
    """
    wanted = kinds_of(hint)
    if not texts:
        return True
    read = (
        texts
        if wanted == {str}
        else [number if (number := as_number(text, hint)) is not None else text for text in texts]
    )
    takes_list = any(get_origin(kind) is list for kind in wanted)
    return read if takes_list or len(read) > 1 else read[0]


def _config_of(path: Path, name: object) -> dict:
    """The config file that a command names with ``--config``; nothing if it names none.

    Raises:
        CourseError: it is not here, or cannot be read.
    """
    if not isinstance(name, str):
        return {}
    near = next((place for place in (Path(name), path.parent / name) if place.is_file()), None)
    if near is None:
        raise CourseError(f"{path} names the config file {name!r}, which is not here. Run this command where it is.")
    return read_config_file(near)


def _read_yaml(path: Path, changes: dict) -> _Source:
    """A config file: of ``trl grpo``, with sections of one's own, a sweep of W&B, or of a project from a template."""
    config = read_config_file(path)
    require("preflight", OF_A_RUN)
    of_sweep = _first_of_sweep(config)
    project = project_of(path) if not of_sweep and "reward_funcs" not in config else None
    if project:
        of_trl = {name: value for name, value in config.items() if name not in {*project.settings} - {"dataset_name"}}
        values, of_launch, _ = values_of(of_trl, changes)
        notes = ("read rows from data.py and rewards from rewards.py, as train.py in that folder does",)
        loading = _loading(values, of_launch, True)
        backend = {"backend": "unsloth" if config.get("use_unsloth", True) else "transformers"}
        model = values.usable.get("model_name_or_path") or ""
        return _Source(values, model, loading | backend, notes=notes, project=project, config=config | changes)
    values, of_launch, notes = values_of(of_sweep or config, changes)
    if of_sweep:
        own = [name for name in values.given if name not in values.hints]
        values = replace(values, given={name: values.given[name] for name in values.given if name not in own})
        unchecked = f"; {', '.join(own)} not at all" if own else ""
        notes = (f"a sweep of W&B: of each parameter, only the first value was checked{unchecked}", *notes)
    loading = _loading(values, of_launch, not notes)
    names_none = not notes and values.given.get("reward_funcs") == []
    return _Source(values, values.usable.get("model_name_or_path") or "", loading, names_none, notes=notes)


def _first_of_sweep(config: dict) -> dict:
    """Each parameter of a sweep of W&B with its first value; nothing for any other config.

    >>> _first_of_sweep({"method": "grid", "parameters": {"seed": {"value": 1}, "beta": {"values": [0.0, 0.1]}}})
    {'seed': 1, 'beta': 0.0}
    """
    parameters = config.get("parameters")
    if "method" not in config or not isinstance(parameters, dict):
        return {}
    first = {}
    for name, choice in parameters.items():
        for key in ("value", "values", "min"):
            if isinstance(choice, dict) and key in choice:
                value = choice[key]
                first[name] = value[0] if key == "values" and isinstance(value, list) and value else value
                break
    return first


def _loading(values: Values, of_launch: dict, for_trl: bool) -> dict:
    """How the model is loaded, as arguments of `plan`; a script of one's own may have other names for it."""
    keys = values.usable
    adapts = any(SYNONYMS.get(name) in _OF_AN_ADAPTER for name in values.given)
    if for_trl and not (adapts and not keys.get("use_peft")):
        return {
            "load_in_4bit": keys.get("load_in_4bit", False),
            "lora_rank": keys.get("lora_r", 16) if keys.get("use_peft") else 0,
            "dtype": keys.get("dtype", "float32"),
            "processes": of_launch.get("num_processes"),
        }
    loading = {"load_in_4bit": keys.get("load_in_4bit"), "dtype": keys.get("dtype")}
    loading["lora_rank"] = keys.get("lora_r") if any(loading.values()) else None
    return loading | {"processes": of_launch.get("num_processes")}


def values_of(config: dict, changes: dict) -> tuple[Values, dict, tuple[str, ...]]:
    """The keys of a file that TRL reads, those of ``accelerate launch``, and notes if it is for another script."""
    from accelerate.commands.launch import launch_command_parser

    kinds = _kinds()
    of_trl = {one.name for kind in kinds for one in fields(kind)}
    of_launch = {*vars(launch_command_parser().parse_args(["script.py"])), "accelerate_config", "env"} - of_trl
    no_sections = of_launch | {*OF_THE_TRAINER} - {"model", "args"}  # which are usual names of sections
    read, notes = without_sections(config, of_trl, no_sections)
    flat = read | changes
    given = {name: value for name, value in flat.items() if name not in of_launch}
    return Values(given, kinds, from_yaml=True), {name: flat[name] for name in flat if name in of_launch}, notes


def _kinds() -> tuple[type, ...]:
    """The classes whose arguments ``trl grpo`` takes."""
    from trl import DatasetMixtureConfig, GRPOConfig, ModelConfig
    from trl.scripts.grpo import GRPOScriptArguments

    return GRPOConfig, ModelConfig, GRPOScriptArguments, DatasetMixtureConfig


def _judges(keys: dict) -> list[str]:
    """The reward model, of which TRL's script takes one."""
    return [keys["reward_model_name_or_path"]] if keys.get("reward_model_name_or_path") else []


def _answer_column(columns: list[str], rewards: Sequence[Callable]) -> str:
    """The column of gold answers that a reward reads, or else the one with the most usual name that the rows have."""
    read = read_by_any(rewards)
    named = [name for name in ANSWERS if name in columns]
    usual = "solution" if "solution" in named and "answer" not in named else "answer"
    return next((name for name in named if name in read), named[0] if named and not rewards else usual)
