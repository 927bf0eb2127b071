"""The tools, and what they remember. CHANGE THIS FILE: what your agent may do, and how you will know what it did.

TRL gives each completion an environment of its own, calls `reset` with its row before the episode, and offers every
public method as a tool: name, types and docstring are what the model is told of it. Helpers start with an underscore,
or stand outside of the class. A tool answers with text, also when it can't: the model reads it and may try again. Never
with a list: TRL takes that for images.
"""

import ast
import operator
import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

MOST_CALLS = 4  # in one episode, however many a turn asks for
LONGEST = 100  # characters of an expression
LARGEST = 10**30  # of numerators and denominators
STEEPEST = 64  # exponent

ALLOWED = re.compile(r"[0-9.+\-*/() ]+")  # no letter ever reaches Python's parser
THOUSANDS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")  # 1,250, but not 1,2500
OTHER_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "^": "**"})
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
SIGNS = {ast.UAdd: operator.pos, ast.USub: operator.neg}


@dataclass
class Calculator:
    """One episode with a calculator: how often it was asked, and what it gave back when it could."""

    calls: int = 0
    results: list[str] = field(default_factory=list)

    def reset(self, **row: object) -> None:
        """Forget the episode before. ``row``: all columns of `data.py`; a text given back is added to the prompt."""
        self.calls, self.results = 0, []

    def calculator(self, expression: str) -> str:
        """Work out an arithmetic expression.

        Args:
            expression: Numbers, brackets and + - * / **, for example 15 + 27

        Returns:
            The result, or a line that begins with Error.
        """
        self.calls += 1
        if self.calls > MOST_CALLS:
            return f"Error: at most {MOST_CALLS} calls."
        try:
            result = calculate(expression)
        except CalculationError as error:
            return f"Error: {error}."
        self.results.append(result)
        return result


class CalculationError(Exception):
    """An expression that can't be worked out; the text is what the model reads, so it never repeats the model's own."""


def calculate(expression: str) -> str:
    """The result of an expression: worked out exactly, then rounded to ten decimals.

    >>> calculate("15 + 27"), calculate("0.1 + 0.2"), calculate("(1,250 - 50) / 7")
    ('42', '0.3', '171.4285714286')
    """
    if not isinstance(expression, str) or len(expression) > LONGEST:
        raise CalculationError(f"the expression should be a text of at most {LONGEST} characters")
    text = THOUSANDS.sub(lambda number: number[0].replace(",", ""), expression.translate(OTHER_SIGNS)).strip()
    tree = _parsed(text)
    if not any(isinstance(node, ast.BinOp) for node in ast.walk(tree)):
        raise CalculationError("there is nothing to work out: a number alone is no expression")
    try:
        scaled = round(_value(tree, text) * 10**10)
    except ZeroDivisionError:
        raise CalculationError("division by zero") from None
    return f"{Decimal(f'{scaled}e-10'):f}".rstrip("0").rstrip(".")  # never 1e-07, which the rewards could not read


def _parsed(text: str) -> ast.AST:
    """The tree of an expression."""
    if not ALLOWED.fullmatch(text):
        raise CalculationError("the expression may hold numbers, brackets and + - * / ** alone")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise CalculationError("the expression is not complete, or signs stand in the wrong place") from None


def _value(node: ast.AST, text: str) -> Fraction:
    """The value of a part of the expression ``text``; each part has to stay within the limits."""
    match node:
        case ast.Constant():
            value = Fraction(text[node.col_offset : node.end_col_offset])  # as it was written: 0.1 is a tenth
        case ast.UnaryOp(op=sign, operand=operand) if type(sign) in SIGNS:
            value = SIGNS[type(sign)](_value(operand, text))
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            value = _power(_value(base, text), _value(exponent, text))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            value = OPERATORS[type(sign)](_value(left, text), _value(right, text))
        case _:
            raise CalculationError("the expression may hold numbers, brackets and + - * / ** alone")
    if max(abs(value.numerator), value.denominator) > LARGEST:
        raise CalculationError("a number on the way is too large or too fine")
    return value


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    """A whole power, small enough to be worked out."""
    if exponent.denominator != 1 or abs(exponent) > STEEPEST:
        raise CalculationError(f"exponents should be whole, from -{STEEPEST} to {STEEPEST}")
    return base**exponent.numerator


def calculator(expression: str) -> str:
    """Work out an arithmetic expression.

    Args:
        expression: Numbers, brackets and + - * / **, for example 15 + 27

    Returns:
        The result, or a line that begins with Error.
    """
    return Calculator().calculator(expression)


#: What `train.py` hands to TRL. A tool that remembers nothing needs no class: {"tools": [calculator]}
TOOLS = {"environment_factory": Calculator}
