r"""Read the number in an answer, in the notations that you may ask a model for; or compare answers in words.

    >>> [str(parse_number(text).value) for text in ("1,000", "-$18.50", "3/4", "42 apples", "42.")]
    ['1000', '-37/2', '3/4', '42', '42']
    >>> [parse_number(text) for text in ("forty-two", "41 or 42", "about 42", "42 thousand", "15 + 27")]
    [None, None, None, None, None]

A model learns the notation that its reward accepts, so this reader is strict. It rejects anything that could be a
second answer, a hedge or a calculation. Lessons and templates both read answers with this module, and the course's page
docs/rewards.md lists what it accepts and what it rejects. Values are exact (`fractions.Fraction`).
"""

import re
from fractions import Fraction
from math import gcd
from typing import NamedTuple

#: No correct answer is longer; a longer text is not read.
LONGEST = 60
#: The notations that count, for the error message about a gold answer that is not one of them.
NOTATIONS = "1250, 1,250, -3.5, 3/4, 50%, $18, 5 km, 42 apples or 18 dollars per hour"
#: The word of a unit may have a power, as in cm^2. Without a space, a single letter is a variable ("2m").
NUMBER = re.compile(
    r"""
    (?P<sign>[-+]\ ?)?(?P<money>[$€£]\ ?)?
    (?: (?:(?P<whole>[0-9]+)\ )?(?P<top>[1-9][0-9]*)\ ?/\ ?(?P<bottom>[1-9][0-9]*)
      | (?=\.?[0-9])(?P<decimal>(?:[1-9][0-9]{0,2}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]+)?)
    )
    (?:(?:\ |(?![A-Za-z](?![A-Za-z])))(?P<unit>[%$€£]|°[CF]?|[A-Za-z]+(?:\^[23])?))?
    (?:(?:(?P<slash>\ ?/\ ?)|\ per\ )(?P<per>[A-Za-z]+(?:\^[23])?))?
    \.?
    """,
    re.VERBOSE,
)
#: LaTeX for a fraction, a currency and a percent sign, the typographic minus sign, and notations of square and cubic.
REWRITES = (
    (re.compile(r"\s*\\[dt]?frac(?:\{(-?[0-9]+)\}|([0-9]))(?:\{([0-9]+)\}|([0-9]))(?![0-9])"), r" \1\2/\3\4"),
    (re.compile(r"\\(?=[$%])"), ""),
    (re.compile("\u2212"), "-"),
    (re.compile(r"\bsquare ([A-Za-z]+)"), r"\1^2"),
    (re.compile(r"\bcubic ([A-Za-z]+)"), r"\1^3"),
    (re.compile(r"\u00b2|\^\{2\}"), "^2"),
    (re.compile(r"\u00b3|\^\{3\}"), "^3"),
)

#: Units with several names. Only these may be singular, have a power, or follow "per" or a slash.
MEASURES = (
    ("second", "seconds", "sec", "secs", "s"),
    ("minute", "minutes", "min", "mins"),
    ("hour", "hours", "hr", "hrs", "h"),
    ("day", "days"),
    ("week", "weeks", "wk", "wks"),
    ("month", "months"),
    ("year", "years", "yr", "yrs"),
    ("millimeter", "millimeters", "millimetre", "millimetres", "mm"),
    ("centimeter", "centimeters", "centimetre", "centimetres", "cm"),
    ("meter", "meters", "metre", "metres", "m"),
    ("kilometer", "kilometers", "kilometre", "kilometres", "km", "kms"),
    ("inch", "inches"),
    ("foot", "feet", "ft"),
    ("yard", "yards", "yd", "yds"),
    ("mile", "miles", "mi"),
    ("mile/hour", "mph"),
    ("kilometer/hour", "kph", "kmh"),
    ("milligram", "milligrams", "mg"),
    ("gram", "grams", "g"),
    ("kilogram", "kilograms", "kg", "kgs"),
    ("ounce", "ounces", "oz"),
    ("pound", "pounds", "lb", "lbs"),
    ("milliliter", "milliliters", "millilitre", "millilitres", "mL", "ml"),
    ("liter", "liters", "litre", "litres", "L", "l"),
    ("gallon", "gallons", "gal"),
    ("degree", "degrees", "°"),
    ("dollar", "dollars", "$"),
    ("euro", "euros", "€"),
    ("person", "people", "persons"),
    ("item", "items"),
    ("piece", "pieces"),
)
#: The name that stands for all names of a unit.
NAMES = {name: names[0] for names in MEASURES for name in names}
#: Units that are neither measures nor plural nouns in -s. "£" is not "pounds", which is usually a weight.
OTHER_UNITS = {"%", "£", "°C", "°F", "children", "men", "women"}
#: Words in -s that are numbers, that change the number, or that express doubt.
NUMBER_WORDS = {
    "zeros", "zeroes", "ones", "twos", "threes", "fours", "fives", "sixes", "sevens", "eights", "nines", "tens",
    "elevens", "twelves", "thirteens", "fourteens", "fifteens", "sixteens", "seventeens", "eighteens", "nineteens",
    "twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties", "dozens", "scores",
    "grosses", "myriads", "googols", "googolplexes", "lakhs", "lacs", "crores", "grands", "mils", "singles", "doubles",
    "triples", "pairs", "couples", "duos", "trios", "quartets", "quintets", "sextets", "septets", "octets", "halves",
    "halfs", "thirds", "quarters", "nths", "percents", "bps", "times", "negatives", "opposites", "inverses",
    "reciprocals", "factorials", "minuses", "pluses", "equals", "perhaps", "maybes", "always", "sometimes",
    "thereabouts", "backwards", "tops", "has", "was", "does", "yes",
}  # fmt: skip
#: Endings of fractions and large numbers, which no list could hold in full ("sixteenths", "quadrillions").
NUMBER_ENDINGS = (
    "fourths", "fifths", "sixths", "eighths", "ninths", "twelfths", "enths", "ieths", "hundreds", "hundredths",
    "thousands", "thousandths", "illions", "illionths", "illiards",
)  # fmt: skip


