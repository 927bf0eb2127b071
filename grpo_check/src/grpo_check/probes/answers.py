"""Variants of a gold answer: correct ones in another notation, and wrong ones.

>>> other_writings("1000")["with a comma"], wrong_answers("42", ["42", "7"])["wrong sign"]
('1,000', '-42')

The variants depend on the kind of answer: a number, JSON, a letter, a program or a text.
"""

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from grpo_core.rewards import is_expression, parse_json, parse_number, same_answer

#: A number within an answer that contains several.
NUMBERS = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
#: Kinds of answers of which another row's is surely wrong.
SINGLE = ("number", "json", "text", "choice")
#: A longer text, or one with tags in it, stands in no list of answers.
_LONGEST_IN_A_LIST = 40
#: Signs that a text is a program.
PROGRAM = re.compile(r"\n|\bdef \w+\(|\blambda\b|\breturn\b|\bimport\b|;$")


def answer_kind(gold: str) -> str:
    """``number``, ``numbers``, ``json``, ``choice``, ``program`` or ``text`` (also an expression).

    >>> [answer_kind(gold) for gold in ("1,000", "[1.5, 2]", '{"a": 1}', "B", "lambda a: a + 1", "1 + 2", "Paris")]
    ['number', 'numbers', 'json', 'choice', 'program', 'text', 'text']
    """
    if parse_number(gold):
        return "number"
    if len(NUMBERS.findall(gold)) > 1 and not NUMBERS.sub("", gold).strip(" ,;[](){}\n"):
        return "numbers"
    if gold.strip()[:1] in ("{", "[") and _is_json(gold):
        return "json"
    if re.fullmatch(r"\s*[A-Za-z]\s*", gold):
        return "choice"
    return "program" if PROGRAM.search(gold.strip()) else "text"


def _is_json(text: str) -> bool:
    try:
        return isinstance(parse_json(text), dict | list)
    except ValueError:
        return False


def other_writings(gold: str) -> dict[str, str]:
    """The same answer in other common notations, by name.

    >>> sorted(other_writings("0.5"))
    ['as a fraction', 'on a line of its own']
    """
    kind, writings = answer_kind(gold), {"on a line of its own": f"\n{gold}\n"}
    if kind == "number":
        writings |= _number_writings(gold)
    elif kind == "json":
        writings |= _json_writings(gold)
    elif kind == "choice":
        writings |= {"in parentheses": f"({gold})", "with a period": f"{gold}."}
    elif kind == "text":
        writings |= {"in lower case": gold.lower(), "with a period": f"{gold}."}
    return {what: text for what, text in writings.items() if text != gold}


def _number_writings(gold: str) -> dict[str, str]:
    value = parse_number(gold).value
    if value.denominator != 1:
        return _other_fraction(gold, value)
    if not gold.strip("-").isdigit():
        return {"as plain digits": str(value)}
    sign, digits = "-" if value < 0 else "", f"{abs(int(value)):,}"
    writings = {"with decimals": f"{gold}.00", "with a unit": f"{gold} apples", "with a currency": f"{sign}${digits}"}
    writings |= {"with a comma": sign + digits} if "," in digits else {}
    return writings | ({"with a typographic minus": f"\u2212{digits}"} if sign else {})


def _other_fraction(gold: str, value: Fraction) -> dict[str, str]:
    if "/" not in gold:  # above 1, a fraction could be a calculation
        return {"as a fraction": f"{value.numerator}/{value.denominator}"} if abs(value) < 1 else {}
    decimal = f"{float(value):.12g}"
    return {"as a decimal": decimal} if Fraction(decimal) == value else {}


def _json_writings(gold: str) -> dict[str, str]:
    value = parse_json(gold)
    keys = dict(reversed(value.items())) if isinstance(value, dict) else value
    return {"over several lines": json.dumps(value, indent=2), "with keys in another order": json.dumps(keys)}


