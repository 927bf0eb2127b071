"""The rewards. CHANGE THIS FILE and schema.json: what you pay for is what the model learns.

A reward gets the completions of a batch and, by name, every column of `data.py` as a list of the same length. It
returns one number for each completion. A new reward is one function and one line in `REWARDS`, with its weight.
"""

import json
from pathlib import Path

from jsonschema import Draft202012Validator
from lib.scoring import text_of

SCHEMA = json.loads(Path(__file__).with_name("schema.json").read_text(encoding="utf-8"))
VALIDATOR = Draft202012Validator(SCHEMA)
LONGEST = 4000  # characters; beyond, a completion is not even parsed


def read(text: str) -> object:
    """The whole text as JSON, or None: text around it, NaN and a name twice are no JSON here."""
    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=each_once) if len(text) <= LONGEST else None
    except (ValueError, RecursionError):
        return None


def refuse(name: str) -> None:
    """Python reads NaN and Infinity, which JSON does not have."""
    raise ValueError(f"{name} is no JSON")


def each_once(pairs: list[tuple]) -> dict:
    """An object; a name that stands there twice would hide a value."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name stands there twice")
    return dict(pairs)


def fits(text: str) -> bool:
    """Whether the text is JSON that satisfies the schema."""
    value = read(text)
    return value is not None and VALIDATOR.is_valid(value)


def correctness_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """1.0 for JSON that fits the schema and says what the gold answer says, whatever its spaces and order."""
    pairs = zip((text_of(c) for c in completions), answer, strict=True)
    return [float(fits(text) and read(text) == read(gold)) for text, gold in pairs]


def schema_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for JSON that fits the schema, whatever it says."""
    return [float(fits(text_of(c))) for c in completions]


def json_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for any JSON object: a slope that leads to the schema."""
    return [float(isinstance(read(text_of(c)), dict)) for c in completions]


#: What `train.py` trains on, each with its weight: correctness outweighs the rest together.
REWARDS = {correctness_reward: 2.0, schema_reward: 0.5, json_reward: 0.5}


def is_right(text: str, row: dict) -> bool:
    """What the report counts as accurate: it fits the schema and says the right thing."""
    return correctness_reward([text], answer=[row["answer"]]) == [1.0]


def is_in_form(text: str) -> bool:
    """What the report counts as in form."""
    return fits(text)
