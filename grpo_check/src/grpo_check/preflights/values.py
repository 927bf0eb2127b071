"""Sort the arguments that were given by the type hints of dataclasses such as `GRPOConfig`."""

import math
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cached_property
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

#: A larger number is a typo.
LARGEST = 10**15
#: Numbers that may be infinite; they then clip nothing.
_MAY_BE_INFINITE = ("epsilon", "epsilon_high", "delta", "max_grad_norm")
#: What `GRPOConfig` and `ModelConfig` accept beyond their hints.
ALSO = {"scale_rewards": bool, "max_completion_length": float, "lora_target_modules": str, "fsdp": bool | list}
#: Words that argparse, as transformers sets it up, reads as a switch.
_SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


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
        read = {name: as_number(text, self.hints[name]) for name, text in texts.items()}
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
        missing = value is None and self.defaults.get(name) is not None and kinds_of(self.hints[name]) <= {int, float}
        off = value is False and name in self.defaults and self.defaults[name] is None  # "not set", as None is
        return (off or _fits(value, self.hints[name])) and not missing


def _is_beyond(name: str, value: object) -> bool:
    """Whether a number, or one of a list of them, is NaN or larger than any run needs."""
    if isinstance(value, list | tuple):
        return any(_is_beyond(name, one) for one in value)
    if not isinstance(value, Real) or abs(value) <= LARGEST:
        return False
    return not (value == math.inf and name in _MAY_BE_INFINITE)


def kinds_of(hint: object) -> set:
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


def as_number(text: str, hint: object) -> int | float | bool | None:
    """A text as the number or the switch that is wanted, or None."""
    kinds = kinds_of(hint)
    if kinds == {bool}:
        return _SWITCHES.get(text.lower())
    if not kinds <= {int, float}:
        return None
    for kind in (one for one in (int, float) if one in kinds):  # 512 stays a whole number
        with suppress(ValueError):
            return kind(text)
    return None
