"""Read the arguments of `GRPOConfig` from a training script or a notebook, without running it.

Only what is written out is read: ``GRPOConfig(learning_rate=1e-5, …)`` with numbers and texts, or with names that the
file sets once, to a number or a text. Everything else is unknown, and no rule that needs it looks.
"""

import ast
import json
import re
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from grpo_core.errors import CourseError

ENDINGS = (".py", ".ipynb")


class Script(NamedTuple):
    """What a script says about its run.

    Attributes:
        arguments: of `GRPOConfig`, as far as they are written out.
        unknown: the names of its other arguments.
        model: what it passes to `GRPOTrainer` as a name, if anything.
        unsloth: whether it imports Unsloth.
        calls: how many calls of `GRPOConfig` it has.
        misplaced: the arguments of `GRPOConfig` that it passes to `GRPOTrainer`.
    """

    arguments: dict
    unknown: tuple[str, ...]
    model: str
    unsloth: bool
    calls: int
    misplaced: tuple[str, ...] = ()


def read_script(path: Path, of_config: Collection[str] = ()) -> Script:
    """The last call of `GRPOConfig` in a script or notebook; ``of_config`` are the arguments that belong into it.

    Raises:
        CourseError: the file cannot be read, or has no such call.
    """
    nodes = [node for part in _parsed(path) for node in ast.walk(part)]
    calls, trainers = ([one for one in nodes if _calls(one, name)] for name in ("GRPOConfig", "GRPOTrainer"))
    if not calls:
        raise CourseError(
            f"{path} has no call of GRPOConfig(…). Pass the config file that it reads, or call preflight(…) in it."
        )
    constants = _constants(nodes)
    arguments, unknown = {}, []
    for given in calls[-1].keywords:
        value = _value(given.value, constants)
        if given.arg and value is not _UNKNOWN:
            arguments[given.arg] = value
        elif given.arg is None and isinstance(value, dict):
            arguments |= value
        else:
            unknown.append(given.arg or f"**{ast.unparse(given.value)}")
    of_trainers = [one.arg for trainer in trainers for one in trainer.keywords]
    misplaced = tuple(dict.fromkeys(name for name in of_trainers if name in of_config))
    models = [one.value for trainer in trainers for one in trainer.keywords if one.arg == "model"]
    model = next((name for name in (_value(one, constants) for one in models) if isinstance(name, str)), "")
    return Script(arguments, tuple(unknown), model, _imports(nodes, "unsloth"), len(calls), misplaced)


def _parsed(path: Path) -> list[ast.Module]:
    """A script, or the cells of a notebook without those that only IPython reads."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            compile(text, str(path), "exec", dont_inherit=True)  # finds more than a parser, such as a repeated keyword
            return [ast.parse(text)]
        cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError, KeyError, TypeError) as error:
        raise CourseError(f"{path} cannot be read: {type(error).__name__}: {error}.") from error
    parsed = []
    for cell in cells:
        with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
            parsed.append(ast.parse(re.sub(r"^([ \t]*)[!%].*$", r"\1pass", cell, flags=re.MULTILINE)))
    return parsed


#: The value of an expression that is not written out.
_UNKNOWN = object()


def _value(node: ast.expr, constants: dict) -> object:
    """The value of an expression, if it is written out."""
    if isinstance(node, ast.Name):
        return constants.get(node.id, _UNKNOWN)
    if isinstance(node, ast.Call) and _calls(node, "dict") and not node.args:
        values = {one.arg: _value(one.value, constants) for one in node.keywords}
        return _UNKNOWN if None in values or _UNKNOWN in values.values() else values
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return _UNKNOWN


def _constants(nodes: list[ast.AST]) -> dict:
    """The names that are set only once, to a value that is written out."""
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    stored += [node.arg for node in nodes if isinstance(node, ast.arg)]
    single = [node for node in nodes if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None]
    named = {}
    for node in single:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and stored.count(target.id) == 1:
                named[target.id] = _value(node.value, {})
    return {name: value for name, value in named.items() if value is not _UNKNOWN}


def _calls(node: ast.AST, name: str) -> bool:
    """Whether a node calls a function of some name, also as an attribute: ``trl.GRPOConfig(…)``."""
    function = node.func if isinstance(node, ast.Call) else None
    return name in (getattr(function, "id", ""), getattr(function, "attr", ""))


def _imports(nodes: list[ast.AST], package: str) -> bool:
    """Whether a package is imported."""
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return any(module.partition(".")[0] == package for module in modules)
