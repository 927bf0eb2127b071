r"""Compare two mathematical expressions with `math-verify`, in bounded time.

    >>> same_expression(r"\sqrt{4}", "2"), same_expression("x^2 + 2x + 1", "(x+1)^2"), same_expression("42", "43")
    (True, True, False)

math-verify passes text to sympy, which evaluates it: ``9^{9^9}`` or ``(10^9)!`` would block a
training run for hours, in C code that cannot be interrupted. So only a small language is
accepted: numbers, single letters, the four operations, fractions, roots, small exponents, sets and
intervals, at most `LONGEST_EXPRESSION` characters long and `DEEPEST` brackets deep. A comparison
that still takes longer than `SECONDS` is stopped, in every thread. A text that is rejected or
stopped counts as different, which costs a reward but not the run.
"""

import functools
import gc
import logging
import re

from .limits import within
from .numbers import is_unit

LONGEST_EXPRESSION = 100
MOST_EXPONENTS = 2
#: Brackets inside brackets; math-verify's parser takes twice as long for some kinds with each level.
DEEPEST = 4
#: CPU time for parsing and comparing two expressions; on a slow, busy core real pairs of intervals take 0.2 s of it.
SECONDS = 1.0
#: Limit of entries in the parser's tables, which grow with each new kind of text; 80,000 take 60 MB.
MOST_CONTEXTS = 80_000

COMMANDS = r"\\(?:[dtc]?frac|sqrt|pi|cdot|times|div|pm|left|right|infty|circ|alpha|beta|theta|in|cup|cap|[,;!{}%$ ])"
#: The accepted language: only commands, single letters, numbers and signs.
LANGUAGE = re.compile(rf"(?:{COMMANDS}|(?<![A-Za-z])[A-Za-z](?![A-Za-z])|[0-9]|[-+*/^=().,\[\]{{}}|<>\s$%])*")
#: A harmless exponent: two digits on a number, one on a letter, up to 4 on a bracket; not a tower.
EXPONENT = re.compile(
    r"(?:(?<=[0-9])\^\{\s*-?[0-9]{1,2}\s*\}|(?<=[0-9A-Za-z])\^(?:\{\s*-?[0-9]\s*\}|-?[0-9](?![0-9]))|"
    r"\^(?:\{\s*-?(?:[0-4]|[a-z])\s*\}|-?[0-4](?![0-9])|[a-z]))(?!\s*\^)"
)
#: "x = 42" is read as 42 and "x \\in [0, 1]" as the interval; any other equation is rejected: "41 = 42" is not 42.
ASSIGNMENT = re.compile(r"^[A-Za-z]\s*(?:=|\\in(?![A-Za-z])|\u2208)")
#: A unit at the end. Text elsewhere or with digits may mean anything.
UNIT = re.compile(r"\\(?:text|textnormal|textbf|textrm|mathrm|mbox)\s*\{([A-Za-z /^.]{1,20})\}$")
DISPLAY = re.compile(r"^\\[(\[]|\\[)\]]\.?$")
#: Notation without LaTeX: "9π", "√2", "sqrt(3)/2", "x²".
ROOT = re.compile(r"(?:√|(?<!\\)\bsqrt)\s?(?:\(([^()]*)\)|([0-9]+(?:\.[0-9]+)?(?![.,]?[0-9])|[A-Za-z](?![A-Za-z])))")
NAMES = re.compile(r"(?<![A-Za-z\\])(?=pi(?![A-Za-z]))")
SIGNS = {"π": r"\pi ", "∞": r"\infty ", "∪": r"\cup ", "∩": r"\cap ", "×": r"\times ", "·": r"\cdot ", "÷": r"\div "}
SIGNS |= {"±": r"\pm ", "²": "^2", "³": "^3", "−": "-", "θ": r"\theta ", "°": r"^\circ"}


def is_expression(text: str) -> bool:
    r"""Whether a text is an expression that can be evaluated safely.

    >>> is_expression(r"\frac{\sqrt{3}}{2}"), is_expression("9^{9^{9}}"), is_expression("forty-two")
    (True, False, False)
    """
    if not 0 < len(text) <= LONGEST_EXPRESSION or not LANGUAGE.fullmatch(text):
        return False
    powers = text.count("^")
    harmless = powers <= MOST_EXPONENTS and len(EXPONENT.findall(text)) == powers
    return harmless and "**" not in text and text.count("|") % 2 == 0 and _depth(text) <= DEEPEST


