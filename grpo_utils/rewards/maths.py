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
from dataclasses import replace

from .limits import within
from .numbers import is_unit

LONGEST_EXPRESSION = 100
MOST_EXPONENTS = 2
#: Brackets inside brackets; math-verify's parser takes twice as long for some kinds with each level.
DEEPEST = 6
#: CPU time for parsing and comparing two expressions; real answers take a tenth of it.
SECONDS = 0.2
#: Limit of entries in the parser's tables; after `warm_up` there are 2,000.
MOST_CONTEXTS = 10_000

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


@functools.cache
def warm_up() -> None:
    """Import math-verify and compare a few expressions, so that later comparisons are fast; takes 1 to 2 s.

    >>> warm_up()
    """
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
    import math_verify

    return bool(math_verify.verify(_parse(gold), _parse(said), timeout_seconds=None))


def _parse(text: str) -> list:
    """The result of math-verify's `parse` for a boxed text: the expression, if it is one, and the normalized text."""
    from math_verify import LatexExtractionConfig
    from math_verify.parser import get_last_eq, normalize_latex

    text = normalize_latex(text, replace(LatexExtractionConfig().normalization_config, boxed="none"))
    for part in dict.fromkeys((text, get_last_eq(text))):
        for thorough in (False, True):
            try:
                return [_reader(part, thorough).parse(part), text]
            except Exception:  # math-verify's parser raises Exception itself, and sympy whatever its arithmetic raises
                continue
    return [text]


def _reader(text: str, thorough: bool) -> object:
    """math-verify's parser in one of its two modes, which give the same result if both give one.

    The quick mode fails for some texts. The thorough mode, which math-verify uses, takes up to 30 times as long for
    nested brackets.
    """
    from antlr4 import PredictionMode
    from latex2sympy2_extended.latex2sympy2 import _Latex2Sympy
    from math_verify.grader import should_treat_as_complex

    reader = _Latex2Sympy(is_real=not should_treat_as_complex(text))
    create = reader.create_parser

    def create_parser(text: str) -> object:
        parser = create(text)
        if len(parser.sharedContextCache) > MOST_CONTEXTS:
            _empty_tables(type(parser))
        parser._interp.predictionMode = PredictionMode.LL if thorough else PredictionMode.SLL
        return parser

    reader.create_parser = create_parser
    return reader


def _empty_tables(parser: type) -> None:
    """Clear the parser's tables, which grow with each new kind of text and never shrink.

    Hundreds of thousands of small objects also make a pass of Python's garbage collector take tenths of a second.
    """
    from antlr4.dfa.DFA import DFA
    from antlr4.PredictionContext import PredictionContextCache

    parser.decisionsToDFA = [DFA(state, number) for number, state in enumerate(parser.atn.decisionToState)]
    parser.sharedContextCache = PredictionContextCache()
