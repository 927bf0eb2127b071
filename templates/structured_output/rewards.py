"""The rewards. CHANGE THIS FILE and schema.json: the model learns what you reward.

A reward gets the completions of a batch and, by name, every column of `data.py` as a list of the same length. It
returns one number for each completion. To add a reward, write a function and add it with its weight to `REWARDS`.
"""

import json
import math
from pathlib import Path

from grpo_core.training.texts import completion_text
from jsonschema import Draft202012Validator

SCHEMA = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
LONGEST = 4000  # characters; a longer completion is not parsed


def read(text: str) -> object:
    """The whole text as JSON, or None; extra text, NaN and repeated names are not valid here."""
    if len(text) > LONGEST:
        return None
    try:
        return json.loads(text, parse_constant=reject, parse_float=finite, object_pairs_hook=each_once)
    except (ValueError, RecursionError):
        return None


def reject(name: str) -> None:
    """Reject NaN and Infinity, which Python reads but JSON does not have."""
    raise ValueError(f"{name} is not valid JSON")


def finite(digits: str) -> float:
    """A number that a float can hold, because Python reads all larger ones as infinity, and they would be equal."""
    value = float(digits)
    return value if math.isfinite(value) else reject(digits)


def each_once(pairs: list[tuple]) -> dict:
    """An object in which no name is repeated, because Python would ignore the first value."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name appears twice")
    return dict(pairs)


def fits(text: str) -> bool:
    """Whether the text is JSON that satisfies the schema."""
    value = read(text)
    return value is not None and VALIDATOR.is_valid(value)


def correctness_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """1.0 for JSON that satisfies the schema and equals the gold answer, in any order and spacing."""
    pairs = zip((completion_text(c) for c in completions), answer, strict=True)
    return [float(fits(text) and read(text) == read(gold)) for text, gold in pairs]


def schema_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for JSON that satisfies the schema, whatever its content."""
    return [float(fits(completion_text(c))) for c in completions]


def json_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for any JSON object, as partial credit for the schema."""
    return [float(isinstance(read(completion_text(c)), dict)) for c in completions]


#: The rewards that `train.py` uses, with their weights. Correctness outweighs all others together.
REWARDS = {correctness_reward: 2.0, schema_reward: 0.5, json_reward: 0.5}


def is_right(text: str, row: dict) -> bool:
    """Whether the report counts a text as accurate: schema and content are both correct."""
    return correctness_reward([text], answer=[row["answer"]]) == [1.0]


def is_in_form(text: str) -> bool:
    """Whether the report counts a text as correctly formatted."""
    return fits(text)


def gold_text(row: dict) -> str:
    """The gold answer as the model should write it, for the checks before training: it must count as correct."""
    return row["answer"]
