r"""Read the number in an answer, in any notation.

    >>> [str(parse_number(text).value) for text in ("1,000", "$18.50", "-3/4", "**2½** cups", "It takes 42 minutes.")]
    ['1000', '37/2', '-3/4', '5/2', '42']
    >>> parse_number("5 or 6 or 7") is None
    True

Exact arithmetic (`fractions.Fraction`), no floats. An ambiguous text is not a number: two numbers, a hedge ("at least
5", "not 5"), a variable ("2x"), a decimal comma ("3,5"), a word that changes the value ("42 doubled"; see `words`).
Only a short text is read, and no pattern has nested repetition, so time is bounded.
"""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from . import words as english
from .markup import without_markup

#: No correct answer is longer; a longer text is not read.
LONGEST_ANSWER = 200

#: Digits with commas: in threes, or as in India ("1,00,000").
DIGITS = r"(?:[0-9]{1,3}(?:,[0-9]{3})++(?![0-9])|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}(?![0-9])|[0-9]++)"
#: The notation of nearly every answer: digits with commas, decimals, a sign and a dollar.
PLAIN = re.compile(r"([-+]?)(\$?)([0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)?(\.[0-9]++)?\.?")
#: Any number: mixed ("1 1/2"), fraction, decimal or scientific; then percent sign and unit letters.
NUMBER = re.compile(
    rf"""(?P<sign>(?<![\w)\]}}!.-])[-+])?
    (?: (?:(?P<whole>[0-9]+)\s+)? (?P<top>[0-9]+)\s?/\s?(?P<bottom>[0-9]+) (?!\.?[0-9])
      | (?P<decimal>{DIGITS}(?:\.[0-9]+)?|\.[0-9]+)
        (?: [eE](?P<e>[-+]?[0-9]{{1,2}}) | \s?[*x×]\s?10\^(?P<power>[-+]?[0-9]{{1,2}}) )?
    )
    (?P<percent>\s?%)?(?P<unit>[^\W\d_]*)""",
    re.VERBOSE,
)

MONEY_SIGNS = "$\u00a2\u00a3\u00a5\u0e3f\u20a0-\u20bf"
MONEY_NAMES = "|".join(re.escape(name) for name in english.MONEY_NAMES.split())
#: Money before a number, and a sign anywhere else.
MONEY = re.compile(
    rf"(?<![\w$.])((?:{MONEY_NAMES})\.?|[{MONEY_SIGNS}])\s?(?=[-+]?\.?[0-9])|[{MONEY_SIGNS}]", re.IGNORECASE
)

