"""Write student copies of all lessons, without solutions and outputs, to outputs/workshop/.

    python scripts/workshop.py

A solution is a code cell with the tag `solution`. The folded text before it is removed, too; one text may belong to
several solutions in a row. The line with the badges is removed, because they open the lesson with its solutions.
Text that interprets what a run showed is folded, so that a learner guesses first: each paragraph with a value, and in
the first cell what the run showed.
Everything else is kept. Each check of an exercise also gets the name of its lesson, so that its result is recorded (see
grpo_utils/exercises.py). The documents that the lessons link to are copied as well, so you can hand out the folder.
A link to anything else, such as a template, leads to the course's public address; without one, only its text is kept.

Nothing is overwritten: a file that a learner has changed is renamed with the time of its last change.
"""

import posixpath
import re
import shutil
import sys
from copy import deepcopy
from datetime import datetime
from itertools import groupby
from pathlib import Path

import nbformat
from address import BADGES, ROOT, STEPS, Place, current, relative_links
from build_notebooks import ASKS_FOR_GPU, SOURCES, convert
from nbconvert.preprocessors import ClearOutputPreprocessor, TagRemovePreprocessor
from values import VALUE

TARGET = ROOT / "outputs" / "workshop"
FOLDED = re.compile("<details><summary>Solutions?</summary>")
#: A fold as a whole, or else a paragraph.
FOLD_OR_PARAGRAPH = re.compile(r"<details>.*?</details>|\S.*?(?=\n\n|\Z)", re.DOTALL)
RUN_FIRST = "<details><summary>After you have run the cells above</summary>"
#: In the first cell: it gives away what the class is about to guess.
AT_THE_END = (
    "<details><summary>What this lesson's run showed (in a class, wait; alone, read it before you guess)</summary>"
)
#: The folders of pages that are handed out.
PAGES = ("docs", "grpo_check/docs")
#: Documents only for the instructor.
NOT_HANDED_OUT = {"instructor-guide.md", "quiz.md"}
#: What a lesson says about solutions that a student copy does not have.
UNFOLD = re.compile(r"\s+before\s+you\s+unfold\s+the\s+solutions(\s+below)?")
#: The end of a call that checks an exercise.
CHECKED = re.compile(r"(check_exercise\(.*[^)])(\)\)?)$", re.MULTILINE)
#: A link or picture with a relative address.
LINK = re.compile(r"\[([^][]*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def student_copy(
    book: nbformat.NotebookNode, lesson: str, unfilled: nbformat.NotebookNode | None = None
) -> nbformat.NotebookNode:
    """A copy of the lesson without solutions and outputs, which records the results of its exercises.

    ``unfilled`` is the same lesson as `convert` returns it; where its text has a value, the copy folds the paragraph.
    """
    copy = deepcopy(book)
    for place, (cell, source) in enumerate(zip(copy.cells, unfilled.cells if unfilled else [], strict=bool(unfilled))):
        if cell.cell_type == "markdown":
            cell.source = with_results_folded(cell.source, source.source, RUN_FIRST if place else AT_THE_END)
    tag_solution_texts(copy)
    copy, _ = TagRemovePreprocessor(remove_cell_tags={"solution"}).preprocess(copy, {})
    copy, _ = ClearOutputPreprocessor().preprocess(copy, {})
    for asks in ASKS_FOR_GPU:  # a class trains on the CPU, where a lesson takes minutes
        copy.metadata.pop(asks, None)
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            paragraphs = relative_links(cell.source).split("\n\n")
            text = "\n\n".join(
                paragraph for paragraph in paragraphs if not (BADGES.match(paragraph) or STEPS.match(paragraph))
            )
            cell.source = with_working_links(UNFOLD.sub("", text), "notebooks", current())
        else:
            cell.source = CHECKED.sub(rf'\1, lesson="{lesson}"\2', cell.source)
    return copy


def with_results_folded(text: str, unfilled: str, summary: str = RUN_FIRST) -> str:
    """A text whose paragraphs with a value are folded, consecutive ones together; what is folded already stays so.

    >>> print(with_results_folded("Run it.\\n\\nIt is 42.\\n\\nGo on.", "Run it.\\n\\nIt is {{x}}.\\n\\nGo on."))
    Run it.
    <BLANKLINE>
    <details><summary>After you have run the cells above</summary>
    <BLANKLINE>
    It is 42.
    </details>
    <BLANKLINE>
    Go on.
    """
    told = []
    pairs = zip(FOLD_OR_PARAGRAPH.findall(text), FOLD_OR_PARAGRAPH.findall(unfilled), strict=True)
    kept = ("#", "<", "**Guess first") if summary == AT_THE_END else ("#", "<")
    for is_result, group in groupby(pairs, lambda pair: bool(VALUE.search(pair[1])) and not pair[1].startswith(kept)):
        part = "\n\n".join(paragraph for paragraph, _ in group)
        told.append(f"{summary}\n\n{part}\n</details>" if is_result else part)
    return "\n\n".join(told)


