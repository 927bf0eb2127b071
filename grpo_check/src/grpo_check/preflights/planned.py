"""The planned run: the arguments of a preflight, with TRL's defaults for the rest."""

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar, runtime_checkable

from grpo_core.errors import CourseError, check_choice
from grpo_core.gpus import Gpu, find_gpus
from grpo_core.rewards import reward_name
from grpo_core.training.policy import BACKENDS

from ..findings import Finding
from ..packages import trl_is_at_least
from ..rule import Rule
from .estimate import HARDWARE
from .models import NO_MODEL, Model, look_up
from .values import LARGEST, Values, defaults_of

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase
    from trl import GRPOConfig

    Rows = Dataset | list[dict]

T = TypeVar("T")


class UnknownArgumentError(CourseError):
    """A rule needs an argument whose value only a run of the script would show."""


#: What a profile says about a run.
_OF_PROFILE = ("load_in_4bit", "lora_rank", "dtype", "max_prompt_length")

#: The release from which ``trl grpo`` adds the ``model_init_kwargs`` of a file to its own, instead of dropping them.
KEEPS_INIT_KWARGS = "1.15.0"
_AMPERE = 8.0  # compute capability


@runtime_checkable
class Profile(Protocol):
    """Your own settings for a kind of machine: any object with these attributes, ``name`` being a key of `HARDWARE`."""

    name: str
    load_in_4bit: bool
    lora_rank: int
    dtype: str
    max_prompt_length: int


