"""Write slides, quiz, cheat sheets, one page, exit tickets and the assignment to outputs/handouts/, without a network.

    python scripts/handouts.py     # or: make handouts

The slides show the drawings and questions of "Draw, ask, expect" in docs/instructor-guide.md, in its order. The quiz is
docs/quiz.md, one question per slide, and the exit tickets are also from there. The cheat sheets are those of the
lessons, and the assignment is that of the guide. "GRPO on one page" takes its diagram, formula, tables and commands
from lessons 00 and 02 to 04, the flow chart of failures, grpo-check's README and the Makefile. Edit them there.
"""

import re
from base64 import b64encode
from collections.abc import Callable
from html import escape, unescape
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
NAMED = re.compile(r"`([\w-]+)`")
QUESTION = re.compile(r"(.+?)\s\*(.+?)\*(?:\s+|$)", re.DOTALL)
#: A block of the quiz: the number and title of its lesson, what is asked, and the folded answers.
BLOCK = re.compile(r"^## (\d\d) (.+?)\n(.+?)<details>.+?</summary>(.+?)</details>", re.MULTILINE | re.DOTALL)
NUMBERED = re.compile(r"^\d\. (.+?)(?=^\d\. |^(?:\*\*)?Exit ticket|\Z)", re.MULTILINE | re.DOTALL)
#: A picture of the quiz.
FIGURE = re.compile(r"!\[[^]]*\]\(figures/([\w-]+)\.svg\)")
TICKET = re.compile(r"(?:\*\*Exit ticket:\*\*|Exit ticket:) (.+?)\s*\Z", re.DOTALL)
SHEET = re.compile(r"^## \d+\. Cheat sheet.*?\n(.+?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
#: The quoted part of the guide that students get.
ASSIGNMENT = re.compile(r"^## An assignment\n.+?^((?:>[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
#: Figures of the stored lessons: a name, which ends in the lesson's number, and how the text of the figure begins.
STORED = {
    "rewards-00": "Mean rewards over 25 steps",
    "lengths-01": "Histogram of",
    "reward-02": "Curves over 38 steps. reward: every tag pays",
    "rewards-03": "Mean rewards over 60 steps",
    "truncated-04": "Curves over 20 steps. completions/clipped_ratio",
    "collapse-04": "Curves over 20 steps. reward: healthy 0.96 to 2.91, this run 0.96 to 0.00; entropy",
    "rewards-05": "Mean rewards over the steps",
    "rates-05": "Curves over 17 steps",
    "gains-06": "Gains in format and arithmetic",
    "tries-06": "pass@k against k",
    "update-08": "Probability of the last token",
    "seeds-09": "Two stages minus one stage",
    "pairs-10": "Which number each policy names",
    "lengths-11": "Qwen3-0.6B on MATH-500",
    "judge-12": "Curves of a training run over 50 steps",
    "episode-13": "The 59 tokens",
    "cost-13": "Curves over 14 steps",
    "logs-14": "Logs and their saved models",
    "losses-14": "Losses minus their base",
    "runs-15": "Curves of 3 training runs over 40 steps",
    "seeds-15": "Accuracy of five seeds",
    "students-16": "Students minus their weak teacher",
}
#: What the plans show and when: the time, a name, and words that only its slide has.
PLANS = {
    "90 minutes": {
        "0:02 How was that possible?": "How was that possible",
        "0:06 The advantages of 1, 0, 1, 0": "What are the advantages of",
        "0:20 Vote on four texts": "What does each of the four texts earn",
        "0:36 The cheapest text": "What is the cheapest text",
        "0:42 Would you stop this run?": "Curves over 38 steps. reward: every tag pays",
        "1:05 A group and its advantages": "Bar charts of two groups",
        "1:20 Did only the format improve?": "Did only the format improve",
    },
    "Another 90 minutes: did it really get better?": {
        "0:00 One correct answer": "What does one correct answer after training prove",
        "0:36 False alarms": "How often does the test see a change where there is none",
        "1:00 The reward curves of two format runs": "Which run was the good one",
    },
}

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""
SCHEME = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --quiet: #595959; --line: #ccc; --shade: #f0f0f0;
  --link: #0b5cad; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --line: #3d444d; --shade: #1c2128; --link: #7fb6f2; }
  img.white { filter: invert(.93) hue-rotate(180deg); }
}
@media print { :root { color-scheme: light; } }
body { color: var(--ink); background: var(--paper); } a, summary { color: var(--link); }
"""
SLIDES_STYLE = """
html { scroll-snap-type: y mandatory; font: clamp(18px, 2.6vw, 40px)/1.35 system-ui, sans-serif; }
body { margin: 0; }
section { box-sizing: border-box; min-height: 100vh; padding: 4vh 6vw; scroll-snap-align: start;
  display: flex; flex-direction: column; justify-content: center; border-bottom: 1px solid var(--line); }
section > *, section details > * { max-width: 100%; overflow-wrap: anywhere; }
h1, h2 { margin: 0 0 2vh; line-height: 1.15; } h2 { font-size: 1em; color: var(--quiet); font-weight: 600; }
p { margin: 0 0 2vh; } .question { font-size: 1.3em; }
.question p { margin-bottom: 1.2vh; } .question:has(pre) { font-size: 1.1em; }
section > img { width: 100%; max-height: 78vh; margin: auto; object-fit: contain; }
.question:has(img) { font-size: .95em; display: flow-root; } .question:has(img) + details { font-size: .85em; }
.question img { float: right; width: 38%; height: auto; margin: 0 0 1vh 2em; }
summary { cursor: pointer; } .board { font-size: .6em; }
pre { font-size: .8em; margin: 0 0 2vh; padding: .6em; background: var(--shade); overflow-x: auto; }
table { border-collapse: collapse; font-size: .7em; } th, td { text-align: left; padding: .2em .8em .2em 0; }
td { border-top: 1px solid var(--line); } .two { columns: 2; font-size: .8em; }
nav { columns: 3; font-size: .6em; margin-bottom: 1.5vh; } nav a { display: block; }
nav ~ h2 { font-size: .7em; margin: 0 0 .5vh; }
.keys { font-size: .6em; color: var(--quiet); }
@media screen and (max-width: 600px) { html { scroll-snap-type: none; } nav, .two { columns: 1; }
  section { min-height: 0; padding: 9vw 6vw; } .question { font-size: 1.1em; } pre { white-space: pre-wrap; }
  .question img { float: none; width: 100%; margin: 0 0 1em; } }
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
// A picture that moves starts again when its slide is shown.
const again = new IntersectionObserver(seen => seen.filter(slide => slide.isIntersecting).forEach(({target}) => {
  const picture = target.querySelector("img.moves");
  picture.src = picture.src.split("#")[0] + "#" + Date.now();
}), {threshold: 0.6});
slides.filter(slide => slide.querySelector("img.moves")).forEach(slide => again.observe(slide));
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(folded => folded.open = true));
</script>"""
SHEETS_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 1em; }
main { columns: 34em; column-gap: 2em; } section { break-inside: avoid; margin: 0 0 1.2em; }
h1 { font-size: 1.3em; margin: 0 0 .6em; } h2 { font-size: 1em; margin: 0 0 .3em; } p { margin: .3em 0; }
table { border-collapse: collapse; width: 100%; } th { background: var(--shade); }
th, td { border: 1px solid var(--line); padding: .15em .4em; text-align: left; vertical-align: top; }
code { font-size: .92em; overflow-wrap: break-word; } pre { overflow-x: auto; }
@media screen and (max-width: 600px) { main { columns: 1; } code { overflow-wrap: anywhere; }
  pre { white-space: pre-wrap; } }
@page { size: A4 landscape; margin: 9mm; }
@media print { body { font-size: 7.5pt; margin: 0; line-height: 1.25; } main { columns: 2; }
  pre { white-space: pre-wrap; } main + main { break-before: page; } }
"""
ONE_PAGE_STYLE = """
body { font: 15px/1.35 system-ui, sans-serif; margin: 1em; }
h1 { font-size: 1.5em; margin: 0 0 .4em; } h2 { font-size: 1em; margin: 0 0 .25em; } p { margin: .25em 0; }
main { display: grid; grid-template-columns: 1fr 1.25fr 1.1fr; gap: 1em 1.6em; }
main > div { min-width: 0; } section { margin: 0 0 1em; } img { max-width: 100%; height: auto; }
ul { margin: 0; padding-left: 1.2em; }
table { border-collapse: collapse; width: 100%; } th { background: var(--shade); }
th, td { border: 1px solid var(--line); padding: .12em .35em; text-align: left; vertical-align: top; }
code { font-size: .92em; overflow-wrap: break-word; }
@media screen and (max-width: 1500px) { main { grid-template-columns: 1fr 1fr; } }
@media screen and (max-width: 900px) { main { grid-template-columns: 1fr; } td, code { overflow-wrap: anywhere; } }
@page { size: A4 landscape; margin: 8mm; }
@media print { body { font-size: 7.8pt; margin: 0; line-height: 1.25; } section { margin: 0 0 2.5mm; }
  main { gap: 0 5mm; } }
"""
PAPER_STYLE = """
body { font: 12pt/1.45 system-ui, sans-serif; margin: 0; }
main, article { box-sizing: border-box; max-width: 210mm; padding: 16mm 18mm; margin: auto; }
h1 { font-size: 1.5em; margin: 0 0 .6em; } h2 { font-size: 1.1em; margin: 0 0 .6em; } p { margin: 0 0 .7em; }
pre { background: var(--shade); padding: .5em .7em; margin: 0 0 .7em; white-space: pre-wrap; overflow-wrap: anywhere; }
article { height: 148.5mm; border-bottom: 1px dashed #777; }
hr { border: 0; border-bottom: 1px solid #aaa; margin: 9mm 0 0; }
@page { size: A4; margin: 0; }
@media print { section { break-after: page; } article:last-child { height: 148mm; border: 0; } }
"""


