r"""Compare two mathematical expressions with `math-verify`, in bounded time.

    >>> same_expression(r"2\sqrt{2}", r"\sqrt{8}"), same_expression("x^2 + 2x + 1", "(x+1)^2")
    (True, True)

math-verify passes text to sympy, which evaluates it: ``9^{9^9}`` or ``(10^9)!`` would block a training run for hours,
in C code that nothing can interrupt. Its own time limits work only in the main thread. So this module limits the
expression instead of the time, which holds in every thread. It compares only numbers, single letters, the four
operations, fractions, roots, small exponents, sets and intervals, within the limits below. Any other text counts as
different, which costs a reward but not the run.
"""

import functools
import logging
import re

from ..training.answers import parse_number, unit_name

_LONGEST_EXPRESSION = 60
_MOST_EXPONENTS = 2
#: Letters in an expression, and different ones: sympy takes seconds to simplify fractions of sums of many letters.
MOST_LETTERS, MOST_VARIABLES = 8, 3
#: Brackets inside brackets; math-verify's parser takes twice as long for some kinds with each level.
DEEPEST = 3
#: Limit of entries in the parser's tables, which grow with each new kind of text; 80,000 take 100 MB.
MOST_CONTEXTS = 80_000

_COMMANDS = r"\\(?:[dtc]?frac|sqrt|pi|cdot|times|div|pm|left|right|infty|circ|alpha|beta|theta|in|cup|cap|[,;!{}%$ ])"
#: The accepted language: only commands, single letters, numbers and signs.
LANGUAGE = re.compile(rf"(?:{_COMMANDS}|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|[0-9]|[-+*/^=().,\[\]{{}}|<>\s$%])*")
#: A harmless exponent: two digits on a number, one on a letter, up to 4 on a bracket; not a tower.
_EXPONENT = re.compile(
    r"(?:(?<=[0-9])\^\{\s*-?[0-9]{1,2}\s*\}|(?<=[0-9A-Za-z])\^(?:\{\s*-?[0-9]\s*\}|-?[0-9](?![0-9]))|"
    r"\^(?:\{\s*(?:[0-4]|[a-z])\s*\}|[0-4](?![0-9])|[a-z]))(?!\s*\^)"
)
_LETTER = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])|\\(?:alpha|beta|theta)")
#: Powers in Python's notation, and numbers in a row, which math-verify multiplies ("1 000" is 0). Braces without a
#: command, and square brackets in other brackets, which its parser takes long to read.
REJECTED = re.compile(r"\*\*|[0-9]\s+[0-9]|(?<!frac)(?<!sqrt)(?<![}\]^\\])\{|[^a-z\s]\s*\[")
#: "x = 42" is read as 42 and "x \\in [0, 1]" as the interval; any other equation is rejected: "41 = 42" is not 42.
ASSIGNMENT = re.compile(r"^[A-Za-z]\s*(?:=|\\in(?![A-Za-z]))")
DELIMITERS = re.compile(r"^(?:\$+|\\[(\[])|(?:\$+|\\[)\]])$")
#: A unit at the end. Other text may mean anything.
_UNIT = re.compile(r"(?:\\[,;! ]|~|\s)*\\(?:text|mathrm)\{\s*([A-Za-z]+)\s*\}$")
PLAIN = r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:/[0-9]+)?"
ITEM = rf"(?:\\?[\[({{]|\s)*{PLAIN}(?:\\?[\])}}]|\s)*"
#: Gold answers that are evaluated: those with a variable, a command or a power, a fraction, and lists of plain numbers.
#: Other digits and signs may be a date, a score or a telephone number ("2024-01-05", "3-2").
EVALUATED = re.compile(rf".*[A-Za-z^].*|{PLAIN}|{ITEM}(?:,{ITEM})+", re.DOTALL)
#: Brackets without brackets inside them.
_BRACKETS = re.compile(r"[\[({][^\[\](){}]*[\])}]")


