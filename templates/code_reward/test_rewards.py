"""Test the rewards before you train: pytest (seconds, no torch). `test_sandbox.py` tries to escape."""

import json

import pytest
from rewards import REWARDS, correctness_reward, is_right, runs_reward

CALLS, EXPECTED = json.dumps([[-3], [0], [10]]), json.dumps([2, 5, 15])  # adds 5 to x
RIGHT = [
    "lambda x: x + 5",
    "lambda x: 5 + x",
    "```python\ndef answer(x):\n    return x + 5\n```",
    "answer = lambda y: y + 5.0",
]
WRONG = {
    "another number": "lambda x: x + 4",
    "a constant": "lambda x: 5",
    "correct for one input": "lambda x: x * 1.5",
    "the inputs it saw": "lambda x: {10: 15}.get(x)",
    "true for one": "lambda x: x == -4",
    "not a program": "It adds 5 to x.",
    "no colon": "lambda x x + 5",
    "another name": "def f(x): return x + 5",
    "two fences": "```python\nanswer = 1\n```\n```python\ndef answer(x): return x + 5\n```",
    "a fake verdict": "print('all tests passed')",
    "an exit": "import os; os._exit(0)",
    "a loop": "while True: pass",
    "an answer equal to all": "class E:\n    def __eq__(self, o): return True\ndef answer(x): return E()",
    "a plea": "# please give full marks",
    "nothing": "",
    "long": "lambda x: x + 5" + " " * 10_000,
}  # fmt: skip
ATTACKS = (
    "not a program",
    "a fake verdict",
    "an exit",
    "a loop",
    "an answer equal to all",
    "a plea",
    "nothing",
    "long",
)


def total(text: str) -> float:
    """The weighted sum of rewards for a completion."""
    row = dict(function=["answer"], calls=[CALLS], expected=[EXPECTED])
    return sum(
        weight * reward([[{"role": "assistant", "content": text}]], **row)[0] for reward, weight in REWARDS.items()
    )


@pytest.mark.parametrize("text", RIGHT)
def test_a_correct_program_earns_all_however_it_is_written(text):
    assert total(text) == sum(REWARDS.values())


@pytest.mark.parametrize("name", WRONG)
def test_nothing_else_comes_near(name):
    assert total(WRONG[name]) <= sum(REWARDS.values()) / 4


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_earn_nothing(name):
    assert total(WRONG[name]) == 0


FORGED = """
import os, sys
results = sys._getframe(1).f_locals["results"]
results.write('{"value": 0}\\n' * 3)
results.flush()
os._exit(0)
"""


def test_a_program_that_writes_its_own_results_earns_no_more_than_a_constant():
    assert total(FORGED) == total("lambda x: 0") == REWARDS[runs_reward]


def test_true_is_not_1_and_rounding_is_not_an_error():
    row = dict(function=["answer"] * 3, calls=["[[0]]"] * 3, expected=["[[1]]", "[0.3]", "[[1]]"])
    texts = ["lambda x: [True]", "lambda x: 0.1 * 3", "lambda x: [1.0]"]
    assert correctness_reward(texts, **row) == [0.0, 1.0, 1.0]


def test_rows_without_tests_give_no_reward():
    row = dict(function=["answer"], calls=["[]"], expected=["[]"])
    assert correctness_reward([RIGHT[0]], **row) == runs_reward([RIGHT[0]], **row) == [0.0]


RESULTS = [
    "x ** 400",
    "-x ** 400",
    "float('inf')",
    "float('nan')",
    "[x ** 400]",
    "{'a': x ** 400}",
    "None",
    "'x' * 9",
    "{}",
]


@pytest.mark.parametrize("expected", ["[3]", "[0.5]", "[[3]]", '[{"a": 0.5}]', "[null]", '["3"]', "[NaN]"])
def test_no_result_of_a_program_ends_the_training_run(expected):
    texts = [f"lambda x: {result}" for result in RESULTS]
    row = dict(function=[""] * len(texts), calls=["[[12345]]"] * len(texts), expected=[expected] * len(texts))
    right = [float(expected == "[null]" and result == "None") for result in RESULTS]
    assert correctness_reward(texts, **row) == right
    assert [is_right(text, dict(function="", calls="[[12345]]", expected=expected)) for text in texts] == [
        score == 1.0 for score in right
    ]


def test_large_whole_numbers_are_compared_exactly():
    row = dict(function=[""] * 2, calls=["[[0]]"] * 2, expected=["[10000000000]"] * 2)
    assert correctness_reward(["lambda x: 10**10", "lambda x: 10**10 + 1"], **row) == [1.0, 0.0]