def html(markdown: str) -> str:
    """Markdown as HTML; a relative link becomes text, because the page stands alone, and a figure is in the page."""
    text = FIGURE.sub(lambda found: image(FIGURES / f"{found[1]}.svg"), markdown)
    return markdown2html_mistune(LINK.sub(r"\1", text))


def picture(name: str) -> Path | None:
    """The file of a diagram or of a figure of the pages; None if there is none of that name."""
    paths = (PICTURES / f"{name}.png", FIGURES / f"{name}.svg")
    return next((path for path in paths if path.is_file()), None)


def image(path: Path) -> str:
    """A picture inside the page, with the alt text that its file contains."""
    if path.suffix == ".png":
        with Image.open(path) as stored:
            alt = stored.text["Description"]
        return inside("png", b64encode(path.read_bytes()).decode(), alt, "white")
    text = path.read_text(encoding="utf-8")
    alt = unescape(re.search(r"<(?:dc:description|title)>(.+?)</", text, re.DOTALL)[1])
    return inside("svg+xml", b64encode(path.read_bytes()).decode(), alt, "moves" if "@keyframes" in text else "")


def inside(kind: str, data: str, alt: str, marked: str) -> str:
    """The element of a picture whose data are in the page; ``marked``: white paper, or a picture that moves."""
    mark = f' class="{marked}"' if marked else ""
    return f'<img{mark} alt="{escape(alt)}" src="data:image/{kind};base64,{data}">'


