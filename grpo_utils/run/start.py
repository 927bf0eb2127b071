"""The settings of a run: YAML, then the command line, checked in seconds, before torch, TRL or Unsloth is imported.

Settings are the fields of TRL's `GRPOConfig` and `ModelConfig`, and the few of `RunConfig`. Rewards and their weights
are not among them: they are in rewards.py.
"""

import ast
import difflib
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from pathlib import Path

import yaml

from . import folder, scoring

TINY = "./tiny-model"
FEWEST = 10  # held-out rows: with fewer, nothing can be shown
PROJECT = Path(__file__).resolve().parent.parent
#: Where TRL's settings are declared: read as text, because importing them takes ten seconds.
DECLARED = {
    "trl": {"trainer/grpo_config.py": "GRPOConfig", "trainer/base_config.py": "_BaseConfig",
            "trainer/model_config.py": "ModelConfig"},
    "transformers": {"training_args.py": "TrainingArguments"},
}  # fmt: skip
COUNTS = ("train_rows", "eval_rows", "eval_batch", "max_prompt_tokens", "max_completion_length", "num_generations")
COUNTS += ("per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation")
COUNTS += ("generation_batch_size", "lora_r")
ABOVE_ZERO = ("num_train_epochs", "logging_steps", "save_steps", "temperature")
STRATEGY = {"logging_steps": "logging_strategy", "save_steps": "save_strategy"}  # used where that is "steps"
NOT_BELOW_ZERO = ("learning_rate", "warmup_steps", "beta")
BATCH = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, "num_generations": 8}  # TRL's defaults


@dataclass
class RunConfig:
    """What TRL has no name for."""

    dataset_name: str = field(default="openai/gsm8k", metadata={"help": "addition, openai/gsm8k, or FILE.jsonl"})
    train_rows: int = field(default=2000, metadata={"help": "rows to train on, at most"})
    eval_rows: int = field(default=200, metadata={"help": "held-out rows, judged before and after"})
    eval_batch: int = field(default=40, metadata={"help": "held-out prompts answered at once"})
    max_prompt_tokens: int = field(default=512, metadata={"help": "longer prompts are dropped; TRL never cuts them"})
    reward_model: str = field(default="", metadata={"help": "a reward model besides REWARDS: hub id or folder"})
    reward_model_weight: float = field(default=0.1, metadata={"help": "its weight; its scores have no bounds"})
    use_unsloth: bool = field(default=True, metadata={"help": "load with Unsloth; false: plain transformers"})
    accept_changes: bool = field(default=False, metadata={"help": "resume from checkpoints after an edit"})

    def __post_init__(self):
        for name in [name for name, value in vars(self).items() if value is None]:  # an explicit null in the config
            setattr(self, name, getattr(RunConfig(), name))


def prepare(argv: list[str], alone: bool = True) -> None:
    """Refuse what cannot be right, and set the environment: before the imports that read it."""
    if alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("Error: this template trains in one process; start it without torchrun or accelerate.")
    help_if_asked(argv)
    refuse(argv)
    if alone:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # with two cards in one process batches would double


def rehearse(
    argv: list[str],
    rewards: dict[Callable, float],
    load_rows: Callable,
    *,
    checks: dict[str, Callable] | None = None,
    factory: Callable | None = None,
    **more: object,
) -> None:
    """Count the rows and try each reward on one, before any model is loaded; take the folder; import Unsloth.

    ``checks``: rewards that cost money, each with a function that is called in place of a trial. ``factory`` makes
    the environments that rewards are given. ``more`` belongs to the run's identity.
    """
    check_rewards(rewards, checks or {})
    settings = given(argv)
    run, place = ours(settings), Path(settings.get("output_dir", "trainer_output"))
    row = first_row(run, settings, load_rows)
    for reward in rewards:
        check = (checks or {}).get(reward.__name__)
        check() if check else scoring.try_on(reward, row, factory)
    if os.environ.get("RANK", "0") == "0":  # of several processes the first holds the folder for all
        folder.hold(place)
    if not (place / "report.json").exists():
        folder.check_same(place, identity(argv) | more, run.accept_changes)
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # about a kernel that nobody needs
    if run.use_unsloth:
        import unsloth  # noqa: F401


