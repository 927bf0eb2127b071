"""Rewards for correct JSON.

    >>> json_reward(['{"age": 3}', '{"age": 4}'], answer=['{"age": 3}'] * 2)
    [1.0, 0.0]

They are stricter than Python's reader: a repeated key (two answers in one) and NaN are not valid. To also check a
schema, see the recipe in docs/rewards.md.
"""

import json
import math
from collections.abc import Sequence

from .correctness import AnswerReward, Scores
from .text import Completion, extract_all


def parse_json(text: str) -> object:
    """The JSON value of a text.

    Raises:
        ValueError: the text is not JSON, repeats a key (two answers in one), has NaN, Infinity or a number that a
            float cannot hold, or is nested deeper than Python reads.

    >>> parse_json('{"name": "Ana"}')
    {'name': 'Ana'}
    """
    try:
        return json.loads(text, object_pairs_hook=unique_keys, parse_constant=_no_constant, parse_float=_plain_float)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def unique_keys(pairs: list[tuple[str, object]]) -> dict:
    """A JSON object as a dictionary. Python's reader silently keeps the last of two values.

    Raises:
        ValueError: a key is repeated.

    >>> unique_keys([("a", 1), ("b", 2)])
    {'a': 1, 'b': 2}
    """
    found = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"an object has the key {key!r} twice")
        found[key] = value
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _plain_float(digits: str) -> int | float:
    """Return 18 for 18.0, because JSON has only one kind of number."""
    value = float(digits)
    if not math.isfinite(value):  # all of them would be equal
        raise ValueError(f"{digits} is too large for a float")
    return int(value) if value.is_integer() else value


def same_json(said: str | None, gold: object) -> bool:
    """Whether a text is the same JSON value as the gold answer, ignoring key order and white space.

    >>> same_json('{"b": [1, 2], "a": true}', '{"a": true, "b": [1, 2]}'), same_json('{"a": 1}', '{"a": true}')
    (True, False)
    """
    try:
        values = parse_json(said or ""), parse_json(gold if isinstance(gold, str) else json.dumps(gold))
        first, second = (json.dumps(value, sort_keys=True) for value in values)
    except (TypeError, ValueError, RecursionError):  # a gold value may be of a type that JSON lacks
        return False
    return first == second


def json_reward(completions: Sequence[Completion], answer: Sequence[object], **kwargs: object) -> Scores:
    """Return 1.0 if the whole completion is the gold JSON value (`same_json`), else 0.0.

    Known exploits: none that `probe` finds.

    >>> json_reward(['{"age": 3}', 'Here: {"age": 3}'], answer=['{"age": 3}'] * 2)
    [1.0, 0.0]
    """
    return AnswerReward(extract=extract_all, same=same_json)(completions, answer=answer)