def stored(name: str) -> str:
    """A figure of a stored lesson."""
    [lesson] = (ROOT / "notebooks").glob(f"{name[-2:]}_*.ipynb")
    cells = nbformat.read(lesson, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ()) if "image/png" in output.get("data", ())]
    found = {output.data["image/png"]: output.metadata["image/png"]["alt"] for output in outputs}
    found = {png: alt for png, alt in found.items() if alt.startswith(STORED[name])}
    if len(found) != 1:
        raise SystemExit(f"error: {lesson.name} has {len(found)} figures whose text begins with {STORED[name]!r}")
    [(png, alt)] = found.items()
    return inside("png", "".join(png.split()), alt, "white")


def failures() -> str:
    """The flow chart of failing runs as a table, because its letters are too small on a slide."""
    rows = "".join(f"<tr><td>{'<td>'.join(map(escape, row))}" for row in guides.FAILURES).replace("\n", " ")
    return f"<table><tr><th>In the first 20 steps<th>verdict<th>fix{rows}</table>"


def path() -> str:
    """The lessons with their minutes, in two columns."""
    short = [escape(name) for name in guides.LESSONS if name[:2] in guides.SHORT]
    rows = "".join(f"<div>{escape(name)}: {minutes}</div>" for name, minutes in guides.LESSONS.items())
    ends = [[int(end) for end in minutes.split("–")] for minutes in guides.LESSONS.values()]
    least, most = (sum(minutes) / 60 for minutes in zip(*ends, strict=True))
    about = f"Minutes with exercises, {least:.0f} to {most:.0f} hours in all. Short path: {', '.join(short)}"
    return f'<p>{about}</p><div class="two">{rows}</div>'


