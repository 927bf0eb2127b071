"""The tools and their memory. CHANGE THIS FILE: it defines what your agent can do, and records what it did.

TRL gives each completion its own environment, calls `reset` with the row before the episode, and offers every public
method as a tool; the prompt describes it by name, types and docstring. Start the names of helpers with an underscore,
or define them outside the class. A tool always returns text, even for an error, which the model reads before it tries
again. It must not return a list, because TRL treats lists as images.
"""

import ast
import operator
import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

MOST_CALLS = 4  # per episode, in all turns together
LONGEST = 100  # characters of an expression
LARGEST = 10**30  # of numerators and denominators
STEEPEST = 64  # exponent

ALLOWED = re.compile(r"[0-9.+\-*/() ]+")  # letters never reach Python's parser
THOUSANDS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])")  # 1,250, but not 1,2500
OTHER_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "^": "**"})
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
SIGNS = {ast.UAdd: operator.pos, ast.USub: operator.neg}


@dataclass
class Calculator:
    """One episode with a calculator: the number of calls, and the results of those that worked."""

    calls: int = 0
    results: list[str] = field(default_factory=list)

    def reset(self, **row: object) -> None:
        """Start a new episode. ``row`` has all columns of `data.py`; a returned text would be added to the prompt."""
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
    """An expression that cannot be evaluated; the model reads the message, so it never quotes the model's text."""


def calculate(expression: str) -> str:
    """The exact result of an expression, rounded to ten decimals.

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
    return f"{Decimal(f'{scaled}e-10'):f}".rstrip("0").rstrip(".")  # never 1e-07, which the rewards cannot parse


def _parsed(text: str) -> ast.AST:
    """The syntax tree of an expression."""
    if not ALLOWED.fullmatch(text):
        raise CalculationError("the expression may hold numbers, brackets and + - * / ** alone")
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise CalculationError("the expression is not complete, or signs stand in the wrong place") from None


def _value(node: ast.AST, text: str) -> Fraction:
    """The value of one part of the expression ``text``; each part must stay within the limits."""
    match node:
        case ast.Constant():
            value = Fraction(text[node.col_offset : node.end_col_offset])  # exact: 0.1 is one tenth
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
    """A power with an integer exponent within the limit."""
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


#: The tools for TRL. A tool without memory needs no class: {"tools": [calculator]}
TOOLS = {"environment_factory": Calculator}
