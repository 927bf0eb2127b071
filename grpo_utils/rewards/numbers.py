r"""The number that an answer writes, however it is written.

    >>> [str(parse_number(text).value) for text in ("1,000", "$18.50", "-3/4", "1.5e3", "The answer is 42 apples.")]
    ['1000', '37/2', '-3/4', '1500', '42']
    >>> parse_number("5 or 6 or 7") is None
    True

Exact arithmetic (`fractions.Fraction`), no floats. What is ambiguous is no number: two
numbers, a hedge ("at least 5", "not 5"), a variable ("2x"), a decimal comma ("3,5").
Only a short text is read, so time is bounded. Units are compared only where both name one.
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
    rf"""(?<![\w.\-/^])(?P<sign>[-+]?)
    (?: (?:(?P<whole>[0-9]+)\s+)? (?P<top>[0-9]+)\s?/\s?(?P<bottom>0*[1-9][0-9]*) (?!\.?[0-9])
      | (?P<decimal>{DIGITS}(?:\.[0-9]+)?|\.[0-9]+)
        (?: [eE](?P<e>[-+]?[0-9]{{1,2}}) | \s?[*x×]\s?10\^(?P<power>[-+]?[0-9]{{1,2}}) )?
    )
    (?!,?[0-9]|\.[0-9]|\s?[/^*×][-+]?\s?[0-9(]|\() (?P<percent>\s?%|\s(?:percent|per\scent)\b)?
    (?P<unit>[^\W\d_]*)""",
    re.VERBOSE,
)

#: What may stand directly behind a number, without a space.
UNIT_NAMES = """m g s h l L W V A J N C F K km cm mm kg mg lb lbs oz ft in min hr hrs sec ms mph kWh GB MB KB TB Hz"""
UNITS = frozenset(UNIT_NAMES.split())
SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "K": 1000, "dozen": 12}
SCALES |= {"million": 10**6, "M": 10**6, "billion": 10**9, "bn": 10**9, "B": 10**9, "trillion": 10**12}

#: Words that may lead to a number; with any other word before it the text is no number.
LEAD_WORDS = (
    "the final correct right answer result total value number is are was be it its that this these they equals equal "
    "to so therefore thus hence then we get gets have has had gives give makes make comes costs cost there he she you "
    "in all a of our my x y z n and"
)
LEADS = frozenset(LEAD_WORDS.split())
#: Words behind a number that change which number is said.
NUMERALS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
HEDGES = frozenset(
    f"{NUMERALS} not no never cannot neither nor or either unless except without than least most over under between is "
    "are was be above below up more less fewer half halves third thirds quarter quarters fourths fifths tenths "
    "hundredths thousandths twice double triple times squared cubed root pi tens hundreds thousands pair pairs score "
    "gross lakh crore mil mn mio am pm ad bc ce bce hundred thousand million billion trillion dozen percent factorial "
    "sqrt log ln sin cos tan wrong incorrect false".split()
)
WORD = r"[^\W\d_]+(?:['-][^\W\d_]+)*(?:\^?[23]|[²³])?"
#: What may stand before a number, and behind it: no operators, no opening brackets of functions.
BEFORE = re.compile(rf"(?:(?:{WORD})?(?:\s*[=:]\s*|[\s.,\"]+))*[(]?")
AFTER = re.compile(
    rf"(?:\s?/\s?(?=[^\W\d_]{{2}}|[hsL]\b))?(?:(?:{WORD})?(?:[\s.,;:\"()°']+|(?<=\w)/(?=\w)|$))*(?:{WORD})?"
)
#: A single letter before a number is a variable, and needs its "=".
LONE_LETTER = re.compile(r"(?<![\w'])[^\W\d_aA](?!\w)(?!\s*[=:])")
#: A single letter behind a number is a variable too, but for units and the word "a".
VARIABLE = re.compile(rf"(?<![\w'])[^\W\d_{''.join(sorted(u for u in UNITS if len(u) == 1))}a](?!\w)")

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
    (re.compile(r"(?:^|(?<=[=:]))\s*-\s+(?=\.?[0-9])"), "-"),
)


class Number(NamedTuple):
    """An exact value, whether a percent sign stood behind it, and the words of its unit."""

    value: Fraction
    percent: bool = False
    unit: frozenset[str] = frozenset()


def parse_number(text: str, *, words: bool = True) -> Number | None:
    r"""The one number that the text writes, else None.

    Args:
        text: an answer, not a whole completion.
        words: whether words may stand before the number ("The answer is 42"); behind it they
            are taken for a unit. A gold answer is read without.

    >>> parse_number(r"\boxed{\frac{1}{2}}").value, parse_number("50 %").percent, parse_number("5 km").unit
    (Fraction(1, 2), True, frozenset({'km'}))
    >>> parse_number("not 42"), parse_number("2x"), parse_number("41 42"), parse_number("-(42)")
    (None, None, None, None)
    """
    text = text.strip()
    return _parse(text, words) if len(text) <= LONGEST_ANSWER else None


@lru_cache(maxsize=100_000)
def _parse(text: str, words: bool) -> Number | None:
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
    if not BEFORE.fullmatch(before) or LONE_LETTER.search(before) or set(WORDS.findall(before.lower())) - LEADS:
        return None
    scale, after = _scale(found["unit"], after)
    unit = frozenset(word.removesuffix("s") for word in WORDS.findall(after.lower()))
    if not scale or not AFTER.fullmatch(after) or VARIABLE.search(after) or HEDGES & set(WORDS.findall(after.lower())):
        return None
    value = _magnitude(found) * scale
    return Number(-value if found["sign"] == "-" else value, bool(found["percent"]), unit)


WORDS = re.compile(r"[^\W\d_]+")


def _scale(unit: str, after: str) -> tuple[int, str]:
    """What the word behind a number multiplies it by, and what is left; 0 where it is a variable."""
    if unit:
        return (SCALES[unit], after) if unit in SCALES else (int(unit in UNITS), f" {unit}{after}")
    word = re.match(r"[\s-]*([^\W\d_]+)", after)
    if word and word[1].lower() in SCALES and len(word[1]) > 1:
        return SCALES[word[1].lower()], after[word.end() :]
    return 1, after


def _magnitude(found: re.Match) -> Fraction:
    if found["top"]:
        return int(found["whole"] or 0) + Fraction(int(found["top"]), int(found["bottom"]))
    return Fraction(found["decimal"].replace(",", "")) * Fraction(10) ** int(found["e"] or found["power"] or 0)


def same_number(said: Number, gold: Number) -> bool:
    """Whether two numbers are equal; where one is a percentage, as a share too. Two units must not differ.

    >>> same_number(parse_number("50%"), parse_number("0.5")), same_number(parse_number("50%"), parse_number("50"))
    (True, True)
    >>> same_number(parse_number("-5"), parse_number("5")), same_number(parse_number("5 km"), parse_number("5 miles"))
    (False, False)
    """
    if not (said.unit <= gold.unit or gold.unit <= said.unit):
        return False
    if said.value == gold.value:
        return True
    if said.percent == gold.percent:
        return False
    return said.value == gold.value * (100 if said.percent else Fraction(1, 100))
