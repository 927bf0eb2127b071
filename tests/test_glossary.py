"""No term before its explanation: a term of the glossary is in italics where the course uses it first."""

import re

import nbformat
import pytest
from conftest import ROOT

ROW = re.compile(r"^\| \*\*(.+?)\*\* \| .*? \| ([\d, ]+) \|$", re.MULTILINE)
TERMS = {
    name.strip(): lessons.split(",")[0].strip()
    for names, lessons in ROW.findall((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
    for name in re.sub(r"[()]", "", names).split(",")
}


def prose(lesson: str) -> str:
    """What a lesson says in sentences: no headings, tables, code and links, which may name what comes later."""
    cells = nbformat.read(lesson, as_version=4).cells
    overview, *texts = (cell.source for cell in cells if cell.cell_type == "markdown")
    text = "\n".join([overview.split("|\n\n")[-1], *texts])  # what you will be able to do names what comes later
    text = text.replace("group relative policy optimization", " ")  # what the letters of GRPO stand for
    text = re.sub(r"^(#|\||<).*$|`[^`]*`|!?\[[^]]*\]\([^)]*\)|\$[^$]*\$", " ", text, flags=re.MULTILINE)
    return re.sub(r"\n(?!\n)", " ", text)


LESSONS = {path.name[:2]: prose(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}


def first_use(term: str) -> tuple[str, str, bool] | None:
    """The first lesson that uses a term, the words around it, and whether they are emphasized."""
    for number, text in LESSONS.items():
        if found := re.search(rf"\b{re.escape(term)}(s|es)?\b", text, re.IGNORECASE):
            spans = re.finditer(r"(?<!\*)\*[^*\n]+\*(?!\*)", text)  # in italics; a bold takeaway explains nothing
            spans = [span for span in spans if span.start() <= found.start()]
            around = text[max(0, found.start() - 60) : found.end() + 40]
            return number, around, bool(spans) and found.end() <= spans[-1].end()
    return None


@pytest.mark.parametrize("term", sorted(TERMS))
def test_a_term_is_explained_where_the_course_uses_it_first(term):
    assert first_use(term), f"no lesson uses {term!r}, and the glossary says {TERMS[term]}"
    number, around, emphasized = first_use(term)
    assert (number, emphasized) == (TERMS[term], True), around


def test_an_unexplained_term_is_found():
    assert first_use("GRPO")[0] == "00" and first_use("no such term") is None
