"""Is it the right JSON? The value, the schema, the form.

    >>> json_reward(['{"age": 3}', '{"age": 4}'], answer=['{"age": 3}'] * 2)
    [1.0, 0.0]

Stricter than Python's own reader: a key that stands twice is two answers in one, NaN is no JSON.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import CourseError
from .correctness import AnswerReward, Scores
from .text import Completion, completion_text, extract_all

#: Longer JSON is not validated: some schemas ("uniqueItems") take quadratic time.
LONGEST_JSON = 10_000


def parse_json(text: str) -> object:
    """The JSON value that a text is.

    Raises:
        ValueError: it is none, or holds a key twice (two answers in one), NaN or Infinity, or is
            nested deeper than Python reads.

    >>> parse_json('{"name": "Ana"}')
    {'name': 'Ana'}
    """
    try:
        hooks = dict(object_pairs_hook=_no_key_twice, parse_constant=_no_constant, parse_float=_plain_float)
        return json.loads(text, **hooks)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _no_key_twice(pairs: list[tuple[str, object]]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _plain_float(digits: str) -> int | float:
    """18.0 is 18: JSON has one kind of number."""
    value = float(digits)
    return int(value) if value.is_integer() else value


def same_json(said: str | None, gold: object) -> bool:
    """Whether a text is the same JSON value as the gold one: key order and white space do not count.

    >>> same_json('{"b": [1, 2], "a": true}', '{"a": true, "b": [1, 2]}'), same_json('{"a": 1}', '{"a": true}')
    (True, False)
    """
    try:
        values = parse_json(said or ""), parse_json(gold if isinstance(gold, str) else json.dumps(gold))
        first, second = (json.dumps(value, sort_keys=True) for value in values)
    except (TypeError, ValueError, RecursionError):  # a gold value may be none that JSON knows
        return False
    return first == second


def json_reward(completions: Sequence[Completion], answer: Sequence[object], **kwargs: object) -> Scores:
    """1.0 where the whole completion is the gold JSON value (`same_json`), else 0.0.

    >>> json_reward(['{"age": 3}', 'Here: {"age": 3}'], answer=['{"age": 3}'] * 2)
    [1.0, 0.0]
    """
    return AnswerReward(extract=extract_all, same=same_json)(completions, answer=answer)


@dataclass(frozen=True)
class JsonSchemaReward:
    """1.0 where the completion is JSON that a schema allows, else 0.0; judged by `jsonschema`.

    Args:
        schema: a JSON Schema.
        extract: where the JSON stands; the whole completion if not given.

    Gamed by: any value that the schema allows, true or not. Use it beside `json_reward`.

    >>> schema = {"type": "object", "required": ["age"], "properties": {"age": {"type": "integer"}}}
    >>> JsonSchemaReward(schema)(['{"age": 3}', '{"age": "three"}', "3 years"])
    [1.0, 0.0, 0.0]

    Raises:
        CourseError: when it is made, if the schema is none.
    """

    schema: dict
    extract: Callable[[str], str | None] = extract_all

    __name__ = "json_schema_reward"

    def __post_init__(self) -> None:
        """Refuse a wrong schema now, not in the middle of a training."""
        from jsonschema import SchemaError

        validator = self._validator()
        try:
            validator.check_schema(validator.schema)
        except SchemaError as error:
            raise CourseError(f"The JSON Schema is not valid: {error.message} (at {error.json_path}).") from error

    def _validator(self) -> object:
        from jsonschema.validators import Draft202012Validator, validator_for

        return validator_for(self.schema, default=Draft202012Validator)(self.schema)

    def __call__(self, completions: Sequence[Completion], **kwargs: object) -> list[float]:
        """1.0 or 0.0 a completion."""
        validator = self._validator()
        return [self._score(validator, self.extract(completion_text(c))) for c in completions]

    def _score(self, validator: object, said: str | None) -> float:
        if len(said or "") > LONGEST_JSON:
            return 0.0
        try:
            return 1.0 if validator.is_valid(parse_json(said or "")) else 0.0
        except (ValueError, RecursionError):
            return 0.0


def json_only_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """1.0 where the whole completion is one JSON object or list, else 0.0: no prose, no code fence.

    Gamed by: ``{}``. Use it beside `JsonSchemaReward` or `json_reward`.

    >>> json_only_reward(['{"age": 3}', '```json\\n{"age": 3}\\n```', "3"])
    [1.0, 0.0, 0.0]
    """
    return [1.0 if _is_json(completion_text(c)) else 0.0 for c in completions]


def _is_json(text: str) -> bool:
    if not text.strip().startswith(("{", "[")):
        return False
    try:
        parse_json(text)
    except ValueError:
        return False
    return True
