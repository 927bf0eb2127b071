"""Take a reward, and what it uses, out of the code of a file.

    >>> source = source_of(Path("train.py"), ast.parse('''
    ... import re
    ... from trl import GRPOTrainer
    ... DIGITS = re.compile("[0-9]+")
    ... def has_number(completions, **kwargs):
    ...     return [float(bool(DIGITS.search(text))) for text in completions]
    ... GRPOTrainer("a model", has_number).train()
    ... ''').body)
    >>> [ast.unparse(statement)[:20] for statement in part_of(source, "has_number").statements]
    ['import re', 'DIGITS = re.compile(', 'def has_number(compl']

A name that a statement reads when it runs comes from the last statement before it that assigns the name. A name that a
function reads when it is called comes from the last one of the file. `costs` says which statements would load a model.
"""

import ast
import copy
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path  # noqa: F401 (for the example)

from .candidates import Entry, registry_of, static_methods
from .sources import Source, source_of  # noqa: F401 (for the example)
from .syntax import (
    DEFINITIONS,
    assigned,
    changed,
    functions_in,
    imported,
    imports_all,
    missing_packages,
    parameters_in,
    sets_path,
    uses,
)


@dataclass(frozen=True)
class Need:
    """A statement that a reward needs, and why.

    Attributes:
        statement: the statement.
        name: the name that it assigns.
        user: the function or name that uses it; the reward itself for most.
    """

    statement: ast.stmt
    name: str
    user: str


@dataclass
class Part:
    """What a reward needs from a file.

    Attributes:
        name: the name of the reward in the statements.
        needs: every statement, with the name for which it is needed.
        added: the entry of a registry that the reward is, if no name of the file refers to it.
        whole: whether the name is one of the file's own.
        unknown: names that only a call of an enclosing function knows, with that function.
    """

    name: str
    needs: dict[int, Need] = field(default_factory=dict)
    added: Entry | None = None
    whole: bool = True
    unknown: dict[str, ast.stmt] = field(default_factory=dict)

    @property
    def statements(self) -> list[ast.stmt]:
        """The statements in the order of the file."""
        return [need.statement for _, need in sorted(self.needs.items())]


def part_of(source: Source, name: str) -> Part | None:
    """The statements that a name of a file needs; None if the file does not assign it.

    The name may also be that of a function inside another one, such as ``main``, of a static method, with or without
    its class, or a key of a registry (``{"accuracy": accuracy_reward}``).
    """
    body, inside = list(source.body), None
    methods = static_methods(source)
    if method := methods.get(name):
        return replace(_closure([*body, method], method.name, method.name, None), whole=False)
    first = name.partition(".")[0]
    if not any(first in assigned(statement) for statement in body):
        if entry := registry_of(source).get(name):
            return _part_of_entry(source, entry)
        inside = next((one for one in functions_in(body) if any(first in assigned(two) for two in one.body)), None)
        body += [_at_top(one) for one in inside.body if not isinstance(one, ast.Return)] if inside else []
    if not inside and not any(first in assigned(statement) or imports_all(statement) for statement in body):
        return None
    part = _closure(body, name, first, inside, source.guarded)
    return replace(part, whole=not inside and not source.guarded & {*part.needs})


class _NoNonlocal(ast.NodeTransformer):
    """What a function around shares with those in it is global once they stand at the top of a module."""

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Global:
        """The same names as global ones."""
        return ast.copy_location(ast.Global(node.names), node)


def _at_top(statement: ast.stmt) -> ast.stmt:
    """A statement of a function as one of a module."""
    shares = any(isinstance(node, ast.Nonlocal) for node in ast.walk(statement))
    return _NoNonlocal().visit(copy.deepcopy(statement)) if shares else statement


def _closure(
    body: list[ast.stmt], name: str, first: str, inside: ast.stmt | None, guarded: Collection[int] = ()
) -> Part:
    """What a name needs, and what that needs, and so on; what is ``guarded`` changes no imported module for it."""
    part = Part(name)
    parameters = parameters_in(inside) if inside else []
    waiting, seen = [(first, len(body), first)], set()
    futures = {i: Need(one, "", first) for i, one in enumerate(body) if imported(one) == ["__future__"]}
    part.needs |= futures
    lazy = any(alias.name == "annotations" for need in futures.values() for alias in need.statement.names)
    while waiting:
        wanted, before, user = waiting.pop()
        if (wanted, before) in seen:
            continue
        seen.add((wanted, before))
        found = list(_assigning(body[:before], wanted, guarded))
        if not found and wanted in parameters:
            part.unknown[wanted] = inside
        for index in found:
            part.needs.setdefault(index, Need(body[index], wanted, user))
            if missing_packages(body[index]) and any(map(sets_path, body)):
                waiting.append(("sys", len(body), wanted))
            now, later = uses(body[index], lazy)
            waiting += [(one, index, wanted) for one in now] + [(one, len(body), wanted) for one in later]
    return part


def _assigning(body: Sequence[ast.stmt], name: str, guarded: Collection[int]) -> Iterator[int]:
    """The statements that give a name its value: the last plain one, and those that change it afterwards.

    A name that none of them assigns comes from the ``from package import *`` of the file.
    """
    found = False
    of_module = any(name in assigned(one) for one in body if isinstance(one, ast.Import))
    for index in reversed(range(len(body))):
        statement = body[index]
        if name in assigned(statement):
            yield index
            found = True
            plain = isinstance(statement, (*DEFINITIONS, ast.Assign, ast.AnnAssign))
            if plain and name not in uses(statement)[0]:
                return
            if isinstance(statement, ast.ImportFrom):
                return
        elif name in changed(statement) and not (of_module and index in guarded):
            yield index
    if not found:
        yield from (index for index, statement in enumerate(body) if imports_all(statement))


def _part_of_entry(source: Source, entry: Entry) -> Part:
    """What the value of a registry's entry needs."""
    if isinstance(entry.value, ast.Name):
        return _closure(list(source.body), entry.value.id, entry.value.id, None)
    name = f"_{re.sub(r'[^0-9a-zA-Z_]', '_', entry.key)}_of_{entry.registry}"
    line = entry.value.lineno
    statement = ast.Assign([ast.Name(name, ast.Store(), lineno=line, col_offset=0)], entry.value, lineno=line)
    made = ast.fix_missing_locations(ast.copy_location(statement, entry.value))
    inner = [one for one in entry.inside.body if not isinstance(one, ast.Return)] if entry.inside else []
    part = _closure([*source.body, *inner, made], name, name, entry.inside)
    return replace(part, added=entry, whole=False)
