"""Read the code of a Python file or a notebook, without running it.

>>> source = source_of(Path("a.py"), ast.parse("x = 1\\nif __name__ == '__main__':\\n    main()").body)
>>> [ast.unparse(statement) for statement in source.body], sorted(source.guarded)
(['x = 1', 'main()'], [1])
"""

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import CourseError

from .syntax import DEFINITIONS, FUNCTIONS

#: A line of a notebook that is not Python: ``!pip install trl``, ``%matplotlib inline``, ``files = !ls``, ``trainer?``.
_NOT_PYTHON = re.compile(r"^\s*(?:[!%?].*|[\w.]+\?+\s*|\w[\w, ]*=\s*[!%].*)$")
#: Cells whose other lines are Python, in spite of their first one.
_STILL_PYTHON = re.compile(r"%%(?:capture|time|timeit|prun|python3?)\b")


@dataclass(frozen=True)
class Source:
    """The code of a file.

    Attributes:
        path: the file.
        filename: the name in the code objects: the file's own, or one under which `linecache` has a notebook's code.
        body: the statements at the top level, in order.
        guarded: the indices of those that an import leaves out: what ``if __name__ == "__main__":`` has.
        cells: for each cell of a notebook, its first line in the code.
        text: the code; empty if the file itself has it, line by line.
        whole: whether Python can import the file as it is.
        unread: for each cell that Python cannot read, why.
    """

    path: Path
    filename: str
    body: list[ast.stmt]
    guarded: frozenset[int] = frozenset()
    cells: tuple[int, ...] = ()
    text: str = ""
    whole: bool = True
    unread: tuple[str, ...] = ()

    def place(self, line: int) -> str:
        """Where a line is, in words: ``line 3``, or ``cell 2, line 3``."""
        before = [start for start in self.cells if start <= line]
        return f"cell {len(before)}, line {line - before[-1] + 1}" if before else f"line {line}"


def read_source(path: Path) -> Source:
    """The code of a Python file or a notebook.

    Raises:
        CourseError: the file is not a notebook, or is one without Python code.
        SyntaxError, ValueError: Python cannot read the file.
    """
    if path.suffix == ".ipynb":
        return _read_notebook(path)
    try:
        return source_of(path, ast.parse(path.read_bytes()).body)
    except SyntaxError:
        if not (found := _without_magics(path)):
            raise
        return source_of(path, found, whole=False)


def _without_magics(path: Path) -> list[ast.stmt]:
    """The statements of a notebook that Colab saved as Python, with lines such as ``!pip install trl`` in it."""
    try:
        text = path.read_text(encoding="utf-8")
        return ast.parse(_python_of(text)).body if _python_of(text) != text else []
    except (SyntaxError, ValueError):
        return []


def _read_notebook(path: Path) -> Source:
    """The code cells of a notebook; cells that are not Python are left out."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError) as error:
        raise CourseError(f"{str(path)!r} is not a notebook that Jupyter can read: {error}.") from error
    body, starts, lines, unread = [], [], [], []
    for number, text in enumerate(texts, 1):
        starts.append(len(lines) + 1)
        try:
            tree = ast.parse(_python_of(text))
        except (SyntaxError, ValueError) as error:
            unread.append(f"cell {number} cannot be read ({error})")
            tree = ast.Module([], [])
        body += ast.increment_lineno(tree, len(lines)).body
        lines += [*text.split("\n"), ""]
    more = {"cells": tuple(starts), "text": "\n".join(lines), "unread": tuple(unread)}
    return source_of(path, body, whole=False, filename=f"{path.resolve()}:code", **more)


def _python_of(text: str) -> str:
    r"""A cell with its magics and shell commands replaced by comments, so that each line keeps its number.

    >>> _python_of("%%capture\n!pip install trl \\\n    peft\nif True:\n    files = !ls\nx = 5 % 3")
    '#\n#\n#\nif True:\n    pass\nx = 5 % 3'
    """
    first = text.lstrip()
    if first.startswith("%%") and not _STILL_PYTHON.match(first):
        return ""
    lines, goes_on = [], False
    for line in text.split("\n"):
        indent = "" if goes_on else line[: len(line) - len(line.lstrip())]
        magic = goes_on or bool(_NOT_PYTHON.match(line))
        goes_on = magic and line.rstrip().endswith("\\")
        lines.append((f"{indent}pass" if indent else "#") if magic else line)
    return "\n".join(lines)


def source_of(path: Path, written: list[ast.stmt], whole: bool = True, filename: str = "", **more: object) -> Source:
    """A source; the statements of ``if __name__ == "__main__":`` and of marimo's cells are among the others in it."""
    body: list[ast.stmt] = []
    guarded: list[int] = []
    for statement in written:
        inner = [statement]
        if _is_main_guard(statement) or _is_marimo_cell(statement):
            inner = [one for one in statement.body if not isinstance(one, ast.Return)]
            whole = whole and _is_main_guard(statement)
            guarded += range(len(body), len(body) + len(inner))
        elif isinstance(statement, DEFINITIONS):  # marimo marks a function that is a cell of its own
            statement.decorator_list = [one for one in statement.decorator_list if not _is_marimo_mark(one)]
        body += inner
    return Source(path, filename or str(path.resolve()), body, frozenset(guarded), whole=whole, **more)


def _is_main_guard(statement: ast.stmt) -> bool:
    """Whether a statement is ``if __name__ == "__main__":``."""
    return isinstance(statement, ast.If) and ast.unparse(statement.test) in (
        "__name__ == '__main__'",
        "'__main__' == __name__",
    )


def _is_marimo_cell(statement: ast.stmt) -> bool:
    """Whether a statement is a cell of a marimo notebook, which is a function or, for its imports, a block."""
    if isinstance(statement, ast.With):
        return [ast.unparse(item.context_expr) for item in statement.items] == ["app.setup"]
    return isinstance(statement, FUNCTIONS) and any(
        ast.unparse(one).startswith("app.cell") for one in statement.decorator_list
    )


def _is_marimo_mark(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).startswith(("app.function", "app.class_definition"))