def check_rewards(rewards: dict[Callable, float], known: Iterable[str]) -> None:
    """Each reward has a weight; a reward function that is written and not listed is noted."""
    if not (isinstance(rewards, dict) and rewards and all(map(scoring.is_finite, rewards.values()))):
        wanted = "REWARDS = {correctness_reward: 2.0, format_reward: 0.5}"
        raise SystemExit(f"Error: REWARDS in rewards.py should have each reward with its weight: {wanted}.")
    written = vars(sys.modules["rewards"]) if "rewards" in sys.modules and os.environ.get("RANK", "0") == "0" else {}
    for name, reward in written.items():
        own = name.endswith("_reward") and callable(reward) and reward.__module__ == "rewards"
        if own and name not in known and reward not in rewards:
            print(f"Note: {name} is in rewards.py but not in REWARDS, so it is not used.")


def first_row(run: "RunConfig", settings: dict, load_rows: Callable) -> dict:
    """The first row to train on; stop if there are too few, or too few to measure with."""
    seed, name = int(number(settings, "seed", 42)), run.dataset_name
    rows, held_out = load_rows(name, "train", run.train_rows, seed), load_rows(name, "test", run.eval_rows, seed)
    if len(held_out) < min(FEWEST, run.eval_rows):
        raise SystemExit(
            f"Error: {name} holds out {len(held_out)} rows; fewer than {FEWEST} cannot measure accuracy. "
            f"Add rows, or continue anyway with --eval_rows {len(held_out)}."
        )
    completions, group = groups(settings)
    if len(rows) < completions // group:
        raise SystemExit(
            f"Error: {name} has {len(rows)} rows to train on, and each step takes {completions // group} different "
            "prompts (its completions / num_generations). Add rows, or make the batch smaller."
        )
    return rows[0]


def help_if_asked(argv: list[str]) -> None:
    """With --help, list every setting and stop: nothing else has to be right for that."""
    if {"-h", "--help"} & set(argv):
        parse(argv)


def refuse(argv: list[str]) -> dict:
    """The settings as given, their `env` set; stop at names, numbers and models that cannot be right."""
    settings = given(argv)
    check_names(settings, {f.name for f in fields(RunConfig)})
    check_numbers(settings)
    os.environ.update({name: str(value) for name, value in settings.get("env", {}).items()})
    check_model(settings)
    if ours(settings).use_unsloth and not find_spec("unsloth"):
        raise SystemExit(
            "Error: Unsloth is not installed: pip install --no-deps -r requirements-unsloth.txt, or set "
            "use_unsloth: false."
        )
    return settings


