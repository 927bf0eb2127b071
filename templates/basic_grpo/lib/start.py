# Generated from grpo_utils 0.1.0, templates/_lib/start.py; the same in every template.
"""The settings of a run, from YAML and the command line, checked before torch, TRL or Unsloth is imported.

Settings are the fields of TRL's `GRPOConfig` and `ModelConfig`, and the few of `RunConfig`. Rewards and their weights
are in rewards.py instead.
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
FEWEST = 10  # held-out rows; fewer cannot show a change
PROJECT = Path(__file__).resolve().parent.parent
#: The files that declare TRL's settings, read as text because importing them takes ten seconds.
DECLARED = {
    "trl": {"trainer/grpo_config.py": "GRPOConfig", "trainer/base_config.py": "_BaseConfig",
            "trainer/model_config.py": "ModelConfig"},
    "transformers": {"training_args.py": "TrainingArguments"},
}  # fmt: skip
COUNTS = ("train_rows", "eval_rows", "eval_batch", "max_prompt_tokens", "max_completion_length", "num_generations")
COUNTS += ("per_device_train_batch_size", "gradient_accumulation_steps", "steps_per_generation")
COUNTS += ("generation_batch_size", "lora_r")
ABOVE_ZERO = ("num_train_epochs", "logging_steps", "save_steps", "temperature")
STRATEGY = {"logging_steps": "logging_strategy", "save_steps": "save_strategy"}  # used only if that is "steps"
NOT_BELOW_ZERO = ("learning_rate", "warmup_steps", "beta")
BATCH = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 1, "num_generations": 8}  # TRL's defaults


@dataclass
class RunConfig:
    """The settings that TRL does not have."""

    dataset_name: str = field(default="openai/gsm8k", metadata={"help": "addition, openai/gsm8k, or FILE.jsonl"})
    train_rows: int = field(default=2000, metadata={"help": "rows to train on, at most"})
    eval_rows: int = field(default=200, metadata={"help": "held-out rows to evaluate before and after training"})
    eval_batch: int = field(default=40, metadata={"help": "held-out prompts answered at once"})
    max_prompt_tokens: int = field(default=512, metadata={"help": "longer prompts are dropped; TRL never cuts them"})
    reward_model: str = field(default="", metadata={"help": "a reward model in addition to REWARDS: hub id or folder"})
    reward_model_weight: float = field(default=0.1, metadata={"help": "its weight; its scores are unbounded"})
    use_unsloth: bool = field(default=True, metadata={"help": "load with Unsloth (false: plain transformers)"})
    accept_changes: bool = field(default=False, metadata={"help": "resume from checkpoints after an edit"})

    def __post_init__(self):
        for name in [name for name, value in vars(self).items() if value is None]:  # an explicit null in the config
            setattr(self, name, getattr(RunConfig(), name))


def prepare(argv: list[str], alone: bool = True) -> None:
    """Reject invalid settings and set the environment, before the imports that read it."""
    if alone and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise SystemExit("Error: this template trains in one process; run it without torchrun or accelerate.")
    help_if_asked(argv)
    refuse(argv)
    if alone:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # a second GPU would double the batch


def rehearse(
    argv: list[str],
    rewards: dict[Callable, float],
    load_rows: Callable,
    *,
    checks: dict[str, Callable] | None = None,
    factory: Callable | None = None,
    **more: object,
) -> None:
    """Count the rows and try each reward on one row before a model is loaded; lock the folder; import Unsloth.

    ``checks`` maps the name of a reward that costs money to a function to call instead. ``factory`` creates the
    environments that rewards get. ``more`` is part of the run's identity.
    """
    check_rewards(rewards, checks or {})
    settings = given(argv)
    run, place = ours(settings), Path(settings.get("output_dir", "trainer_output"))
    row = first_row(run, settings, load_rows)
    for reward in rewards:
        check = (checks or {}).get(reward.__name__)
        check() if check else scoring.try_on(reward, row, factory)
    if os.environ.get("RANK", "0") == "0":  # the first process locks the folder for all
        folder.hold(place)
    if not (place / "report.json").exists():
        folder.check_same(place, identity(argv) | more, run.accept_changes)
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # it suggests a kernel that no run needs
    if run.use_unsloth:
        import unsloth  # noqa: F401


def check_rewards(rewards: dict[Callable, float], known: Iterable[str]) -> None:
    """Check that each reward has a weight, and print a note for each reward function that is not used."""
    if not (isinstance(rewards, dict) and rewards and all(map(scoring.is_finite, rewards.values()))):
        example = "REWARDS = {correctness_reward: 2.0, format_reward: 0.5}"
        raise SystemExit(f"Error: REWARDS in rewards.py must give each reward a weight: {example}.")
    written = vars(sys.modules["rewards"]) if "rewards" in sys.modules and os.environ.get("RANK", "0") == "0" else {}
    for name, reward in written.items():
        own = name.endswith("_reward") and callable(reward) and reward.__module__ == "rewards"
        if own and name not in known and reward not in rewards:
            print(f"Note: {name} is in rewards.py but not in REWARDS, so it is not used.")


def first_row(run: "RunConfig", settings: dict, load_rows: Callable) -> dict:
    """The first training row; stop if there are too few rows for training or evaluation."""
    seed, name = int(number(settings, "seed", 42)), run.dataset_name
    rows, held_out = load_rows(name, "train", run.train_rows, seed), load_rows(name, "test", run.eval_rows, seed)
    if len(held_out) < min(FEWEST, run.eval_rows):
        raise SystemExit(
            f"Error: {name} has {len(held_out)} held-out rows, and an evaluation needs {FEWEST}. "
            f"Add rows, or continue anyway with --eval_rows {len(held_out)}."
        )
    completions, group = groups(settings)
    if len(rows) < completions // group:
        raise SystemExit(
            f"Error: {name} has {len(rows)} training rows, and each step needs {completions // group} different "
            "prompts (completions / num_generations). Add rows, or use a smaller batch."
        )
    return rows[0]


def help_if_asked(argv: list[str]) -> None:
    """With --help, list every setting and stop, without any checks."""
    if {"-h", "--help"} & set(argv):
        parse(argv)


def refuse(argv: list[str]) -> dict:
    """Set the `env` of the given settings and return them; stop at an invalid name, number or model."""
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
    """A YAML loader that rejects repeated keys, of which PyYAML silently takes the last, and keys without a value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        """Reject a repeated key, and a key without a value."""
        lines = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                lines_of = f"lines {lines[name]} and {line}"
                raise SystemExit(f"Error: {self.name}: {name!r} is set twice, in {lines_of}; delete one.")
            if value.tag.endswith(":null") and not value.value:
                problem = f"{name!r} has no value; add one, or delete the line"
                raise SystemExit(f"Error: {self.name}, line {line}: {problem}.")
            lines[name] = line
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> object:
    """Read a YAML file; an error names the file and the line."""
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
    """The settings in the YAML file after --config, if there is one."""
    path = config_path(argv)
    config = read_yaml(path) if path else {}
    if not isinstance(config, dict):
        raise SystemExit(f"Error: {path} must have lines like `learning_rate: 1.0e-5`.")
    if not isinstance(config.get("env", {}), dict):
        raise SystemExit(
            f"Error: {path}: env is {config['env']!r}; it needs indented lines like `  HF_HUB_OFFLINE: 1`."
        )
    for name in ("max_steps", *BATCH):
        if config.get(name, 1) is None:
            raise SystemExit(f"Error: {path}: {name} is null; set a number, or delete the line.")
    return config


