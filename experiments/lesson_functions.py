"""Functions that the lessons define, for the benches: so a bench measures what the lesson shows, not a copy of it."""

import ast
from collections.abc import Callable

from benches import ROOT

from grpo_utils import completion_text, is_strictly_right


def of_lesson(lesson: str, name: str) -> Callable[..., list[float]]:
    """A function that a cell of a lesson defines."""
    cells = ast.parse((ROOT / "notebooks" / "source" / f"{lesson}.py").read_text(encoding="utf-8")).body
    [function] = [cell for cell in cells if isinstance(cell, ast.FunctionDef) and cell.name == name]
    known = {"completion_text": completion_text, "is_strictly_right": is_strictly_right}
    exec(compile(ast.Module([function], []), lesson, "exec"), known)
    return known[name]