class StrictLoader(yaml.SafeLoader):
    """YAML in which a key appears once and has a value; PyYAML itself silently takes the last of two."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """Refuse a second value, and none."""
        lines = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                said = f"{name!r} is set twice, in lines {lines[name]} and {line}; delete one"
                raise SystemExit(f"Error: {self.name}: {said}.")
            if value.tag.endswith(":null") and not value.value:
                said = f"{name!r} has no value; give one, or delete the line"
                raise SystemExit(f"Error: {self.name}, line {line}: {said}.")
            lines[name] = line
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> object:
    """What a YAML file says; what cannot be read is named with file and line."""
    if not path.is_file():
        raise SystemExit(f"Error: there is no file {str(path)!r}.")
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, StrictLoader)
    except yaml.MarkedYAMLError as error:
        tab = " Indent with spaces, not with tabs." if "\\t" in error.problem else ""
        line = error.problem_mark.line + 1
        raise SystemExit(f"Error: {path}, line {line} is not valid YAML: {error.problem}.{tab}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SystemExit(f"Error: {path} is not YAML in UTF-8: {str(error).splitlines()[0]}.") from None


def read_config(argv: list[str]) -> dict:
    """The YAML file that --config names, or nothing."""
    path = config_path(argv)
    config = read_yaml(path) if path else {}
    if not isinstance(config, dict):
        raise SystemExit(f"Error: {path} should hold lines like `learning_rate: 1.0e-5`.")
    if not isinstance(config.get("env", {}), dict):
        raise SystemExit(f"Error: {path}: env is {config['env']!r}; indent lines below it, like `  HF_HUB_OFFLINE: 1`.")
    for name in ("max_steps", *BATCH):
        if config.get(name, 1) is None:
            raise SystemExit(f"Error: {path}: {name} is null; give a number, or delete the line.")
    return config


def config_path(argv: list[str]) -> Path | None:
    """The file after --config."""
    if any(word.startswith("--config=") for word in argv) or argv[-1:] == ["--config"]:
        raise SystemExit("Error: write --config FILE, with a space and a file name.")
    if argv.count("--config") > 1:
        raise SystemExit("Error: --config is given twice; give one file, and single settings after it.")
    return Path(argv[argv.index("--config") + 1]) if "--config" in argv else None


def given(argv: list[str]) -> dict:
    """Every setting that the config or the command line gives; the command line wins, and its values are text. An
    explicit null in the config gives nothing.

    >>> given(["--max_steps", "50", "--lora_target_modules", "q_proj", "v_proj", "--use_peft"])
    {'max_steps': '50', 'lora_target_modules': ['q_proj', 'v_proj'], 'use_peft': 'true'}
    """
    words: dict[str, list[str]] = {}
    for word in argv:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            words[name := name.replace("-", "_")] = [value] if "=" in word else []
        elif words:
            words[name].append(word)
    if "env" in words:
        raise SystemExit("Error: env is not an option: set the variable in the shell, or below env in the config.")
    said = {name: values if len(values) > 1 else "".join(values or ["true"]) for name, values in words.items()}
    return {name: value for name, value in read_config(argv).items() if value is not None} | said


def trl_fields() -> set[str]:
    """The names of all fields of TRL's GRPOConfig and ModelConfig."""
    names = set()
    for package, files in DECLARED.items():
        if not (spec := find_spec(package)):
            raise SystemExit(f"Error: {package} is not installed: pip install -r requirements.txt")
        for file, wanted in files.items():
            tree = ast.parse((Path(spec.origin).parent / file).read_text(encoding="utf-8"))
            [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == wanted]
            names |= {line.target.id for line in found.body if isinstance(line, ast.AnnAssign)}
    return names


def check_names(settings: dict, ours: Iterable[str]) -> None:
    """A misspelled setting is named with the nearest right one."""
    for name in {"rewards", "reward_weights", "reward_funcs"} & settings.keys():
        raise SystemExit(f"Error: {name} is not a setting here: REWARDS in rewards.py has each reward with its weight.")
    names = trl_fields() | set(ours)
    known = names | {f"no_{name}" for name in names} | {"env", "config", "help"}
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(str(key), names, n=1)
            raise SystemExit(f"Error: unknown setting {key!r}." + (f" Did you mean {near[0]!r}?" if near else ""))


def check_numbers(settings: dict) -> None:
    """No count below one, no rate below zero; and every group of completions is complete."""
    if number(settings, "max_steps", 1) != -1:
        require(settings, "max_steps", lambda n: n >= 1 and n % 1 == 0, "a whole number from 1, or -1 to count epochs")
    for name in COUNTS:
        require(settings, name, lambda n: n >= 1 and n % 1 == 0, "a whole number, at least 1")
    for name in [name for name in STRATEGY.values() if settings.get(name) is False]:
        raise SystemExit(f'Error: {name} is false: YAML reads no as false. Write {name}: "no", with the quotes.')
    for name in [name for name in ABOVE_ZERO if is_used(settings, name)]:
        require(settings, name, lambda n: n > 0, "above 0")
    for name in NOT_BELOW_ZERO:
        require(settings, name, lambda n: n >= 0, "0 or more")
    check_groups(settings)


