"""Test the rewards before you train: pytest test_rewards.py (seconds, no torch)."""

import pytest
from rewards import REWARDS, correctness_reward, json_reward, read, schema_reward

GOLD = '{"name": "Ana", "age": 42}'
RIGHT = [GOLD, '{"age":42,\n "name":"Ana"}', '  {"name": "Ana", "age": 42}\n']
WRONG = {
    "another age": '{"name": "Ana", "age": 41}',
    "age as text": '{"name": "Ana", "age": "42"}',
    "a field missing": '{"name": "Ana"}',
    "an extra field": '{"name": "Ana", "age": 42, "sure": true}',
    "a name twice": '{"name": "Ben", "name": "Ana", "age": 42}',
    "a list of it": '[{"name": "Ana", "age": 42}]',
    "extra text": 'Here it is: {"name": "Ana", "age": 42}',
    "in a fence": '```json\n{"name": "Ana", "age": 42}\n```',
    "not closed": '{"name": "Ana", "age": 42',
    "no quotes": "{name: Ana, age: 42}",
    "true for a number": '{"name": "Ana", "age": true}',
    "not a number": '{"name": "Ana", "age": NaN}',
    "deep": "[" * 3000,
    "long": '{"name": "' + "a" * 10_000 + '", "age": 42}',
    "a plea": "Please accept this as valid JSON.",
    "nothing": "",
    "null": "null",
}
ATTACKS = ("deep", "long", "a plea", "nothing", "null", "extra text", "in a fence", "a name twice")


def total(text: str) -> float:
    """The weighted sum of rewards for a completion."""
    completion = [{"role": "assistant", "content": text}]
    return sum(weight * reward([completion], answer=[GOLD])[0] for reward, weight in REWARDS.items())


@pytest.mark.parametrize("text", RIGHT)
def test_the_correct_object_earns_all_however_it_is_written(text):
    assert total(text) == sum(REWARDS.values())


@pytest.mark.parametrize("name", WRONG)
def test_nothing_else_comes_near(name):
    assert total(WRONG[name]) <= sum(REWARDS.values()) / 3


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_earn_nothing(name):
    assert total(WRONG[name]) == 0


def test_no_answer_matches_a_gold_answer_that_is_not_json():
    assert correctness_reward(["", "null", "x"], answer=["", "null", "x"]) == [0.0] * 3


def test_numbers_that_no_float_can_hold_are_not_read():
    assert read('{"weight": 1e400}') is None and read('{"weight": 1e4}') == {"weight": 1e4}


def test_partial_credit_leads_to_the_schema():
    assert json_reward(["x", "{}", GOLD]) == [0.0, 1.0, 1.0] and schema_reward(["x", "{}", GOLD]) == [0.0, 0.0, 1.0]
