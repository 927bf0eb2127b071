"""What the tests of the lessons share: a notebook's text and sizes, and a run of the committed notebook."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode


def said(book: NotebookNode) -> str:
    """All that the cells of a notebook printed."""
    texts = [o.get("text", "") for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    return "\n".join(texts)


def code_of(book: NotebookNode) -> list[str]:
    """The code cells without the solutions; magics, which are not Python, are left out."""
    cells = [
        cell for cell in book.cells if cell.cell_type == "code" and "solution" not in cell.metadata.get("tags", [])
    ]
    return [re.sub(r"^(\s*)%.*", r"\1pass", cell.source, flags=re.MULTILINE) for cell in cells]


def text_of(book: NotebookNode) -> str:
    """All prose, in one line."""
    return " ".join(" ".join(cell.source for cell in book.cells if cell.cell_type == "markdown").split())


def names_of(book: NotebookNode) -> set[str]:
    """What the code takes from our packages: imported names, and attributes of an imported module."""
    nodes = [node for cell in code_of(book) for node in ast.walk(ast.parse(cell))]
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom) and _ours(node.module)]
    modules = {
        alias.asname or alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
        if _ours(alias.name)
    }  # fmt: skip
    attributes = {
        node.attr for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }  # fmt: skip
    return attributes | {alias.name for node in froms for alias in node.names}


def _ours(module: str | None) -> bool:
    return (module or "").split(".")[0] in ("grpo_utils", "grpo_check")


def sizes(book: NotebookNode) -> dict[str, int]:
    """What the limits of a lesson count."""
    lines = [line for cell in code_of(book) for line in cell.splitlines() if line.strip()]
    words = sum(len(cell.source.split()) for cell in book.cells if cell.cell_type == "markdown")
    return {"cells": len(book.cells), "code lines": len(lines), "words": words, "names": len(names_of(book))}


def run_with_nbval(lesson: Path, folder: Path, cell_seconds: int, seconds: int) -> subprocess.CompletedProcess:
    """Run a copy of a committed notebook from its first cell to its last; its checked outputs are compared."""
    shutil.copy(lesson, folder)
    flags = ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={cell_seconds}", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *flags, lesson.name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
