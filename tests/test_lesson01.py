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
TRUE = (
    "every gold answer can be earned",
    "no copies leak",
    "no numbers leak",
    "'a turn ends with EOS'",
)
RATE = r"\d\.\d{3} \(\d\.\d{3} to \d\.\d{3}\), (\d+) of (\d+)"


def rate(text: str, name: str) -> float:
    """The rate that stands behind a name."""
    hits, n = re.search(rf"^ *{re.escape(name)} +{RATE}", text, re.MULTILINE).groups()
    return int(hits) / int(n)


@pytest.fixture(scope="module")
def committed() -> str:
    return said(nbformat.read(LESSON, as_version=4))


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    result = run_with_nbval(LESSON, tmp_path, cell_seconds=600, seconds=900)
    assert result.returncode == 0, result.stdout[-4000:]
    assert not list(tmp_path.glob("*.csv"))  # it clears away what it wrote


@pytest.mark.parametrize("verdict", TRUE)
def test_the_committed_lesson_computes_its_verdicts(committed, verdict):
    assert f"{verdict}: True" in committed


def check_what_the_words_say(text: str) -> None:
    """Claims that the lesson makes in words, which have to hold for both families."""
    assert rate(text, "strings:  strict") < 0.05 < rate(text, "messages: strict")
    assert rate(text, "two examples  strict") < rate(text, "no examples   strict")
    bare, shown = re.findall(rf"^\w+ examples +strict .*\n  last number {RATE}", text, re.MULTILINE)
    assert int(shown[0]) < int(bare[0]) / 2  # "far fewer answers are right"
    assert rate(text, "after, on the same samples:") == 0
    assert 0 < rate(text, "after, on new samples:") < rate(text, "ties before:")
    tied = [re.findall(rf"{name}, \w+ half: frac_reward_zero_std {RATE}", text) for name in ("the pool", "the kept")]
    pool, kept = (sum(int(hits) for hits, _ in halves) for halves in tied)
    assert kept < pool  # "more were in groups that teach"
    assert rate(text, "with form") < rate(text, "right or not") / 2
    shuffled, by_question = re.findall(r"leaked: +(\d+) copies", text)[:2]
    assert int(shuffled) > 5 and int(by_question) == 0
    within = re.search(r"held out: (\d+) rows, (\d+) of.*?,\n(\d+) with.*?so (\d+) sums", text, re.DOTALL)
    rows, copies, reworded, left = map(int, within.groups())
    assert copies > 0 and left == rows - copies - reworded
    lost = int(re.search(r"dropped for 0 of 8: (\d+)", text)[1])
    solved = int(re.search(r"at least once in 8 new samples: (\d+)", text)[1])
    assert lost / 2 < solved <= lost
    never, most = (
        int(re.search(rf"{said}: (?:at most )?(\d+)", text)[1]) for said in ("of both kinds", "without loss")
    )
    assert most == never - solved and "\nahead: " in text


def test_the_committed_lesson_is_true_in_words(committed):
    check_what_the_words_say(committed)
    first = "frac_reward_zero_std"
    pool, kept = (rate(committed, f"the {name}, first half: {first}") for name in ("pool", "kept"))
    assert kept < pool - 0.1
    assert rate(committed, "kept, tied now:") > 0 and rate(committed, "dropped, solved now:") > 0


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
    result = lesson(folder, "PROFILE=cpu", "FAMILY=gemma", "STEPS=2", "SEED=5", "GSM8K_FILE=rows.jsonl")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


def test_every_override_arrives(other_family):
    assert "tiny-gemma3, 2 steps a training, on the CPU" in other_family and "87 records, of your file" in other_family


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
    assert result.returncode == 1 and "none.jsonl holds no records" in result.stderr


def test_wrong_answers_to_the_exercises_are_told():
    """Both were right: an empty last box read as the box before, and a key without any punctuation."""
    cells = [cell.source for cell in nbformat.read(LESSON, as_version=4).cells if cell.cell_type == "code"]
    there = {"re": re, "check_exercise": check_exercise}
    for start in ("BOXED =", "TRAIN ="):
        source = next(cell for cell in cells if start in cell)
        exec(source[: source.index("print(")], there)

    def boxed(solution):
        found = re.findall(r"\\boxed\{([^{}]+)\}", solution)
        return found[-1].strip() if found else None

    def leaked(train, test):
        known = {"".join(re.findall(r"\w+", asked.casefold())) for asked in train}
        return [asked for asked in test if "".join(re.findall(r"\w+", asked.casefold())) in known]

    assert "not yet" in check_exercise("1", boxed, there["BOXED"])
    assert "not yet" in check_exercise("2", leaked, there["FOUND"])


@pytest.mark.upgrade
def test_real_gsm8k_goes_through_the_lesson(tmp_path, gsm8k_records):
    result = lesson(tmp_path, "PROFILE=cpu", "STEPS=1", f"GSM8K_FILE={os.environ['GSM8K_FILE']}")
    assert result.returncode == 0, result.stderr[-3000:]
    assert "1319 records, of your file" in result.stdout and "1319 of 1319 records are fit" in result.stdout


def test_it_imports_no_unsloth():
    book = nbformat.read(LESSON, as_version=4)
    assert not [cell for cell in book.cells if cell.cell_type == "code" and "import unsloth" in cell.source]
