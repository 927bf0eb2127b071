"""Sphinx's configuration: a landing page, and the README, lessons, documents and templates as pages.

`make html` writes them to outputs/site/html/. They open without a network and load nothing from elsewhere: formulas
are MathML. The files in docs/site/ are what only these pages have.
"""

import json
import re
import sys
from collections.abc import Collection
from fnmatch import fnmatch
from html import escape, unescape
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
sys.path.insert(0, str(Path(__file__).parent / "site"))
from address import BY_HAND, Place, current, relative_links
from error_tables import RECORDS, error_tables
from landing import doors, gallery, recorded_runs

project = html_title = "A GRPO course that runs"
copyright = "the authors of this course, under the Apache License 2.0"
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "notebooks/*.ipynb", "docs/*.md"]
include_patterns += ["grpo_check/README.md", "grpo_check/docs/*.md"]
include_patterns += ["templates/README.md", "templates/*/README.md"]
exclude_patterns = [".*", "outputs"]  # Sphinx does not enter these folders
extensions = ["myst_nb"]
nb_execution_mode = "off"
nb_code_prompt_show = nb_code_prompt_hide = "The code of this cell"
myst_enable_extensions = ["dollarmath", "tasklist"]
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["pages.css", "site/pages.js", "figures/card.png"]
html_css_files, html_js_files = ["pages.css"], ["pages.js"]
html_favicon = "site/icon.svg"
html_additional_pages = {"index": "landing.html"}
templates_path = ["site"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a browser refuses for pages on a disk

#: A badge, which is a remote picture with a link. It becomes a text link.
BADGE = re.compile(r"\[!\[([^]]*)\]\(https?://[^)]*\)\]")
LINK = re.compile(r"\]\(([\w./-]+)\)")
#: Pages that are copied, what each is about, and a link to one. Sphinx would offer the file as a download.
WHOLE_PAGES = {
    "pay-a-model.html": "Write a reward. See what a policy learns.",
    "watch-it-cheat.html": "Six recorded training runs: what each reward pays for, and what the policy writes.",
}
WHOLE_PAGE = re.compile(rf"\[([^][]*)\]\(((?:[\w.-]+/)*(?:{'|'.join(map(re.escape, WHOLE_PAGES))})(?:#[^()\s]*)?)\)")
#: What only a reader on GitHub has to do.
ON_GITHUB = re.compile(r" ?\(On GitHub, [^()]*\)")
#: The one that the landing page shows in a frame.
FRAMED = "pay-a-model.html"
#: A link of a whole page to a lesson or a document, which has a page of its own here.
SOURCE_LINK = re.compile(r'href="([\w./-]+)\.(?:ipynb|md)\b')
#: The sections of llms.txt, and how the names of their pages start.
INDEX = {"Lessons": "notebooks/", "Reference": "docs/", "Checks": "grpo_check/", "Templates": "templates/"}
#: The side bar: its groups, and the pages of each with the title that it shows; "" is the page's own.
GROUPS = {
    "Start": {
        "self": "Overview",
        "docs/install": "Install",
        "docs/gpu": "On a GPU",
        "templates/README": "Templates",
    },
    "Core lessons": {f"notebooks/{number:02}_*": "" for number in range(10)},
    "Further lessons": {"notebooks/*": ""},
    "Reference": {
        "docs/what-to-try-first": "What to try first",
        "docs/rewards": "Reward functions",
        "docs/settings": "Settings",
        "grpo_check/README": "grpo-check",
        "grpo_check/docs/checks": "What each check does",
        "docs/evaluation": "Evaluation",
        "docs/results": "Results",
        "docs/claims": "Claims about GRPO",
        "docs/map": "The field in late 2026",
        "docs/glossary": "Glossary",
        "docs/troubleshooting": "Troubleshooting",
    },
    "Teach": {"docs/instructor-guide": "Instructor guide", "docs/quiz": "Quiz and exit tickets"},
    "To look up": {
        "docs/troubleshooting-training": "Problems in training",
        "docs/troubleshooting-gpu": "Problems on GPUs",
        "grpo_check/docs/errors": "Error texts",
        "grpo_check/docs/fixed": "Bugs and their fixes",
        "docs/other-trainers": "From ms-swift, verl, axolotl",
        "docs/*": "",
        "templates/*/README": "",
        "CONTRIBUTING": "Contribute",
        "*": "",
    },
}
#: Where the head of a whole page takes more tags, and its own description.
VIEWPORT = '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
DESCRIPTION = re.compile(r'<meta name="description".*\n')


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Let every link and picture of a page work without a network; add the side bar to the overview, and the known
    error texts to their page.

    A lesson links to the course's public address, if there is one, because Colab has no other files. Here it has them.
    """
    text = BADGE.sub(r"[\1]", source[0])
    if name.startswith("notebooks/"):
        source[0] = lesson(relative_links(text).replace(BY_HAND, ""))
        return
    text = opened_by_a_click(ON_GITHUB.sub("", text))
    here = (app.srcdir / name).parent
    source[0] = LINK.sub(lambda link: readme_of_folder(link, here), text)
    if name == root_doc:
        source[0] += contents(app.env.found_docs)
        app.env.note_reread()  # a page that is new or gone is a reason to write the side bar again
    if name == "grpo_check/docs/errors":
        source[0] += f"\n{error_tables()}\n"
        app.env.note_dependency(RECORDS)  # a new record is a reason to write the page again


def contents(pages: Collection[str]) -> str:
    """The side bar in Markdown. Each page is in the first list that names it; the last list takes the rest."""
    left = sorted(set(pages) - {root_doc})
    named = {name for titles in GROUPS.values() for name in titles}
    text = ""
    for caption, titles in GROUPS.items():
        entries = []
        for name, title in titles.items():
            found = [page for page in left if page == name or (page not in named and fnmatch(page, name))]
            found = ["self"] if name == "self" else found
            left = [page for page in left if page not in found]
            entries += [f"{title} <{page}>" if title else page for page in found]
        text += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n" + "\n".join(entries) + "\n```\n"
    return text


def opened_by_a_click(text: str) -> str:
    """Markdown whose links to whole pages open them."""
    return WHOLE_PAGE.sub(r'<a href="\2">\1</a>', text)


def readme_of_folder(link: re.Match, here: Path) -> str:
    """A link to a folder, such as a template, as a link to its README; any other link as it is."""
    return f"]({link[1]}/README.md)" if (here / link[1]).is_dir() else link[0]


def lesson(text: str) -> str:
    """A notebook whose hidden cells are folded and whose figures have the alt text that is stored with them."""
    book = json.loads(text)
    for cell in book["cells"]:
        metadata = cell["metadata"]
        if cell["cell_type"] == "markdown":
            cell["source"] = opened_by_a_click("".join(cell["source"]))
        if metadata.get("jupyter", {}).get("source_hidden"):  # the installation, and solutions
            metadata["tags"] = [*metadata.get("tags", []), "hide-cell"]
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                metadata["mystnb"] = {"image": {"alt": output["metadata"]["image/png"]["alt"]}}
    return json.dumps(book)


def mathml(page: HTML5Translator, formula: nodes.Element) -> None:
    """Write a formula in the form that browsers read themselves."""
    page.body.append(convert(formula.astext(), display="block" if formula.tagname == "math_block" else "inline"))
    raise nodes.SkipNode


def site_address(place: Place) -> str:
    """Where GitHub publishes these pages, or "" while no address is set."""
    owner, _, name = place.repo.partition("/")
    root = f"https://{owner.lower()}.github.io/"
    return f"{root if name.lower() == f'{owner.lower()}.github.io' else f'{root}{name}/'}" if place.repo else ""


html_baseurl = site_address(current())


def cards(title: str, said: str, name: str, address: str) -> str:
    """What a search engine or a chat shows of a page. A picture needs an address, so it is left out without one."""
    named = {"og:title": title, "og:description": said, "og:site_name": project, "og:type": "website"}
    if address:
        named |= {"og:url": f"{address}{name}.html", "og:image": f"{address}_static/card.png"}
        named |= {"og:image:width": "1200", "og:image:height": "630", "og:image:alt": "Two curves of one training run."}
    tags = [f'<meta property="{key}" content="{escape(value)}">' for key, value in named.items()]
    tags += [f'<meta name="description" content="{escape(said)}">']
    return "\n".join([*tags, *['<meta name="twitter:card" content="summary_large_image">'] * bool(address)]) + "\n"


def complete(app: Sphinx, name: str, _: str, context: dict, doctree: nodes.document | None) -> None:
    """Give a page its description, a side bar that screen readers understand, and the landing page what it shows."""
    title = project if name == "index" else unescape(re.sub("<[^>]+>", "", context.get("title", project)))
    said = opening(app, root_doc if doctree is None else name) or opening(app, root_doc)
    context["metatags"] = context.get("metatags", "") + cards(title, said, name, html_baseurl)
    context["master_doc"] = "index"  # where the name of the course leads
    context["furo_navigation_tree"] = side_bar(context["furo_navigation_tree"], context["pathto"]("index"), name)
    if "body" in context:  # what a fold shows is its name, for people who do not see it too
        context["body"] = context["body"].replace(' aria-label="Toggle hidden content"', "")
    if name == "index":
        overview = app.env.get_and_resolve_doctree(root_doc, app.builder)
        context["doors"], context["lead"] = doors(app, overview), opening(app, root_doc)
        context["runs"] = gallery(recorded_runs(app.srcdir / "docs" / "watch-it-cheat.html"))


def side_bar(tree: str, home: str, name: str) -> str:
    """The theme's side bar with a link to the landing page, levels for its headings, and the last group folded."""
    here = ' current current-page"' if name == "index" else '"'
    first = f'<li class="toctree-l1{here}><a class="reference internal" href="{home}">Home</a></li>'
    tree = re.sub(r"(<ul[^>]*>)", rf"\1{first}", tree, count=1)
    head, found, last = tree.replace('role="heading"', 'role="heading" aria-level="2"').rpartition("<p ")
    caption, _, pages = last.partition("</p>")
    shown = " open" * ("current-page" in pages)
    return f"{head}<details{shown}><summary>{found}{caption}</p></summary>{pages}</details>"


def copy_pages(app: Sphinx, error: Exception | None) -> None:
    """Copy the whole pages, with links that lead to pages, also from within a frame of the landing page."""
    if error:
        return
    for name, said in WHOLE_PAGES.items():
        text = DESCRIPTION.sub("", (app.srcdir / "docs" / name).read_text(encoding="utf-8"))
        title = re.search("<title>(.*)</title>", text)[1].removeprefix("Replay: ")
        tags = cards(title, said, f"docs/{name.removesuffix('.html')}", html_baseurl)
        text = SOURCE_LINK.sub(r'href="\1.html', text).replace(VIEWPORT, VIEWPORT + tags, 1)
        if name == FRAMED:
            framed = (Path(app.confdir) / "site" / "framed.html").read_text(encoding="utf-8")
            text = text.replace("</head>", f"{framed}</head>", 1)
        (app.outdir / "docs" / name).write_text(text, encoding="utf-8")


def write_index_for_programs(app: Sphinx, error: Exception | None) -> None:
    """llms.txt, which lists the pages for programs that read (llmstxt.org), and SKILL.md, their guide to a project."""
    if error:
        return
    skill = (app.srcdir / "SKILL.md").read_text(encoding="utf-8")
    (app.outdir / "SKILL.md").write_text(re.sub(r"\]\(([\w./-]+)\.md\b", r"](\1.html", skill), encoding="utf-8")
    lines = [
        f"# {project}",
        "",
        f"> {opening(app, root_doc)}",
        "",
        "- [SKILL.md](SKILL.md): how to train with GRPO, step by step",
    ]
    for title, start in INDEX.items():
        names = sorted(name for name in app.env.found_docs if name.startswith(start) and name != root_doc)
        lines += ["", f"## {title}", ""]
        lines += [f"- [{app.env.titles[name].astext()}]({name}.html): {opening(app, name)}" for name in names]
    (app.outdir / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def opening(app: Sphinx, name: str) -> str:
    """The first sentence of a page."""
    paragraphs = (node.astext().replace("\n", " ") for node in app.env.get_doctree(name).findall(nodes.paragraph))
    said = (re.match(r".{30,}?[.?!:](?= |$)", text) for text in paragraphs)  # badges say no sentence
    return next((found[0] for found in said if found), "")


def setup(app: Sphinx) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("source-read", prepare)
    app.connect("html-page-context", complete, priority=900)  # after the theme
    app.connect("build-finished", copy_pages)
    app.connect("build-finished", write_index_for_programs)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