def config_path(argv: list[str]) -> Path | None:
    """The file after --config."""
    if any(word.startswith("--config=") for word in argv) or argv[-1:] == ["--config"]:
        raise SystemExit("Error: write --config FILE, with a space and a file name.")
    if argv.count("--config") > 1:
        raise SystemExit("Error: --config appears twice; use one file, and add single settings as options.")
    return Path(argv[argv.index("--config") + 1]) if "--config" in argv else None


def given(argv: list[str]) -> dict:
    """All settings from the config and the command line. The command line takes precedence, and its values are text. A
    null in the config is ignored.

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
        raise SystemExit("Error: env is not an option; set the variable in the shell, or under env in the config.")
    options = {name: values if len(values) > 1 else "".join(values or ["true"]) for name, values in words.items()}
    return {name: value for name, value in read_config(argv).items() if value is not None} | options


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
    """Stop at an unknown setting, and suggest the nearest valid name."""
    for name in {"rewards", "reward_weights", "reward_funcs"} & settings.keys():
        raise SystemExit(f"Error: {name} is not a setting; set rewards and weights in REWARDS in rewards.py.")
    names = trl_fields() | set(ours)
    known = names | {f"no_{name}" for name in names} | {"env", "config", "help"}
    for key in settings:
        if key not in known:
            near = difflib.get_close_matches(str(key), names, n=1)
            raise SystemExit(f"Error: unknown setting {key!r}." + (f" Did you mean {near[0]!r}?" if near else ""))


def check_numbers(settings: dict) -> None:
    """Check that counts and rates are in range, and that every group of completions is complete."""
    if number(settings, "max_steps", 1) != -1:
        require(settings, "max_steps", lambda n: n >= 1 and n % 1 == 0, "a positive integer, or -1 to count epochs")
    for name in COUNTS:
        require(settings, name, lambda n: n >= 1 and n % 1 == 0, "a positive integer")
    for name in [name for name in STRATEGY.values() if settings.get(name) is False]:
        raise SystemExit(f'Error: {name} is false, because YAML reads no as false. Write {name}: "no", with quotes.')
    for name in [name for name in ABOVE_ZERO if is_used(settings, name)]:
        require(settings, name, lambda n: n > 0, "above 0")
    for name in NOT_BELOW_ZERO:
        require(settings, name, lambda n: n >= 0, "0 or more")
    check_groups(settings)


def is_used(settings: dict, name: str) -> bool:
    """Whether a setting has an effect: epochs only without max_steps, and intervals only if the strategy is "steps"."""
    if name == "num_train_epochs":
        return number(settings, "max_steps", -1) == -1
    return name not in STRATEGY or settings.get(STRATEGY[name], "steps") == "steps"


def require(settings: dict, name: str, holds: Callable, wanted: str) -> None:
    """Stop if a given setting is not valid."""
    if settings.get(name) is not None and not holds(number(settings, name, 0)):
        raise SystemExit(f"Error: {name} is {settings[name]}; it must be {wanted}.")


def number(settings: dict, name: str, default: float) -> float:
    """A setting as a number."""
    try:
        return float(settings.get(name, default))
    except (TypeError, ValueError):
        raise SystemExit(f"Error: {name} is {settings[name]!r}; it must be a number.") from None


def groups(settings: dict) -> tuple[int, int]:
    """How many completions all processes sample at once, and how many of them belong to one prompt."""
    batch, accumulated, group = (int(number(settings, name, default)) for name, default in BATCH.items())
    accumulated = int(number(settings, "steps_per_generation", accumulated))
    everywhere = batch * int(os.environ.get("WORLD_SIZE", "1"))
    return int(number(settings, "generation_batch_size", everywhere * accumulated)), group


def check_groups(settings: dict) -> None:
    """Check that the completions of a step are complete groups. (TRL checks that too, but after its slow import.)"""
    count, group = groups(settings)
    if group < 2:
        raise SystemExit("Error: num_generations is 1; it must be at least 2: GRPO compares completions of a prompt.")
    if count % group:
        steps = "steps_per_generation" if "steps_per_generation" in settings else "gradient_accumulation_steps"
        given = "generation_batch_size" if "generation_batch_size" in settings else None
        raise SystemExit(
            f"Error: {given or f'per_device_train_batch_size x {steps} x processes'} is {count} completions, which is "
            f"not divisible by num_generations={group}; change one, because every group must be complete."
        )


def is_on(settings: dict, name: str, default: bool = False) -> bool:
    """Whether a setting is true."""
    return f"no_{name}" not in settings and str(settings.get(name, default)).lower() in ("true", "yes", "1")


def check_model(settings: dict) -> None:
    """Stop if the model is missing or cannot be trained with these settings."""
    name = str(settings.get("model_name_or_path") or "")
    if not name:
        raise SystemExit("Error: model_name_or_path is missing. Add --config config.cpu.yaml, which sets it.")
    if name == TINY and not Path(TINY).is_dir():
        raise SystemExit(
            f"Error: {TINY} does not exist. `python -m grpo_utils new {template_name()} FOLDER` includes it, or copy "
            f"grpo_utils/tiny/tiny-qwen3 from the course to {TINY}."
        )
    check_folder(name)
    if not Path(name).is_dir():
        check_cache(name)
    if is_on(settings, "load_in_4bit") and not is_on(settings, "use_peft"):
        raise SystemExit("Error: load_in_4bit needs use_peft: 4-bit weights cannot be trained, but an adapter can.")
    if is_on(settings, "save_only_model"):
        raise SystemExit("Error: with save_only_model a run cannot resume; set it to false.")


def check_folder(name: str) -> None:
    """Check that the model is a folder with a config.json, or looks like a hub id."""
    path = Path(name)
    if path.is_dir() and not any((path / file).is_file() for file in ("config.json", "adapter_config.json")):
        raise SystemExit(f"Error: model_name_or_path: the folder {name!r} has no config.json, so it is not a model.")
    if not path.is_dir() and not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", name):
        raise SystemExit(f"Error: model_name_or_path: {name!r} is neither a folder here nor a hub id like owner/name.")


def hub_cache() -> Path:
    """The cache of huggingface_hub, from the variables that it reads, because importing it is slow."""
    found = os.environ.get
    home = found("HF_HOME", os.path.join(found("XDG_CACHE_HOME", "~/.cache"), "huggingface"))
    cache = found("HF_HUB_CACHE", found("HUGGINGFACE_HUB_CACHE", os.path.join(home, "hub")))
    return Path(os.path.expandvars(os.path.expanduser(cache)))


def check_cache(name: str) -> None:
    """If offline, check that the model is in the cache (Unsloth may have downloaded it from another owner)."""
    cache = hub_cache()
    offline = os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")
    title = name.rpartition("/")[2].lower()
    if offline and not any(title in path.name.lower() for path in cache.glob("models--*")):
        problem = f"{name!r} is not a folder, and not in the cache {cache}, and HF_HUB_OFFLINE forbids downloads"
        raise SystemExit(f"Error: model_name_or_path: {problem}. Unset HF_HUB_OFFLINE, or download the model once.")


def template_name() -> str:
    """The template of this project: the first word of its README's title."""
    readme = PROJECT / "README.md"
    title = re.match(r"# (\w+):", readme.read_text(encoding="utf-8")) if readme.is_file() else None
    return title[1] if title else "TEMPLATE"


