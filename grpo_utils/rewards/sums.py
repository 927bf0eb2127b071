r"""The result of a calculation in an answer: "20 + 22 = 42" gives 42, because the calculation is correct.

>>> result_of("20 + 22 = 42"), result_of(r"6 \times 7 = 42 apples"), result_of("41 = 42"), result_of("x + 1 = 42")
('42', '42 apples', None, None)
"""

import ast
import operator
import re
from fractions import Fraction

from .markup import without_markup
from .numbers import LONGEST_ANSWER, parse_number

ARITHMETIC = re.compile(r"[0-9+*/(). -]+")
COMMA = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
SIGNS = (("\\times", "*"), ("\\cdot", "*"), ("\\div", "/"), ("×", "*"), ("·", "*"), ("÷", "/"), ("\\$", ""), ("$", ""))
OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def result_of(said: str) -> str | None:
    """The text after the last equals sign if all parts before it have exactly that value, else None.

    >>> result_of("(3 + 4) * 6 = 7 * 6 = 42"), result_of("1/3 = 0.33"), result_of("9**9**9 = 1"), result_of("42")
    ('42', None, None, None)
    """
    if "=" not in said or len(said) > LONGEST_ANSWER:
        return None
    *steps, last = without_markup(said).split("=")
    result = parse_number(last, words=False)
    if result is None or result.percent or any(_value(step) != result.value for step in steps):
        return None
    return last.strip()


def _value(step: str) -> Fraction | None:
    """The value of a step of numbers, the four operations and parentheses, else None."""
    for sign, plain in SIGNS:
        step = step.replace(sign, plain)
    step = COMMA.sub("", step).strip()
    if not ARITHMETIC.fullmatch(step):
        return None
    try:
        return _computed(ast.parse(step, mode="eval").body, step)
    except (SyntaxError, ValueError, ZeroDivisionError, TypeError, KeyError):  # OPERATIONS has no powers
        return None


def _computed(node: ast.expr, step: str) -> Fraction:
    """The exact value of a part of a step; numbers are read exactly, not as floats."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):  # "..." is a constant too
        return Fraction(step[node.col_offset : node.end_col_offset])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_computed(node.operand, step)
    if not isinstance(node, ast.BinOp):
        raise TypeError(f"{type(node).__name__} is not arithmetic")
    return OPERATIONS[type(node.op)](_computed(node.left, step), _computed(node.right, step))
