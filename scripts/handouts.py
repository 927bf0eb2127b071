"""Write slides, the quiz and all cheat sheets to outputs/handouts/. Each is a single file that needs no network.

    python scripts/handouts.py     # or: make handouts

The slides show the drawings and questions of "Draw, ask, expect" in docs/instructor-guide.md, in its order. The quiz is
docs/quiz.md, one question per slide, and the cheat sheets are those of the lessons. Edit them there.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from html import escape
from pathlib import Path
from textwrap import dedent

import nbformat
from address import ROOT
from drawings import guides
from nbconvert.filters.markdown_mistune import markdown2html_mistune
from PIL import Image
from workshop import LINK

TARGET = ROOT / "outputs" / "handouts"
GUIDE, QUIZ = ROOT / "docs" / "instructor-guide.md", ROOT / "docs" / "quiz.md"
PICTURES, FIGURES = ROOT / "grpo_utils" / "plots" / "pictures", ROOT / "docs" / "figures"
#: A lesson in the guide: its number, title and advice.
LESSON = re.compile(r"^### (\d\d) (.+?)\n(.+?)(?=^###? )", re.MULTILINE | re.DOTALL)
#: An item of the advice: what to draw, or what to ask.
ITEM = r"^- \*\*{}:?\*\* (.+?)(?=^- |\Z)"
#: In what to ask: the pictures to show next, or a question with its answer.
SHOW = re.compile(r"(Show `[^.]+\.)\s*")
QUESTION = re.compile(r"(.+?)\s\*(.+?)\*(?:\s+|$)", re.DOTALL)
#: A block of the quiz: the number and title of its lesson, what is asked, and the folded answers.
BLOCK = re.compile(r"^## (\d\d) (.+?)\n(.+?)<details>.+?</summary>(.+?)</details>", re.MULTILINE | re.DOTALL)
NUMBERED = re.compile(r"^\d\. (.+?)(?=^\d\. |^\n|\Z)", re.MULTILINE | re.DOTALL)
TICKET = re.compile(r"(?:\*\*Exit ticket:\*\*|Exit ticket:) (.+?)\s*\Z", re.DOTALL)
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
p { margin: 0 0 2vh; } .question { font-size: 1.5em; } .question:has(pre) { font-size: 1.1em; }
img { max-width: 100%; max-height: 74vh; margin: auto; object-fit: contain; }
summary { cursor: pointer; color: #0b5cad; } .board { font-size: .6em; }
pre { font-size: .8em; margin: 0 0 2vh; padding: .6em; background: #f0f0f0; overflow-x: auto; }
table { border-collapse: collapse; font-size: .7em; } th, td { text-align: left; padding: .2em .8em .2em 0; }
td { border-top: 1px solid #ccc; } .two { columns: 2; font-size: .8em; }
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
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(folded => folded.open = true));
</script>"""
SHEETS_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 1em; color: #1b1b1b; background: #fff; }
main { columns: 34em; column-gap: 2em; } section { break-inside: avoid; margin: 0 0 1.2em; }
h1 { font-size: 1.3em; margin: 0 0 .6em; } h2 { font-size: 1em; margin: 0 0 .3em; } p { margin: .3em 0; }
table { border-collapse: collapse; width: 100%; } th { background: #f0f0f0; }
th, td { border: 1px solid #ccc; padding: .15em .4em; text-align: left; vertical-align: top; }
code { font-size: .92em; overflow-wrap: anywhere; }
@page { size: A4 landscape; margin: 9mm; }
@media print { body { font-size: 7.5pt; margin: 0; line-height: 1.25; } main { columns: 2; }
  section { break-inside: auto; } tr { break-inside: avoid; } h2 { break-after: avoid; } }
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
        text = path.read_text(encoding="utf-8")
        kind, alt = "svg+xml", re.search(r"<(?:dc:description|title)>(.+?)</", text, re.DOTALL)[1]
    return f'<img alt="{escape(alt)}" src="data:image/{kind};base64,{b64encode(path.read_bytes()).decode()}">'


def failures() -> str:
    """The flow chart of failing runs as a table, because its letters are too small on a slide."""
    rows = "".join(f"<tr><td>{'<td>'.join(map(escape, row))}" for row in guides.FAILURES).replace("\n", " ")
    return f"<table><tr><th>In the first 20 steps<th>verdict<th>fix{rows}</table>"


def path() -> str:
    """The lessons with their minutes in two columns, for the same reason."""
    short = [escape(name) for name in guides.LESSONS if name[:2] in guides.SHORT]
    rows = "".join(f"<div>{escape(name)}: {minutes}</div>" for name, minutes in guides.LESSONS.items())
    return f'<p>Minutes on a CPU. Short path: {", ".join(short)}</p><div class="two">{rows}</div>'


#: Diagrams that are shown as text.
AS_TEXT = {"failures": failures, "path": path}


def shown(heading: str, words: str) -> list[str]:
    """A slide for each picture that is named between backticks."""
    inside = [
        AS_TEXT[name]() if name in AS_TEXT else image(picture(name))
        for name in re.findall(r"`(\w+)`", words)
        if picture(name)
    ]
    return [f"<section><h2>{heading}</h2>{text}</section>" for text in inside]


def asked(heading: str, question: str, answer: str) -> str:
    """The slide of a question with its answer folded."""
    folded = f'<details class="answer"><summary>Answer</summary>{html(answer)}</details>'
    return f'<section><h2>{heading}</h2><div class="question">{html(question)}</div>{folded}</section>'


def slides_of(number: str, title: str, advice: str) -> list[str]:
    """The slides of a lesson: what to draw, its pictures, and the questions, with a picture where it answers one."""
    draw, ask = (re.search(ITEM.format(item), advice, re.MULTILINE | re.DOTALL)[1] for item in ("Draw", "Ask"))
    heading = f"{number} {escape(title)}"
    board = f'<details class="board"><summary>For the teacher: draw</summary>{html(draw)}</details>'
    slides = [f'<section id="lesson-{number}"><h1>{heading}</h1>{board}</section>', *shown(heading, draw)]
    for part in SHOW.split(ask):
        if SHOW.match(part):
            slides += shown(heading, part)
        else:
            slides += [asked(heading, dedent(f"  {question}"), answer) for question, answer in QUESTION.findall(part)]
    return slides


def quiz_of(number: str, title: str, questions: str, answers: str) -> list[str]:
    """The slides of a lesson's quiz: each question with its choices on lines of their own, and the exit ticket."""
    heading = f"{number} {escape(title)}"
    pairs = zip(NUMBERED.findall(questions + "\n"), NUMBERED.findall(answers + "\n"), strict=True)
    slides = [asked(heading, re.sub(r"\s\((?=[abc]\) )", "\n\n(", question), answer) for question, answer in pairs]
    ticket, wanted = (TICKET.search(text)[1] for text in (questions, answers))
    slides[0] = slides[0].replace("<section>", f'<section id="lesson-{number}">', 1)
    return [*slides, asked(heading, f"Exit ticket: {ticket}", wanted[0].upper() + wanted[1:])]


def page(title: str, blocks: list[tuple[str, ...]], slides_of: Callable[..., list[str]]) -> str:
    """A page of slides: a list of the lessons, and their slides. A block starts with a lesson's number and title."""
    links = "".join(f'<a href="#lesson-{number}">{number} {escape(name)}</a>' for number, name, *_ in blocks)
    keys = "Turn the slides with the arrow keys. Home returns to this list. Click on an answer to unfold it."
    first = f'<section><h1>{title}</h1><nav>{links}</nav><p class="keys">{keys}</p></section>'
    body = [first, *(slide for block in blocks for slide in slides_of(*block)), SLIDES_SCRIPT]
    return PAGE.format(title=title, style=SLIDES_STYLE, body="\n".join(body))


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
    lessons, blocks = LESSON.findall(GUIDE.read_text(encoding="utf-8")), BLOCK.findall(QUIZ.read_text(encoding="utf-8"))
    pages = {
        "slides.html": page("GRPO: slides", lessons, slides_of),
        "quiz.html": page("GRPO: quiz", blocks, quiz_of),
        "cheat-sheets.html": cheat_sheets(),
    }
    for name, text in pages.items():
        (target / name).write_text(text, encoding="utf-8")
        print("written:", target / name)


if __name__ == "__main__":
    main()
