"""Handouts are made from the guide, the quiz and the lessons, and each is one file that loads nothing."""

import base64
import re
import shutil
import subprocess

import browser
import handouts
import nbformat
import pytest
from bs4 import BeautifulSoup
from course import ROOT

PAGES = ["slides", "quiz", "cheat-sheets", "one-page", "exit-tickets", "assignment"]
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


@pytest.mark.parametrize("name", PAGES)
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
    links = [link["href"] for link in slides.select("nav a")]
    assert links[: len(LESSONS)] == [f"#lesson-{path.stem[:2]}" for path in LESSONS]
    assert all(slides.select_one(link) for link in links)


@pytest.mark.parametrize("title", handouts.PLANS)
def test_the_first_slide_lists_what_a_plan_shows_in_its_order(pages, title):
    plan = re.search(rf"^## {re.escape(title)}\n(.+?)^## ", GUIDE, re.MULTILINE | re.DOTALL)[1]
    [heading] = pages["slides"].find("section").find_all("h2", string=title)
    links = heading.find_next("nav").find_all("a")
    slides = pages["slides"].find_all("section")
    places = [slides.index(pages["slides"].select_one(link["href"])) for link in links]
    assert [link.text for link in links] == list(handouts.PLANS[title]) and places == sorted(places)
    starts = re.findall(r"^\| \d+ \| (\d+:\d+) \|", plan, re.MULTILINE)
    assert all(link.text.split()[0] in starts for link in links)


def test_a_figure_that_the_guide_names_is_on_a_slide(pages):
    advice = re.findall(r"\*\*(?:Draw\*\*|Ask:\*\*) .*?(?=^- )", GUIDE, re.MULTILINE | re.DOTALL)
    names = [name for text in advice for name in handouts.NAMED.findall(text) if handouts.figure(name)]
    alts = [picture["alt"] for picture in pages["slides"].find_all("img")]
    texts = pages["slides"].select("section > table, section > .two")
    assert len(alts) + len(texts) == len(names) >= 30 and min(map(len, alts)) > 30
    assert len(texts) == len(handouts.AS_TEXT) and set(handouts.STORED) <= set(names)


def test_the_plans_name_figures_of_the_slides():
    plans = re.findall(r"^\| \d+ \| \d+:\d+ \|.+\| ([^|]+) \|$", GUIDE, re.MULTILINE)
    names = [name for board in plans for name in handouts.NAMED.findall(board)]
    assert len(names) >= 6 and all(handouts.figure(name) for name in names)


def test_the_key_moment_is_on_the_slides_and_its_answer_comes_after_the_question(pages):
    slides = pages["slides"].find_all("section")
    start = slides.index(pages["slides"].select_one("#lesson-02"))
    following = slides[start + 1 : start + 8]
    assert [bool(slide.find("img")) for slide in following] == [False, False, True, False, True, False, True]
    assert following[0].find("pre").text.count("\n") == 4  # the four texts to vote on
    curve, question, *answers = following[2:]
    assert "correct" not in curve.img["alt"] and "Would you stop this run" in " ".join(question.text.split())
    hacked = [BeautifulSoup(handouts.figure(name), "html.parser").img["alt"] for name in ("cheat", "hack")]
    assert [slide.img["alt"] for slide in answers if slide.img] == hacked
    alts = [slide.img["alt"] for slide in slides if slide.find("img")]
    assert all(alts.count(alt) == 1 for alt in hacked)


def test_the_quiz_has_a_slide_for_each_question_with_its_choices_on_lines_of_their_own(pages):
    quiz, blocks = pages["quiz"], handouts.BLOCK.findall(handouts.QUIZ.read_text("utf-8"))
    asked = [question for question in quiz.select(".question") if not question.text.startswith("Exit ticket")]
    assert len(blocks) == 10 and len(asked) == 5 * len(blocks) == len(quiz.select(".question")) - len(blocks)
    choices = [[line.text[:3] for line in question.find_all("p") if line.text[:1] == "("] for question in asked]
    assert choices == [["(a)", "(b)", "(c)"]] * len(asked)
    answers = [folded.find("p").text[:3] for folded in quiz.select("details.answer")]
    assert sum(answer in ("(a)", "(b)", "(c)") for answer in answers) == len(asked)
    assert all(quiz.select_one(link["href"]) for link in quiz.select("nav a"))
    assert len(quiz.select(".question img")) == handouts.QUIZ.read_text("utf-8").count("](figures/")


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