class Number(NamedTuple):
    """An exact value, its unit ("" without one), and whether it is written as a fraction above 1 ("5/2")."""

    value: Fraction
    unit: str = ""
    is_improper: bool = False


def parse_number(text: str) -> Number | None:
    r"""Return the number if the text is nothing else.

    Args:
        text: an answer, not a whole completion.

    >>> parse_number(r"-\frac{1}{2}").value, parse_number("50 %").unit, parse_number("$18/hr").unit
    (Fraction(-1, 2), '%', 'dollar/hour')
    >>> [parse_number(text) for text in ("The answer is 42.", "2x", "41 42", "84/2", "10/4")]
    [None, None, None, None, None]
    """
    found = NUMBER.fullmatch(_rewritten(text)) if len(text) <= LONGEST else None
    value, unit = (_value(found), _unit(found)) if found else (None, None)
    if value is None or unit is None:
        return None
    is_improper = bool(found["top"]) and not found["whole"] and value > 1
    return Number(-value if (found["sign"] or "").startswith("-") else value, unit, is_improper)


def _rewritten(text: str) -> str:
    for pattern, plain in REWRITES:
        text = pattern.sub(plain, text)
    return text.strip()


def _value(found: re.Match) -> Fraction | None:
    """The value without its sign; None for a fraction that is not in lowest terms ("84/2"), which is a calculation."""
    if not found["top"]:
        return Fraction(found["decimal"].replace(",", ""))
    whole, top, bottom = (int(found[part] or 0) for part in ("whole", "top", "bottom"))
    is_fraction = bottom > 1 and gcd(top, bottom) == 1 and (top < bottom or not found["whole"])
    return whole + Fraction(top, bottom) if is_fraction else None


def _unit(found: re.Match) -> str | None:
    """The unit of a number, "" without one; None for what is not a unit."""
    money, unit, per = ((found[part] or "").strip() for part in ("money", "unit", "per"))
    if (money and unit) or (found["slash"] and not money and not unit):
        return None
    name = unit_name(money or unit) if money or unit else ""
    if not per or name is None:
        return name
    return f"{name}/{unit_name(per)}" if per.partition("^")[0] in NAMES else None


def unit_name(unit: str) -> str | None:
    """One name for all names of a unit, or None for a word that is not a unit.

    A unit is a measure, a sign, or an English plural that is not a number word.

    >>> [unit_name(word) for word in ("apples", "hrs", "hour", "ft^2", "dozens", "doubled", "minus", "M")]
    ['apples', 'hour', 'hour', 'foot^2', None, None, None, None]
    """
    word, power, exponent = unit.partition("^")
    if word in NAMES or power:
        return NAMES[word] + power + exponent if word in NAMES else None
    lower = word.lower()
    is_plural = len(word) > 2 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    is_number = lower in NUMBER_WORDS or lower.endswith(NUMBER_ENDINGS)
    return NAMES.get(lower, lower) if word in OTHER_UNITS or (is_plural and not is_number) else None


def same_number(said: str | None, gold: str) -> bool:
    """Whether an answer is the gold number.

    Units count only if both have one. A fraction above 1 counts only if the gold answer is one too, because "5/2" may
    repeat the question. If only one has a percent sign, the other is a share if it is below 1, else a percentage.

    >>> same_number("$1,250.00", "1250"), same_number("50%", "1/2"), same_number("50%", "50")
    (True, True, True)
    >>> same_number("-5", "5"), same_number("5 km", "5 miles"), same_number("5/2", "2.5"), same_number("0.5%", "0.5")
    (False, False, False, False)
    >>> same_number(None, "5"), same_number("a", "a")
    (False, False)
    """
    one, other = parse_number(said or ""), parse_number(gold)
    if one is None or other is None or (one.is_improper and not other.is_improper):
        return False
    if one.unit and other.unit and one.unit != other.unit:
        return False
    return _without_percent(one, other) == _without_percent(other, one)


def _without_percent(number: Number, other: Number) -> Fraction:
    """The value of a number, in hundredths if it has a percent sign and the other one is a share."""
    is_of_share = number.unit == "%" and not other.unit and abs(other.value) < 1
    return number.value / 100 if is_of_share else number.value


def same_text(said: str | None, gold: str | None) -> bool:
    """Whether an answer is the gold text, such as a label; case, spaces and a final period do not matter.

    Nothing is the same as a text that is missing or blank.

    >>> same_text(" Out of  stock.", "out of stock"), same_text("billing", "delivery")
    (True, False)
    >>> same_text(None, None), same_text("", " ")
    (False, False)
    """
    return bool(_plain(said)) and _plain(said) == _plain(gold)


def _plain(text: str | None) -> str:
    return " ".join((text or "").casefold().split()).removesuffix(".").rstrip()
