"""Lesson 01 as readers run it: the committed notebook, and the same with other parameters."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
from conftest import ROOT
from lessons import run_with_nbval, said

from grpo_utils import check_exercise

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "01_dataset.ipynb"


@pytest.fixture(scope="module")
def committed():
    return nbformat.read(LESSON, as_version=4)


def prompts_of(text: str) -> dict[str, tuple[int, int]]:
    """For each kind of prompt, of 100 answers: strictly correct ones, and those whose last number is correct."""
    found = re.findall(r"^(\S+)\n  strict accuracy: .*, (\d+) of 100\n  last number correct: (\d+) of 100", text, re.M)
    return {kind: (int(strict), int(last)) for kind, strict, last in found}


def splits_of(text: str) -> dict[str, list[int]]:
    """For each split: held-out rows, leaked copies, leaked numbers, repeats within the held-out rows."""
    lines = r"^(.*): (\d+) held out\n.*training row: +(\d+)\n.*other words: +(\d+)\n.*held-out rows: +(\d+)$"
    return {name: [*map(int, numbers)] for name, *numbers in re.findall(lines, text, re.MULTILINE)}


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]
    assert not list(tmp_path.glob("*.csv"))  # it clears away what it wrote


def check_what_the_words_say(text: str) -> None:
    """Claims that hold for both families and any seed."""
    prompts, splits = prompts_of(text), splits_of(text)
    assert prompts["strings"][0] <= 5 < prompts["messages"][0]
    assert prompts["few-shot"][1] < prompts["messages"][1] / 2
    assert splits["shuffled and cut"][1] > 5
    assert splits["by text"][1] == 0 < splits["by text"][2] and splits["by numbers"][1:3] == [0, 0]
    assert all(repeats > 0 for *_, repeats in splits.values())
    assert "every gold answer is a number: True" in text and "every perfect completion scores 1: True" in text
    right, wrong = text.split("with the wrong EOS token:")[:2]
    assert "the answer ends with EOS: True" in right and "the answer ends with EOS: False" in wrong


def test_the_committed_lesson_shows_what_it_says(committed):
    printed = said(committed)
    check_what_the_words_say(printed)
    assert prompts_of(printed)["few-shot"] == (0, 0) and "1000 of 1000 records accepted" in printed
    kept, whole = map(int, re.search(r"rows within this limit: (\d+) of (\d+)", printed).groups())
    assert 0 < whole - kept < whole / 10


def lesson(folder, *pairs: str) -> subprocess.CompletedProcess:
    flags = [part for pair in pairs for part in ("-p", *pair.split("=", 1))]
    command = [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *flags]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    """Every parameter set to something that is not its default; the records are a file's."""
    folder = tmp_path_factory.mktemp("other")
    record = {"question": "Two pens and {} more: how many?", "answer": "2 + {0} = {1}\n#### {1}"}
    made = [
        {"question": record["question"].format(n), "answer": record["answer"].format(n, n + 2)} for n in range(3, 90)
    ]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, made)))
    result = lesson(folder, "PROFILE=cpu", "FAMILY=gemma", "SEED=5", "GSM8K_FILE=rows.jsonl")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family):
    assert "Model: tiny-gemma3, on the CPU" in other_family and "87 records from rows.jsonl" in other_family


def test_its_words_are_true_with_the_other_family_and_seed(other_family):
    check_what_the_words_say(other_family)


def test_a_file_that_is_not_there_stops_the_lesson(tmp_path):
    result = lesson(tmp_path, "PROFILE=cpu", "GSM8K_FILE=none.jsonl")
    assert result.returncode == 1 and "There is no file 'none.jsonl'" in result.stderr


@pytest.mark.upgrade
def test_an_empty_file_stops_the_lesson(tmp_path):
    """It went on with made problems and called them GSM8K."""
    (tmp_path / "none.jsonl").touch()
    result = lesson(tmp_path, "PROFILE=cpu", "GSM8K_FILE=none.jsonl")
    assert result.returncode == 1 and "none.jsonl has no records" in result.stderr


def hints_of(committed, start: str) -> dict:
    """The cases and hints of an exercise, from its check cell."""
    source = next(c.source for c in committed.cells if c.cell_type == "code" and c.source.count(start))
    names = {}
    exec(source[: source.index("print(")], names)
    return names


@pytest.mark.parametrize(
    ("pattern", "answer"),
    [
        (r"\\boxed\{([^{}]+)\}", "Did your pattern skip it?"),
        (r"\\boxed\{([^{}]*)\}", "What should the function return?"),
    ],
)
def test_wrong_boxes_get_their_hint(committed, pattern, answer):
    """An empty last box read as the box before it, or as an empty answer, was right."""
    there = hints_of(committed, "BOXED =")

    def boxed(solution):
        found = re.findall(pattern, solution)
        return found[-1].strip() if found else None

    assert answer in check_exercise("1", boxed, there["BOXED"], there["HINTS"])


def words_alone(question: str) -> str:
    return "".join(re.findall(r"\w+", question.casefold()))


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        (str.casefold, "What about the '?'"),
        (lambda question: " ".join(question.casefold().split()).rstrip("?"), "What is left of 'WHO WON ?'"),
        (lambda question: question.casefold().rstrip(" ?"), "two spaces in a row"),
        (words_alone, "Is 1.5 + 2 the same as 15 - 2?"),
    ],
)
def test_wrong_keys_get_their_hint(committed, key, answer):
    there = hints_of(committed, "TRAIN =")

    def leaked(train, test):
        known = {key(asked) for asked in train}
        return [asked for asked in test if key(asked) in known]

    assert answer in check_exercise("2", leaked, there["FOUND"], there["HINTS"])


@pytest.mark.upgrade
def test_real_gsm8k_goes_through_the_lesson(tmp_path, gsm8k_records):
    result = lesson(tmp_path, "PROFILE=cpu", f"GSM8K_FILE={os.environ['GSM8K_FILE']}")
    assert result.returncode == 0, result.stderr[-3000:]
    assert "1319 records from" in result.stdout and "1319 of 1319 records accepted" in result.stdout
