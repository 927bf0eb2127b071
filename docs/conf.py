"""Sphinx's configuration: the README, lessons, documents and templates as pages that open without a network.

`make html` writes them to outputs/site/html/. The pages load nothing from elsewhere: formulas are MathML.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parent.parent / "scripts"))
from address import BY_HAND, relative_links
from error_tables import RECORDS, error_tables

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
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_search_summary = False  # it is fetched, which a browser refuses for pages on a disk

#: A badge, which is a remote picture with a link. It becomes a text link.
BADGE = re.compile(r"\[!\[([^]]*)\]\(https?://[^)]*\)\]")
LINK = re.compile(r"\]\(([\w./-]+)\)")
#: Pages that are copied as they are, and a link to one. Sphinx would offer the file as a download.
WHOLE_PAGES = ("pay-a-model.html", "watch-it-cheat.html")
WHOLE_PAGE = re.compile(rf"\[([^][]*)\]\(((?:[\w.-]+/)*(?:{'|'.join(map(re.escape, WHOLE_PAGES))}))\)")
#: A link of a whole page to a lesson or a document, which has a page of its own here.
SOURCE_LINK = re.compile(r'href="([\w./-]+)\.(?:ipynb|md)\b')
#: The sections of llms.txt, and how the names of their pages start.
INDEX = {"Lessons": "notebooks/", "Reference": "docs/", "Checks": "grpo_check/", "Templates": "templates/"}
CONTENTS = """
```{toctree}
:hidden:
:glob:
:caption: Lessons
notebooks/*
```
```{toctree}
:hidden:
:glob:
:caption: Reference
docs/*
CONTRIBUTING
```
```{toctree}
:hidden:
:glob:
:caption: grpo-check
grpo_check/README
grpo_check/docs/*
```
```{toctree}
:hidden:
:glob:
:caption: Templates
templates/README
templates/*/README
```
"""


def prepare(app: Sphinx, name: str, source: list[str]) -> None:
    """Let every link and picture of a page work without a network; add the contents to the first page, and the known
    error texts to theirs.

    A lesson links to the course's public address, if there is one, because Colab has no other files. Here it has them.
    """
    text = BADGE.sub(r"[\1]", source[0])
    if name.startswith("notebooks/"):
        source[0] = lesson(relative_links(text).replace(BY_HAND, ""))
        return
    text = opened_by_a_click(text)
    here = (app.srcdir / name).parent
    source[0] = LINK.sub(lambda link: readme_of_folder(link, here), text)
    if name == root_doc:
        source[0] += CONTENTS
    if name == "grpo_check/docs/errors":
        source[0] += f"\n{error_tables()}\n"
        app.env.note_dependency(RECORDS)  # a new record is a reason to write the page again


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


def copy_pages(app: Sphinx, error: Exception | None) -> None:
    """Let the first page open as index.html too, where people and web servers look, and copy the whole pages."""
    if error:
        return
    shutil.copy(app.outdir / f"{root_doc}.html", app.outdir / "index.html")
    for name in WHOLE_PAGES:
        text = (app.srcdir / "docs" / name).read_text(encoding="utf-8")
        (app.outdir / "docs" / name).write_text(SOURCE_LINK.sub(r'href="\1.html', text), encoding="utf-8")


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
    return next((re.split(r"(?<=[.?!]) ", text)[0] for text in paragraphs if len(text) > 30), "")


def setup(app: Sphinx) -> None:
    """Connect the functions above to Sphinx."""
    app.connect("source-read", prepare)
    app.connect("build-finished", copy_pages)
    app.connect("build-finished", write_index_for_programs)
    app.add_html_math_renderer("mathml", (mathml, None), (mathml, None))
