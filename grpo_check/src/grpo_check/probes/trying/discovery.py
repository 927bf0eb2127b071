"""Find the format that a reward expects, from the strings and patterns in its own code.

    >>> import re
    >>> def last_line(completions, answer, **kwargs):
    ...     found = [re.search(r"Result =\\s*(-?[0-9]+)$", text) for text in completions]
    ...     return [1.0 if match and match[1] == gold else 0.0 for match, gold in zip(found, answer)]
    >>> [str(form) for form in forms_of(last_line)][0]
    '…⏎Result = …'

From a pattern with a group, the text before the group becomes the text before the answer. A plain string, such
as one that a reward splits at, is tried as the text before the answer.
"""

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from re import _parser
from types import CellType, CodeType, FunctionType

from grpo_core.rewards import TAGS

from ..calling import parts_of
from ..forms import BareForm, Form

#: The most formats that are tried.
MOST_FORMS = 40
#: How deep the functions that a reward calls are searched.
DEEPEST = 3
#: Marks a reward that parses JSON.
READS_JSON = "{}"
#: Keys of a chat message, which are none of the JSON that a reward reads.
OF_MESSAGES = ("role", "content")
#: Stand-ins for the reasoning and the answer in a pattern that is written out.
REASONING, ANSWER = "\0", "\1"


def forms_of(reward: Callable) -> tuple[Form, ...]:
    """The formats that the strings in a reward's code suggest, without duplicates."""
    texts = texts_in_code(reward)
    found = [form for text in texts for form in _from_pattern(text)]
    found += list(_from_pairs(texts))
    found += [form for text in texts for form in _from_text(text, texts)]
    if READS_JSON in texts:
        found += _json_forms([text for text in texts if re.fullmatch(r"[a-z_]\w+", text) and text not in OF_MESSAGES])
    return tuple(dict.fromkeys(found))[:MOST_FORMS]


def texts_in_code(reward: Callable) -> list[str]:
    """The texts and patterns in the code of a reward, or of all rewards that a weighted sum adds, each once."""
    return list(dict.fromkeys(text for part in parts_of(reward) for text in texts_of(inspect.unwrap(part))))


