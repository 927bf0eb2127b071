"""Changes of an example that a user gives: is every part of it needed for what it is paid?

>>> [change.what for change in changes_of("```python\\nprint(4)\\n```")]
['its first half alone', 'a program that only ends', 'an empty program', 'its first number a hundred times as large',
'its last number a hundred times as large', 'what it says repeated']
"""

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from grpo_core.rewards import parse_json

from .answers import NUMBERS

#: Characters of a text in which JSON is looked for, and how many changes of it are tried.
_LONGEST_JSON, _MOST_CHANGES = 4_000, 12
#: How often a part is repeated, and by what a number is multiplied.
_TIMES, _FACTOR = 30, 100
#: Programs that compute nothing.
_EMPTY_PROGRAMS = {"a program that only ends": "raise SystemExit(0)", "an empty program": "pass"}
_FENCED = re.compile(r"(```\w*\n)(.{0,4000}?)(\n```)", re.DOTALL)
#: The kinds of changes.
KINDS = ("json", "half", "program", "number", "repeated")


class Change(NamedTuple):
    """A changed example.

    Attributes:
        what: the change, in words.
        text: the whole example with it.
        kind: one of `KINDS`.
    """

    what: str
    text: str
    kind: str


def changes_of(text: str) -> list[Change]:
    """An example with one change each."""
    changed = [Change(what, new, "json") for what, new in changed_json(text)]
    found = changed or [Change("its first half alone", half, "half") for half in _first_half(text)]
    found += [Change(what, new, "program") for what, new in _programs(text)]
    found += [Change(what, new, "number") for what, new in _numbers(text)]
    return found + [Change("what it says repeated", new, "repeated") for new in _repeated(text)]


def _first_half(text: str) -> list[str]:
    """The first half of the lines, or of the words if there is one line; none of a single word."""
    between = "\n" if "\n" in text.strip() else " "
    pieces = text.strip().split(between)
    return [between.join(pieces[: len(pieces) // 2])] if len(pieces) > 1 else []


def _programs(text: str) -> list[tuple[str, str]]:
    """Programs that compute nothing in place of the last one between fences."""
    fenced = [*_FENCED.finditer(text)][-1:]
    return [
        (what, text[: found.start(2)] + program + text[found.end(2) :])
        for found in fenced
        for what, program in _EMPTY_PROGRAMS.items()
    ]


def _numbers(text: str) -> list[tuple[str, str]]:
    """The first and the last number in a text a hundred times as large.

    >>> _numbers("add(25, 2)")
    [('its first number a hundred times as large', 'add(2500, 2)'), ('its last number a hundred times as large', \
'add(25, 200)')]
    """
    found = [one for one in NUMBERS.finditer(text) if float(one[0])]
    ends = {"first": found[0], "last": found[-1]} if found else {}
    return [
        (f"its {which} number a hundred times as large", _replaced(text, one, f"{float(one[0]) * _FACTOR:g}"))
        for which, one in ends.items()
    ]


def _replaced(text: str, place: re.Match, new: str) -> str:
    return text[: place.start()] + new + text[place.end() :]


def _repeated(text: str) -> list[str]:
    """What stands between the last tags, or the last line, thirty times."""
    end = len(text.rstrip())
    closes = text.rfind("</", 0, end) if text[:end].endswith(">") else -1
    end = end if closes < 0 else closes
    start = max(text.rfind("\n", 0, end), text.rfind(">", 0, end)) + 1
    said = text[start:end].strip()
    return [text[:start] + " ".join([said] * _TIMES) + text[end:]] if said else []


def changed_json(text: str) -> list[tuple[str, str]]:
    """A text with one change in its JSON, if it has some: an item or a key left out, another value.

    >>> changed_json('Here: {"name": "Bob", "tags": ["a", "b"]}')[0]
    ('another name', 'Here: {"name": "B", "tags": ["a", "b"]}')
    >>> [what for what, _ in changed_json('["Mac", "Linux"]')], changed_json("no JSON")
    (['its last item left out'], [])
    """
    opens = re.search(r"[\[{]", text[:_LONGEST_JSON])
    start, end = opens.start() if opens else 0, max(text.rfind(sign, 0, _LONGEST_JSON) for sign in "]}") + 1
    try:
        value = parse_json(text[start:end]) if opens and end > start else None
    except ValueError:
        return []
    write = json.dumps if text[start:end].isascii() else _unescaped
    return [
        (what, text[:start] + write(changed) + text[end:]) for what, changed in islice(_changed(value), _MOST_CHANGES)
    ]


def _changed(value: object) -> Iterator[tuple[str, object]]:
    """Each change of one place: what it is, and the whole value with it. Of a list, only the first item is changed."""
    if isinstance(value, list):
        if len(value) > 1:
            yield "its last item left out", value[:-1]
        yield from ((what, [changed, *value[1:]]) for what, changed in (_changed(value[0]) if value else ()))
    for key, one in value.items() if isinstance(value, dict) else ():
        if isinstance(one, str) and len(one) > 1:
            yield f"another {key}", value | {key: one[0]}
        elif isinstance(one, int | float) and not isinstance(one, bool):
            yield f"another {key}", value | {key: one + 1}
        else:
            yield from (
                (what.replace("its last item", f"the last item of {key}"), value | {key: new})
                for what, new in _changed(one)
            )
        if len(value) > 1:
            yield f"no {key}", {name: other for name, other in value.items() if name != key}


def _unescaped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
