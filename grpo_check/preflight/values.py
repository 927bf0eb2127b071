"""Check the values of a dataclass such as `GRPOConfig` against its type hints."""

import math
from dataclasses import MISSING, fields
from enum import Enum
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Literal, Union, get_args, get_origin, get_type_hints

from grpo_utils.errors import did_you_mean

from ..findings import Finding
from .report import finding

#: A larger number is a typo.
LARGEST = 10**15
#: Numbers that may be infinite; they then clip nothing.
MAY_BE_INFINITE = ("epsilon", "epsilon_high", "delta", "max_grad_norm")
#: What `GRPOConfig` accepts beyond its hints.
ALSO = {"scale_rewards": bool, "max_completion_length": float}
#: Words that argparse, as transformers sets it up, reads as a switch.
SWITCHES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
LATE = "GRPOConfig does not check this, so the run fails later with an unrelated TypeError."
AS_TEXT = (
    "YAML reads it as a string, because a number with an exponent needs a dot. `trl grpo` converts it; "
    "GRPOConfig(**yaml.safe_load(…)) does not, so such a run fails with a TypeError."
)
UNKNOWN = (
    "an argument of GRPOConfig",
    "plain TRL raises a TypeError; Unsloth on a GPU prints a line, drops the argument and continues.",
)
UNKNOWN_KEY = (
    "a key that trl grpo knows",
    "trl grpo passes it to accelerate launch, which stops with a usage message.",
)
#: Names from other tools and older releases whose current name looks different, and what to do.
ADVICE = {
    "model": "Write 'model_name_or_path'.",
    "dataset": "Write 'dataset_name'.",
    "lora_rank": "Write 'lora_r' in a file for trl grpo, or LoraConfig(r=…).",
    "lr": "Write 'learning_rate'.",
    "batch_size": "Write 'per_device_train_batch_size'.",
    "epochs": "Write 'num_train_epochs'.",
    "torch_dtype": "Write 'dtype' where the model is loaded.",
    "max_prompt_length": "Filter the dataset with drop_long_prompts(rows, …), because TRL no longer truncates prompts.",
    "warmup_ratio": "Write 'warmup_steps'; a value below 1 is a share of the steps, such as warmup_steps=0.1.",
    "overwrite_output_dir": "Give each run its own output_dir.",
    "tokenizer": "Pass processing_class=tokenizer to GRPOTrainer.",
    "max_seq_length": "Pass it to the model loader; GRPOConfig has max_completion_length.",
}


def defaults_of(kind: type) -> dict:
    """The defaults of a dataclass by name."""
    known = [one for one in fields(kind) if one.init]
    made = {one.name: one.default_factory() for one in known if one.default_factory is not MISSING}
    return {one.name: one.default for one in known if one.default is not MISSING} | made


def hints_of(kind: type) -> dict:
    """The type hints of a dataclass by name; a command-line parser of transformers rewrites the fields' own types."""
    hints = get_type_hints(kind)
    return {one.name: hints[one.name] | ALSO.get(one.name, hints[one.name]) for one in fields(kind) if one.init}


def read(given: dict, *kinds: type, from_yaml: bool = False) -> tuple[dict, list[Finding]]:
    """The usable values of some dataclasses' fields, and findings for the others.

    A text that is a number becomes one, as in ``trl grpo``: a warning if it comes ``from_yaml``, else an error.

    >>> from trl import GRPOConfig
    >>> read({"learning_rate": "1e-5", "use_cpu": "yes", "seed": 1.5}, GRPOConfig)[0]
    {'learning_rate': 1e-05, 'use_cpu': True}
    """
    hints = {name: hint for kind in kinds for name, hint in hints_of(kind).items()}
    defaults, usable, found = {name: one for kind in kinds for name, one in defaults_of(kind).items()}, {}, []
    for name, value in given.items():
        if name not in hints:
            found.append(_unknown(name, hints, from_yaml))
            continue
        number = _number(value, hints[name]) if isinstance(value, str) else None
        if number is not None:
            code, sign, why = ("text_number", ": ", AS_TEXT) if from_yaml else ("wrong_type", "=", LATE)
            fix = f"{name}{sign}{_written(number)}"
            found.append(finding(code, f"{name}={value!r} is a string.", why, fix))
            value = number
        problem = _problem(name, value, hints[name], defaults.get(name))
        if problem:
            found.append(problem)
        else:
            usable[name] = value
    return usable, found


def _unknown(name: object, valid: dict, from_yaml: bool) -> Finding:
    """The finding for a name that is not valid, with what to write instead."""
    fix = ADVICE.get(name) or did_you_mean(str(name), valid).strip() or "Remove it."
    what, why = UNKNOWN_KEY if from_yaml else UNKNOWN
    return finding("unknown_argument", f"{name!r} is not {what}.", why, fix)


def _problem(name: str, value: object, hint: object, default: object) -> Finding | None:
    """What is wrong with a value, or None."""
    if _is_beyond(name, value):
        why = "no run needs a number that large, and a comparison with NaN is never true."
        return finding("out_of_range", f"{name} is NaN or above {LARGEST:.0e}.", why, f"the default is {default!r}.")
    missing = value is None and default is not None and _kinds(hint) <= {int, float}
    if _fits(value, hint) and not missing:
        return None
    wanted = " or ".join(sorted(one.__name__ if isinstance(one, type) else str(one) for one in _kinds(hint)))
    fix = f"leave it out (the default is {default!r})."
    if value is False and str in _kinds(hint):
        fix = f"write {name}: 'no' with quotes, because YAML reads no and off as False."
    elif isinstance(value, str) and list[str] in _kinds(hint):
        fix = f"{name}: [{value}]"
    return finding("wrong_type", f"{name}={value!r:.80} should be {wanted}.", LATE, fix)


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
    try:
        return float(text) if float in kinds else int(text)
    except ValueError:
        return None


def _written(number: int | float | bool) -> str:
    """A number as YAML reads it: 1e-05 only with a dot."""
    text = repr(number)
    return text.replace("e", ".0e") if "e" in text and isinstance(number, float) and "." not in text else text