#: Figures that are shown as text.
AS_TEXT = {"failures": failures, "path": path}


def shown(heading: str, words: str) -> list[str]:
    """A slide for each figure that is named between backticks."""
    figures = [figure(name) for name in NAMED.findall(words)]
    return [f"<section><h2>{heading}</h2>{text}</section>" for text in figures if text]


def figure(name: str) -> str:
    """A figure as text, of a stored lesson, or in a file; "" if there is none of that name."""
    if name in AS_TEXT:
        return AS_TEXT[name]()
    if name in STORED:
        return stored(name)
    path = picture(name)
    return image(path) if path else ""


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
    slides = [asked(heading, re.sub(r"\s+\((?=[abc]\) )", "\n\n(", question), answer) for question, answer in pairs]
    ticket, wanted = (TICKET.search(text)[1] for text in (questions, answers))
    slides[0] = slides[0].replace("<section>", f'<section id="lesson-{number}">', 1)
    return [*slides, asked(heading, f"Exit ticket: {ticket}", wanted[0].upper() + wanted[1:])]


def page(
    title: str, blocks: list[tuple[str, ...]], slides_of: Callable[..., list[str]], plans: dict | None = None
) -> str:
    """A page of slides: a list of the lessons, and their slides. A block starts with a lesson's number and title."""
    links = "".join(f'<a href="#lesson-{number}">{number} {escape(name)}</a>' for number, name, *_ in blocks)
    slides = [slide for block in blocks for slide in slides_of(*block)]
    lists = f"<nav>{links}</nav>" + (planned(plans, slides) if plans else "")
    first = f'<section><h1>{title}</h1>{lists}<p class="keys">{KEYS}</p></section>'
    body = "\n".join([first, *slides, SLIDES_SCRIPT])
    return PAGE.format(title=title, style=SCHEME + SLIDES_STYLE, body=body)


def planned(plans: dict[str, dict[str, str]], slides: list[str]) -> str:
    """Links to the slides of each plan, which get the targets of the links."""
    text, number = "", 0
    for title, plan in plans.items():
        links = ""
        for name, words in plan.items():
            [place] = [place for place, slide in enumerate(slides) if words in " ".join(slide.split())]
            slides[place] = slides[place].replace("<section>", f'<section id="plan-{number}">', 1)
            links += f'<a href="#plan-{number}">{escape(name)}</a>'
            number += 1
        text += f"<h2>{escape(title)}</h2><nav>{links}</nav>"
    return text


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
    return PAGE.format(title="GRPO: cheat sheets", style=SCHEME + SHEETS_STYLE, body=body)


