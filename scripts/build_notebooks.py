"""Build notebooks/*.ipynb from notebooks/source/*.py and execute them.

    python scripts/build_notebooks.py                 # all lessons
    python scripts/build_notebooks.py 03_grpo_lora    # one

Edit a lesson only in its source.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from address import HOST, ROOT, Place, current, lesson_text
from install_cell import expand
from nbclient import NotebookClient

SOURCES = ROOT / "notebooks" / "source"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LONGEST_CELL = 1800  # seconds


def repository() -> str:
    """The public address, or "" while none is set."""
    return current().url


def convert(source: Path, address: str) -> nbformat.NotebookNode:
    """The notebook of a source, without outputs; the same source always gives the same notebook."""
    place = Place(address.removeprefix(HOST), current().branch)
    text = source.read_text(encoding="utf-8")
    book = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number:03}"
        if cell.cell_type == "markdown":
            cell.source = lesson_text(cell.source, source.stem, place)
        else:
            cell.source = expand(cell.source, address)
    book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return book


def rewrite(source: Path) -> None:
    """Give a built notebook the cells of its source, and keep its outputs."""
    path = ROOT / "notebooks" / f"{source.stem}.ipynb"
    book = nbformat.read(path, as_version=4)
    for cell, fresh in zip(book.cells, convert(source, repository()).cells, strict=True):
        cell["source"] = fresh["source"]
    nbformat.write(book, path)


def execute(book: nbformat.NotebookNode) -> None:
    """Run all cells in a fresh kernel and an empty folder."""
    with TemporaryDirectory() as folder:
        NotebookClient(
            book,
            timeout=LONGEST_CELL,
            resources={"metadata": {"path": folder}},
            coalesce_streams=True,  # keep only the last state of a progress bar
            record_timing=False,
            store_widget_state=False,
        ).execute()
    book.metadata["language_info"] = {"name": "python"}  # as converted, without this machine's version


def main() -> None:
    for source in sorted(SOURCES.glob("*.py")):
        if len(sys.argv) > 1 and source.stem not in sys.argv[1:]:
            continue
        print(f"{source.stem} ...", flush=True)
        book = convert(source, repository())
        execute(book)
        nbformat.write(book, ROOT / "notebooks" / f"{source.stem}.ipynb")


if __name__ == "__main__":
    main()
