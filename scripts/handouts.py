"""Write slides, quiz, cheat sheets, exit tickets and the assignment to outputs/handouts/. Each file needs no network.

    python scripts/handouts.py     # or: make handouts

The slides show the drawings and questions of "Draw, ask, expect" in docs/instructor-guide.md, in its order. The quiz is
docs/quiz.md, one question per slide, and the exit tickets are also from there. The cheat sheets are those of the
lessons, and the assignment is that of the guide. Edit them there.
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
SHOW = re.compile(r"(Show\s+`[^.]+\.)\s*")
QUESTION = re.compile(r"(.+?)\s\*(.+?)\*(?:\s+|$)", re.DOTALL)
#: A block of the quiz: the number and title of its lesson, what is asked, and the folded answers.
BLOCK = re.compile(r"^## (\d\d) (.+?)\n(.+?)<details>.+?</summary>(.+?)</details>", re.MULTILINE | re.DOTALL)
NUMBERED = re.compile(r"^\d\. (.+?)(?=^\d\. |^\n|\Z)", re.MULTILINE | re.DOTALL)
TICKET = re.compile(r"(?:\*\*Exit ticket:\*\*|Exit ticket:) (.+?)\s*\Z", re.DOTALL)
SHEET = re.compile(r"^## \d+\. Cheat sheet.*?\n(.+?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
#: The quoted part of the guide that students get.
ASSIGNMENT = re.compile(r"^## An assignment\n.+?^((?:>[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
#: What the plan of 90 minutes shows, and words that only its slide has.
NINETY_MINUTES = {
    "0:00 The advantages of 1, 0, 1, 0": "What are the advantages of",
    "0:20 Vote on four texts": "What does each of the four texts earn",
    "0:35 The cheapest text": "What is the cheapest text",
    "0:42 The hacked run": "Curves of three training runs",
    "1:05 A group and its advantages": "Bar charts of two groups",
    "1:20 Did only the format improve?": "Did only the format improve",
}

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
p { margin: 0 0 2vh; } .question { font-size: 1.3em; }
.question p { margin-bottom: 1.2vh; } .question:has(pre) { font-size: 1.1em; }
section > img { width: 100%; max-height: 78vh; margin: auto; object-fit: contain; }
summary { cursor: pointer; color: #0b5cad; } .board { font-size: .6em; }
pre { font-size: .8em; margin: 0 0 2vh; padding: .6em; background: #f0f0f0; overflow-x: auto; }
table { border-collapse: collapse; font-size: .7em; } th, td { text-align: left; padding: .2em .8em .2em 0; }
td { border-top: 1px solid #ccc; } .two { columns: 2; font-size: .8em; }
nav { columns: 2; font-size: .7em; margin-bottom: 2vh; } nav a { display: block; color: #0b5cad; }
.keys { font-size: .6em; color: #595959; }
@media (max-width: 600px) { nav { columns: 1; } }
@page { size: 320mm 180mm; margin: 0; }
@media print { section { height: 100vh; break-after: page; border: 0; } }
"""
KEYS = (
    "Press F11, so that each slide fits. Turn the slides with the arrow keys: the right arrow unfolds the answer "
    "first, the down arrow does not. Home returns to this list."
)
#: The arrow keys and the keys of a presenter turn the slides, two of them after the answer; a print shows all answers.
SLIDES_SCRIPT = """<script>
const slides = [...document.querySelectorAll("section")];
const turn = {ArrowRight: 1, ArrowDown: 1, PageDown: 1, ArrowLeft: -1, ArrowUp: -1, PageUp: -1};
const unfolds = ["ArrowRight", "PageDown"];
addEventListener("keydown", event => {
  if (!(event.key in turn)) return;
  event.preventDefault();
  const here = slides.findIndex(slide => slide.getBoundingClientRect().bottom > innerHeight / 2);
  const folded = unfolds.includes(event.key) && slides[here].querySelector("details.answer:not([open])");
  if (folded) folded.open = true;
  else slides[here + turn[event.key]]?.scrollIntoView();
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
  main + main { break-before: page; }
  section { break-inside: auto; } tr { break-inside: avoid; } h2, tr:last-child { break-after: avoid; }
  table + p { break-before: avoid; } }
"""
PAPER_STYLE = """
body { font: 12pt/1.45 system-ui, sans-serif; margin: 0; color: #1b1b1b; background: #fff; }
main, article { box-sizing: border-box; max-width: 210mm; padding: 16mm 18mm; margin: auto; }
h1 { font-size: 1.5em; margin: 0 0 .6em; } h2 { font-size: 1.1em; margin: 0 0 .6em; } p { margin: 0 0 .7em; }
pre { background: #f0f0f0; padding: .5em .7em; margin: 0 0 .7em; white-space: pre-wrap; }
article { height: 148.5mm; border-bottom: 1px dashed #777; }
hr { border: 0; border-bottom: 1px solid #aaa; margin: 9mm 0 0; }
@page { size: A4; margin: 0; }
@media print { section { break-after: page; } article:last-child { height: 148mm; border: 0; } }
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
    return f'<p>Minutes with exercises. Short path: {", ".join(short)}</p><div class="two">{rows}</div>'


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


def page(
    title: str, blocks: list[tuple[str, ...]], slides_of: Callable[..., list[str]], plan: dict | None = None
) -> str:
    """A page of slides: a list of the lessons, and their slides. A block starts with a lesson's number and title."""
    links = "".join(f'<a href="#lesson-{number}">{number} {escape(name)}</a>' for number, name, *_ in blocks)
    slides = [slide for block in blocks for slide in slides_of(*block)]
    lists = f"<nav>{links}</nav>" + (planned(plan, slides) if plan else "")
    first = f'<section><h1>{title}</h1>{lists}<p class="keys">{KEYS}</p></section>'
    body = "\n".join([first, *slides, SLIDES_SCRIPT])
    return PAGE.format(title=title, style=SLIDES_STYLE, body=body)


