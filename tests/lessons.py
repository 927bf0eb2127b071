"""What the tests of the lessons share: a notebook's text, and a run of the committed notebook."""

import shutil
import subprocess
import sys
from pathlib import Path

from nbformat import NotebookNode


def said(book: NotebookNode) -> str:
    """All that the cells of a notebook printed."""
    texts = [o.get("text", "") for cell in book.cells if cell.cell_type == "code" for o in cell.outputs]
    return "\n".join(texts)


def run_with_nbval(lesson: Path, folder: Path, cell_seconds: int, seconds: int) -> subprocess.CompletedProcess:
    """Run a copy of a committed notebook from its first cell to its last; its checked outputs are compared."""
    shutil.copy(lesson, folder)
    flags = ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={cell_seconds}", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-q", *flags, lesson.name]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=seconds)
