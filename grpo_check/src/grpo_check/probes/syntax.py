"""What a statement does to the names of a file: which ones it assigns, changes, reads and imports."""

import ast
import symtable
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
#: Methods that change the object they belong to.
_CHANGING = {"append", "extend", "insert", "add", "update", "setdefault", "remove", "discard", "pop", "clear", "sort"}
#: The scopes in `symtable` that run where they are written.
_AT_ONCE = {"listcomp", "setcomp", "dictcomp", "genexpr"}


def at_once(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all inside it that runs when it runs: not the bodies of functions, and of a class only its name."""
    yield node
    if isinstance(node, ast.Lambda):
        return
    inner = ast.iter_child_nodes(node)
    if isinstance(node, DEFINITIONS):
        inner = [*node.decorator_list, *(_defaults(node) if isinstance(node, FUNCTIONS) else node.bases)]
    for child in inner:
        yield from at_once(child)


def _defaults(function: ast.stmt) -> list[ast.expr]:
    return [one for one in (*function.args.defaults, *function.args.kw_defaults) if one]


def assigned(statement: ast.AST) -> set[str]:
    """The names that a statement gives a value, also inside ``if``, ``try``, ``with`` and loops.

    >>> sorted(assigned(ast.parse("try:\\n    import a.b\\nexcept ImportError as e:\\n    c, d[0] = 1, 2").body[0]))
    ['a', 'c', 'e']
    """
    found: set[str] = set()
    loops = [node.target for node in at_once(statement) if isinstance(node, ast.comprehension)]
    of_loops = {id(node) for target in loops for node in ast.walk(target)}
    for node in at_once(statement):
        if isinstance(node, DEFINITIONS) or (isinstance(node, ast.ExceptHandler) and node.name):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and id(node) not in of_loops:
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
    return found - {"*"}


def changed(statement: ast.stmt) -> set[str]:
    """The names whose objects a statement changes: ``a[0] = 1``, ``a.b = 1``, ``a.append(1)``."""
    found = set()
    for node in at_once(statement):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(root_of(node))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING:
            found.add(root_of(node.func))
    return found


def root_of(node: ast.expr) -> str:
    """The name at the beginning of an expression such as ``a.b[0]``, or an empty text."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def uses(statement: ast.stmt, lazy: bool = False) -> tuple[set[str], set[str]]:
    """The names of the file that a statement reads at once, and those that its functions read when they are called.

    Args:
        statement: the statement.
        lazy: whether the file has ``from __future__ import annotations``, so that no annotation is read.

    >>> now, later = uses(ast.parse("def f(x, y=ZERO):\\n    return [g(x, a) for a in LIST]").body[0])
    >>> sorted(now), sorted(later)
    (['ZERO'], ['LIST', 'g'])
    """
    now: set[str] = set()
    later: set[str] = set()
    text = "from __future__ import annotations\n" * lazy + ast.unparse(statement)
    _collect_uses(symtable.symtable(text, "?", "exec"), now, now, later)
    return now, later


def _collect_uses(table: symtable.SymbolTable, into: set[str], now: set[str], later: set[str]) -> None:
    top = table.get_type() == "module"
    if not top and into is now and table.get_type() == "function" and table.get_name() not in _AT_ONCE:
        into = later
    for symbol in table.get_symbols():
        if symbol.is_referenced() if top else symbol.is_global():
            into.add(symbol.get_name())
    for child in table.get_children():
        _collect_uses(child, into, now, later)


def imported(statement: ast.AST) -> list[str]:
    """The packages that a statement imports; no relative ones."""
    if isinstance(statement, ast.Import):
        return [alias.name.partition(".")[0] for alias in statement.names]
    if isinstance(statement, ast.ImportFrom) and not statement.level:
        return [statement.module.partition(".")[0]]
    return []


def imports_in(statements: Sequence[ast.stmt]) -> list[ast.Import | ast.ImportFrom]:
    """The import statements, also those in functions."""
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_all(statement: ast.stmt) -> bool:
    """Whether a statement is ``from package import *``."""
    return isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*"


#: What to do about a module that cannot be imported.
FOR_A_MODULE = (
    "If it is a package, install it, or use the environment that has it. If it is a file of that project, put it where "
    "the import finds it, such as beside this file."
)


def missing_packages(statement: ast.stmt) -> list[str]:
    """The packages that a statement imports and that are not here."""
    return [name for name in imported(statement) if name not in sys.modules and find_spec(name) is None]


def sets_path(statement: ast.stmt) -> bool:
    """Whether a statement changes where Python looks for modules."""
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith(("sys.path.append", "sys.path.insert"))


def functions_in(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The functions among some statements."""
    return [statement for statement in body if isinstance(statement, FUNCTIONS)]


def parameters_in(function: ast.AST) -> list[str]:
    """The names of a function's parameters."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, [given.vararg, given.kwarg])]
    return [one.arg for one in every]
