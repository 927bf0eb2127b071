r"""The number that an answer writes, however it is written.

    >>> [str(parse_number(text).value) for text in ("1,000", "$18.50", "-3/4", "1.5e3", "The answer is 42 apples.")]
    ['1000', '37/2', '-3/4', '1500', '42']
    >>> parse_number("5 or 6 or 7") is None
    True

Exact arithmetic (`fractions.Fraction`), no floats. What is ambiguous is no number: two
numbers, a hedge ("at least 5", "not 5"), a variable ("2x"), a decimal comma ("3,5").
Only a short text is read, so time is bounded. Units are read over, not compared.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

#: No answer that can be right is longer; what is longer is not read.
LONGEST_ANSWER = 100

DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)"

#: What nearly every answer is: digits with commas, decimals, a sign and a dollar.
PLAIN = re.compile(rf"([-+]?)\$?({DIGITS}(?:\.[0-9]+)?|\.[0-9]+)\.?")

#: Any number: mixed ("1 1/2"), fraction, decimal, scientific; then percent sign and unit letters.
NUMBER = re.compile(
    rf"""(?<![\w.\-/^])(?P<sign>[-+]?)\s?
    (?: (?:(?P<whole>[0-9]+)\s+)? (?P<top>[0-9]+)\s?/\s?(?P<bottom>0*[1-9][0-9]*) (?!\.?[0-9])
      | (?P<decimal>{DIGITS}(?:\.[0-9]+)?|\.[0-9]+)
        (?: [eE](?P<e>[-+]?[0-9]{{1,3}}) | \s?[*x×]\s?10\^(?P<power>[-+]?[0-9]{{1,3}}) )?
    )
    (?!,?[0-9]|\.[0-9]|\s?[/^*×][-+]?\s?[0-9(]|\() (?P<percent>\s?%|\s(?:percent|per\scent)\b)?
    (?P<unit>[^\W\d_]*)""",
    re.VERBOSE,
)

#: Single letters behind a number are variables ("2x"), but for these units.
UNIT_LETTERS = frozenset("mgshlLWVAJNCFKtd")
#: A single letter that stands alone behind a number and is neither a unit nor the word "a".
VARIABLE = re.compile(rf"(?<!\w)[^\W\d_{''.join(sorted(UNIT_LETTERS))}a](?!\w)")
SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "K": 1000, "dozen": 12}
SCALES |= {"million": 10**6, "M": 10**6, "billion": 10**9, "bn": 10**9, "B": 10**9, "trillion": 10**12}

#: Words that change which number is said. A text with one of them is not read as a number.
NUMERALS = "zero one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty sixty"
HEDGES = frozenset(
    f"{NUMERALS} not no never cannot neither nor or either unless except without than least most over under between "
    "above below half halves third thirds quarter quarters twice double triple times squared cubed root pi minus "
    "negative plus hundred thousand million billion trillion dozen percent factorial sqrt log ln sin cos tan wrong "
    "incorrect".split()
)
READABLE = re.compile(r"(?:[^\W\d_]+(?:\^?[23]|[²³])?)?(?:[\s.,;:'\"()=°/-]+(?:[^\W\d_]+(?:\^?[23]|[²³])?)?)*")

LATEX = (
    (re.compile(r"\\[dt]?frac\s*\{([0-9]+)\}\s*\{([0-9]+)\}|\\[dt]?frac\s?([0-9])([0-9])"), r" \1\3/\2\4"),
    (re.compile(r"\\(?:text|mathrm|textbf|mathbf)\s*\{([^{}]*)\}"), r" \1"),
    (re.compile(r"\\boxed\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\(?:times|cdot)\b"), "*"),
    (re.compile(r"\{,\}|\\[,!;] ?"), ","),
    (re.compile(r"10\s?\^\s?\{([-+]?[0-9]+)\}"), r"10^\1"),
    (re.compile(r"\\(?:left|right|[()\[\]])|[$€£¥₹]|\\(?=[$%])"), ""),
    (re.compile(r"(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3})"), ","),
    (re.compile(r"\b(?:minus|negative)\s+(?=\.?[0-9])", re.IGNORECASE), "-"),
    (re.compile(r"(?<![^\s(=:])-\s(?=\.?[0-9])"), "-"),
)


class Number(NamedTuple):
    """An exact value, and whether a percent sign stood behind it."""

    value: Fraction
    percent: bool = False


@lru_cache(maxsize=100_000)
def parse_number(text: str, *, words: bool = True) -> Number | None:
    r"""The one number that the text writes, else None.

    Args:
        text: an answer, not a whole completion.
        words: whether words may stand before the number ("The answer is 42"); behind it they
            are taken for a unit. A gold answer is read without.

    >>> parse_number(r"\boxed{\frac{1}{2}}"), parse_number("50 %")
    (Number(value=Fraction(1, 2), percent=False), Number(value=Fraction(50, 1), percent=True))
    >>> parse_number("not 42"), parse_number("2x"), parse_number("41 42")
    (None, None, None)
    """
    text = text.strip()
    if len(text) > LONGEST_ANSWER:
        return None
    if plain := PLAIN.fullmatch(text):
        return Number(Fraction(plain[1] + plain[2].replace(",", "")))
    text = _without_markup(text)
    numbers = list(NUMBER.finditer(text))
    if len(numbers) != 1:
        return None
    found = numbers[0]
    before, after = text[: found.start()], text[found.end() :]
    return _value(found, before, after) if words or not before.strip(" (") else None


def _without_markup(text: str) -> str:
    """The text without LaTeX, currency signs and typographic spaces; the minus sign as a hyphen."""
    text = text.replace("\u2212", "-").replace("\N{FRACTION SLASH}", "/")
    for pattern, plain in LATEX:
        text = pattern.sub(plain, text)
    return text.strip()


def _value(found: re.Match, before: str, after: str) -> Number | None:
    """The value of the only number in a text, unless what stands around it changes its meaning."""
    scale, after = _scale(found["unit"], after)
    words = re.findall(r"[^\W\d_]+", f"{before} {after}".lower())
    if not scale or HEDGES & set(words) or "n't" in before + after or VARIABLE.search(after):
        return None
    if not (READABLE.fullmatch(before) and READABLE.fullmatch(after)):
        return None
    value = _magnitude(found) * scale
    return Number(-value if found["sign"] == "-" else value, percent=bool(found["percent"]))


def _scale(unit: str, after: str) -> tuple[int, str]:
    """What the word behind a number multiplies it by; 0 where that is a variable or a function."""
    if unit:
        known = unit in SCALES or unit in UNIT_LETTERS or (len(unit) > 1 and unit.lower() not in HEDGES)
        return (SCALES.get(unit, 1) if known else 0), after
    word = re.match(r"[\s-]*([^\W\d_]+)", after)
    if word and word[1].lower() in SCALES and len(word[1]) > 1:
        return SCALES[word[1].lower()], after[word.end() :]
    return 1, after


def _magnitude(found: re.Match) -> Fraction:
    if found["top"]:
        return int(found["whole"] or 0) + Fraction(int(found["top"]), int(found["bottom"]))
    return Fraction(found["decimal"].replace(",", "")) * Fraction(10) ** int(found["e"] or found["power"] or 0)


def same_number(said: Number, gold: Number) -> bool:
    """Whether two numbers are equal; where one is a percentage, as a share too.

    >>> same_number(parse_number("50%"), parse_number("0.5")), same_number(parse_number("50%"), parse_number("50"))
    (True, True)
    >>> same_number(parse_number("-5"), parse_number("5"))
    False
    """
    if said.value == gold.value:
        return True
    if said.percent == gold.percent:
        return False
    return said.value == gold.value * (100 if said.percent else Fraction(1, 100))