def test_each_lesson_of_the_quiz_has_its_exit_ticket_twice_on_a_page(pages):
    quiz = [slide.text.strip().partition(": ")[2] for slide in pages["quiz"].select(".question")]
    quiz = [ticket for ticket in quiz if ticket]
    sheets = pages["exit-tickets"].find_all("section")
    assert len(sheets) == 10
    for sheet in sheets:
        one, other = sheet.find_all("article")
        assert one == other and one.p.text[1:] in " ".join(quiz) and len(one.find_all("hr")) >= 5


def test_the_assignment_has_its_commands_and_names_all_that_is_handed_in(pages):
    sheet = pages["assignment"]
    commands = " ".join(block.text for block in sheet.find_all("pre"))
    assert "grpo_utils new basic_grpo" in commands and "train.py" in commands and ">" not in sheet.main.text[:3]
    assert "tiny-model/" in sheet.text and "outputs/basic/model" in sheet.text


def test_one_page_has_the_loop_the_formula_the_tables_and_the_commands(pages):
    page = pages["one-page"]
    [loop] = page.find_all("img")
    assert loop["alt"].startswith("A loop.") and "(reward - mean) / (std + 0.0001)" in page.text
    assert all(code in page.text for _, codes, _ in handouts.guides.FAILURES for code in re.findall(r"\w+", codes))
    assert all(name in page.text for name in ("frac_reward_zero_std", "make run", "grpo-check probe", "make lab"))
    failing = page.find("h2", string="A failing run").find_next("table")
    assert len(failing.find_all("tr")) == len(handouts.guides.FAILURES) + 1


@pytest.mark.slow
@browser.needs_browser
def test_no_page_scrolls_sideways_on_a_phone_and_a_dark_page_is_dark(folder, tmp_path):
    with browser.chromium(tmp_path) as page:
        page.size(390, 844)
        page.scheme("dark")
        for name in PAGES:
            page.open(folder / f"{name}.html")
            page.run("document.querySelectorAll('details').forEach(folded => folded.open = true)")
            assert page.run("document.documentElement.scrollWidth") == 390, name
            assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)", name


@pytest.mark.slow
@browser.needs_browser
@pytest.mark.parametrize("name", ["slides", "quiz"])
def test_no_slide_is_cut_on_a_small_projector_with_its_answer_unfolded(folder, tmp_path, name):
    with browser.chromium(tmp_path) as page:
        page.size(1280, 720)
        page.open(folder / f"{name}.html")
        page.run("document.querySelectorAll('details.answer').forEach(answer => answer.open = true)")
        high = page.run("slides.map(slide => slide.getBoundingClientRect().height)")
    assert max(high) < 721


@pytest.mark.slow
@browser.needs_browser
@pytest.mark.parametrize(
    ("name", "sheets"), [("assignment", 1), ("exit-tickets", 10), ("cheat-sheets", 3), ("one-page", 1)]
)
def test_what_is_for_paper_prints_on_as_many_pages_as_the_guide_says(folder, tmp_path, name, sheets):
    with browser.chromium(tmp_path) as page:
        page.open(folder / f"{name}.html")
        printed = base64.b64decode(page.call("Page.printToPDF", preferCSSPageSize=True)["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == sheets


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("chromium"), reason="the slides are turned in Chromium")
def test_the_arrow_keys_turn_the_slides_and_the_right_one_unfolds_an_answer_first(folder, tmp_path):
    keys = ["ArrowRight", "ArrowRight", "ArrowRight", "PageDown", "ArrowDown", "ArrowLeft"]
    turned = f"""<script>addEventListener("load", () => {{
      const press = key => dispatchEvent(new KeyboardEvent("keydown", {{key}}));
      for (const key of {keys}) press(key);
      const here = slides.findIndex(slide => Math.abs(slide.getBoundingClientRect().top) < 2);
      const open = slides.filter(slide => slide.querySelector("details.answer[open]"));
      document.title = `at ${{here}}, open: ${{open.map(slide => slides.indexOf(slide))}}`;
    }})</script></body>"""
    page = tmp_path / "turned.html"
    page.write_text((folder / "slides.html").read_text("utf-8").replace("</body>", turned), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
    options += [f"--user-data-dir={tmp_path / 'user'}", "--virtual-time-budget=5000", "--dump-dom"]
    command = ["chromium", *options, page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert BeautifulSoup(shown, "html.parser").title.text == "at 3, open: 3"
