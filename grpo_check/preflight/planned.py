"""The run that is planned: all that was given to a preflight, with TRL's defaults behind it."""

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError
from grpo_utils.profiles import Gpu, Profile, check_choice, find_gpus

from .estimate import HARDWARE
from .report import Finding

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PretrainedConfig, PreTrainedTokenizerBase
    from trl import GRPOConfig

#: What a check is: a function of the planned run that gives back what it found.
Check = Callable[["Planned"], list[Finding]]


@dataclass(frozen=True)
class Planned:
    """A run that is planned.

    Attributes:
        given: the arguments of `GRPOConfig` that were given.
        constructed: whether they came as a `GRPOConfig`, which has checked some itself.
        defaults: those of the installed `GRPOConfig`.
        gpu: the GPU it will run on; None for a CPU.
        elsewhere: whether the GPU is another than this machine's, so that what is installed here says nothing.
        load_in_4bit, lora_rank, dtype: of the model; None where not known. A rank of 0 trains all weights.
    """

    given: dict
    defaults: dict
    model: "str | PretrainedConfig" = ""
    tokenizer: "PreTrainedTokenizerBase | None" = None
    train: "Dataset | Sequence[dict] | None" = None
    heldout: "Dataset | Sequence[dict] | None" = None
    rewards: list | None = None
    gpu: Gpu | None = None
    machine: str = ""
    elsewhere: bool = False
    load_in_4bit: bool | None = None
    lora_rank: int | None = None
    dtype: str | None = None
    backend: str = "unsloth"
    max_prompt_length: int | None = None
    processes: int = 1
    tags: Sequence[str] | None = None
    constructed: bool = False
    answer_column: str = "answer"
    found: dict = field(default_factory=dict)

    def __getitem__(self, name: str) -> object:
        """The value of an argument: as given, else TRL's default."""
        return self.given.get(name, self.defaults.get(name))

    @property
    def on_cpu(self) -> bool:
        """Whether the run will use no GPU."""
        return self.gpu is None or bool(self["use_cpu"])

    @property
    def bf16(self) -> bool:
        """Whether TRL will use bf16 autocast: it does unless told otherwise, or fp16 is on."""
        return not self["fp16"] if self["bf16"] is None else bool(self["bf16"])

    @property
    def steps_per_generation(self) -> int:
        """Forward passes for which one generation lasts, as `GRPOConfig` derives it."""
        if self["steps_per_generation"] is None and self["generation_batch_size"]:
            return self["generation_batch_size"] // (self["per_device_train_batch_size"] * self.processes)
        return self["steps_per_generation"] or self["gradient_accumulation_steps"]

    @property
    def completions_at_once(self) -> int:
        """Completions that one device samples together."""
        return self["per_device_train_batch_size"] * self.steps_per_generation

    @property
    def name(self) -> str:
        """The model's name, or "" if only its configuration is known."""
        return self.model if isinstance(self.model, str) else ""


def planned(arguments: "dict | GRPOConfig", profile: Profile | None, gpu: Gpu | str | None, **other: object) -> Planned:
    """Everything that was given as one `Planned`; a profile fills what was left open."""
    given = dict(arguments) if isinstance(arguments, dict) else _arguments_of(arguments)
    found = _find_gpu(gpu, profile)
    machine = "cpu" if found is None or given.get("use_cpu") else _machine(found)
    for name, value in _of_profile(profile).items():
        other[name] = value if other[name] is None else other[name]
    rewards = other.pop("rewards")
    listed = rewards if rewards is None or isinstance(rewards, list | tuple) else [rewards]
    return Planned(
        given,
        config_defaults(),
        gpu=found,
        machine=machine,
        elsewhere=found is not None and found not in find_gpus(),
        rewards=None if listed is None else list(listed),
        constructed=not isinstance(arguments, dict),
        **other,
    )


def dtype_name(dtype: object) -> str | None:
    """The name of a type of torch or of its name; None for ``auto``, which is known only when weights are loaded.

    >>> dtype_name("torch.bfloat16"), dtype_name("auto")
    ('bfloat16', None)
    """
    return None if dtype in (None, "auto") else str(dtype).removeprefix("torch.")


def _arguments_of(config: "GRPOConfig") -> dict:
    """The fields of a `GRPOConfig`; it has derived the generation batch from the steps, so that one is dropped."""
    given = {one.name: value for one in fields(config) if (value := vars(config)[one.name]) is not None}
    given.pop("generation_batch_size", None)
    return given