def with_working_links(text: str, folder: str, place: Place) -> str:
    """The text of a file of ``folder`` with links that work from its place in the folder that is handed out."""

    def working(link: re.Match) -> str:
        words, path, anchor = link[1], posixpath.normpath(posixpath.join(folder, link[2])), link[3] or ""
        if not (ROOT / path).exists():
            return link[0]
        if there := handed_out(path):
            return f"[{words}]({posixpath.relpath(there, handed_out(folder))}{anchor})"
        public = place.repo and posixpath.basename(path) not in NOT_HANDED_OUT
        return f"[{words}]({place.url}/blob/{place.branch}/{path}{anchor})" if public else words

    return LINK.sub(working, text)


def handed_out(path: str) -> str:
    """Where a lesson, document or figure of the course lies in the folder that is handed out; "" for other files."""
    if path.startswith("notebooks"):
        return posixpath.relpath(path, "notebooks")
    return path if path.startswith(PAGES) and posixpath.basename(path) not in NOT_HANDED_OUT else ""


def tag_solution_texts(book: nbformat.NotebookNode) -> None:
    """Give the folded text before the first of several solutions in a row their tag, so that all are removed."""
    for before, cell in zip(book.cells, book.cells[1:], strict=False):
        if "solution" in cell.metadata.get("tags", []) and "solution" not in before.metadata.get("tags", []):
            if not is_folded_solution(before):
                sys.exit(
                    f"Error: the cell before the solution {cell.id} is not only its folded text, so too little or too"
                    f" much would be removed: {before.source[:60]!r}. Give it its own cell, which starts with"
                    " <details><summary>Solution</summary>"
                )
            before.metadata["tags"] = ["solution"]


def is_folded_solution(cell: nbformat.NotebookNode) -> bool:
    """Whether a cell is the folded text of a solution and nothing else."""
    text = cell.source.strip()
    whole = text.endswith("</details>") and text.count("<details>") == 1
    return cell.cell_type == "markdown" and whole and bool(FOLDED.match(text))


def put(path: Path, text: str) -> str:
    """Write a file and return a message; an existing file that differs is renamed first."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return f"{path.name}: unchanged"
    message = f"{path.name}: written"
    if path.exists():
        message += f"; the changed file is kept as {set_aside(path).name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return message


def set_aside(path: Path) -> Path:
    """Rename a file with the time of its last change, and return its new path."""
    when = datetime.fromtimestamp(path.stat().st_mtime)
    kept, number = path.with_stem(f"{path.stem}-{when:%Y%m%d-%H%M%S}"), 2
    while kept.exists():
        kept, number = path.with_stem(f"{path.stem}-{when:%Y%m%d-%H%M%S}-{number}"), number + 1
    return path.rename(kept)


def main(target: Path = TARGET) -> None:
    copies = {}  # all of them before one is written: a part of them would look complete
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        unfilled = convert(SOURCES / f"{path.stem}.py", current())
        copies[path.name] = student_copy(nbformat.read(path, as_version=4), path.stem, unfilled)
    for name, copy in copies.items():
        print(put(target / name, nbformat.writes(copy) + "\n"))
    for folder in PAGES:
        for path in sorted((ROOT / folder).glob("*.md")):
            if path.name not in NOT_HANDED_OUT:
                text = with_working_links(path.read_text(encoding="utf-8"), folder, current())
                print(put(target / folder / path.name, text))
    shutil.copytree(ROOT / "docs" / "figures", target / "docs" / "figures", dirs_exist_ok=True)
    shutil.copy(ROOT / "docs" / "watch-it-cheat.html", target / "docs")
    page = (ROOT / "docs" / "pay-a-model.html").read_text(encoding="utf-8")
    (target / "docs" / "pay-a-model.html").write_text(page.replace('"../notebooks/', '"../'), encoding="utf-8")
    print(f"Student copies are in {target}.")


if __name__ == "__main__":
    main()