def ours(settings: dict) -> RunConfig:
    """The settings that TRL does not have."""
    found = {f.name: settings[f.name] for f in fields(RunConfig) if f.name in settings}
    kinds = RunConfig.__annotations__
    found |= {name: kinds[name](number(settings, name, 0)) for name in found if kinds[name] in (int, float)}
    found |= {"use_unsloth": is_on(settings, "use_unsloth", True)}
    return RunConfig(**found | {"accept_changes": is_on(settings, "accept_changes")})


def config_name(argv: list[str]) -> str:
    """The name of the config file, without its suffix.

    >>> config_name(["--config", "config.cpu.yaml"])
    'config.cpu'
    """
    path = config_path(argv)
    return path.stem if path else ""


def parse(argv: list[str]) -> tuple:
    """Our `RunConfig`, and TRL's GRPOConfig and ModelConfig."""
    from trl import GRPOConfig, ModelConfig, TrlParser

    try:
        parsed = TrlParser((RunConfig, GRPOConfig, ModelConfig), allow_abbrev=False).parse_args_and_config(argv)
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    if "wandb" in parsed[1].report_to and not os.environ.get("WANDB_API_KEY"):
        print("Note: WANDB_API_KEY is not set (see .env.example); wandb will ask.", file=sys.stderr)
    return parsed


def identity(argv: list[str]) -> dict:
    """What must stay the same for a run to resume from its checkpoints."""
    return open_only(folder.identity(given(argv)))


def figures(argv: list[str], parsed: tuple, family: str) -> dict:
    """The report's entries besides the results; ``parsed`` is what `parse` returns."""
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
    """A value without entries whose names mark them as secret, at any depth."""
    if isinstance(value, dict):
        secret = ("token", "api_key", "password", "secret")
        return {key: open_only(each) for key, each in value.items() if not str(key).lower().endswith(secret)}
    return [open_only(each) for each in value] if isinstance(value, list | tuple) else value