def config_defaults() -> dict:
    """The defaults of the installed `GRPOConfig` by name."""
    from trl import GRPOConfig

    known = [one for one in fields(GRPOConfig) if one.init]
    made = {one.name: one.default_factory() for one in known if one.default_factory is not MISSING}
    return {one.name: one.default for one in known if one.default is not MISSING} | made


def _of_profile(profile: Profile | None) -> dict:
    if profile is None:
        return {}
    return {
        "load_in_4bit": profile.load_in_4bit,
        "lora_rank": profile.lora_rank,
        "dtype": profile.dtype,
        "max_prompt_length": profile.max_prompt_length,
    }


def _find_gpu(gpu: Gpu | str | None, profile: Profile | None) -> Gpu | None:
    """The GPU that was named, else this machine's, else the one that the profile is for."""
    if gpu is not None:
        return HARDWARE[gpu].gpu if isinstance(gpu, str) else gpu
    if profile is not None and profile.name == "cpu":
        return None
    found = find_gpus()
    if found:
        return found[0]
    return HARDWARE[profile.name].gpu if profile else None


def _machine(gpu: Gpu) -> str:
    """The row of `HARDWARE` that is nearest to a GPU: by its name, else by its memory and capability."""
    named = [key for key in HARDWARE if key != "cpu" and key in gpu.name.lower()]
    if named:
        return named[0]
    if gpu.capability < 8.0:
        return "t4"
    return "h100" if gpu.capability >= 9.0 and gpu.memory_gib >= 70 else "a100" if gpu.memory_gib >= 38 else "l4"


def check_given(given: object) -> None:
    """Raise a CourseError unless the arguments are a dict or a `GRPOConfig`."""
    from transformers import TrainingArguments

    if not isinstance(given, dict | TrainingArguments):
        raise CourseError(
            f"arguments={given!r} should be a dict of GRPOConfig's arguments, as training_arguments(profile) gives, "
            "or a GRPOConfig."
        )
    odd = [name for name in given if not isinstance(name, str)] if isinstance(given, dict) else []
    if odd:
        raise CourseError(f"arguments has the key {odd[0]!r}, which is no name; give a dict of names and values.")


def check_tokenizer(tokenizer: object) -> None:
    """Raise a CourseError unless it is a tokenizer."""
    from transformers import PreTrainedTokenizerBase

    if tokenizer is not None and not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise CourseError(
            f"tokenizer={tokenizer!r} is a {type(tokenizer).__name__}; give the tokenizer itself: "
            "AutoTokenizer.from_pretrained(…). (Of a vision model's processor: processor.tokenizer.)"
        )


def check_machine(profile: object, gpu: object) -> None:
    """Raise a CourseError unless these are a `Profile` and a `Gpu` or its name."""
    if profile is not None and not isinstance(profile, Profile):
        raise CourseError(f"profile={profile!r} should be a Profile: find_profile('t4')[0], or PROFILES['t4'].")
    if isinstance(gpu, str):
        check_choice("gpu", gpu, tuple(HARDWARE))
    elif gpu is not None and not isinstance(gpu, Gpu):
        raise CourseError(f"gpu={gpu!r} should be a Gpu, as find_gpus() gives them, or one of {', '.join(HARDWARE)}.")


def check_counts(least: int = 1, **counts: object) -> None:
    """Raise a CourseError unless each is a whole number from ``least`` on, or None."""
    for name, value in counts.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise CourseError(f"{name}={value!r} should be a whole number, {least} or more, or not be given.")


def check_words(model: object, answer_column: object, tags: object) -> None:
    """Raise a CourseError unless the model is a name or a configuration, the column a name, and the tags texts."""
    from transformers import PretrainedConfig

    if not isinstance(model, str | Path | PretrainedConfig):
        raise CourseError(
            f"model={model!r} is a {type(model).__name__}; give its name, its folder or its configuration."
        )
    if not isinstance(answer_column, str):
        raise CourseError(f"answer_column={answer_column!r} should be the name of a column.")
    if tags is not None and not (isinstance(tags, list | tuple) and all(isinstance(tag, str) for tag in tags)):
        raise CourseError(f"tags={tags!r} should be four texts, around the reasoning and around the answer, or ().")


def check_dataset(name: str, rows: object) -> None:
    """Raise a CourseError unless the rows are a Dataset or a list of dicts."""
    from datasets import Dataset, IterableDataset

    if isinstance(rows, IterableDataset):
        raise CourseError(f"{name} is streamed, so its rows cannot be counted; give a part: list({name}.take(1000)).")
    if rows is None or isinstance(rows, Dataset):
        return
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CourseError(
            f"{name} is a {type(rows).__name__}; give a datasets.Dataset (one split of a DatasetDict), or a list of "
            'rows: [{"prompt": …, "answer": …}, …].'
        )
