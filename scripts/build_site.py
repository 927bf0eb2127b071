"""Build pages of all lessons and documents in outputs/site/, which open from disk without a network.

    python scripts/build_site.py

The pages have no scripts. They load only the style sheet and the diagrams of docs next to them; the figures of lessons
are embedded. Links between lessons and documents lead to their pages. Solutions are folded.
"""

import re
import shutil
import sys
from html import escape
from pathlib import Path

import nbformat
from address import BY_HAND, ROOT, relative_links
from bs4 import BeautifulSoup
from nbconvert import HTMLExporter
from nbformat.v4 import new_markdown_cell, new_notebook
from pygments.formatters import HtmlFormatter

TARGET = ROOT / "outputs" / "site"
STYLE = Path(__file__).with_name("site.css")
#: A badge, which is a remote picture with a link. It becomes a text link.
BADGE = re.compile(r"\[!\[([^]]*)\]\(https?://[^)]*\)\]")
#: A link to a lesson or a document of the course, from either folder.
LOCAL_LINK = re.compile(r"(?:\.\./)?(?:notebooks/|docs/)?([\w-]+)\.(?:ipynb|md)(#.*)?")
#: Elements that make a browser fetch something; an <a> does so only when it is clicked.
LOADED = [
    *[(tag, "src") for tag in ("script", "img", "iframe", "source", "video", "audio", "track", "embed", "input")],
    *[("img", "srcset"), ("source", "srcset"), ("link", "href"), ("video", "poster"), ("object", "data")],
    *[(tag, name) for tag in ("image", "use") for name in ("href", "xlink:href")],
]

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav>{nav}</nav>
<main>
{body}
</main>
<nav>{nav}</nav>
</body>
</html>
"""


def page(book: nbformat.NotebookNode, title: str, nav: str) -> str:
    """A notebook as a complete page."""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = BADGE.sub(r"[\1]", relative_links(cell.source).replace(BY_HAND, ""))
    body, _ = HTMLExporter(template_name="basic", exclude_input_prompt=True).from_notebook_node(book)
    soup = BeautifulSoup(body, "html.parser")
    for change in (drop_scripts, rewrite_links, name_headings, fold_solutions, wrap_tables, break_names):
        change(soup)
    return PAGE.format(title=escape(title), nav=nav, body=soup)


def drop_scripts(soup: BeautifulSoup) -> None:
    """Remove widgets, which cannot run without a kernel."""
    for script in soup.find_all("script"):
        script.decompose()


def rewrite_links(soup: BeautifulSoup) -> None:
    """Make `03_grpo_lora.ipynb` and `../docs/results.md#costs` link to their pages. A template has none: it is text."""
    for link in soup.find_all("a", href=True):
        local = LOCAL_LINK.fullmatch(link["href"])
        if local:
            link["href"] = f"{local[1]}.html{local[2] or ''}"
        elif link["href"].startswith("../templates/"):
            link.unwrap()


def name_headings(soup: BeautifulSoup) -> None:
    """Give each heading the same anchor as on GitHub, so that links to sections work in both places."""
    for anchor in soup.select("a.anchor-link"):
        heading = anchor.parent
        text = heading.get_text().removesuffix(anchor.get_text())
        heading["id"] = re.sub(r"[^\w -]", "", text.strip().lower()).replace(" ", "-")
        anchor["href"] = f"#{heading['id']}"


def fold_solutions(soup: BeautifulSoup) -> None:
    """Fold the code of a solution, like the text before it."""
    for cell in soup.select(".celltag_solution"):
        details = cell.wrap(soup.new_tag("details"))
        summary = soup.new_tag("summary")
        summary.string = "Solution, the code"
        details.insert(0, summary)


def wrap_tables(soup: BeautifulSoup) -> None:
    """Put each table in a box that scrolls if the table is wider than the page."""
    for table in soup.find_all("table"):
        table.wrap(soup.new_tag("div", attrs={"class": "table", "tabindex": "0"}))


def break_names(soup: BeautifulSoup) -> None:
    """Let a long name in a table, such as `rewards/format_reward/mean`, wrap to the next line."""
    for code in soup.select("td code"):
        parts = re.split(r"(?<=[/_])", code.get_text())
        code.clear()
        for part in parts:
            code.extend([part, soup.new_tag("wbr")])
        code.contents[-1].decompose()


def loaded_from_elsewhere(html: str) -> list[str]:
    """Everything that a browser would fetch from elsewhere, to report as an error."""
    soup = BeautifulSoup(html, "html.parser")
    found = [tag[name] for kind, name in LOADED for tag in soup.find_all(kind, attrs={name: True})]
    styles = [style.get_text() for style in soup.find_all("style")] + [tag["style"] for tag in soup.select("[style]")]
    found += re.findall(r"(?:@import|url\()[^;)]*", ";".join(styles))
    return [address[:80] for address in found if not address.startswith("data:") and "//" in address]


def title_of(book: nbformat.NotebookNode) -> str:
    return book.cells[0].source.splitlines()[0].removeprefix("# ")


def promise_of(book: nbformat.NotebookNode) -> str:
    """The lesson's "You will be able to ...", up to the first period, colon or semicolon."""
    text = " ".join(book.cells[0].source.split())
    return re.search(r"\*\*You will be able to\*\* (.+?)[.:;] ", text)[1]


