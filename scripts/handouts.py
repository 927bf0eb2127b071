"""Write slides and a page of all cheat sheets to outputs/handouts/. Both are single files that need no network.

    python scripts/handouts.py     # or: make handouts

The slides show the drawings and questions of "Draw, ask, expect" in docs/instructor-guide.md. The cheat sheets are
those of the lessons. Edit them there.
"""

import re
from base64 import b64encode
from html import escape
from pathlib import Path

import nbformat
from address import ROOT
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from PIL import Image
from workshop import LINK

TARGET = ROOT / "outputs" / "handouts"
GUIDE = ROOT / "docs" / "instructor-guide.md"
PICTURES, FIGURES = ROOT / "grpo_utils" / "plots" / "pictures", ROOT / "docs" / "figures"
#: A lesson in the guide: its number, title and advice.
LESSON = re.compile(r"^### (\d\d) (.+?)\n(.+?)(?=^###? )", re.MULTILINE | re.DOTALL)
#: An item of the advice: what to draw, or what to ask.
ITEM = r"^- \*\*{}:?\*\* (.+?)(?=^- |\Z)"
QUESTION = re.compile(r"(.+?)\s\*(.+?)\*(?:\s+|$)", re.DOTALL)
SHEET = re.compile(r"^## \d+\. Cheat sheet.*?\n(.+?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""
SLIDES_STYLE = """
html { scroll-snap-type: y mandatory; font: clamp(18px, 2.6vw, 40px)/1.35 system-ui, sans-serif; }
body { margin: 0; color: #1b1b1b; background: #fff; }
section { box-sizing: border-box; min-height: 100vh; padding: 4vh 6vw; scroll-snap-align: start;
  display: flex; flex-direction: column; justify-content: center; border-bottom: 1px solid #ddd; }
h1, h2 { margin: 0 0 2vh; line-height: 1.15; } h2 { font-size: 1em; color: #595959; font-weight: 600; }
p { margin: 0 0 2vh; } .question { font-size: 1.5em; }
img { max-width: 100%; max-height: 74vh; margin: auto; object-fit: contain; }
summary { cursor: pointer; color: #0b5cad; } .board { font-size: .6em; }
nav { columns: 2; font-size: .8em; margin-bottom: 2vh; } nav a { display: block; color: #0b5cad; }
.keys { font-size: .6em; color: #595959; }
@media (max-width: 600px) { nav { columns: 1; } }
@page { size: 320mm 180mm; margin: 0; }
@media print { section { height: 100vh; break-after: page; border: 0; } }
"""
#: The arrow keys and the keys of a presenter turn the slides; a print shows all answers.
SLIDES_SCRIPT = """<script>
const slides = [...document.querySelectorAll("section")];
const turn = {ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1};
addEventListener("keydown", event => {
  if (!(event.key in turn)) return;
  event.preventDefault();
  const here = slides.findIndex(slide => slide.getBoundingClientRect().bottom > innerHeight / 2);
  slides[here + turn[event.key]]?.scrollIntoView();
});
addEventListener("beforeprint", () => document.querySelectorAll(".answer").forEach(answer => answer.open = true));
</script>"""
SHEETS_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 1em; color: #1b1b1b; background: #fff; }
main { columns: 34em; column-gap: 2em; } section { break-inside: avoid; margin: 0 0 1.2em; }
h1 { font-size: 1.3em; margin: 0 0 .6em; } h2 { font-size: 1em; margin: 0 0 .3em; } p { margin: .3em 0; }
table { border-collapse: collapse; width: 100%; } th { background: #f0f0f0; }
th, td { border: 1px solid #ccc; padding: .15em .4em; text-align: left; vertical-align: top; }
code { font-size: .92em; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 9mm; }
@media print { body { font-size: 7.5pt; margin: 0; line-height: 1.25; } main { columns: 2; } }
"""


def html(markdown: str) -> str:
    """Markdown as HTML; a relative link becomes text, because the page stands alone."""
    return markdown2html_mistune(LINK.sub(r"\1", markdown))


def picture(name: str) -> Path | None:
    """The file of a diagram or of a figure of the pages; None if there is none of that name."""
    paths = (PICTURES / f"{name}.png", FIGURES / f"{name}.svg")
    return next((path for path in paths if path.is_file()), None)


def image(path: Path) -> str:
    """A picture inside the page, with the alt text that its file contains."""
    if path.suffix == ".png":
        with Image.open(path) as stored:
            kind, alt = "png", stored.text["Description"]
    else:
        kind, alt = "svg+xml", re.search(r"<dc:description>(.+?)</", path.read_text(encoding="utf-8"), re.DOTALL)[1]
    return f'<img alt="{escape(alt)}" src="data:image/{kind};base64,{b64encode(path.read_bytes()).decode()}">'


def slides_of(number: str, title: str, advice: str) -> list[str]:
    """The slides of a lesson: what to draw, each picture, and each question with its answer folded."""
    draw, ask = (re.search(ITEM.format(item), advice, re.MULTILINE | re.DOTALL)[1] for item in ("Draw", "Ask"))
    heading = f"{number} {escape(title)}"
    board = f'<details class="board"><summary>Draw</summary>{html(draw)}</details>'
    slides = [f'<section id="lesson-{number}"><h1>{heading}</h1>{board}</section>']
    pictures = filter(None, map(picture, re.findall(r"`(\w+)`", draw)))
    slides += [f"<section><h2>{heading}</h2>{image(path)}</section>" for path in pictures]
    for question, answer in QUESTION.findall(ask):
        folded = f'<details class="answer"><summary>Answer</summary>{html(answer)}</details>'
        slides.append(f'<section><h2>{heading}</h2><div class="question">{html(question)}</div>{folded}</section>')
    return slides


def slides(guide: str) -> str:
    """The page of slides: a list of the lessons, and their slides."""
    lessons = LESSON.findall(guide)
    links = "".join(f'<a href="#lesson-{number}">{number} {escape(title)}</a>' for number, title, _ in lessons)
    keys = "Turn the slides with the arrow keys. Click on an answer to unfold it."
    first = f'<section><h1>GRPO</h1><nav>{links}</nav><p class="keys">{keys}</p></section>'
    body = [first, *(slide for lesson in lessons for slide in slides_of(*lesson)), SLIDES_SCRIPT]
    return PAGE.format(title="GRPO: slides", style=SLIDES_STYLE, body="\n".join(body))


def cheat_sheet(lesson: Path) -> str:
    """The cheat sheet of a lesson under the lesson's title."""
    cells = nbformat.read(lesson, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title = text.partition("\n")[0].removeprefix("# ")
    return f"<section><h2>{escape(title)}</h2>{html(SHEET.search(text)[1])}</section>"


def cheat_sheets() -> str:
    """The page of all cheat sheets."""
    lessons = sorted((ROOT / "notebooks").glob("*.ipynb"))
    body = "\n".join(["<h1>GRPO: the cheat sheets of all lessons</h1><main>", *map(cheat_sheet, lessons), "</main>"])
    return PAGE.format(title="GRPO: cheat sheets", style=SHEETS_STYLE, body=body)


def main(target: Path = TARGET) -> None:
    target.mkdir(parents=True, exist_ok=True)
    pages = {"slides.html": slides(GUIDE.read_text(encoding="utf-8")), "cheat-sheets.html": cheat_sheets()}
    for name, page in pages.items():
        (target / name).write_text(page, encoding="utf-8")
        print("written:", target / name)


if __name__ == "__main__":
    main()
