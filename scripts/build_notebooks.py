"""Build notebooks/*.ipynb from notebooks/source/*.py and execute them.

    python scripts/build_notebooks.py                 # all lessons
    python scripts/build_notebooks.py 03_grpo_lora    # one

A lesson is edited in its source and nowhere else.
"""

import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from install_cell import expand
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "notebooks" / "source"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
COLAB = "https://colab.research.google.com/github/{repo}/blob/main/notebooks/{name}.ipynb"
KAGGLE = "https://kaggle.com/kernels/welcome?src=https://github.com/{repo}/blob/main/notebooks/{name}.ipynb"
LONGEST_CELL = 1800  # seconds


def repository() -> str:
    """The public address, from the one place where it stands."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project["project"]["urls"]["Repository"]


def badges(name: str, address: str) -> str:
    """Markdown for the badges that open a lesson on Colab and on Kaggle."""
    repo = address.removeprefix("https://github.com/")
    colab, kaggle = (url.format(repo=repo, name=name) for url in (COLAB, KAGGLE))
    return (
        f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({colab}) "
        f"[![Open in Kaggle](https://kaggle.com/static/images/open-in-kaggle.svg)]({kaggle})"
    )


def convert(source: Path, address: str) -> nbformat.NotebookNode:
    """The notebook of a source, without outputs; the same for the same source."""
    text = source.read_text(encoding="utf-8").replace("{{badges}}", badges(source.stem, address))
    book = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number:03}"
        if cell.cell_type == "code":
            cell.source = expand(cell.source, address)
    book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    return book


def execute(book: nbformat.NotebookNode) -> None:
    """Run all cells in a fresh kernel and an empty folder."""
    with TemporaryDirectory() as folder:
        NotebookClient(
            book,
            timeout=LONGEST_CELL,
            resources={"metadata": {"path": folder}},
            coalesce_streams=True,  # a progress bar is kept as its last state
            record_timing=False,
            store_widget_state=False,
        ).execute()
    book.metadata["language_info"] = {"name": "python"}  # as converted: no version of this machine


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