VULGAR = re.compile("(?:([0-9])\\s?)?([\u00bc-\u00be\u2150-\u215e])")
SUPERSCRIPT = re.compile("[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
#: Rewrite fractions, powers, signs, thousands and LaTeX's spaces in one notation.
REWRITES = (
    (re.compile(r"([0-9])\s*(?=\\[dtc]?frac)"), r"\1 "),
    (re.compile(r"\\[dtc]?frac\s*(?:\{\s*(-?[0-9]+)\s*\}|([0-9]))\s*(?:\{\s*([0-9]+)\s*\}|([0-9]))"), r"\1\2/\3\4"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\^\s?(?:\\circ|\{\s*\\circ\s*\})"), "\u00b0"),
    (re.compile(r"\\(?:degrees?|deg)(?![A-Za-z])"), "\u00b0"),
    (re.compile(r"\\(?=[$%])|\\!"), ""),
    (re.compile(r"\\[,;: ]|(?<=[0-9])~(?=[A-Za-z\\])|\\q?quad(?![A-Za-z])"), " "),
    (re.compile(r"\\(?:pounds|euro)(?![A-Za-z])"), "\u00a3"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\^\s?\{([-+]?[0-9]{1,3})\}"), r"^\1"),
    (re.compile(r'^\{([^{}"]*)\}$'), r"\1"),
    (re.compile(r"(?<=[0-9])[ '_\u00a0\u2007\u2009\u202f](?=[0-9]{3}(?![0-9]))"), ","),
    (re.compile(r"\b(?:minus|negative)\s+(?=\.?[0-9])", re.IGNORECASE), "-"),
    (re.compile(r"(?:^|(?<=[=:]))\s*-\s+(?=\.?[0-9])"), "-"),
    (re.compile(r"(?<=[A-Za-z])\s?(?:\^|\*\*)2(?![0-9])|(?<=[a-z]m)2(?![0-9])"), " squares"),
    (re.compile(r"(?<=[A-Za-z])\s?(?:\^|\*\*)3(?![0-9])|(?<=[a-z]m)3(?![0-9])"), " cubes"),
)


class Number(NamedTuple):
    """An exact value, whether a percent sign or word follows it, and the words of its unit."""

    value: Fraction
    percent: bool = False
    unit: frozenset[str] = frozenset()


def parse_number(text: str, *, words: bool = True) -> Number | None:
    r"""The only number in a text, else None.

    Args:
        text: an answer, not a whole completion.
        words: whether words may come before the number ("The answer is 42"); words after it
            are read as a unit. A gold answer may not have words before it.

    >>> parse_number(r"\boxed{\frac{1}{2}}").value, parse_number("50 %").percent, parse_number("5 km").unit
    (Fraction(1, 2), True, frozenset({'kilometer'}))
    >>> parse_number("not 42"), parse_number("2x"), parse_number("41 42"), parse_number("-(42)")
    (None, None, None, None)
    """
    text = text.strip()
    return _parse(text, words) if len(text) <= LONGEST_ANSWER else None


@lru_cache(maxsize=100_000)
def _parse(text: str, words: bool) -> Number | None:
    plain = PLAIN.fullmatch(text)
    if plain and (plain[3] or plain[4]):
        return _plain_number(*plain.groups(""))
    text = _rewritten(without_markup(text))
    money = frozenset(english.canonical_unit(match[0].strip(" .")) for match in MONEY.finditer(text))
    text = MONEY.sub(lambda match: "" if match[1] else " ", text)
    numbers = list(NUMBER.finditer(text))
    if len(numbers) != 1:
        return None
    before = text[: numbers[0].start()]
    if not words and before.strip(" (\"'"):
        return None
    number = _number(numbers[0], text[numbers[0].end() :], money)
    return number if number and _leads(before, number.unit) else None


DOLLAR, NO_UNIT = frozenset({"dollar"}), frozenset()


def _plain_number(sign: str, money: str, digits: str, decimals: str) -> Number:
    digits = sign + digits.replace(",", "")
    value = Fraction(digits + decimals) if decimals else Fraction(int(digits))
    return Number(value, False, DOLLAR if money else NO_UNIT)


def _rewritten(text: str) -> str:
    """The text with fractions, powers, signs, thousands and LaTeX's spaces in one notation."""
    if not text.isascii():
        text = VULGAR.sub(lambda found: f"{found[1] + ' ' if found[1] else ''}{_compatible(found[2])}", text)
        text = SUPERSCRIPT.sub(lambda match: f"^{_compatible(match[0])}", text)
    for pattern, plain in REWRITES:
        text = pattern.sub(plain, text)
    return text.strip()


def _compatible(char: str) -> str:
    return unicodedata.normalize("NFKC", char).replace("\u2044", "/").replace("\u2212", "-")


WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['&-])*")
TOKEN = re.compile(rf"{WORD.pattern}|\S")
SUMS = re.compile(r"\b(?:adds?|added|comes?|came|works?|worked)\s(?:up|out)\sto\s*$")
TITLES = re.compile(r"\b(Mrs?|Ms|Dr|St|Ans)\.")


def _leads(before: str, unit: frozenset[str]) -> bool:
    """Whether the text before a number only leads to it: a label with a colon, or a sentence up to its verb."""
    if not before:
        return True
    before = WHICH.sub(r"\1\2", TITLES.sub(r"\1", before))
    before = SUMS.sub("equals ", before)
    words = WORD.findall(before)
    if WORD.sub("", before).strip(' \n\t,:=("') or before[-1:].isalpha() or before[-1:] in ("-", "&", "'"):
        return False
    if any(english.changes_value(word) or word.lower() in english.POWERS for word in _doubtful(words)):
        return False
    if not words or before.rstrip(' \n\t("').endswith((":", "=")):
        return True
    if len(words) > 1 and words[0].lower() in english.QUESTIONS:
        return False
    *_, previous, last = "", *(word.lower() for word in words)
    if last in english.OBJECTS:
        return previous in english.SAYS
    if last in ("in", "for"):  # "in 42 minutes", "for $42", but not "for 42"
        return not unit.isdisjoint(english.UNITS.values())
    if last in english.SAYS or previous in english.LEADS_WITH.get(last, ()):
        return True
    if last == "with":
        return not english.LEAVES.isdisjoint(words)
    return bool(unit) and bool(previous) and last not in english.NO_VERBS  # "Jason gave Denny 8 lollipops"


def _doubtful(words: list[str]) -> list[str]:
    """The words before a number that may change it, without quantities ("The minimum is") and duties ("should pay")."""
    lower = [word.lower() for word in words]
    named = lower[-1:] in (["is"], ["was"], ["are"], ["equals"])
    duties = {row for row, (word, after) in enumerate(pairwise(lower)) if word in english.DUTIES and after != "be"}
    return [w for row, w in enumerate(words) if row not in duties and not (named and lower[row] in english.QUANTITIES)]


def _number(found: re.Match, after: str, money: frozenset[str]) -> Number | None:
    """The value of the only number in a text, unless what follows changes it."""
    value = _magnitude(found)
    if money and MILLIONS.match(found["unit"] + after):
        return None
    scale, after = _scale(found["unit"], after)
    percent = PERCENT.match(after)
    after = after[percent.end() :] if percent else after
    unit = _unit(after, single=value is not None and value * scale <= 1, money=bool(money))
    if value is None or not scale or unit is None:
        return None
    unit |= money | ({"percent"} if percent else frozenset())
    return Number(-value * scale if found["sign"] == "-" else value * scale, bool(found["percent"] or percent), unit)


PERCENT = re.compile(r"[\s-]*(?:per\s?cent|pct)\b", re.IGNORECASE)
SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "K": 1000, "dozen": 12}
SCALES |= {"million": 10**6, "M": 10**6, "billion": 10**9, "bn": 10**9, "B": 10**9, "trillion": 10**12}
#: After an amount of money, "m" means million, not meter.
MILLIONS = re.compile(r"m\b|\s[bBmMtT]\b|\s?(?:mm|MM)\b")
SCALE = re.compile(r"[\s-]*([^\W\d_]+)")


def _magnitude(found: re.Match) -> Fraction | None:
    if found["top"]:
        whole, top, bottom = (int(found[part] or 0) for part in ("whole", "top", "bottom"))
        return whole + Fraction(top, bottom) if bottom else None
    return Fraction(found["decimal"].replace(",", "")) * Fraction(10) ** int(found["e"] or found["power"] or 0)


def _scale(unit: str, after: str) -> tuple[int, str]:
    """The factor that the word after a number stands for (0 for a variable), and the rest of the text."""
    if unit:
        return (SCALES[unit], after) if unit in SCALES else (int(english.is_unit_name(unit)), f" {unit}{after}")
    word = SCALE.match(after)
    if word and word[1].lower() in SCALES and len(word[1]) > 1:
        return SCALES[word[1].lower()], after[word.end() :]
    return 1, after


#: What may follow a number, with one letter per word (`_kind`): first a noun phrase, an ending such as "left", "are" or
#: a preposition; after a noun nearly anything ("42 minutes to get home"), but "and" only before another noun.
PHRASE = re.compile(r"(?:(?:-U|[EW]*[UN]|E*B)(?:[^XAP-]|A[UN])*|E*)(?:P[^X-]*|/[^X-]+)?")
#: "the two friends", "the third week" say which ones, not how many. "The third of it" is a share.
WHICH = re.compile(
    rf"\b(the|these|those|his|her|their|its)\s(?:(?:first|next|last)\s)?(?:{'|'.join(english.WHICH_ONES)})\b(?!\sof\b)|\b(left)\sover\b",
    re.IGNORECASE,
)


def _unit(after: str, *, single: bool, money: bool = False) -> frozenset[str] | None:
    """The unit in the text after a number; None if the text is not just a noun phrase or changes the value.

    Args:
        after: the rest of the answer.
        single: whether a singular noun may follow, as in "1 apple" or "1/2 cup".
        money: whether the number has a currency sign, which replaces the noun.
    """
    after = WHICH.sub(r"\1\2", after)
    body = after.strip().rstrip("\"')]}.! ")
    closing = after.strip()[len(body) :]
    if closing.count(".") + closing.count("!") > 1 or ("!" in closing and not body):
        return None
    tokens = _tokens(body)
    if len(tokens) > 1 and {token.lower() for token in tokens} <= english.CONFIRMS:
        return frozenset()
    kinds = "".join(_kind(token, last=token is tokens[-1], single=single) for token in tokens)
    if not PHRASE.fullmatch("U" * money + kinds) or not _is_often(tokens):
        return None
    return frozenset(english.canonical_unit(token) for token in _unit_words(tokens, kinds))


def is_unit(text: str) -> bool:
    """Whether a text can be the unit of a value.

    >>> is_unit("km per hour"), is_unit("or not"), is_unit("squared")
    (True, False, False)
    """
    return _unit(text, single=True) is not None


def _tokens(body: str) -> list[str]:
    """The words and marks after a number, without commas, brackets, quotes and the dots of abbreviations."""
    found = [token for token in TOKEN.findall(body) if token not in ',()"' + "'"]
    pairs = pairwise(["", *found])
    return [t for last, t in pairs if t != "." or not (english.is_unit_name(last) or last in ("sq", "cu"))]


def _kind(token: str, *, last: bool, single: bool) -> str:
    """The letter of a word's kind in `PHRASE`; X for a word that may not follow a number."""
    lower = token.lower()
    if english.is_unit_name(token) and (last or lower not in english.PREPOSITIONS):
        return "U"
    if lower in english.KINDS:
        return english.KINDS[lower]
    if not token[0].isalpha() or len(token) == 1 or max(token) > "\u024f" or english.changes_value(token):
        return "X"
    if len(token) < 3 or (len(token) == 3 and lower[2] != "s" and not set(lower) & set("aeiouy")):
        return "X" if token.isalpha() and lower not in english.SHORT else "W"  # "$42 bn", "$42 MM"
    noun = english.is_plural(token) or (single and not lower.endswith(("ed", "ing")))
    return "N" if noun else "W"


def _is_often(tokens: list[str]) -> bool:
    """Whether "times" counts something ("24 times a day") rather than multiplying it ("24 times the price")."""
    follows = [token.lower() for previous, token in pairwise(tokens) if previous.lower() == "times"]
    return set(follows) <= english.OFTEN


def _unit_words(tokens: list[str], kinds: str) -> list[str]:
    """The words of the noun phrase, and those after "per" or a slash."""
    phrase = len(kinds.partition("P")[0].partition("/")[0])
    per = [token for previous, token in pairwise(tokens) if previous.lower() in ("per", "/", "a", "an")]
    return [token for token, kind in zip(tokens[:phrase], kinds, strict=False) if kind in "UNW"] + per


def same_number(said: Number, gold: Number) -> bool:
    """Whether two numbers are equal, also as a percentage and a share. Their units must not differ.

    The % sign may be missing or extra, but not the word: "50 percent" is a half, and not 50.

    >>> same_number(parse_number("50%"), parse_number("0.5")), same_number(parse_number("50%"), parse_number("50"))
    (True, True)
    >>> same_number(parse_number("50 percent"), parse_number("50"))
    False
    >>> same_number(parse_number("-5"), parse_number("5")), same_number(parse_number("5 km"), parse_number("5 miles"))
    (False, False)
    """
    if not (said.unit <= gold.unit or gold.unit <= said.unit):
        return False
    if said.value == gold.value and (gold.percent or "percent" not in said.unit):
        return True
    return said.percent != gold.percent and said.value == gold.value * (100 if said.percent else Fraction(1, 100))


#: Separators of values: "and", "&", a semicolon, or a comma that does not separate thousands.
BETWEEN = re.compile(
    r"\s*(?:;|&|\band\b|\bor\b(?=\s*[A-Za-z]\s*=)|,(?:\s+(?:and\b|&)|\s|(?![0-9]{3}(?![0-9]))))\s*", re.IGNORECASE
)
#: The name of a variable, as in "x = 6, y_2 = 8".
NAME = re.compile(r"(?<![A-Za-z])([A-Za-z])(?:_?\{?[0-9\u2080-\u2089]\}?)?\s*=")
MOST_VALUES = 20


def same_numbers(said: str, gold: str) -> bool:
    """Whether an answer has exactly the numbers of a gold answer with several numbers, in any order.

    >>> same_numbers("8 and 6", "6, 8"), same_numbers("x = 6 and x = 8", "6 and 8")
    (True, True)
    >>> same_numbers("6", "6, 8"), same_numbers("6, 8, 9", "6, 8"), same_numbers("between 6 and 8", "6 and 8")
    (False, False, False)
    """
    wanted, numbers = _several(gold, words=False), _several(said, words=True)
    if len(wanted) < 2 or len(wanted) != len(numbers):
        return False
    names, own = NAME.findall(gold), NAME.findall(said)
    if len({*names}) > 1 or len({*own}) > 1:  # "x = 6, y = 8": which is which matters
        if names and own:
            by_name = dict(zip(names, wanted, strict=False))
            wanted = [by_name.get(name) for name in own]
            return sorted(own) == sorted(names) and len(own) == len(numbers) and all(map(same_number, numbers, wanted))
        return all(map(same_number, numbers, wanted))
    for number in numbers:
        match = next((other for other in wanted if same_number(number, other)), None)
        if match is None:
            return False
        wanted.remove(match)
    return True


def _several(text: str, *, words: bool) -> list[Number]:
    """The numbers in a list; none if a part is not a number or brackets give the numbers an order."""
    if len(text) > LONGEST_ANSWER:
        return []
    text = _set_content(without_markup(text))
    if any(bracket in text for bracket in "([])"):  # a pair or an interval has an order
        return []
    parts = BETWEEN.split(text)
    values = [part[name.end() :] if (name := NAME.match(part)) else part for part in parts[: MOST_VALUES + 1]]
    numbers = [parse_number(value, words=words and not row) for row, value in enumerate(values)]
    return [] if None in numbers or len(numbers) > MOST_VALUES else numbers


def _set_content(text: str) -> str:
    """The text in the braces of a set, else the whole text."""
    inner = re.fullmatch(r"(?:[A-Za-z]\s?(?:=|\\in|\u2208)\s?)?\\?\{([^{}]*)\}", text.removesuffix("."))
    return inner[1].removesuffix("\\") if inner else text
