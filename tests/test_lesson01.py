"""Lesson 01 as readers run it: the committed notebook, and the same with other parameters."""

import json
import os
import re

import pytest
from course import ROOT
from lessons import defined_by, run_lesson, run_other_family, run_with_nbval

from grpo_utils import check_exercise

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "01_dataset.ipynb"


def prompts_of(text: str) -> dict[str, tuple[int, int]]:
    """For each kind of prompt, of 100 answers: strictly correct ones, and those whose last number is correct."""
    found = re.findall(r"^(\S+)\n  strict accuracy: .*, (\d+) of 100\n  last number correct: (\d+) of 100", text, re.M)
    return {kind: (int(strict), int(last)) for kind, strict, last in found}


def splits_of(text: str) -> dict[str, list[int]]:
    """For each split: held-out rows, leaked copies, leaked numbers, repeats within the held-out rows."""
    lines = r"^(.*): (\d+) held out\n.*training row: +(\d+)\n.*other words: +(\d+)\n.*held-out rows: +(\d+)$"
    return {name: [*map(int, numbers)] for name, *numbers in re.findall(lines, text, re.MULTILINE)}


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)
    assert not [*tmp_path.glob("*.csv"), *tmp_path.glob("*.jsonl")]  # it clears away what it wrote


def check_what_the_words_say(text: str) -> None:
    """Claims that hold for both families and any seed."""
    prompts, splits = prompts_of(text), splits_of(text)
    assert prompts["strings"][0] <= 5 < prompts["messages"][0]
    assert prompts["few-shot"][1] < prompts["messages"][1] / 2
    assert splits["shuffled and cut"][1] > 5
    assert splits["by text"][1] == 0 < splits["by text"][2] and splits["by numbers"][1:3] == [0, 0]
    assert all(repeats > 0 for *_, repeats in splits.values())
    assert "every perfect completion scores 1: True" in text
    right, wrong = text.split("with the wrong EOS token:")[:2]
    assert "the answer ends with EOS: True" in right and "the answer ends with EOS: False" in wrong


def test_the_committed_lesson_shows_what_it_says(printed):
    check_what_the_words_say(printed)
    assert prompts_of(printed)["few-shot"] == (0, 0)
    rows, unread = map(int, re.search(r"^rows: (\d+), .* could not be parsed: (\d+)$", printed, re.M).groups())
    assert rows + unread == 1000 and 0 < unread < 100 and re.search(r"^ +Answer: [\d,]+$", printed, re.M)
    kept, whole = map(int, re.search(r"rows within this limit: (\d+) of (\d+)", printed).groups())
    assert 0 < whole - kept < whole / 10


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Its records are a file's."""
    folder = tmp_path_factory.mktemp("other")
    record = {"question": "Two pens and {} more: how many?", "answer": "2 + {0} = {1}\n#### {1}"}
    made = [
        {"question": record["question"].format(n), "answer": record["answer"].format(n, n + 2)} for n in range(3, 90)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, made)))
    return run_other_family(LESSON, folder, GSM8K_FILE="rows.jsonl")


def test_every_override_arrives(other_family):
    assert "tiny-gemma3" in other_family and "87 records from rows.jsonl" in other_family
    assert "rows: 87, gold answers that could not be parsed: 0" in other_family


def test_its_words_are_true_with_the_other_family_and_seed(other_family):
    check_what_the_words_say(other_family)


@pytest.mark.parametrize("pattern", [r"\\boxed\{([^{}]+)\}", r"\\boxed\{([^{}]*)\}"])
def test_wrong_boxes_get_a_hint(book, pattern):
    """An empty last box read as the box before it, or as an empty answer, was right."""
    there = defined_by(book, "BOXED =")

    def boxed(solution):
        found = re.findall(pattern, solution)
        return found[-1].strip() if found else None

    assert "Hint" in check_exercise("1", boxed, there["BOXED"], there["HINTS"])


def words_alone(question: str) -> str:
    return "".join(re.findall(r"\w+", question.casefold()))


@pytest.mark.parametrize(
    "key",
    [
        str.casefold,
        lambda question: " ".join(question.casefold().split()).rstrip("?"),
        lambda question: question.casefold().rstrip(" ?"),
        lambda question: " ".join(question.casefold().split()).rstrip(" ?"),
        lambda question: " ".join(question.casefold().split()).rstrip("?.!"),
        words_alone,
    ],
)
def test_wrong_keys_get_a_hint(book, key):
    there = defined_by(book, "TRAIN =")

    def leaked(train, test):
        known = {key(asked) for asked in train}
        return [asked for asked in test if key(asked) in known]

    assert "Hint" in check_exercise("2", leaked, there["FOUND"], there["HINTS"])


@pytest.mark.upgrade
def test_real_gsm8k_goes_through_the_lesson(tmp_path, gsm8k_records):
    result = run_lesson(LESSON, tmp_path, PROFILE="cpu", GSM8K_FILE=os.environ["GSM8K_FILE"])
    assert result.returncode == 0, result.stderr[-3000:]
    assert "1319 records from" in result.stdout and "rows: 1319, " in result.stdout
