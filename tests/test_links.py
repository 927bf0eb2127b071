"""Every link in a lesson or a document leads to a file, and to a heading in it, with and without an address."""

import re
from pathlib import Path

import nbformat
import pytest
from address import BY_HAND, Place, badges, current, lesson_text, relative_links
from course import ROOT

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
PAGES = [
    ROOT / "README.md",
    ROOT / "SKILL.md",
    ROOT / "CONTRIBUTING.md",
    *(ROOT / "docs").glob("*.md"),
    *ROOT.glob("grpo_check/**/*.md"),
    *ROOT.glob("templates/**/*.md"),
]
UNSET, ELSEWHERE = Place("", "main"), Place("somebody/other-course", "trunk")


def markdown(path: Path) -> str:
    """The Markdown of a page or of a lesson, without blocks of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = nbformat.reads(text, as_version=4).cells
        text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def links(text: str) -> list[str]:
    return re.findall(r"\]\(([^()\s]+)\)", text)


def headings(path: Path) -> set[str]:
    """The headings of a page, as GitHub names them in a link."""
    found = re.findall(r"^#+ +(.+)$", markdown(path), flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in found}


def is_dead(link: str, page: Path, own: str) -> bool:
    """Whether a link leads to no file of the course, or to no heading; other sites are not asked."""
    target, _, heading = link.partition("#")
    if ":" in target:
        return bool(own) and target.startswith(own)  # relative_links has already found what is here
    file = page.parent / target if target else page
    return not file.exists() or (bool(heading) and heading not in headings(file))


def dead_links(page: Path, text: str, own: str) -> list[str]:
    return [link for link in links(relative_links(text)) if is_dead(link, page, own)]


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def lesson(request):
    return request.param


@pytest.mark.parametrize("page", [*LESSONS, *PAGES], ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    assert dead_links(page, markdown(page), current().url) == []


def test_with_an_address_no_link_needs_the_files_around_the_lesson(lesson):
    text = lesson_text(markdown(lesson), lesson.stem, ELSEWHERE)
    assert all(link.startswith(("https://", "#")) for link in links(text))
    assert sum(link.startswith(f"{ELSEWHERE.url}/blob/trunk/") for link in links(text)) >= 1
    assert dead_links(lesson, text, ELSEWHERE.url) == []
    assert badges(lesson.stem, ELSEWHERE) in text and BY_HAND not in text


def test_without_an_address_a_lesson_says_how_to_open_it_and_links_to_the_files_around_it(lesson):
    text = lesson_text(markdown(lesson), lesson.stem, UNSET)
    assert text.count(BY_HAND) == 1 and "Open in" not in text
    assert not [link for link in links(text) if "/blob/" in link and (ROOT / link.partition("/blob/main/")[2]).exists()]
    assert dead_links(lesson, text, "") == []


def test_the_texts_of_a_lesson_depend_on_the_address_alone(lesson):
    unset, there = (lesson_text(markdown(lesson), lesson.stem, place) for place in (UNSET, ELSEWHERE))
    assert lesson_text(there, lesson.stem, UNSET) == unset and lesson_text(unset, lesson.stem, ELSEWHERE) == there
    assert lesson_text(there, lesson.stem, ELSEWHERE) == there and unset != there


@pytest.mark.parametrize(
    "link",
    [
        "../docs/no-such-page.md",
        "../docs/results.md#no-such-heading",
        "#no-such-heading",
        "https://github.com/somebody/other-course/blob/trunk/docs/no-such-page.md",
        "https://github.com/somebody/other-course/blob/trunk/docs/results.md#no-such-heading",
    ],
)
def test_a_dead_link_is_found(link):
    assert dead_links(LESSONS[0], f"see [this]({link})", ELSEWHERE.url)


def test_a_link_into_another_project_stays():
    text = "[TRL](https://github.com/huggingface/trl/blob/main/docs/source/grpo_trainer.md) and [a](https://example.org/a.md)"
    assert lesson_text(text, "03_grpo_lora", ELSEWHERE) == text == relative_links(text)


def test_the_badges_open_the_lesson_itself():
    _, colab, _, kaggle = links(badges("03_grpo_lora", ELSEWHERE))
    path = "somebody/other-course/blob/trunk/notebooks/03_grpo_lora.ipynb"
    assert colab == f"https://colab.research.google.com/github/{path}"
    assert kaggle == f"https://kaggle.com/kernels/welcome?src=https://github.com/{path}"