def is_used(settings: dict, name: str) -> bool:
    """Whether training reads a setting: epochs count without max_steps only, and steps if the strategy is "steps"."""
    if name == "num_train_epochs":
        return number(settings, "max_steps", -1) == -1
    return name not in STRATEGY or settings.get(STRATEGY[name], "steps") == "steps"


def require(settings: dict, name: str, holds: Callable, wanted: str) -> None:
    """Stop if a setting that is given does not hold."""
    if settings.get(name) is not None and not holds(number(settings, name, 0)):
        raise SystemExit(f"Error: {name} is {settings[name]}; it should be {wanted}.")


def number(settings: dict, name: str, default: float) -> float:
    """A setting as a number."""
    try:
        return float(settings.get(name, default))
    except (TypeError, ValueError):
        raise SystemExit(f"Error: {name} is {settings[name]!r}; it should be a number.") from None


def groups(settings: dict) -> tuple[int, int]:
    """How many completions all processes sample at once, and how many of them belong to one prompt."""
    batch, accumulated, group = (int(number(settings, name, default)) for name, default in BATCH.items())
    accumulated = int(number(settings, "steps_per_generation", accumulated))
    everywhere = batch * int(os.environ.get("WORLD_SIZE", "1"))
    return int(number(settings, "generation_batch_size", everywhere * accumulated)), group


def check_groups(settings: dict) -> None:
    """The completions of a step have to be whole groups. (TRL itself refuses the rest, after its import.)"""
    count, group = groups(settings)
    if group < 2:
        raise SystemExit("Error: num_generations is 1; it should be at least 2: GRPO compares completions of a prompt.")
    if count % group:
        steps = "steps_per_generation" if "steps_per_generation" in settings else "gradient_accumulation_steps"
        given = "generation_batch_size" if "generation_batch_size" in settings else None
        raise SystemExit(
            f"Error: {given or f'per_device_train_batch_size x {steps} x processes'} is {count} completions, and "
            f"num_generations is {group}, which does not divide it; change one: every group must be complete."
        )


def is_on(settings: dict, name: str, default: bool = False) -> bool:
    """Whether a setting is true."""
    return f"no_{name}" not in settings and str(settings.get(name, default)).lower() in ("true", "yes", "1")


def check_model(settings: dict) -> None:
    """Stop now at a model that is not there, or that cannot be trained as asked."""
    name = str(settings.get("model_name_or_path") or "")
    if not name:
        raise SystemExit("Error: model_name_or_path is missing. Is --config config.cpu.yaml? It names a model.")
    if name == TINY and not Path(TINY).is_dir():
        raise SystemExit(
            f"Error: there is no {TINY}: it comes with `python -m grpo_utils new {template_name()} FOLDER`, or copy "
            "grpo_utils/tiny/tiny-qwen3 of the course here under that name."
        )
    check_folder(name)
    if not Path(name).is_dir():
        check_cache(name)
    if is_on(settings, "load_in_4bit") and not is_on(settings, "use_peft"):
        raise SystemExit("Error: load_in_4bit needs use_peft: weights in 4 bits cannot be trained, adapters can.")
    if is_on(settings, "save_only_model"):
        raise SystemExit("Error: save_only_model leaves nothing to resume from; set it to false.")


def check_folder(name: str) -> None:
    """A model is a folder that holds one, or a name on the hub."""
    path = Path(name)
    if path.is_dir() and not any((path / file).is_file() for file in ("config.json", "adapter_config.json")):
        raise SystemExit(f"Error: model_name_or_path: the folder {name!r} has no config.json, so it holds no model.")
    if not path.is_dir() and not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise SystemExit(f"Error: model_name_or_path: there is no folder {name!r}, and a hub id looks like owner/name.")