def wrong_answers(gold: str, golds: list[str]) -> dict[str, str]:
    """Wrong answers by name; ``golds`` are the gold answers of all rows.

    >>> wrong_answers("5 km", ["5 km", "7 km"])["several answers"]
    '6 or 5 km or 1017'
    """
    kind = answer_kind(gold)
    makers = {"number": _wrong_numbers, "numbers": _wrong_lists, "json": _wrong_json, "program": _wrong_programs}
    makers |= {"choice": _wrong_choices}
    wrong = makers.get(kind, _wrong_texts)(gold) | other_row(gold, golds)
    if kind in ("text", "choice") and len(gold) <= _LONGEST_IN_A_LIST and "<" not in gold:
        before, after = decoys(gold, golds)
        wrong |= {"several answers": f"{before} or {gold} or {after}"}
    if kind == "text":
        wrong |= _wrong_signs(gold)
    before, _, after = gold.rpartition("/")
    if before[-1:].isdigit() and (below := re.match(r"[0-9]{1,9}", after)):
        wrong |= {"another denominator": f"{before}/{int(below[0]) + 1}{after[below.end() :]}"}
    return {what: text for what, text in wrong.items() if text.strip() and _plain(text) != _plain(gold)}


def other_row(gold: str, golds: list[str]) -> dict[str, str]:
    """Another row's answer, if that is wrong here.

    >>> other_row("42", ["42", "7"]), other_row("42", ["42.0"])
    ({"another row's answer": '7'}, {})
    """
    alike = [other for other in golds if answer_kind(other) == answer_kind(gold)] if answer_kind(gold) in SINGLE else []
    others = [other for other in alike if not same_answer(other, gold)]
    return {"another row's answer": others[-1]} if others else {}


@cache
def wrong_answer(gold: str, golds: tuple[str, ...]) -> str:
    """One wrong answer, cached because every format that is tried needs it."""
    return next(iter(wrong_answers(gold, list(golds)).values()), "")


def _plain(text: str) -> list[str]:
    return sorted(re.findall(r"[^\W_]+|[^\w\s]", text.casefold()))


def decoys(gold: str, golds: Sequence[str] = ()) -> tuple[str, str] | None:
    """Two wrong answers that look like the gold answer, to put before and after it; of a text, other gold answers.

    >>> decoys("42"), decoys("B"), decoys("login", ["billing", "login"])
    (('43', '1128'), ('A', 'C'), ('billing', 'Utopia'))
    """
    kind = answer_kind(gold)
    if kind == "number":
        wrong = _wrong_numbers(gold)
        return wrong["off by one"], wrong["another number"]
    letters = [letter for letter in "ABC" if letter != gold.strip().upper()]
    others = [other for other in golds if answer_kind(other) == "text" and _plain(other) != _plain(gold)][:2]
    before, after = [*others, *("Atlantis", "Utopia")[len(others) :]]
    return {"choice": (letters[0], letters[1]), "text": (before, after)}.get(kind)


def _wrong_numbers(gold: str) -> dict[str, str]:
    value = parse_number(gold).value
    whole, size = round(value), abs(round(value))
    other = 3 * size + 1002
    wrong = near_misses(gold) | {
        "a digit on each side": f"1{size}0",
        "a digit before": f"1{size}",
        "a digit after": f"{whole}3",
        "its digits in another order": _rotated(gold),
        "no number": "nan",
        "an infinite number": "inf",
        "a number too large": "1e999",
        "decimals cut off": f"{whole}.7",
        "several answers": f"{whole + 1} or {gold} or {other}",
        "a list": f"{whole + 1}, {gold}, {whole - 1}",
        "wrong sign": gold[1:] if gold.startswith("-") else f"-{gold}",  # the same for 0, which is left out below
    }
    wrong |= (
        {"the point moved": f"{str(whole)[:-1]}.{size % 10}", "its first digit": str(size)[0]} if size >= 10 else {}
    )
    wrong |= {"a number that rounds to it": f"{whole}.49"} if whole == value and 0 < size < 44 else {}
    wrong |= {"thousands more": f"{whole},999"} if 0 < size < 1000 else {}
    return {what: text for what, text in wrong.items() if not same_answer(text, gold)}


