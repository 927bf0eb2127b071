"""Check the values of a dataclass such as `GRPOConfig` against its type hints."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cached_property
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Literal, Union, get_args, get_origin, get_type_hints

from grpo_utils.errors import did_you_mean

from ..findings import Finding
from ..rules import Rule, adding_to, found

if TYPE_CHECKING:
    from .run import Run

RULES: list[Rule] = []
rule = adding_to(RULES)

#: A larger number is a typo.
LARGEST = 10**15
#: Numbers that may be infinite; they then clip nothing.
MAY_BE_INFINITE = ("epsilon", "epsilon_high", "delta", "max_grad_norm")
#: What `GRPOConfig` accepts beyond its hints.
ALSO = {"scale_rewards": bool, "max_completion_length": float}
#: Words that argparse, as transformers sets it up, reads as a switch.
SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
UNKNOWN_KEY = "trl grpo passes it to accelerate launch, which stops with a usage message."
#: Names from other tools and older releases whose current name looks different, and what to do; some in a file only.
IN_A_FILE = {"model": "write 'model_name_or_path'.", "dataset": "write 'dataset_name'."}
ADVICE = {
    "dataset": "pass train_dataset=… to GRPOTrainer.",
    "lora_rank": "write 'lora_r' in a file for trl grpo, or LoraConfig(r=…).",
    "lr": "write 'learning_rate'.",
    "batch_size": "write 'per_device_train_batch_size'.",
    "epochs": "write 'num_train_epochs'.",
    "torch_dtype": "write 'dtype' where the model is loaded.",
    "max_prompt_length": "filter the dataset with drop_long_prompts(rows, …), because TRL no longer truncates prompts.",
    "warmup_ratio": "write 'warmup_steps'; a value below 1 is a share of the steps, such as warmup_steps=0.1.",
    "overwrite_output_dir": "give each run its own output_dir.",
    "tokenizer": "pass processing_class=tokenizer to GRPOTrainer.",
    "max_seq_length": "pass it to the model loader; GRPOConfig has max_completion_length.",
}
#: The arguments of GRPOTrainer in TRL 1.14.
OF_THE_TRAINER = (
    "model", "reward_funcs", "args", "train_dataset", "eval_dataset", "processing_class", "reward_processing_classes",
    "callbacks", "optimizers", "quantization_config", "peft_config", "tools", "rollout_func", "environment_factory",
)  # fmt: skip


def defaults_of(kind: type) -> dict:
    """The defaults of a dataclass by name."""
    known = [one for one in fields(kind) if one.init]
    made = {one.name: one.default_factory() for one in known if one.default_factory is not MISSING}
    return {one.name: one.default for one in known if one.default is not MISSING} | made


def hints_of(kind: type) -> dict:
    """The type hints of a dataclass by name; a command-line parser of transformers rewrites the fields' own types."""
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] | ALSO.get(one.name, hints[one.name]) for one in fields(kind) if one.init}


@dataclass(frozen=True)
class Values:
    """Arguments as they were given, and which of them can be used, by the type hints of some dataclasses.

    A text that is a number becomes one, as in ``trl grpo``.

    >>> from trl import GRPOConfig
    >>> Values({"learning_rate": "1e-5", "use_cpu": "yes", "seed": 1.5}, (GRPOConfig,)).usable
    {'learning_rate': 1e-05, 'use_cpu': True}
    """

    given: dict
    kinds: tuple[type, ...]
    from_yaml: bool = False

    @cached_property
    def hints(self) -> dict:
        """The type hints of all arguments that there are."""
        return {name: hint for kind in self.kinds for name, hint in hints_of(kind).items()}

    @cached_property
    def defaults(self) -> dict:
        """Their defaults."""
        return {name: default for kind in self.kinds for name, default in defaults_of(kind).items()}

    @cached_property
    def numbers(self) -> dict:
        """The texts that are a number or a switch, as that."""
        texts = {name: text for name, text in self.given.items() if name in self.hints and isinstance(text, str)}
        read = {name: _number(text, self.hints[name]) for name, text in texts.items()}
        return {name: number for name, number in read.items() if number is not None}

    @cached_property
    def known(self) -> dict:
        """The arguments whose names there are, with numbers in place of texts."""
        return {name: value for name, value in self.given.items() if name in self.hints} | self.numbers

    @cached_property
    def beyond(self) -> list[str]:
        """The names of those that are NaN or larger than any run needs."""
        return [name for name, value in self.known.items() if _is_beyond(name, value)]

    @cached_property
    def misfits(self) -> list[str]:
        """The names of those of the wrong type."""
        return [name for name, value in self.known.items() if name not in self.beyond and not self._fits(name, value)]

    @cached_property
    def usable(self) -> dict:
        """All others."""
        return {name: value for name, value in self.known.items() if name not in {*self.beyond, *self.misfits}}

    def _fits(self, name: str, value: object) -> bool:
        """Whether a value has the type of its argument; None takes the place of no number that has a default."""
        missing = value is None and self.defaults.get(name) is not None and _kinds(self.hints[name]) <= {int, float}
        return _fits(value, self.hints[name]) and not missing


