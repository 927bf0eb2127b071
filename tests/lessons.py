"""What the tests of the lessons share: what a notebook says and printed, and a run of the committed notebook."""

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


def run_with_nbval(lesson: Path, folder: Path, cell_seconds: int, seconds: int) -> subprocess.CompletedProcess:
    """Run a copy of a committed notebook from its first cell to its last; its checked outputs are compared."""
    shutil.copy(lesson, folder)
    flags = ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={cell_seconds}", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *flags, lesson.name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
