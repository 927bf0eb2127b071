"""Pages that open without a network: links lead to pages, the search finds, figures keep their alt text."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from urllib.parse import quote

import nbformat
import pytest
import yaml
from browser import chromium, needs_browser
from bs4 import BeautifulSoup
from course import ROOT
from grpo_check.replay.page import runs_of
from PIL import Image
from preview import CARD, card

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


def words(text: str) -> str:
    return " ".join(re.sub(r"[*`]|\[|\]\([^)]*\)", "", text).split())


def test_the_landing_page_has_the_four_doors_of_the_readme_and_its_first_sentence(site):
    readme, page = (ROOT / "README.md").read_text(encoding="utf-8"), site["index.html"]
    rows = re.findall(r"^\| (?=\*\*)(.+) \| (.+) \| (.+) \|$", readme, re.MULTILINE)
    doors = {
        door.h3.text: [words(row.get_text(" ")) for row in door.find_all("p")] for door in page.select(".doors li")
    }
    assert len(doors) == 4 and sum(map(len, doors.values())) == len(rows)
    for wanted, start, time in rows:
        bold, rest = re.match(r"\*\*(.+)\*\*,? ?(.*)", wanted).groups()
        told = [re.sub(" ([,.)])", r"\1", row).replace("( ", "(") for row in doors[bold.capitalize()]]
        assert any(all(words(part) in row for part in (rest, start, time)) for row in told), (wanted, told)
    assert words(page.select_one(".lead").text) in words(readme)
    assert page.select_one("article a[href='README.html']")
    links = page.select("article a[href]:not([href^='http'])")
    for link in links:
        file, _, heading = link["href"].partition("#")
        assert not heading or heading.startswith("run=") or site[file or "index.html"].find(id=heading), link


def test_the_gallery_has_the_curves_of_the_recorded_runs(site):
    runs = runs_of((ROOT / "docs" / "watch-it-cheat.html").read_text(encoding="utf-8"))
    shown = site["index.html"].select(".runs li")
    assert len(shown) == len(runs) == 6
    for number, (run, item) in enumerate(zip(runs, shown), 1):
        assert item.a["href"] == f"docs/watch-it-cheat.html#run={number}" and item.a.text == run["name"]
        paid = next(curve["points"] for curve in run["curves"] if curve["kind"] == "reward")
        kind = [curve for curve in run["curves"] if curve["kind"] == "correctness"]
        right = next((curve for curve in kind if curve["label"] == "correct and in form"), kind[0])["points"]
        assert item.select_one(".paid b").text == f"{paid[0][1]:.2f} → {paid[-1][1]:.2f}"
        assert item.select_one(".right b").text == f"{right[0][1]:.0%} → {right[-1][1]:.0%}"
        assert [len(line["points"].split()) for line in item.find_all("polyline")] == [len(paid), len(right)]
        assert all(len(picture["aria-label"]) > 30 for picture in item.find_all("svg", role="img"))
        assert item.select_one(".said").text in run["ending"]


def test_the_side_bar_has_each_page_once_and_only_the_last_group_is_folded(site):
    documents = {name for name in site if name not in ("search.html", "genindex.html")}
    documents -= {f"docs/{name}" for name in conf.WHOLE_PAGES}
    bar = site["index.html"].select_one(".sidebar-tree")
    links = Counter(link["href"].removeprefix("#") or "index.html" for link in bar.select("a"))
    assert set(links) == documents and set(links.values()) == {1}
    captions = [caption.get_text() for caption in bar.select(".caption")]
    assert captions == list(conf.GROUPS)
    assert [fold.summary.text for fold in bar.select("details:not([open])")] == captions[-1:]
    assert not bar.select("[role=heading]:not([aria-level])")
    assert site["CONTRIBUTING.html"].select_one(".sidebar-tree details[open] .current-page")
    assert all(soup.select_one(".sidebar-brand")["href"].endswith(("index.html", "#")) for soup in pages_of(site))


def pages_of(site):
    return [soup for soup in site.values() if soup.select_one(".sidebar-tree")]


def test_a_page_that_no_list_names_is_in_the_last_group_and_a_name_without_a_page_in_none():
    pages = ["README", "docs/new", "docs/gpu", "notebooks/00_start", "notebooks/10_sft_then_grpo", "more/deep/page"]
    text = conf.contents(pages)
    assert text.index("On a GPU <docs/gpu>") < text.index("Core") < text.index("notebooks/00_start")
    assert text.index("Further") < text.index("notebooks/10_sft") < text.index("To look up") < text.index("docs/new")
    assert "more/deep/page" in text and "docs/install" not in text


def test_every_page_has_a_description_an_icon_and_a_card(folder, site):
    assert all(soup.select_one("link[rel~=icon]") for soup in pages_of(site))
    for name, soup in site.items():
        said = [tag["content"] for tag in soup.select("meta[name=description], meta[property='og:description']")]
        assert len(said) == 2 and said[0] == said[1] and len(said[0]) > 30, name
        assert soup.select_one("meta[property='og:title']")["content"]
        assert bool(soup.select("meta[property='og:image']")) == bool(conf.html_baseurl)
    assert site["index.html"].title.text == conf.project
    assert (folder / "_static" / "card.png").read_bytes() == CARD.read_bytes()


@pytest.mark.parametrize(
    ("repo", "address"),
    [
        ("", ""),
        ("Somebody/a-course", "https://somebody.github.io/a-course/"),
        ("Somebody/somebody.github.io", "https://somebody.github.io/"),
    ],
)
def test_a_card_has_a_picture_at_an_absolute_address_or_none(repo, address):
    assert conf.site_address(Place(repo, "main")) == address
    card = BeautifulSoup(conf.cards('"A" & B', "One sentence.", "docs/a", address), "html.parser")
    tags = {tag.get("property"): tag["content"] for tag in card.find_all("meta")}
    assert tags["og:title"] == '"A" & B'
    assert tags.get("og:image") == (f"{address}_static/card.png" if address else None)
    assert tags.get("og:url") == (f"{address}docs/a.html" if address else None)


def test_the_picture_of_the_card_is_current_and_has_the_size_that_the_card_says():
    kept, drawn = Image.open(CARD), Image.open(io.BytesIO(card()))
    assert kept.size == (1200, 630) and kept.tobytes() == drawn.tobytes(), "make figures"


def test_the_pages_are_small_enough_for_a_stick_and_a_slow_network(folder):
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 15e6


@needs_browser
def test_the_landing_page_trains_in_its_frame_and_what_scrolls_takes_the_focus(folder, tmp_path):
    with chromium(tmp_path) as page:
        page.size(390, 844)
        page.open(folder / "index.html")
        height = "parseInt(document.getElementById('pay').style.height)"
        page.run(
            f"new Promise((done) => {{ const look = () => {height} > 600 ? done() : setTimeout(look, 20); look(); }})"
        )
        frame = page.call("Page.getFrameTree")["frameTree"]["childFrames"][0]["frame"]
        assert frame["url"].endswith("docs/pay-a-model.html")
        world = page.call("Page.createIsolatedWorld", frameId=frame["id"])["executionContextId"]
        shown = "document.documentElement.scrollHeight <= innerHeight && !document.getElementById('page').hidden"
        look = f"{shown} && document.querySelector('base').target"
        answer = page.call("Runtime.evaluate", expression=look, contextId=world, returnByValue=True)
        assert answer["result"]["value"] == "_top"
        assert page.run("document.documentElement.scrollWidth") == 390
        page.open(folder / "docs" / "gpu.html")
        page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        scrolls = (
            "[...document.querySelectorAll('article pre, .table-wrapper')].filter((e) => e.scrollWidth > e.clientWidth)"
        )
        assert page.run(f"{scrolls}.length") > 0 and page.run(f"{scrolls}.every((e) => e.tabIndex === 0)")


@pytest.mark.parametrize(
    ("event", "address", "pages", "publishes"),
    [
        ("push", "Somebody/a-course", "workflow", True),
        ("push", "", "workflow", False),
        ("push", "another/course", "workflow", False),
        ("push", "Somebody/a-course", "legacy", False),
        ("push", "Somebody/a-course", None, False),
        ("workflow_dispatch", "", None, True),
    ],
)
def test_a_push_publishes_once_the_address_is_set_and_pages_are_on(tmp_path, event, address, pages, publishes):
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "pages.yml").read_text(encoding="utf-8"))
    [script] = [step["run"] for step in workflow["jobs"]["ready"]["steps"] if step.get("id") == "look"]
    options = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    options = re.sub("^Repository = .*$", f'Repository = "https://github.com/{address}"', options, flags=re.MULTILINE)
    (tmp_path / "pyproject.toml").write_text(options, encoding="utf-8")
    gh = tmp_path / "gh"
    gh.write_text(f"#!/bin/sh\necho {pages}\n" if pages else "#!/bin/sh\necho '404' >&2\nexit 1\n", encoding="utf-8")
    gh.chmod(0o755)
    variables = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_EVENT_NAME": event,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "somebody/a-course",
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=variables, check=True, capture_output=True)
    assert "publish=yes\n" in (tmp_path / "output").read_text() if publishes else not (tmp_path / "output").exists()


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
        loaded += [link["href"] for link in soup.find_all("link") if "canonical" not in link["rel"]]
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
    assert not page.select("summary[aria-label]")  # it would hide what the fold says
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