def is_expression(text: str) -> bool:
    r"""Whether a text is an expression that can be compared in bounded time.

    >>> is_expression(r"\frac{\sqrt{3}}{2}"), is_expression("9^{9^{9}}"), is_expression("forty-two")
    (True, False, False)
    """
    if not 0 < len(text) <= _LONGEST_EXPRESSION or not LANGUAGE.fullmatch(text) or REJECTED.search(text):
        return False
    powers, letters = text.count("^"), _LETTER.findall(text)
    return (
        powers <= _MOST_EXPONENTS
        and len(_EXPONENT.findall(text)) == powers
        and len(letters) <= MOST_LETTERS
        and len(set(letters)) <= MOST_VARIABLES
        and text.count("|") in (0, 2)
        and _depth(text) <= DEEPEST
    )


def _depth(text: str) -> int:
    """The maximum number of open brackets."""
    depth = deepest = 0
    for sign in text:
        depth = max(0, depth + (sign in "([{") - (sign in ")]}"))
        deepest = max(deepest, depth)
    return deepest


def _without_name(text: str) -> str:
    """An expression without math delimiters and a leading ``x =``."""
    return ASSIGNMENT.sub("", DELIMITERS.sub("", text.strip()).strip())


def _bare(text: str) -> str:
    r"""An expression without math delimiters, a leading ``x =``, and a unit in ``\text{…}`` at its end."""
    text = _without_name(text)
    unit = _UNIT.search(text)
    text = (text[: unit.start()] if unit and unit_name(unit[1]) else text).strip()
    return f"({text})" if _is_list(text) else text  # as a tuple, because math-verify ignores the order of a list


def _is_list(text: str) -> bool:
    """Whether a text has commas outside of all brackets."""
    for _ in range(DEEPEST):
        text = _BRACKETS.sub("", text)
    return "," in re.sub(r"\\,", "", text)


def gold_number(gold: str) -> str | None:
    r"""A gold answer that is a number, without LaTeX around it; None for another gold answer.

    >>> gold_number("$42$"), gold_number(r"x = 42 \text{ cm}"), gold_number("x + 1")
    ('42', '42 cm', None)
    """
    if parse_number(gold):
        return gold
    bare = _UNIT.sub(r" \1", _without_name(gold)).strip() if len(gold) <= 2 * _LONGEST_EXPRESSION else ""
    return bare if parse_number(bare) else None


def same_expression(said: str, gold: str) -> bool:
    r"""Whether two expressions are mathematically equal; False if one is not an expression (`is_expression`).

    >>> same_expression(r"x \in [0, \frac{1}{2})", "[0, 0.5)"), same_expression("(1, 2)", "(2, 1)")
    (True, False)
    """
    if max(len(said), len(gold)) > 2 * _LONGEST_EXPRESSION:
        return False
    said, gold = _bare(said), _bare(gold)
    if not EVALUATED.fullmatch(gold):
        return False
    if "=" in said or set(_LETTER.findall(said)) != set(
        _LETTER.findall(gold)
    ):  # math-verify reads "3t" as 3 with a unit
        return False
    return is_expression(said) and is_expression(gold) and _verify(said, gold)


@functools.lru_cache(maxsize=100_000)
def _verify(said: str, gold: str) -> bool:
    """Whether math-verify says that two expressions are equal. It returns False for what it cannot read or compare."""
    from math_verify import verify

    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns that it has no time limit
    _empty_full_tables()
    return bool(verify(_parse(gold), _parse(said), timeout_seconds=None))


def _parse(text: str) -> list:
    """The expression in a text, if it is one, and the normalized text."""
    from math_verify import LatexExtractionConfig, parse

    return parse(f"\\boxed{{{text}}}", [LatexExtractionConfig()], parsing_timeout=None)


def _empty_full_tables() -> None:
    """Empty the parser's tables if they are full, because they would fill the memory in a long run."""
    from antlr4.dfa.DFA import DFA
    from antlr4.PredictionContext import PredictionContextCache
    from latex2sympy2_extended.antlr_parser import PSParser

    if len(PSParser.sharedContextCache) > MOST_CONTEXTS:
        PSParser.decisionsToDFA = [DFA(state, number) for number, state in enumerate(PSParser.atn.decisionToState)]
        PSParser.sharedContextCache = PredictionContextCache()
