"""Slides and cheat sheets are made from the guide and the lessons, and each is one file that loads nothing."""

import re
import shutil
import subprocess

import handouts
import nbformat
import pytest
from bs4 import BeautifulSoup
from conftest import ROOT

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
GUIDE = handouts.GUIDE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handouts")
    handouts.main(folder)
    return folder


@pytest.fixture(scope="module")
def pages(folder):
    return {path.stem: BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["slides", "cheat-sheets"])
def test_a_page_loads_nothing_and_its_relative_links_are_gone(pages, name):
    page = pages[name]
    assert not page.find_all(["link", "iframe", "object"]) and not page.find_all("script", src=True)
    assert all(picture["src"].startswith("data:image/") for picture in page.find_all("img"))
    assert all(re.match("https?:|#", link["href"]) for link in page.find_all("a"))
    assert "url(" not in page.style.text and "@import" not in page.style.text


def test_each_lesson_has_its_questions_with_folded_answers(pages):
    slides = pages["slides"]
    asked = slides.select(".question")
    assert len(asked) == len(slides.select("details.answer:not([open])")) >= 2 * len(LESSONS)
    assert all(question.text.strip().endswith(("?", "bets.")) and "*" not in question.text for question in asked)
    assert [link["href"] for link in slides.select("nav a")] == [f"#lesson-{path.stem[:2]}" for path in LESSONS]
    assert all(slides.select_one(link["href"]) for link in slides.select("nav a"))


def test_a_drawing_that_the_guide_names_is_on_a_slide(pages):
    drawn = re.findall(r"\*\*Draw\*\* .*?(?=^- )", GUIDE, re.MULTILINE | re.DOTALL)
    names = [name for text in drawn for name in re.findall(r"`(\w+)`", text) if handouts.picture(name)]
    alts = [picture["alt"] for picture in pages["slides"].find_all("img")]
    assert len(alts) == len(names) >= 6 and min(map(len, alts)) > 30


def test_every_row_of_every_cheat_sheet_is_on_the_page(pages):
    rows = 0
    for path in LESSONS:
        cells = nbformat.read(path, as_version=4).cells
        [sheet] = [
            text
            for cell in cells
            for text in re.findall(r"^## \d+\. Cheat sheet(?s:.+?)(?=^## |\Z)", cell.source, re.M)
        ]
        rows += len(re.findall(r"^\|(?!-)", sheet, re.M))  # without the line below the heading
    assert len(pages["cheat-sheets"].find_all("section")) == len(LESSONS)
    assert len(pages["cheat-sheets"].find_all("tr")) == rows


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="the slides are turned in Chromium")
def test_the_arrow_keys_turn_the_slides(folder, tmp_path):
    turned = """<script>addEventListener("load", () => {
      const press = key => dispatchEvent(new KeyboardEvent("keydown", {key}));
      for (const key of ["ArrowRight", "PageDown", "ArrowRight", "ArrowLeft"]) press(key);
      document.title = slides.findIndex(slide => Math.abs(slide.getBoundingClientRect().top) < 2);
    })</script></body>"""
    page = tmp_path / "turned.html"
    page.write_text((folder / "slides.html").read_text("utf-8").replace("</body>", turned), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    options += [f"--user-data-dir={tmp_path / 'user'}", "--virtual-time-budget=5000", "--dump-dom"]
    command = ["chromium", *options, page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert BeautifulSoup(shown, "html.parser").title.text == "2"
