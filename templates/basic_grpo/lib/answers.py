# Generated from grpo_utils 0.1.0, grpo_utils/run/answers.py; the same in every template.
r"""Read the number in an answer, in the notations that you may ask a model for.

    >>> [str(parse_number(text).value) for text in ("1,000", "-$18.50", "3/4", "42 apples", "42.")]
    ['1000', '-37/2', '3/4', '42', '42']
    >>> [parse_number(text) for text in ("forty-two", "41 or 42", "about 42", "42 thousand", "15 + 27")]
    [None, None, None, None, None]

A model learns the notation that its reward accepts, so this reader is strict. What could be a second answer, a hedge
or a calculation is not a number. Lessons and templates both read answers with this module, and the course's page
docs/rewards.md lists what it accepts and what it refuses. Values are exact (`fractions.Fraction`).
"""

import re
from fractions import Fraction
from typing import NamedTuple

#: No correct answer is longer; a longer text is not read.
LONGEST = 60
NUMBER = re.compile(
    r"""
    (?P<sign>[-+]\ ?)?(?P<money>[$€£]\ ?)?
    (?: (?:(?P<whole>[0-9]+)\ )?(?P<top>[0-9]+)/(?P<bottom>[0-9]+)
      | (?=\.?[0-9])(?P<decimal>(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?)
    )
    (?:\ ?(?P<unit>[%°$€£]|[A-Za-z]+))?(?:(?:\ ?/\ ?|\ per\ )(?P<per>[A-Za-z]+))?
    \.?
    """,
    re.VERBOSE,
)
#: LaTeX for a fraction, a currency and a percent sign, and the typographic minus sign.
REWRITES = (
    (re.compile(r"\s*\\[dt]?frac\{(-?[0-9]+)\}\{([0-9]+)\}"), r" \1/\2"),
    (re.compile(r"\\(?=[$%])"), ""),
    (re.compile("\u2212"), "-"),
)

CURRENCIES = {"$": "dollars", "€": "euros", "£": "pounds"}
#: Units that are not plural nouns in -s.
SYMBOLS = {
    "%", "°", "km", "m", "cm", "mm", "mi", "ft", "kg", "g", "mg", "lb", "oz", "L", "l", "mL", "ml", "h", "hr", "min",
    "sec", "s", "mph", "people", "children", "men", "women", "feet",
}  # fmt: skip
#: Words in -s that are numbers themselves or change the number, and numbers after "per".
NUMBER_WORDS = {
    "tens", "dozens", "scores", "hundreds", "thousands", "millions", "billions", "trillions", "lakhs", "crores",
    "grands", "mils", "pairs", "couples", "duos", "trios", "quartets", "halves", "thirds", "quarters", "fourths",
    "fifths", "sixths", "sevenths", "eighths", "ninths", "tenths", "twelfths", "hundredths", "thousandths",
    "millionths", "billionths", "trillionths", "percents", "bps", "times", "perhaps", "always", "sometimes",
    "thereabouts", "backwards", "tops", "has", "was", "does", "cent", "mille", "hundred", "thousand", "million",
}  # fmt: skip


class Number(NamedTuple):
    """An exact value, and its unit ("" without one)."""

    value: Fraction
    unit: str = ""


def parse_number(text: str) -> Number | None:
    r"""The number that a text consists of, else None.

    Args:
        text: an answer, not a whole completion.

    >>> parse_number(r"-\frac{1}{2}").value, parse_number("50 %").unit, parse_number("$18/hour").unit
    (Fraction(-1, 2), '%', 'dollars/hour')
    >>> parse_number("The answer is 42."), parse_number("2x"), parse_number("41 42"), parse_number("84/2")
    (None, None, None, None)
    """
    found = NUMBER.fullmatch(_rewritten(text)) if len(text) <= LONGEST else None
    value, unit = (_value(found), _unit(found)) if found else (None, None)
    if value is None or unit is None:
        return None
    return Number(-value if (found["sign"] or "").startswith("-") else value, unit)


def _rewritten(text: str) -> str:
    for pattern, plain in REWRITES:
        text = pattern.sub(plain, text)
    return text.strip()


def _value(found: re.Match) -> Fraction | None:
    """The value without its sign; None for a fraction that is a whole number ("84/2"), which is a calculation."""
    if not found["top"]:
        return Fraction(found["decimal"].replace(",", ""))
    whole, top, bottom = (int(found[part] or 0) for part in ("whole", "top", "bottom"))
    is_fraction = bottom > 1 and top % bottom and (top < bottom or not whole)
    return whole + Fraction(top, bottom) if is_fraction else None


def _unit(found: re.Match) -> str | None:
    """The unit of a number, "" without one; None for a word that is not a unit."""
    money, unit, per = ((found[part] or "").strip() for part in ("money", "unit", "per"))
    if (unit and not is_unit(unit)) or (money and unit) or per.lower() in NUMBER_WORDS:
        return None
    name = CURRENCIES.get(money or unit, unit.lower())
    return f"{name}/{per.lower()}" if per else name


def is_unit(word: str) -> bool:
    """Whether a word can be a unit: a sign, a symbol, or an English plural that is not a number word.

    >>> [is_unit(word) for word in ("apples", "km", "dozens", "doubled", "minus", "M")]
    [True, True, False, False, False, False]
    """
    plural = len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word in SYMBOLS or word in CURRENCIES or (plural and word.lower() not in NUMBER_WORDS)


def same_number(said: str | None, gold: str) -> bool:
    """Whether an answer is the gold number. Units count only if both have one, and 50% is 0.5 and also 50.

    >>> same_number("$1,250.00", "1250"), same_number("50%", "1/2"), same_number("50%", "50")
    (True, True, True)
    >>> same_number("-5", "5"), same_number("5 km", "5 miles"), same_number(None, "5"), same_number("a", "a")
    (False, False, False, False)
    """
    one, other = parse_number(said or ""), parse_number(gold)
    if one is None or other is None:
        return False
    if one.unit and other.unit and one.unit != other.unit:
        return False
    if one.value == other.value or one.unit == other.unit:
        return one.value == other.value
    share, percents = (other, one) if one.unit == "%" else (one, other)
    return percents.unit == "%" and percents.value == 100 * share.value