def planned(plan: dict[str, str], slides: list[str]) -> str:
    """Links to the slides of a plan, which get the targets of the links."""
    links = ""
    for number, (name, words) in enumerate(plan.items()):
        [place] = [place for place, slide in enumerate(slides) if words in " ".join(slide.split())]
        slides[place] = slides[place].replace("<section>", f'<section id="plan-{number}">', 1)
        links += f'<a href="#plan-{number}">{escape(name)}</a>'
    return f"<h2>90 minutes</h2><nav>{links}</nav>"


def cheat_sheet(lesson: Path) -> str:
    """The cheat sheet of a lesson under the lesson's title."""
    cells = nbformat.read(lesson, as_version=4).cells
    text = "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    title = text.partition("\n")[0].removeprefix("# ")
    return f"<section><h2>{escape(title)}</h2>{html(SHEET.search(text)[1])}</section>"


def cheat_sheets() -> str:
    """The page of all cheat sheets. One with a program starts a new page of paper, so that the program fits on it."""
    sheets = map(cheat_sheet, sorted((ROOT / "notebooks").glob("*.ipynb")))
    parts = ["</main><main>" + sheet if "<pre" in sheet else sheet for sheet in sheets]
    body = "\n".join(["<h1>GRPO: the cheat sheets of all lessons</h1><main>", *parts, "</main>"])
    return PAGE.format(title="GRPO: cheat sheets", style=SHEETS_STYLE, body=body)


def exit_tickets(blocks: list[tuple[str, ...]]) -> str:
    """A page for each lesson of the quiz, with its exit ticket twice, to cut in half."""
    sheets = []
    for number, title, questions, _ in blocks:
        asked = TICKET.search(questions)[1]
        heading = f"<h2>Exit ticket: {number} {escape(title)}</h2>"
        ticket = f"<article>{heading}{html(asked[0].upper() + asked[1:])}{'<hr>' * 8}</article>"
        sheets.append(f"<section>{2 * ticket}</section>")
    return PAGE.format(title="GRPO: exit tickets", style=PAPER_STYLE, body="\n".join(sheets))


def assignment(guide: str) -> str:
    """The assignment of the guide on one page."""
    text = re.sub("^> ?", "", ASSIGNMENT.search(guide)[1], flags=re.MULTILINE)
    body = f"<main><h1>An assignment</h1>{html(text)}</main>"
    return PAGE.format(title="GRPO: an assignment", style=PAPER_STYLE, body=body)


def main(target: Path = TARGET) -> None:
    target.mkdir(parents=True, exist_ok=True)
    guide = GUIDE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(QUIZ.read_text(encoding="utf-8"))
    pages = {
        "slides.html": page("GRPO: slides", LESSON.findall(guide), slides_of, NINETY_MINUTES),
        "quiz.html": page("GRPO: quiz", blocks, quiz_of),
        "cheat-sheets.html": cheat_sheets(),
        "exit-tickets.html": exit_tickets(blocks),
        "assignment.html": assignment(guide),
    }
    for name, text in pages.items():
        (target / name).write_text(text, encoding="utf-8")
        print("written:", target / name)


if __name__ == "__main__":
    main()