def hub_cache() -> Path:
    """Where huggingface_hub keeps models: it reads the same variables, and importing it would take long."""
    found = os.environ.get
    home = found("HF_HOME", os.path.join(found("XDG_CACHE_HOME", "~/.cache"), "huggingface"))
    cache = found("HF_HUB_CACHE", found("HUGGINGFACE_HUB_CACHE", os.path.join(home, "hub")))
    return Path(os.path.expandvars(os.path.expanduser(cache)))


def check_cache(name: str) -> None:
    """Without downloads a model has to be in the cache of the hub (Unsloth may have fetched it from another owner)."""
    cache = hub_cache()
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    title = name.rpartition("/")[2].lower()
    if offline and not any(title in path.name.lower() for path in cache.glob("models--*")):
        said = f"{name!r} is not a folder, and not in the cache {cache}, and HF_HUB_OFFLINE forbids downloads"
        raise SystemExit(f"Error: model_name_or_path: {said}. Unset HF_HUB_OFFLINE, or download the model once.")


def template_name() -> str:
    """The template that this project came from: the first word of its README's title."""
    readme = PROJECT / "README.md"
    title = re.match(r"# (\w+):", readme.read_text(encoding="utf-8")) if readme.is_file() else None
    return title[1] if title else "TEMPLATE"


def ours(settings: dict) -> RunConfig:
    """The settings that TRL has no name for."""
    found = {f.name: settings[f.name] for f in fields(RunConfig) if f.name in settings}
    kinds = RunConfig.__annotations__
    found |= {name: kinds[name](number(settings, name, 0)) for name in found if kinds[name] in (int, float)}
    found |= {"use_unsloth": is_on(settings, "use_unsloth", True)}
    return RunConfig(**found | {"accept_changes": is_on(settings, "accept_changes")})


def config_name(argv: list[str]) -> str:
    """The name of the config file, without its ending.

    >>> config_name(["--config", "config.cpu.yaml"])
    'config.cpu'
    """
    path = config_path(argv)
    return path.stem if path else ""


def parse(argv: list[str]) -> tuple:
    """Our settings, TRL's GRPOConfig and its ModelConfig."""
    from trl import GRPOConfig, ModelConfig, TrlParser

    try:
        parsed = TrlParser((RunConfig, GRPOConfig, ModelConfig), allow_abbrev=False).parse_args_and_config(argv)
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    if "wandb" in parsed[1].report_to and not os.environ.get("WANDB_API_KEY"):
        print("Note: WANDB_API_KEY is not set (see .env.example); wandb will ask.", file=sys.stderr)
    return parsed


def identity(argv: list[str]) -> dict:
    """What a run cannot change on the way, and a checkpoint therefore has to share."""
    return open_only(folder.identity(given(argv)))


def figures(argv: list[str], parsed: tuple, family: str) -> dict:
    """What the report says about a run besides its results; ``parsed``: the three of `parse`."""
    run, training, model = parsed
    return {
        "profile": config_name(argv),
        "family": family,
        "model": model.model_name_or_path,
        "backend": "unsloth" if run.use_unsloth else "transformers",
        "load_in_4bit": model.load_in_4bit,
        "seed": training.seed,
        "changes": folder.changes(Path(training.output_dir)),
        "config": open_only({"run": vars(run), "training": training.to_dict(), "model": vars(model)}),
    }


def open_only(value: object) -> object:
    """A value without what its name says is secret, at any depth."""
    if isinstance(value, dict):
        secret = ("token", "api_key", "password", "secret")
        return {key: open_only(each) for key, each in value.items() if not str(key).lower().endswith(secret)}
    return [open_only(each) for each in value] if isinstance(value, list | tuple) else value