def _depth(text: str) -> int:
    """The maximum number of open brackets."""
    depth = deepest = 0
    for sign in text:
        depth = max(0, depth + (sign in "([{") - (sign in ")]}"))
        deepest = max(deepest, depth)
    return deepest


def strip_text(text: str) -> str:
    r"""An expression without a unit in ``\text{…}`` at its end and without a leading ``x =``.

    >>> strip_text(r"x = 3 \text{ cm}")
    '3'
    """
    text = ASSIGNMENT.sub("", _as_latex(text.strip()).strip().strip("$").strip())
    unit = UNIT.search(text)
    return (text[: unit.start()] if unit and is_unit(unit[1]) else text).strip()


def _as_latex(text: str) -> str:
    """Plain-text roots, π and powers as LaTeX, without delimiters."""
    text = DISPLAY.sub("", text)
    text = NAMES.sub(r"\\", ROOT.sub(r"\\sqrt{\1\2}", text))
    return text if text.isascii() else "".join(SIGNS.get(sign, sign) for sign in text)


def same_expression(said: str, gold: str) -> bool:
    r"""Whether two expressions are mathematically equal; False if one is not an expression or time runs out.

    >>> same_expression(r"x \in [0, \frac{1}{2})", "[0, 0.5)"), same_expression("(1, 2)", "(2, 1)")
    (True, False)
    """
    if max(len(said), len(gold)) > 2 * LONGEST_EXPRESSION:
        return False
    said, gold = strip_text(said), strip_text(gold)
    if "=" in said or _variables(said) != _variables(gold):  # math-verify reads "3t" as 3 with a unit
        return False
    return is_expression(said) and is_expression(gold) and _verify(said, gold)


def _variables(text: str) -> set[str]:
    return set(re.findall(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])", text))


#: One pair of each kind, because the parser and sympy build tables when they first see a kind.
WARMING = (
    (r"\frac{x^2-1}{x-1}+\sqrt[3]{8}", "x+3"),
    (r"\{(1,2),(3,4)\}", r"\{(3,4),(1,2)\}"),
    (r"(-\infty,0)\cup[\frac{1}{2},\sqrt{2})", r"(-\infty,0)\cup[0.5,\sqrt{2})"),
    (r"\left(-\frac{2}{4},|3|,\pi\right)", r"(-0.5,3,\pi)"),
    ("(a+b)^2-2a*b", "a^2+b^2"),
    ("x<3", "3>x"),
    (r"[\frac{1}{2},2]", "[0.5,2]"),
    ("(3+4i)", "4i+3"),
)


def warm_up() -> None:
    """Compare a few expressions, so that later comparisons are fast; takes 1 to 2 s if the parser's tables are empty.

    Full tables are emptied first. Hundreds of thousands of small objects also make a pass of Python's garbage collector
    take tenths of a second.

    >>> warm_up()
    """
    from antlr4.dfa.DFA import DFA
    from antlr4.PredictionContext import PredictionContextCache
    from latex2sympy2_extended.antlr_parser import PSParser

    if 0 < len(PSParser.sharedContextCache) <= MOST_CONTEXTS:
        return
    PSParser.decisionsToDFA = [DFA(state, number) for number, state in enumerate(PSParser.atn.decisionToState)]
    PSParser.sharedContextCache = PredictionContextCache()
    logging.getLogger("math_verify").setLevel(logging.CRITICAL)  # it warns about every text that is not an expression
    for said, gold in WARMING:
        _compare(said, gold)


@functools.lru_cache(maxsize=100_000)
def _verify(said: str, gold: str) -> bool:
    """Whether math-verify says that two safe expressions are equal; False if it takes too long."""
    warm_up()
    collects = gc.isenabled()
    gc.disable()  # with torch loaded, one pass takes up to 0.4 s, which must not count against the answer
    try:
        return within(SECONDS, lambda: _compare(said, gold), otherwise=False)
    finally:
        if collects:
            gc.enable()


def _compare(said: str, gold: str) -> bool:
    from math_verify import verify

    return bool(verify(_parse(gold), _parse(said), timeout_seconds=None))


def _parse(text: str) -> list:
    """The expression in a text, if it is one, and the normalized text."""
    from math_verify import LatexExtractionConfig, parse

    return parse(f"\\boxed{{{text}}}", [LatexExtractionConfig()], parsing_timeout=None)