def lesson_text(number: str) -> str:
    """The Markdown of a lesson."""
    [lesson] = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
    return "\n\n".join(c.source for c in nbformat.read(lesson, as_version=4).cells if c.cell_type == "markdown")


def one_page() -> str:
    """The loop, the formula, the numbers, the failures, the checklists and the first commands on one sheet."""
    lora, reading = lesson_text("03"), lesson_text("04")
    readme = (ROOT / "grpo_check" / "README.md").read_text(encoding="utf-8")
    formula = re.search(r"\*advantage\* of a completion is\s+(`[^`]+`)", lora)[1]
    numbers = re.search(r"Read these five numbers instead:\n\n((?:- .+\n(?: .+\n)*)+)", reading)[1]
    sheets = {number: SHEET.search(lesson_text(number))[1] for number in ("00", "02")}
    checks = re.findall(r"^\| \[`(\w+)`\]\(docs/checks.md#\w+\) \| (.+) \|$", readme, re.MULTILINE)
    targets = re.findall(
        r"^(run|lab|real): .*?## ([^;(\n]+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    commands = [(f"make {name}", said) for name, said in targets]
    commands += [(f"grpo-check {name}", said) for name, said in checks]
    rows = "".join(f"<li><code>{escape(name)}</code>: {escape(said)}" for name, said in commands)
    columns = [
        [
            ("The loop", image(FIGURES / "loop.svg")),
            (
                "The advantage",
                html(f"{formula}, over the rewards of a group. If all are equal, it is 0: a *tied* group."),
            ),
            ("First commands", f"<ul>{rows}</ul>"),
        ],
        [("From a task to a trained model", html(sheets["00"])), ("A failing run", failures())],
        [("A reward", html(sheets["02"])), ("Numbers to watch", html(numbers))],
    ]
    body = "".join(
        "<div>" + "".join(f"<section><h2>{name}</h2>{text}</section>" for name, text in column) + "</div>"
        for column in columns
    )
    body = f"<h1>GRPO on one page</h1><main>{body}</main>"
    return PAGE.format(title="GRPO on one page", style=SCHEME + ONE_PAGE_STYLE, body=body)


def exit_tickets(blocks: list[tuple[str, ...]]) -> str:
    """A page for each lesson of the quiz, with its exit ticket twice, to cut in half."""
    sheets = []
    for number, title, questions, _ in blocks:
        asked = TICKET.search(questions)[1]
        heading = f"<h2>Exit ticket: {number} {escape(title)}</h2>"
        ticket = f"<article>{heading}{html(asked[0].upper() + asked[1:])}{'<hr>' * 8}</article>"
        sheets.append(f"<section>{2 * ticket}</section>")
    return PAGE.format(title="GRPO: exit tickets", style=SCHEME + PAPER_STYLE, body="\n".join(sheets))


def assignment(guide: str) -> str:
    """The assignment of the guide on one page."""
    text = re.sub("^> ?", "", ASSIGNMENT.search(guide)[1], flags=re.MULTILINE)
    body = f"<main><h1>An assignment</h1>{html(text)}</main>"
    return PAGE.format(title="GRPO: an assignment", style=SCHEME + PAPER_STYLE, body=body)


def main(target: Path = TARGET) -> None:
    target.mkdir(parents=True, exist_ok=True)
    guide = GUIDE.read_text(encoding="utf-8")
    blocks = BLOCK.findall(QUIZ.read_text(encoding="utf-8"))
    pages = {
        "slides.html": page("GRPO: slides", LESSON.findall(guide), slides_of, PLANS),
        "quiz.html": page("GRPO: quiz", blocks, quiz_of),
        "cheat-sheets.html": cheat_sheets(),
        "one-page.html": one_page(),
        "exit-tickets.html": exit_tickets(blocks),
        "assignment.html": assignment(guide),
    }
    for name, text in pages.items():
        (target / name).write_text(text, encoding="utf-8")
        print("written:", target / name)


if __name__ == "__main__":
    main()
