"""Each block of the quiz has five questions, as many answers that name one of the choices, and an exit ticket."""

import re
from collections import Counter

import pytest
from course import ROOT

QUIZ = (ROOT / "docs" / "quiz.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^## (\d\d) .+?\n(.+?)(?=^## |\Z)", QUIZ, re.MULTILINE | re.DOTALL)


def numbered(text: str) -> list[str]:
    return re.findall(r"^\d\. (.+?)(?=^\d\. |^\n|\Z)", text + "\n", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", [text for _, text in BLOCKS], ids=[number for number, _ in BLOCKS])
def test_a_block_is_complete(block):
    asked, _, folded = block.partition("<details><summary>Answers</summary>")
    questions, answers = numbered(asked), numbered(folded)
    assert len(questions) == len(answers) == 5
    assert [re.findall(r"\((\w)\)", question) for question in questions] == [["a", "b", "c"]] * 5
    assert all(answer[:3] in ("(a)", "(b)", "(c)") for answer in answers)
    assert "**Exit ticket:**" in asked and "Exit ticket: expect" in folded and folded.strip().endswith("</details>")


def test_there_is_a_block_for_each_core_lesson_and_the_first_choice_is_not_always_right():
    assert [number for number, _ in BLOCKS] == [f"{number:02}" for number in range(9)]
    right = Counter(answer[1] for _, block in BLOCKS for answer in numbered(block.partition("<details>")[2]))
    assert min(right[choice] for choice in "abc") >= 10
