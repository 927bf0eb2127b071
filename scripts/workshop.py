"""Student copies of all lessons: no solutions, no outputs, in outputs/workshop/.

    python scripts/workshop.py

A solution is a code cell with the tag `solution`. The folded text before it goes as well; one text may belong to
several solutions in a row. A stub, its check and everything else stay. The line with the badges goes: they open the
lesson with its solutions. The documents that the lessons link to are copied next to them, so the folder can be handed
out as it is.

Nothing is overwritten: a file that is not what this script would write, because a learner worked in it, is
renamed with the time of its last change.
"""

import re
import shutil
import sys
from copy import deepcopy
from datetime import datetime
from pathlib import Path

import nbformat
from address import OPENING, ROOT, relative_links
from nbconvert.preprocessors import ClearOutputPreprocessor, TagRemovePreprocessor

TARGET = ROOT / "outputs" / "workshop"
FOLDED = re.compile("<details><summary>Solutions?</summary>")
#: For the instructor, not for the room.
NOT_HANDED_OUT = {"instructor-guide.md"}


def student_copy(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The lesson without solutions and outputs; the given one stays as it is."""
    copy = deepcopy(book)
    tag_solution_texts(copy)
    copy, _ = TagRemovePreprocessor(remove_cell_tags={"solution"}).preprocess(copy, {})
    copy, _ = ClearOutputPreprocessor().preprocess(copy, {})
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            text = re.sub(rf"{OPENING.pattern}\n+", "", relative_links(cell.source), flags=re.MULTILINE)
            cell.source = text.replace("(../docs/", "(docs/")
    return copy


def tag_solution_texts(book: nbformat.NotebookNode) -> None:
    """Give the folded text before the first of some solutions in a row their tag, so that all go together."""
    for before, cell in zip(book.cells, book.cells[1:], strict=False):
        if "solution" in cell.metadata.get("tags", []) and "solution" not in before.metadata.get("tags", []):
            if not is_folded_solution(before):
                sys.exit(
                    f"Error: the solution {cell.id} follows a cell that is not only its folded text, so text would stay"
                    f" or too much would go: {before.source[:60]!r}. Its text needs a cell of its own:"
                    f" <details><summary>Solution</summary> … </details>"
                )
            before.metadata["tags"] = ["solution"]


def is_folded_solution(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is the folded text of a solution and nothing else."""
    text = cell.source.strip()
    whole = text.endswith("</details>") and text.count("<details>") == 1
    return cell.cell_type == "markdown" and whole and bool(FOLDED.match(text))


def put(path: Path, text: str) -> str:
    """Write a file, and say so; what stands there and differs is renamed first."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return f"{path.name}: as it was"
    said = f"{path.name}: written"
    if path.exists():
        said += f"; the changed one that was there is kept as {set_aside(path).name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return said


def set_aside(path: Path) -> Path:
    """Rename a file with the time of its last change; its new path."""
    when = datetime.fromtimestamp(path.stat().st_mtime)
    kept, number = path.with_stem(f"{path.stem}-{when:%Y%m%d-%H%M%S}"), 2
    while kept.exists():
        kept, number = path.with_stem(f"{path.stem}-{when:%Y%m%d-%H%M%S}-{number}"), number + 1
    return path.rename(kept)


def main(target: Path = TARGET) -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        copy = student_copy(nbformat.read(path, as_version=4))
        print(put(target / path.name, nbformat.writes(copy) + "\n"))
    for path in sorted((ROOT / "docs").glob("*.md")):
        if path.name not in NOT_HANDED_OUT:
            print(put(target / "docs" / path.name, path.read_text(encoding="utf-8").replace("(../notebooks/", "(../")))
    shutil.copytree(ROOT / "docs" / "figures", target / "docs" / "figures", dirs_exist_ok=True)
    print(f"Student copies are in {target}.")


if __name__ == "__main__":
    main()
