"""Build notebooks/*.ipynb from notebooks/source/*.py and execute them.

    python scripts/build_notebooks.py                        # all lessons
    python scripts/build_notebooks.py 03_grpo_lora           # one
    python scripts/build_notebooks.py --text 03_grpo_lora    # only its text: nothing is executed

Edit a lesson only in its source. A value in its text is written as ``{{expression}}``; see `values`.
"""

import argparse
import os
import re
import sys
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from address import ROOT, Place, current, lesson_text
from install_cell import expand
from PIL import Image
from values import LessonClient, check, refill

from grpo_utils.plots.diagrams import PICTURES

SOURCES = ROOT / "notebooks" / "source"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
#: With this metadata, Colab opens a lesson on a T4. The other lessons use no GPU, which would only spend a quota.
ON_GPU, ASKS_FOR_GPU = ("03_grpo_lora", "05_real_model"), {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
LONGEST_CELL = 3 * 3600  # seconds; a real model trains for most of an hour


def convert(source: Path, place: Place) -> nbformat.NotebookNode:
    """The notebook of a source, without outputs or values; the same source always gives the same notebook."""
    text = source.read_text(encoding="utf-8")
    book = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number:03}"
        if cell.cell_type == "markdown":
            cell.source = lesson_text(cell.source, source.stem, place)
        else:
            cell.source = expand(cell.source, place.url)
    book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    book.metadata |= ASKS_FOR_GPU if source.stem in ON_GPU else {}
    return book


def retold(source: Path, book: nbformat.NotebookNode, place: Place) -> nbformat.NotebookNode:
    """The notebook of a source, with the values of a built notebook in its text, but without outputs."""
    fresh = convert(source, place)
    try:
        refill(fresh.cells, book.cells)
    except KeyError as error:
        sys.exit(f"Error: {source.stem}: no value, or no single one, is stored for {error}. Build it without --text.")
    return fresh


def rewrite(source: Path) -> None:
    """Give a built notebook the text of its source, and keep its values and outputs.

    Its code cells must be there as they are, in their order; cells may be missing that no other cell depends on.
    """
    path = ROOT / "notebooks" / f"{source.stem}.ipynb"
    book = nbformat.read(path, as_version=4)
    told = retold(source, book, current())
    built = iter([cell for cell in book.cells if cell.cell_type == "code"])
    for count, cell in enumerate((cell for cell in told.cells if cell.cell_type == "code"), 1):
        old = next((old for old in built if old.source == cell.source), None)
        if old is None:
            sys.exit(f"Error: {source.stem}, cell {cell.id}: its code is new or was moved. Build it without --text.")
        cell["outputs"], cell["execution_count"] = old.outputs, count
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = count
        redraw(cell)
    nbformat.write(told, path)


def redraw(cell: nbformat.NotebookNode) -> None:
    """Give a cell that shows a diagram the current one: a diagram depends on no run."""
    found = re.search(r'^diagram\("(\w+)"\)$', cell.source, flags=re.MULTILINE)
    if cell.cell_type == "code" and found:
        path = PICTURES / f"{found[1]}.png"
        with Image.open(path) as picture:
            alt = picture.text["Description"]
        [output] = cell.outputs
        output["data"] = {"image/png": b64encode(path.read_bytes()).decode() + "\n", "text/plain": alt}
        output["metadata"] = {"image/png": {"alt": alt}}


def execute(book: nbformat.NotebookNode) -> None:
    """Run all cells in a fresh kernel and an empty folder, without a GPU, and fill the values in the text."""
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # the text reads what a run on a CPU prints
    with TemporaryDirectory() as folder:
        LessonClient(
            book,
            timeout=LONGEST_CELL,
            resources={"metadata": {"path": folder}},
            coalesce_streams=True,  # keep only the last state of a progress bar
            record_timing=False,
            store_widget_state=False,
        ).execute()
    for cell in book.cells:
        if cell.cell_type == "code":
            cell["outputs"] = [output for output in cell.outputs if not is_blank(output)]
    book.metadata["language_info"] = {"name": "python"}  # as converted, without this machine's version


def is_blank(output: nbformat.NotebookNode) -> bool:
    """Whether an output is only what a progress bar leaves that removes itself: blanks."""
    return output.output_type == "stream" and not output.text.strip()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Build the lessons from notebooks/source and execute them.")
    parser.add_argument("lessons", nargs="*", help="for example 03_grpo_lora; all if none is given")
    parser.add_argument("--text", action="store_true", help="change only the text of a built lesson; execute nothing")
    given = parser.parse_args()
    known = sorted(path.stem for path in SOURCES.glob("*.py"))
    if unknown := set(given.lessons) - set(known):
        parser.error(f"there is no lesson {', '.join(sorted(unknown))}; the lessons are {', '.join(known)}")
    given.lessons = given.lessons or known
    return given


def build(source: Path) -> None:
    """Convert and execute a lesson, and write its notebook."""
    book = convert(source, current())
    check(book)
    execute(book)
    nbformat.write(book, ROOT / "notebooks" / f"{source.stem}.ipynb")


def main() -> None:
    given = arguments()
    for name in given.lessons:
        print(f"{name} ...", flush=True)
        (rewrite if given.text else build)(SOURCES / f"{name}.py")


if __name__ == "__main__":
    main()
