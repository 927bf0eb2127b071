"""Pages that open without a network: links lead to pages, figures keep their alt text, solutions are folded."""

import re
import sys

import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

sys.path.insert(0, str(ROOT / "scripts"))
import build_site

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOP = """# 99 · A small `lesson`

[![Open in Colab](https://example.org/badge.svg)](https://example.org/open)

**You will be able to** build
pages: small ones.

| | CPU |
|---|---|
| time for Run All | about 1 minute ([measured](../docs/results.md)) |

See [rewards](02_rewards.ipynb), [costs](../docs/results.md#Costs) and [above](#top)."""
AWAY = TOP.replace("](02", "](https://github.com/a/b/blob/main/notebooks/02").replace(
    "../", "https://github.com/a/b/blob/main/"
)
ALT = 'A line from 0.1 to 0.9, "rising".'


def figure(**metadata):
    return new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure>"}, metadata={"image/png": metadata})


@pytest.fixture
def book():
    solution = new_code_cell("answer = 42", metadata={"tags": ["solution"]})
    return new_notebook(cells=[new_markdown_cell(TOP), new_code_cell("show()", outputs=[figure(alt=ALT)]), solution])


@pytest.fixture
def soup(book):
    return BeautifulSoup(build_site.page(book, "A <title>", ""), "html.parser")


def test_nothing_is_loaded_from_elsewhere_and_no_script_runs(soup):
    assert build_site.loaded_from_elsewhere(str(soup)) == []
    assert not soup.find_all("script")
    assert [link["href"] for link in soup.find_all("link")] == ["style.css"]


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://cdn.example/mathjax.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        '<img src="http://example.org/badge.svg">',
        "<style>@import 'https://fonts.example/a.css';</style>",
        "<style>body { background: url(https://example.org/a.png) }</style>",
        '<img src="here.png" srcset="https://example.org/a.png 2x">',
        '<p style="background: url(https://example.org/a.png)">text</p>',
        '<object data="https://example.org/a.svg"></object>',
        '<embed src="https://example.org/a.svg">',
        '<audio src="//example.org/a.mp3"></audio>',
        '<video poster="https://example.org/a.png"></video>',
        '<svg><image href="https://example.org/a.png"/></svg>',
        '<svg><image xlink:href="https://example.org/a.png"/></svg>',
    ],
)
def test_what_would_be_loaded_from_elsewhere_is_found(html):
    assert len(build_site.loaded_from_elsewhere(html)) == 1


@pytest.mark.parametrize("top", [TOP, AWAY])
def test_links_lead_to_pages_and_badges_are_words(top):
    soup = BeautifulSoup(build_site.page(new_notebook(cells=[new_markdown_cell(top)]), "", ""), "html.parser")
    links = {link.get_text(): link["href"] for link in soup.main.find_all("a")}
    assert links["rewards"] == "02_rewards.html"
    assert links["costs"] == "results.html#Costs"
    assert links["above"] == "#top"
    assert links["Open in Colab"] == "https://example.org/open"


def test_a_page_does_not_say_how_to_open_a_notebook_by_hand():
    book = new_notebook(cells=[new_markdown_cell(f"# 99 · A lesson\n\n{build_site.BY_HAND}\n\nText.")])
    assert "Text." in build_site.page(book, "", "") and "File &gt; Open" not in build_site.page(book, "", "")


def test_a_figure_keeps_its_alt_text(soup):
    (image,) = soup.find_all("img")
    assert image["alt"] == ALT


def test_a_solution_is_folded_and_a_table_scrolls_by_itself(soup):
    assert "42" in soup.find("details").get_text() and "show" not in soup.find("details").get_text()
    assert soup.find("table").parent["class"] == ["table"]


def test_a_heading_has_the_name_that_github_gives_it(soup):
    assert soup.h1["id"] == "99--a-small-lesson"
    book = new_notebook(cells=[new_markdown_cell("## `nan`: what's 2 do?")])
    assert 'id="nan-whats-2-do"' in build_site.page(book, "", "")


def test_a_long_name_in_a_table_may_break_and_stays_the_same_name():
    cell = BeautifulSoup("<table><td><code>rewards/a_reward/mean</code></td></table>", "html.parser")
    build_site.break_names(cell)
    assert str(cell.code) == "<code>rewards/<wbr/>a_<wbr/>reward/<wbr/>mean</code>"
    assert cell.get_text() == "rewards/a_reward/mean"


def test_the_title_is_escaped(soup):
    assert soup.title.string == "A <title>"


def test_the_index_names_each_lesson_with_its_promise_and_its_minutes(book):
    text = build_site.index({"99_small": book}, {"glossary": build_site.as_book("# Glossary\n\nWords.")})
    source = text.cells[0].source
    assert "| [99 · A small `lesson`](99_small.ipynb) | build pages | about 1 minute (measured) |" in source
    assert "- [Glossary](glossary.md)" in source


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build_site.main(folder)
    return folder


@pytest.fixture(scope="module")
def site(folder):
    return {path.name: BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in folder.glob("*.html")}


@pytest.mark.slow  # builds all pages, ten seconds
def test_every_link_between_the_pages_leads_somewhere(site):
    for name, soup in site.items():
        for href in (link["href"] for link in soup.find_all("a", href=True) if ":" not in link["href"]):
            page, _, part = href.partition("#")
            target = site.get(page or name)
            assert target, f"{name} links to {href}"
            assert not part or target.find(id=part), f"{name} links to {href}"


@pytest.mark.slow
def test_every_diagram_of_a_document_comes_with_the_pages(folder, site):
    sources = {image["src"] for soup in site.values() for image in soup.find_all("img")}
    diagrams = {source for source in sources if not source.startswith("data:")}
    assert "figures/path.svg" in diagrams and all((folder / source).is_file() for source in diagrams)


@pytest.mark.slow
def test_every_lesson_and_document_has_a_page_and_every_figure_its_words(site):
    sources = [*(ROOT / "notebooks").glob("*.ipynb"), *(ROOT / "docs").glob("*.md")]
    assert {f"{path.stem}.html" for path in sources} | {"index.html"} == set(site)
    assert all(len(image["alt"]) > 30 for soup in site.values() for image in soup.find_all("img"))


def test_titles_and_promises_can_be_read_from_every_lesson():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        book = nbformat.read(path, as_version=4)
        assert re.match(r"\d\d · ", build_site.title_of(book))
        assert len(build_site.promise_of(book)) > 10 and "minute" in build_site.minutes_of(book)
