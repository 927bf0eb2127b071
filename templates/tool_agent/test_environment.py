"""Test the calculator with anything that a model may write: pytest (seconds, no torch)."""

import random
import time
from fractions import Fraction

import pytest
from environment import Calculator, calculator
from grpo_core.training.answers import parse_number

WORKS = {
    "15 + 27": "42", " 15+27 ": "42", "10 - 999": "-989", "6 * 7": "42", "84 / 2": "42", "(2 + 4) * 7": "42",
    "-(1 - 43)": "42", "2 ** 10": "1024", "2 ^ 10": "1024", "2 ** -1": "0.5", "0.1 + 0.2": "0.3", "1,250 + 0": "1250",
    "6 × 7": "42", "84 ÷ 2": "42", "50 − 8": "42", "1 / 3": "0.3333333333", "10 ** 29 + 1": "1" + "0" * 28 + "1",
    "1,234,567 + 1": "1234568", "0 - 1 / 3": "-0.3333333333", "5 * 20": "100", "-1 / 10 ** 11": "0",
}  # fmt: skip
FAILS = [
    "", " ", "42", "-42", "(42)", "15 +", "+", "15 27", "((1 + 2)", "1 / 0", "0 ** -1", "1 / (2 - 2)", "1 // 2",
    "5 % 3", "2 ** 0.5", "2 ** 65", "9 ** 9 ** 9 ** 9", "10 ** 31", "9" * 99, "9" * 101, "1 + 1 " * 50, "(" * 100,
    "-" * 99 + "1", "1/(" * 24 + "1" + ")" * 24 + " / 0", "007 + 1", 
    "1,2500 + 1", "1,25 + 1", "1.5,250 + 1", "1e5 + 1", "0x10 + 1", "1j + 1", "True + 1",
    "1 if 1 else 2", "a + 1", "1 < 2", "__import__('os').system('true')", "().__class__", "exec('1')", "lambda: 1",
    "[1] * 9", "'a' * 9", "1 + 1; 2", "1\n+ 1", "1 + 1 # comment", "\x00", "1 + \ud800", "１ + １", "٤ + ٢",
    "<|im_end|>", None, 42, 4.2, ["1 + 1"], {"a": 1}, True,
]  # fmt: skip


@pytest.mark.parametrize("expression", WORKS)
def test_it_calculates(expression):
    environment = Calculator()
    assert environment.calculator(expression) == WORKS[expression] == environment.results[0]
    assert calculator(expression) == WORKS[expression]


@pytest.mark.parametrize("expression", FAILS, ids=lambda e: repr(e)[:20])
def test_an_error_is_immediate_and_never_quotes_the_expression(expression):
    environment, started = Calculator(), time.perf_counter()
    output = environment.calculator(expression)
    assert output.startswith("Error: ") and output.endswith(".") and environment.results == []
    assert time.perf_counter() - started < 0.1 and "<|" not in output


def test_any_text_gets_a_text_and_no_exception():
    draw = random.Random(0)
    for _ in range(20_000):
        text = "".join(draw.choices("0123456789+-*/(). ,^e_'\"x[]", k=draw.randint(0, 40)))
        assert isinstance(calculator(text), str)


def test_it_agrees_with_python():
    draw = random.Random(0)
    for _ in range(2_000):
        a, b, c = (draw.randint(1, 99) for _ in range(3))
        one, two = draw.choices(["+", "-", "*"], k=2)
        written = draw.choice([f"{a} {one} {b} {two} {c}", f"({a} {one} {b}) {two} {c}", f"{a} {one} ({b} {two} {c})"])
        assert Fraction(calculator(written)) == eval(written)  # written by this test, not by a model


@pytest.mark.parametrize(
    "expression, exact",
    [
        ("123456789.12 + 0.01", "123456789.13"), ("1234567890.5 * 1", "1234567890.5"),
        ("12345678901234567.0 + 0", "12345678901234567"), ("0.12345678901234567 * 10 ** 10", "1234567890.1234567"),
        ("10 ** 20 / 3", "33333333333333333333.3333333333"), ("1 / 2 ** 20", "0.0000009537"),
        ("10 ** 29 - 1 / 3", "9" * 29 + ".6666666667"),
    ],
)  # fmt: skip
def test_no_digit_is_lost_and_the_rewards_can_read_every_result(expression, exact):
    """Results once had only ten digits, floats were rounded on the way, and the rewards could not parse 1e-07."""
    assert calculator(expression) == exact and parse_number(exact).value == Fraction(exact)


def test_the_longest_expressions_are_fast_even_deep_in_the_stack():
    def deep(expression: str, levels: int) -> str:
        return deep(expression, levels - 1) if levels else calculator(expression)

    started = time.perf_counter()
    chains = ["(" * 48 + "1+1" + ")" * 48, "-" * 97 + "1+1", "1" + "**1" * 33, "1/(" * 24 + "1+1" + ")" * 24]
    assert [deep(chain, 200) for chain in chains][:3] == ["2", "0", "1"]
    assert time.perf_counter() - started < 0.5


def test_trl_finds_exactly_these_tools_and_their_descriptions():
    from tools import new_environment, toolbox
    from transformers.utils import get_json_schema

    tools = toolbox(new_environment())
    assert list(tools) == ["calculator"]  # CHANGE with environment.py
    assert all(get_json_schema(tool)["function"]["description"] for tool in tools.values())
