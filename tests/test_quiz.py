"""Each block of the quiz has five questions, as many answers that name one of the choices, and an exit ticket."""

import re
from collections import Counter

import nbformat
import pytest
import quiz_figures
from course import ROOT
from lessons import alt_texts

QUIZ = (ROOT / "docs" / "quiz.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^## (\d\d) .+?\n(.+?)(?=^## |\Z)", QUIZ, re.MULTILINE | re.DOTALL)


#: How the alt text of a figure with curves begins, in a stored lesson.
CURVES = re.compile(r"Curves |Mean rewards |pass@k |Two line charts ")


def numbered(text: str) -> list[str]:
    return re.findall(r"^\d\. (.+?)(?=^\d\. |^(?:\*\*)?Exit ticket|\Z)", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", [text for _, text in BLOCKS], ids=[number for number, _ in BLOCKS])
def test_a_block_is_complete(block):
    asked, _, folded = block.partition("<details><summary>Answers</summary>")
    questions, answers = numbered(asked), numbered(folded)
    assert len(questions) == len(answers) == 5
    assert [re.findall(r"\(([abc])\)", question) for question in questions] == [["a", "b", "c"]] * 5
    assert all(answer[:3] in ("(a)", "(b)", "(c)") for answer in answers)
    assert "**Exit ticket:**" in asked and "Exit ticket: expect" in folded and folded.strip().endswith("</details>")


def test_there_is_a_block_for_each_core_lesson_and_the_first_choice_is_not_always_right():
    assert [number for number, _ in BLOCKS] == [f"{number:02}" for number in range(10)]
    right = Counter(answer[1] for _, block in BLOCKS for answer in numbered(block.partition("<details>")[2]))
    assert min(right[choice] for choice in "abc") >= 10


def test_each_core_lesson_with_curves_has_a_question_about_a_curve():
    asked = {number for number, block in BLOCKS if f"](figures/quiz-{number}.svg)" in block.partition("<details>")[0]}
    books = {path.stem[:2]: nbformat.read(path, as_version=4) for path in (ROOT / "notebooks").glob("0*.ipynb")}
    assert {number for number, book in books.items() if any(map(CURVES.match, alt_texts(book)))} == asked
    assert asked == {name.removeprefix("quiz-") for name in quiz_figures.DRAWN}


@pytest.mark.parametrize("name", quiz_figures.DRAWN)
def test_a_figure_and_its_text_are_those_of_the_recorded_run(name):
    curves = quiz_figures.DRAWN[name]()
    assert (quiz_figures.FIGURES / f"{name}.svg").read_text(encoding="utf-8") == quiz_figures.svg(curves)
    assert f"![{curves.alt}](figures/{name}.svg)" in QUIZ
    assert not re.search("hack|cheat|stop|healthy|saturated|fault", curves.alt)
