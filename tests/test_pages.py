"""Pages that open without a network: links lead to pages, the search finds, figures keep their alt text."""

import json
import re
import shutil
import subprocess
import sys
from urllib.parse import quote

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from course import ROOT

pytest.importorskip("sphinx", reason="make html installs it")
sys.path.insert(0, str(ROOT / "docs"))
import conf
import error_tables
from address import BY_HAND, Place, lesson_text

pytestmark = pytest.mark.slow  # builds all pages, ten seconds

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
DOCUMENTS = [
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("grpo_check/**/*.md"),
    *ROOT.glob("templates/*/README.md"),
    ROOT / "README.md",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The pages. Because of -W, Sphinx also fails on a link that leads nowhere."""
    folder = tmp_path_factory.mktemp("site")
    options = ["-c", ROOT / "docs", "-W", "-q"]
    subprocess.run([sys.executable, "-m", "sphinx", "-M", "html", ROOT, folder, *options], check=True)
    return folder / "html"


@pytest.fixture(scope="module")
def site(folder):
    pages = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in folder.rglob("*.html")}
    return {name: BeautifulSoup(text, "html.parser") for name, text in pages.items()}


def test_every_lesson_and_document_has_a_page(site):
    assert {path.relative_to(ROOT).with_suffix(".html").as_posix() for path in [*LESSONS, *DOCUMENTS]} <= set(site)
    assert site["index.html"] == site["README.html"]


def test_the_page_of_error_texts_has_every_record(site):
    records = yaml.safe_load(error_tables.RECORDS.read_text(encoding="utf-8"))
    assert len(site["grpo_check/docs/errors.html"].select("article tbody tr")) == len(records) > 300


def test_programs_that_read_find_every_page_with_a_sentence_about_it(folder, site):
    index = (folder / "llms.txt").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^- \[.+\]\((\S+)\): (.+)$", index, re.MULTILINE))
    assert set(site) - set(listed) <= {
        "README.html",
        "index.html",
        "search.html",
        "genindex.html",
        "CONTRIBUTING.html",
    } | {f"docs/{name}" for name in conf.WHOLE_PAGES}
    assert all((folder / page).is_file() for page in listed) and "SKILL.md" in listed
    links = re.findall(r"\]\(([\w./-]+)", (folder / "SKILL.md").read_text(encoding="utf-8"))
    assert links and all((folder / link).is_file() for link in links)


def test_nothing_is_loaded_from_elsewhere(folder, site):
    styles = [path.read_text("utf-8") for path in folder.rglob("*.css")]
    loaded = [found for style in styles for found in re.findall(r"(?:@import|url\()[^;)]*", style)]
    for soup in site.values():
        loaded += [link["href"] for link in soup.find_all("link")]
        for name in ("src", "srcset", "data", "poster"):
            loaded += [tag[name] for tag in soup.find_all(attrs={name: True})]
    assert len(loaded) > 100
    assert not [address for address in loaded if "//" in address and "data:" not in address]


def test_every_figure_has_an_alt_text(site):
    assert all(len(image["alt"]) > 30 for soup in site.values() for image in soup.select("article img"))


@pytest.mark.parametrize("name", conf.WHOLE_PAGES)
def test_a_whole_page_opens_by_a_click_and_its_links_lead_to_pages(folder, site, name):
    links = [(page, link) for page, soup in site.items() for link in soup.select(f"article a[href$='{name}']")]
    assert {"index.html", "notebooks/02_rewards.html", "docs/instructor-guide.html"} <= {page for page, _ in links}
    assert not [link for _, link in links if link.has_attr("download") or not link.text.strip()]
    assert all((folder / page).parent.joinpath(link["href"]).is_file() for page, link in links)
    for link in site[f"docs/{name}"].select("a[href]"):
        file, _, heading = link["href"].partition("#")
        target = (folder / "docs" / file).resolve().relative_to(folder.resolve()).as_posix()
        assert not heading or site[target].find(id=heading)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_solutions_are_folded_and_formulas_are_shown(site, path):
    cells = nbformat.read(path, as_version=4).cells
    page = site[f"notebooks/{path.stem}.html"]
    folded = page.select("details:not([open]) .cell_input")
    assert len(folded) == sum(cell.metadata.get("jupyter", {}).get("source_hidden", False) for cell in cells)
    formulas = sum(cell.source.count("$$") // 2 for cell in cells if cell.cell_type == "markdown")
    assert len(page.find_all("math", display="block")) == formulas


@pytest.mark.parametrize("place", [Place("", "main"), Place("somebody/a-course", "trunk")])
def test_with_and_without_an_address_links_lead_to_pages_and_badges_are_words(place):
    text = "{{badges}}\n\n[rewards](02_rewards.ipynb), [costs](../docs/results.md#costs)"
    cell = {"cell_type": "markdown", "metadata": {}, "source": lesson_text(text, "03_grpo_lora", place)}
    source = [json.dumps({"cells": [cell]})]
    conf.prepare(None, "notebooks/03_grpo_lora", source)
    assert "[rewards](02_rewards.ipynb), [costs](../docs/results.md#costs)" in source[0]
    assert BY_HAND not in source[0] and "![" not in source[0]


@pytest.mark.skipif(not shutil.which("chromium"), reason="the search is tried in Chromium")
@pytest.mark.parametrize("words", ["probability tensor contains either", "unsloth_grpo_mini_batch"])
def test_the_search_finds_an_error_text_from_a_disk_without_a_network(folder, tmp_path, words):
    address = f"{(folder / 'search.html').as_uri()}?q={quote(words)}"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    options += [f"--user-data-dir={tmp_path}", "--virtual-time-budget=20000", "--dump-dom"]
    shown = subprocess.run(["chromium", *options, address], capture_output=True, text=True, check=True, timeout=120)
    found = BeautifulSoup(shown.stdout, "html.parser").select("#search-results li a")
    assert "grpo_check/docs/errors.html" in {link["href"].partition("#")[0].partition("?")[0] for link in found}