def texts_of(thing: object, depth: int = DEEPEST, module: str | None = None) -> Iterator[str]:
    """The texts and patterns in a function's code, and in what it refers to within its own module."""
    thing = thing.func if isinstance(thing, functools.partial) else thing
    if isinstance(thing, str) and 1 < len(thing) < 300:
        yield thing
    elif isinstance(thing, re.Pattern) and isinstance(thing.pattern, str):
        yield thing.pattern
    elif isinstance(thing, list | tuple | set | frozenset) and len(thing) < 20:
        for item in thing:
            yield from texts_of(item, depth, module)
    elif depth and isinstance(thing, FunctionType) and module in (None, thing.__module__):
        yield from _texts_of_code(thing.__code__, thing.__globals__, depth, thing.__module__)
        cells = [cell.cell_contents for cell in thing.__closure__ or () if cell != CellType()]
        for item in [*cells, *(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]:
            yield from texts_of(item, depth - 1, thing.__module__)
    elif depth and module in (None, type(thing).__module__) and hasattr(thing, "__dict__"):
        for item in [*vars(type(thing)).values(), *vars(thing).values()]:
            yield from texts_of(item, depth - 1, type(thing).__module__) if not isinstance(item, str) else ()


def _texts_of_code(code: CodeType, names: dict, depth: int, module: str) -> Iterator[str]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _texts_of_code(constant, names, depth, module)
        else:
            yield from texts_of(constant, depth, module)
    if {"json", "loads", "parse_json"} & set(code.co_names):
        yield READS_JSON
    for name in code.co_names:
        yield from texts_of(names.get(name), depth - 1, module)


def _from_pattern(pattern: str) -> Iterator[Form]:
    """A pattern with a group for the answer, the last one, as forms."""
    if not re.search(r"[\\.+*(\[]", pattern):
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = _parser.parse(pattern)
    except (re.error, RecursionError, OverflowError):
        return
    for spaces in (1, 0):
        text = _written(tree, tree.state.groups - 1 or None, spaces)
        if ANSWER not in text:  # no group: the last free part is the answer's
            text = ANSWER.join(text.rsplit(REASONING, 1))
        before, answer, after = text.partition(ANSWER)
        if answer:
            yield _form(before, after)


def _written(tree: Iterable, group: int | None, spaces: int) -> str:
    """A text that a parsed pattern matches, with stand-ins for the reasoning and for the group of the answer."""
    return "".join(_piece(str(kind), value, group, spaces) for kind, value in tree)


def _piece(name: str, value: object, group: int | None, spaces: int) -> str:
    if name == "LITERAL":
        return chr(value)
    if name in ("IN", "ANY"):
        return _one_of(value)
    if name == "MIN_REPEAT" and not spaces and value[0] == 0 and ANSWER not in _written(value[2], group, spaces):
        return ""  # what is matched lazily may be left out
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _repeated(*value, group, spaces)
    if name == "SUBPATTERN" and value[0] is not None and value[0] == group:
        return ANSWER
    inner = {"SUBPATTERN": lambda: value[-1], "BRANCH": lambda: value[1][0], "ATOMIC_GROUP": lambda: value}
    return _written(inner[name](), group, spaces) if name in inner else ""


def _repeated(least: int, most: int, tree: object, group: int | None, spaces: int) -> str:
    inner = _written(tree, group, spaces)
    if ANSWER in inner:
        return inner
    if most > 20 and all(str(kind) in ("ANY", "NOT_LITERAL") or inner == "x" for kind, _ in tree):
        return REASONING
    return inner * min(max(least, spaces if inner == " " else 0), 20)


def _one_of(value: object) -> str:
    """One character of a character class: a space if the class contains it."""
    if value is None:
        return "x"
    kinds = [(str(kind), item) for kind, item in value]
    if any(kind == "CATEGORY" and str(item) == "CATEGORY_SPACE" for kind, item in kinds):
        return " "
    literal = next((chr(item) for kind, item in kinds if kind == "LITERAL"), "x")
    return literal if kinds[0][0] != "NEGATE" else "x"


def _form(before: str, after: str) -> Form:
    """A form from what a pattern has before and after the answer."""
    if REASONING in before:
        first, _, rest = before.partition(REASONING)
        return Form(first, "", rest.replace(REASONING, ""), after.replace(REASONING, "").rstrip(" "))
    return Form("", "\n", before, after.replace(REASONING, "").rstrip(" "))


def _from_pairs(texts: list[str]) -> Iterator[Form]:
    """Two pairs of plain tags, in the order of the code, as those of the reasoning and of the answer."""
    pairs = [(text, closing[0]) for text in texts if (closing := _closing(text, texts))]
    for first, second in pairwise(pairs):
        yield Form(*first, *second)
        yield Form(f"{first[0]}\n", f"\n{first[1]}\n", f"{second[0]}\n", f"\n{second[1]}\n")


def _closing(text: str, texts: list[str]) -> list[str]:
    """The plain texts that close a tag."""
    return [other for other in texts if other != text and "/" in other and other.replace("/", "") == text]


def _from_text(text: str, texts: list[str]) -> Iterator[Form]:
    """A plain text as what comes before the answer, with the text that closes it, if there is one."""
    bare = text.strip("\n")
    if not re.search(r"\w", bare) or len(bare) > 40 or re.search(r"[\\^?]|\(\?|\.\*", bare):
        return
    closing = _closing(text, texts)
    if "/" not in bare and re.search(r"[^\w\s.,!'-]", bare):
        yield Form("", "\n", bare if closing or bare[-1:].isspace() else f"{bare} ", closing[0] if closing else "")
        if not closing and not bare[-1:].isspace():
            yield Form("", "\n", bare, "")
        if closing and any(tag in texts for tag in TAGS[:2]):
            yield Form(TAGS[0], TAGS[1], bare, closing[0])


def _json_forms(keys: list[str]) -> Iterator[Form]:
    """A JSON object with one of the keys, and with all of them, for a reward that reads JSON."""
    for key in keys:
        for quote in ('"', ""):
            yield BareForm("", "", f'{{"{key}": {quote}', f"{quote}}}")
            yield Form('{"reasoning": "', '", ', f'"{key}": {quote}', f"{quote}}}")
    for last in keys[:3] if len(keys) < 6 else ():
        others = "".join(f'"{key}": "so", ' for key in keys if key != last)
        yield from (BareForm("", "", f'{{{others}"{last}": {quote}', f"{quote}}}") for quote in ('"', ""))
