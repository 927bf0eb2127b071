"""What in a file looks like a reward: a function, class or method of completions, a maker, an entry of a registry."""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .sources import Source
from .syntax import DEFINITIONS, FUNCTIONS, assigned, at_once, functions_in, parameters_in, root_of


def takes_completions(function: ast.AST) -> bool:
    """Whether a function has a parameter for completions, as TRL's rewards have."""
    return isinstance(function, (*FUNCTIONS, ast.Lambda)) and bool(
        {"completions", "completion_ids"} & {*parameters_in(function)}
    )


def rewards_in(source: Source) -> list[str]:
    """The public names at the top level that look like rewards: functions of completions, and classes of such calls."""
    found = {}
    for statement in source.body:
        called = _methods(statement).get("__call__") if isinstance(statement, ast.ClassDef) else statement
        if called and takes_completions(called) and not statement.name.startswith("_"):
            found[statement.name] = statement
    return list(found)


def names_in(source: Source) -> list[str]:
    """The public names of a file, those of rewards first; without what it imports."""
    own = [one for one in source.body if not isinstance(one, ast.Import | ast.ImportFrom)]
    others = sorted(name for one in own for name in assigned(one) if not name.startswith("_"))
    return list(dict.fromkeys([*rewards_in(source), *registry_of(source), *others]))


def static_methods(source: Source) -> dict[str, ast.stmt]:
    """The static methods of completions as functions, by ``Class.method`` and, if that is clear, ``method``."""
    found: dict[str, ast.stmt] = {}
    for one in [one for one in source.body if isinstance(one, ast.ClassDef)]:
        for name, method in _methods(one).items():
            others = [each for each in method.decorator_list if ast.unparse(each) != "staticmethod"]
            if takes_completions(method) and len(others) < len(method.decorator_list):
                alone = copy.copy(method)
                alone.decorator_list = others
                found |= {f"{one.name}.{name}": alone, name: found.get(name, alone)}
    top = {name for one in source.body for name in assigned(one)}
    return {name: method for name, method in found.items() if name not in top}


def _methods(of: ast.ClassDef) -> dict[str, ast.stmt]:
    return {one.name: one for one in functions_in(of.body)}


def makes_reward(function: ast.AST, is_reward: Callable[[str], bool] = lambda name: False) -> bool:
    """Whether a function takes no completions, and returns a function that does.

    Args:
        function: the function.
        is_reward: whether a name outside the function is a reward, for ``return partial(my_reward, power=2)``.

    >>> makes_reward(ast.parse("def make(a):\\n def f(completions): return a\\n return f").body[0])
    True
    """
    if not isinstance(function, FUNCTIONS) or takes_completions(function):
        return False
    nodes = [node for statement in function.body for node in at_once(statement)]
    inner = {node.name for node in nodes if isinstance(node, FUNCTIONS) and takes_completions(node)}
    for value in [node.value for node in nodes if isinstance(node, ast.Return) and node.value]:
        value = _in_partial(value) or value
        if takes_completions(value) or (isinstance(value, ast.Name) and (value.id in inner or is_reward(value.id))):
            return True
    return False


def _in_partial(value: ast.expr) -> ast.expr | None:
    """The function in ``partial(function, …)``."""
    is_partial = isinstance(value, ast.Call) and ast.unparse(value.func) in ("partial", "functools.partial")
    return value.args[0] if is_partial and value.args else None


@dataclass(frozen=True)
class Entry:
    """An entry of a registry: its name there, its value, the name of the registry, and the function that has it."""

    key: str
    value: ast.expr
    registry: str
    inside: ast.stmt | None = None


def registry_of(source: Source) -> dict[str, Entry]:
    """The rewards that a file registers under a text, in a dictionary or by ``orms["name"] = Reward``.

    Only a dictionary with a function, a class or a call of the file for each key counts.
    """
    found: dict[str, Entry] = {}
    made = (*DEFINITIONS, ast.Import, ast.ImportFrom)
    known = {name for one in source.body if isinstance(one, made) for name in assigned(one)}
    for inside in [None, *functions_in(source.body)]:
        for statement in inside.body if inside else source.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value:
                for key, value, registry in _entries(statement, known):
                    found.setdefault(key, Entry(key, value, registry, inside))
    return found


def _entries(statement: ast.Assign | ast.AnnAssign, known: set[str]) -> Iterator[tuple[str, ast.expr, str]]:
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    pairs = []
    if isinstance(statement.value, ast.Dict):
        pairs = list(zip(statement.value.keys, statement.value.values, strict=True))
    elif isinstance(target, ast.Subscript):
        pairs = [(target.slice, statement.value)]
    is_text = [isinstance(key, ast.Constant) and isinstance(key.value, str) for key, _ in pairs]
    if pairs and all(is_text) and all(_is_made_of(value, known) for _, value in pairs):
        yield from ((key.value, value, root_of(target)) for key, value in pairs)


def _is_made_of(value: ast.expr, known: set[str]) -> bool:
    """Whether a value is a function or a class of the file, or a call that names one."""
    while isinstance(value, ast.Call):
        value = _in_partial(value) or value.func
    return isinstance(value, ast.Name) and value.id in known