@rule(
    "error",
    "a name that GRPOConfig does not know, such as a typo, a removed argument or one of GRPOTrainer",
    why="plain TRL raises a TypeError; Unsloth on a GPU prints a line, drops the argument and continues.",
    fixes=("correct the name, pass the argument to the class that has it, or remove it.",),
    example={"learnign_rate": 1e-3},
)
def unknown_argument(run: "Run") -> Iterator[Finding]:
    """The finding says what to write instead of names of other tools, older releases and other classes."""
    what, why = (
        ("a key that trl grpo knows", UNKNOWN_KEY) if run.values.from_yaml else ("an argument of GRPOConfig", "")
    )
    for name in [name for name in run.values.given if name not in run.values.hints]:
        yield found(f"{name!r} is not {what}.", _advice(run.values, name), why=why)


def _advice(given: Values, name: str) -> str:
    """What to do about a name that there is not."""
    known = ADVICE | IN_A_FILE if given.from_yaml else ADVICE
    if name in OF_THE_TRAINER and name not in known:
        script = " in a script of your own" if given.from_yaml else ""
        return f"pass {name}=… to GRPOTrainer{script}, whose argument it is."
    return known.get(name) or f"correct or remove it.{did_you_mean(str(name), given.hints)}"


@rule(
    "error",
    "a value of the wrong type, such as a number written as a string",
    why="GRPOConfig does not check this, so the run fails later with an unrelated TypeError.",
    fixes=("write a value of the type that the finding names, numbers without quotes; or leave the argument out.",),
    example={"learning_rate": "1e-5"},
)
def wrong_type(run: "Run") -> Iterator[Finding]:
    """The other rules do not see such a value. They take the default instead."""
    values = run.values
    for name, number in {} if values.from_yaml else values.numbers.items():
        yield found(f"{name}={values.given[name]!r} is a string.", f"write {name}={_written(number)} instead.")
    for name in values.misfits:
        value, hint = values.known[name], values.hints[name]
        wanted = " or ".join(sorted(one.__name__ if isinstance(one, type) else str(one) for one in _kinds(hint)))
        fix = f"leave it out (the default is {values.defaults.get(name)!r})."
        if value is False and str in _kinds(hint):
            fix = f"write {name}: 'no' with quotes, because YAML reads no and off as False."
        elif isinstance(value, str) and list[str] in _kinds(hint):
            fix = f"write {name}: [{value}] instead."
        yield found(f"{name}={value!r:.80} should be {wanted}.", fix)


@rule(
    "warning",
    "a number or a switch that YAML reads as a string",
    why="YAML reads what has quotes, or an exponent without a dot, as a string. `trl grpo` converts it; "
    "GRPOConfig(**yaml.safe_load(…)) does not, so a number fails with a TypeError, and 'no' counts as true.",
    fixes=("write the value without quotes, and a number with a dot before its exponent: 2.0e-3.",),
    example={"keys": {"learning_rate": "2e-3"}},
)
def text_number(run: "Run") -> Iterator[Finding]:
    """The other rules see the value, because ``trl grpo`` converts it too."""
    for name, number in run.values.numbers.items() if run.values.from_yaml else ():
        yield found(f"{name}={run.values.given[name]!r} is a string.", f"write {name}: {_written(number)} instead.")


def _is_beyond(name: str, value: object) -> bool:
    """Whether a number, or one of a list of them, is NaN or larger than any run needs."""
    if isinstance(value, list | tuple):
        return any(_is_beyond(name, one) for one in value)
    if not isinstance(value, Real) or abs(value) <= LARGEST:
        return False
    return not (value == math.inf and name in MAY_BE_INFINITE)


def _kinds(hint: object) -> set:
    """The types of a hint without None: ``int | None`` is ``{int}``."""
    return set(get_args(hint) if get_origin(hint) in (Union, UnionType) else [hint]) - {NoneType}


def _fits(value: object, hint: object) -> bool:
    """Whether a value is of a type; a whole number is a float and a switch, a switch is not a number."""
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType, Literal):
        return value in parts if kind is Literal else any(_fits(value, part) for part in parts)
    if kind is list:
        return isinstance(value, list | tuple) and all(_fits(one, part) for one in value for part in parts)
    if isinstance(value, bool):
        return kind is bool
    wider = {bool: Integral, int: Integral, float: Real}.get(kind, kind)
    return isinstance(value, wider) or (issubclass(kind, Enum) and isinstance(value, str))


def _number(text: str, hint: object) -> int | float | bool | None:
    """A text as the number or the switch that is wanted, or None."""
    kinds = _kinds(hint)
    if kinds == {bool}:
        return SWITCHES.get(text.lower())
    if not kinds <= {int, float}:
        return None
    for kind in (one for one in (int, float) if one in kinds):  # 512 stays a whole number
        with suppress(ValueError):
            return kind(text)
    return None


def _written(number: int | float | bool) -> str:
    """A number as YAML reads it: 1e-05 only with a dot."""
    text = repr(number)
    return text.replace("e", ".0e") if "e" in text and isinstance(number, float) and "." not in text else text