@dataclass(frozen=True)
class PlannedRun:
    """A planned run: what `preflight` takes, where None is what is not known, and what was read from it.

    Attributes:
        values: the arguments as they were given; ``given`` has those of `GRPOConfig` that can be used.
        gpu: the GPU of the run; None for a CPU, or if it is not known.
        gpu_named: whether the run's GPU or CPU was named, or this machine has a GPU.
        unread: why what a config file names could not be looked at, by what rules need: ``rows`` or ``tokenizer``.
        bad_rows: why files of rows cannot be read.
        unknown: arguments that a script passes, without showing their values.
        notes: what a reader of the report should know about how the config file was read.
        in_terminal: whether the reader of the report can use options and files rather than Python.
        computed: what `once` has computed, and what rules have found.
    """

    values: Values
    model: Model = NO_MODEL
    tokenizer: "PreTrainedTokenizerBase | None" = None
    train: "Rows | None" = None
    heldout: "Rows | None" = None
    rewards: Sequence | None = None
    gpu: Gpu | None = None
    gpu_named: bool = True
    load_in_4bit: bool | None = None
    lora_rank: int | None = None
    dtype: str | None = None
    backend: str = "transformers"
    max_prompt_length: int | None = None
    processes: int = 1
    tags: Sequence[str] | None = None
    answer_column: str = "answer"
    try_rewards: bool = True
    unread: dict[str, str] = field(default_factory=dict)
    bad_rows: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    in_terminal: bool = False
    computed: dict = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def given(self) -> dict:
        """The usable arguments of `GRPOConfig`; of a config file, with what TRL's script loads the model with."""
        usable = self.values.usable
        kept = {name: value for name, value in usable.items() if name in self.defaults}
        if self.values.from_yaml:
            of_file = _options_in(usable.get("model_init_kwargs")) if trl_is_at_least(KEEPS_INIT_KWARGS) else {}
            kept["model_init_kwargs"] = {"attn_implementation": usable.get("attn_implementation")} | of_file
        return kept

    @cached_property
    def defaults(self) -> dict:
        """The defaults of the installed `GRPOConfig`."""
        from trl import GRPOConfig

        return defaults_of(GRPOConfig)

    def __getitem__(self, name: str) -> object:
        """The value of an argument: as given, else TRL's default.

        Raises:
            UnknownArgumentError: a script passes it, and does not show its value.
        """
        mapped = any(one.startswith("**") for one in self.unknown)
        if name in self.unknown or (mapped and name not in self.given):
            raise UnknownArgumentError(name)
        return self.given.get(name, self.defaults.get(name))

    def known_processes(self) -> int:
        """The data-parallel processes.

        Raises:
            UnknownArgumentError: a shell script has their number in a variable.
        """
        if "num_processes" in self.unknown:
            raise UnknownArgumentError("num_processes")
        return self.processes

    @property
    def on_cpu(self) -> bool:
        """Whether the run will use no GPU."""
        return bool(self["use_cpu"]) or (self.gpu is None and not self.on_unknown_gpu)

    @property
    def on_unknown_gpu(self) -> bool:
        """Whether the arguments are for a GPU, and neither the caller nor this machine says for which."""
        return not self.gpu_named and not self["use_cpu"] and bool(self.bf16 or self["fp16"])

    @property
    def older_than_ampere(self) -> bool:
        """Whether the run's GPU is known to have no bf16 and no FlashAttention 2."""
        return not self.on_cpu and self.gpu is not None and self.gpu.capability < _AMPERE

    @property
    def elsewhere(self) -> bool:
        """Whether the GPU is not one of this machine's, so that what is installed here says nothing."""
        if self.gpu is None:
            return self.on_unknown_gpu
        name = re.compile(rf"{re.escape(self.gpu.name)}(?!\w)")  # nvidia-smi adds more: NVIDIA A100-SXM4-40GB
        return not any(name.match(one.name) for one in find_gpus())

    @property
    def bf16(self) -> bool:
        """Whether TRL will use bf16 autocast: it does unless told otherwise, or fp16 is on.

        Unsloth's own GRPOConfig has both off, and takes what the GPU can.
        """
        if self["bf16"] is not None:
            return bool(self["bf16"])
        too_old = self.backend == "unsloth" and self.gpu is not None and self.gpu.capability < _AMPERE
        return not self["fp16"] and not too_old

    @property
    def steps_per_generation(self) -> int:
        """Forward passes for which one generation lasts, as `GRPOConfig` derives it."""
        if self["steps_per_generation"] is None and self["generation_batch_size"]:
            return max(1, self["generation_batch_size"] // (self["per_device_train_batch_size"] * self.processes))
        return self["steps_per_generation"] or self["gradient_accumulation_steps"]

    @property
    def completions_at_once(self) -> int:
        """Completions that one device samples together."""
        return self["per_device_train_batch_size"] * self.steps_per_generation

    def findings_of(self, rule: Rule) -> list[Finding]:
        """What a rule finds in this run; it looks only once."""
        if rule.code not in self.computed:
            self.computed[rule.code] = rule(self)
        return self.computed[rule.code]

    def fails(self, *rules: Rule) -> bool:
        """Whether any of some rules finds something, so that there is no point in looking further."""
        return any(self.findings_of(rule) for rule in rules)

    def options(self, name: str) -> dict:
        """An argument that holds options, which `GRPOConfig` takes as JSON too; `refused` reports other text."""
        return _options_in(self[name])

    @property
    def chat(self) -> bool:
        """Whether the prompts are messages, as they are taken to be where there are none."""
        return not self.train or isinstance(self.train[0].get("prompt"), list)

    @property
    def functions(self) -> list[Callable]:
        """The rewards that are functions; TRL loads a model or the name of one, so it cannot be tried here."""
        return [reward for reward in self.rewards or [] if callable(reward) and not is_model(reward)]

    @property
    def unread_rewards(self) -> "list[UnreadReward]":
        """The rewards that a config file names and that could not be loaded."""
        return [reward for reward in self.rewards or [] if isinstance(reward, UnreadReward)]


@dataclass(frozen=True)
class UnreadReward:
    """A reward that could not be loaded. It keeps its place among the rewards, because each has its weight.

    Attributes:
        name: as the config file names it.
        what: that it cannot be loaded, as a sentence, and ``fix``: what to do.
    """

    name: str
    what: str
    fix: str = ""


def _options_in(value: object) -> dict:
    """Options, given as a dict or as JSON; none in what is neither."""
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except json.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def is_model(reward: object) -> bool:
    """Whether TRL loads or calls it as a reward model."""
    from torch import nn

    return isinstance(reward, str | nn.Module)


def name_of(reward: object) -> str:
    """The name of a reward, of whatever kind it is."""
    if isinstance(reward, UnreadReward):
        return reward.name
    return reward if isinstance(reward, str) else reward_name(reward)


def once(compute: Callable[[PlannedRun], T]) -> Callable[[PlannedRun], T]:
    """Compute something about a run only once, because several rules look at it.

    >>> run = plan({})
    >>> defaults = once(lambda run: [run["num_generations"]])
    >>> defaults(run), defaults(run) is defaults(run)
    ([8], True)
    """

    @wraps(compute)
    def shared(run: PlannedRun) -> T:
        if compute not in run.computed:
            run.computed[compute] = compute(run)
        return run.computed[compute]

    return shared


def plan(arguments: "dict | GRPOConfig | Values", profile: Profile | None = None, **settings: object) -> PlannedRun:
    """All arguments as one `PlannedRun`, whose other attributes are the ``settings``; a profile fills in missing ones.

    Raises:
        CourseError: an argument cannot be checked.
    """
    _check_given({"arguments": arguments, "profile": profile, **settings})
    of_profile = {name: vars(profile)[name] for name in _OF_PROFILE} if profile else {}
    known = of_profile | {name: value for name, value in settings.items() if value is not None}
    named = known.get("gpu")
    known["gpu"] = _find_gpu(named, profile)
    known["gpu_named"] = bool(named or profile or known["gpu"])
    known["processes"] = known.get("processes") or _world_size()
    known["dtype"] = dtype_name(known.get("dtype"))
    model = known.get("model", NO_MODEL)
    known["model"] = model if isinstance(model, Model) else look_up(model)
    if not isinstance(known.get("rewards", []), list | tuple):
        known["rewards"] = [known["rewards"]]
    return PlannedRun(_values_of(arguments), **known)


def _values_of(arguments: "dict | GRPOConfig | Values") -> Values:
    from trl import GRPOConfig

    if isinstance(arguments, Values):
        return arguments
    return Values(arguments if isinstance(arguments, dict) else _arguments_of(arguments), (GRPOConfig,))


def _arguments_of(config: "GRPOConfig") -> dict:
    """The fields of a `GRPOConfig`; it has derived the generation batch from the steps, so that one is dropped."""
    derived = ("generation_batch_size", "debug")
    return {name: value for name, value in config.to_dict().items() if value is not None and name not in derived}


def _world_size() -> int:
    text = os.environ.get("WORLD_SIZE", "1")
    if not text.isdecimal() or int(text) < 1:
        raise CourseError(
            f"the environment variable WORLD_SIZE is {text!r}. Set it to the number of processes, or unset it."
        )
    return int(text)


def dtype_name(dtype: object) -> str | None:
    """The name of a type of torch or of its name; None for ``auto``, which is known only when weights are loaded.

    >>> dtype_name("torch.bfloat16"), dtype_name("auto")
    ('bfloat16', None)
    """
    return None if dtype in (None, "auto") else str(dtype).removeprefix("torch.")


def _find_gpu(gpu: Gpu | str | None, profile: Profile | None) -> Gpu | None:
    """The named GPU, otherwise that of this machine, otherwise that of the profile."""
    if gpu is not None:
        return HARDWARE[gpu].gpu if isinstance(gpu, str) else gpu
    if profile is not None and profile.name == "cpu":
        return None
    return next(iter(find_gpus()), None) or (_gpu_of(profile) if profile else None)


def _gpu_of(profile: Profile) -> Gpu | None:
    """The GPU that a profile is for; a profile of your own can be for any."""
    if profile.name not in HARDWARE:
        known = ", ".join(HARDWARE)
        raise CourseError(f"profile.name={profile.name!r} is not one of {known}. Use one of them, or pass gpu=….")
    return HARDWARE[profile.name].gpu


def _check_given(given: dict) -> None:
    """Raise a CourseError for the first value that cannot be checked."""
    from datasets import Dataset
    from transformers import PretrainedConfig, PreTrainedTokenizerBase, TrainingArguments

    count = "a whole number, {} or more"
    rows = "a datasets.Dataset (one split) or a list of rows (for a streamed dataset: list(rows.take(1000)))"
    wanted = {
        "arguments": ((dict, TrainingArguments, Values), "a dict of GRPOConfig's arguments, or a GRPOConfig"),
        "profile": (Profile, f"an object with the attributes name, {', '.join(_OF_PROFILE)}"),
        "model": ((str, Path, PretrainedConfig, Model), "a model's name, folder or configuration"),
        "tokenizer": (PreTrainedTokenizerBase, "a tokenizer (a processor's is processor.tokenizer)"),
        "gpu": ((Gpu, str), f"a Gpu, or one of {', '.join(HARDWARE)}"),
        "train": ((Dataset, list), rows),
        "heldout": ((Dataset, list), rows),
        "lora_rank": (range(0, LARGEST), count.format(0)),
        "max_prompt_length": (range(1, LARGEST), count.format(1)),
        "processes": (range(1, LARGEST), count.format(1)),
    }
    for name, (kinds, what) in wanted.items():
        if given.get(name) is not None and not _fits(given[name], kinds):
            raise CourseError(f"{name}={given[name]!r:.80} should be {what}.")
    check_choice("backend", given.get("backend", BACKENDS[0]), BACKENDS)
    if isinstance(given.get("gpu"), str):
        check_choice("gpu", given["gpu"], tuple(HARDWARE))


def _fits(value: object, kinds: "type | tuple | range") -> bool:
    """Whether a value is within a range or of one of some types; the rows of a list are dicts."""
    if isinstance(kinds, range):
        return type(value) is int and value in kinds  # of another type the range would be searched one by one
    return isinstance(value, kinds) and (not isinstance(value, list) or all(isinstance(row, dict) for row in value))