def minutes_of(book: nbformat.NotebookNode) -> str:
    """The time for Run All on a CPU, from the lesson's table, without links."""
    cell = re.search(r"\| time for Run All \| (.+?) \|", book.cells[0].source)[1]
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell)


def as_book(text: str) -> nbformat.NotebookNode:
    """Markdown as a notebook with one cell, whose id is always the same."""
    return new_notebook(cells=[new_markdown_cell(text, id="text")])


def index(lessons: dict, documents: dict) -> nbformat.NotebookNode:
    """The first page: a table of the lessons, and the documents."""
    rows = [
        f"| [{title_of(book)}]({name}.ipynb) | {promise_of(book)} | {minutes_of(book)} |"
        for name, book in lessons.items()
    ]
    lines = [
        "# A GRPO course that runs",
        "The lessons as they ran on a CPU, with their outputs. These pages are for reading without a network; "
        "to run a lesson, open its notebook.",
        "\n".join(["| lesson | you will be able to | Run All on a CPU |", "|---|---|---|", *rows]),
        "## Reference",
        "\n".join(f"- [{title_of(book)}]({name}.md)" for name, book in documents.items()),
    ]
    return as_book("\n\n".join(lines))


def nav_of(name: str, names: list[str]) -> str:
    """Links to the first, the previous and the next page."""
    place = names.index(name)
    links = ['<a href="index.html">All lessons</a>']
    if place > 0:
        links.append(f'<a href="{names[place - 1]}.html" rel="prev">Previous: {names[place - 1][:2]}</a>')
    if place + 1 < len(names):
        links.append(f'<a href="{names[place + 1]}.html" rel="next">Next: {names[place + 1][:2]}</a>')
    return " ".join(links)


def style() -> str:
    """The course's style rules, and Pygments' colors for code."""
    return STYLE.read_text(encoding="utf-8") + "\n" + HtmlFormatter(style="friendly").get_style_defs(".highlight")


def main(target: Path = TARGET) -> None:
    target.mkdir(parents=True, exist_ok=True)
    lessons = {p.stem: nbformat.read(p, as_version=4) for p in sorted((ROOT / "notebooks").glob("*.ipynb"))}
    documents = {p.stem: as_book(p.read_text(encoding="utf-8")) for p in sorted((ROOT / "docs").glob("*.md"))}
    pages = {"index": page(index(lessons, documents), "A GRPO course that runs", "")}
    for name, book in lessons.items():
        pages[name] = page(book, title_of(book), nav_of(name, list(lessons)))
    for name, book in documents.items():
        pages[name] = page(book, title_of(book), '<a href="index.html">All lessons</a>')
    for name, html in pages.items():
        if elsewhere := loaded_from_elsewhere(html):
            sys.exit(f"Error: {name} would load {', '.join(elsewhere)}, but the page must open without a network.")
        (target / f"{name}.html").write_text(html, encoding="utf-8")
    shutil.copytree(ROOT / "docs" / "figures", target / "figures", dirs_exist_ok=True)
    (target / "style.css").write_text(style(), encoding="utf-8")
    print(f"{len(pages)} pages: open {target / 'index.html'} in a browser.")


if __name__ == "__main__":
    main()