def near_misses(gold: str) -> dict[str, str]:
    """Wrong numbers that differ only in their distance from the gold answer; none if that is not a number.

    >>> near_misses("42")["off by one"], near_misses("Paris")
    ('43', {})
    """
    if answer_kind(gold) != "number":
        return {}
    value = parse_number(gold).value
    whole = round(value)
    shares = {"off by 2%": 102, "off by 5%": 95, "off by 10%": 110, "off by 20%": 120}
    near = {what: float(value * percent / 100) for what, percent in shares.items()}
    tolerance = 0.011  # a reward may accept a rounded answer
    return {what: f"{number:.6g}" for what, number in near.items() if abs(number - float(value)) > tolerance} | {
        "off by one": str(whole + 1),
        "another number": str(3 * abs(whole) + 1002),
        "far below": str(whole - 10**9),
        "far above": str(whole + 10**9),
    }


def _rotated(gold: str) -> str:
    """The same characters: each digit in the place of the one before it."""
    digits = re.findall(r"[0-9]", gold)
    moved = iter(digits[1:] + digits[:1])
    return re.sub(r"[0-9]", lambda _: next(moved), gold)


def _wrong_lists(gold: str) -> dict[str, str]:
    """Wrong variants of an answer with several numbers (a vector, a matrix)."""
    found = list(NUMBERS.finditer(gold))
    (_, first_ends), (last, ends) = found[0].span(), found[-1].span()
    more = f"{gold[: found[0].start()]}{float(found[0][0]) + 1:g}"
    places = {"far below": "-1000000000", "far above": "1000000000", "all zero": "0"}
    return {
        "the first off by one": more + gold[first_ends:],
        "two off, against each other": f"{more}{gold[first_ends:last]}{float(found[-1][0]) - 1:g}{gold[ends:]}",
        "the last one missing": gold[:last].rstrip(" ,;") + gold[ends:],
        "one more at the end": f"{gold[:ends]}, 1007{gold[ends:]}",
        **{what: NUMBERS.sub(number, gold) for what, number in places.items()},
    }


def _wrong_programs(gold: str) -> dict[str, str]:
    """Wrong programs, with the same function name if there is one."""
    wrong = _wrong_texts(gold) | {"an empty program": "pass"}
    wrong.pop("backwards", None)  # "1 + 2" backwards is as right
    name, before = re.search(r"def (\w+)\(", gold), gold.partition("lambda")[0]
    start = f"def {name[1]}(*args, **kwargs):\n    return " if name else f"{before}lambda *args, **kwargs: "
    values = {"far below": "-1000000000", "far above": "1000000000", "nothing": "None", "true": "True"}
    known = values if name or "lambda" in gold else {}
    return wrong | {f"always {what}": start + value for what, value in known.items()}


def _wrong_json(gold: str) -> dict[str, str]:
    value, cut = parse_json(gold), gold.strip()[:-1]
    wrong = {"an empty object": "{}", "cut off": cut}
    if isinstance(value, list) and value:
        more, fewer = json.dumps([*value, _other_value(value[-1])]), json.dumps(value[:-1])
        return {"one more at the end": more, "the last one missing": fewer, **wrong}
    if not isinstance(value, dict) or not value:
        return wrong
    key = next(iter(value))
    other = _other_value(value[key])
    return {
        "another value": json.dumps(value | {key: other}),
        "a key missing": json.dumps({k: v for k, v in value.items() if k != key} or {"": 0}),
        **wrong,
        "a key twice": f"{cut}, {json.dumps(key)}: {json.dumps(other)}}}",
    }


def _other_value(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else f"not {value}"


def _wrong_texts(gold: str) -> dict[str, str]:
    half = gold[: len(gold) // 2]
    wrong = {"no idea": "I do not know.", "half of it": half if len(half) > 1 else ""}
    wrong |= {} if re.search(r"[^\W\d_]", gold) else {"a word": "hello"}
    return wrong | ({} if is_expression(gold) else {"backwards": gold[::-1]})  # y + x is x + y


def _wrong_choices(gold: str) -> dict[str, str]:
    return {"another option": decoys(gold)[0]} | _wrong_texts(gold)


def _wrong_signs(gold: str) -> dict[str, str]:
    """Other digits, another item, signs left out: wrong even where the letters are right."""
    digits = re.sub(r"[0-9]", lambda digit: str((int(digit[0]) + 1) % 10), gold)
    wrong = {"its letters, other digits": digits, "its letters alone": re.sub(r"(?<=[A-Za-z])[+#]+", "", gold)}
    wrong |= {"one more at the end": f"{gold}, Utopia"} if "," in gold else {}
    return {what: text for what, text in wrong.items() if text != gold}
