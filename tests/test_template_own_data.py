"""The template own_data: rewards that hold for any text, a true sample, and a judge that fails while it trains."""

import csv
import json
import re
import time
from contextlib import contextmanager

import pytest
from course import ROOT
from hypothesis import given
from hypothesis import strategies as st
from template_projects import ALONE, FAST, imported, in_folder

from grpo_utils import read_table
from grpo_utils.project import new_project

TEMPLATE = ROOT / "templates" / "own_data"
KEY = "sk-very-secret-0123456789"
SHORT = [*FAST, "--max_steps", "3", "--logging_steps", "1"]


@pytest.fixture(scope="module")
def modules():
    """The template's own rewards and fake judge."""
    with imported(TEMPLATE, "rewards", "judge", "fake_judge") as (rewards, _, fake_judge):
        yield rewards, fake_judge


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return new_project("own_data", tmp_path_factory.mktemp("own_data") / "project")


@given(text=st.text(), question=st.text(), expert=st.text(), key=st.text(max_size=10))
def test_rewards_are_numbers_from_0_to_1_for_any_text(modules, text, question, expert, key):
    rewards, _ = modules
    for reward in rewards.REWARDS:
        [score] = reward([text], question=[question], answer=[expert], key=[key])
        assert 0.0 <= score <= 1.0
    assert rewards.is_in_form(text) in (True, False)


@given(expert=st.text(), question=st.text())
def test_an_experts_own_answer_is_right_wherever_it_says_anything(modules, expert, question):
    rewards, _ = modules
    says = bool(rewards.tokens(expert))
    assert rewards.is_right(expert, dict(question=question, answer=expert, key="")) == says


@pytest.mark.parametrize("text", ["1," * 200_000, "1" * 400_000, "a'" * 200_000, "-" * 400_000, "{" * 400_000])
def test_a_very_long_text_costs_no_more_than_its_length(modules, text):
    rewards, _ = modules
    started = time.perf_counter()
    rewards.is_right(text, dict(question="Who?", answer="It is Ana.", key="Ana"))
    assert rewards.tokens(text) is not None and time.perf_counter() - started < 3


def test_the_sample_is_true_and_asks_nothing_twice():
    rows = list(csv.DictReader((TEMPLATE / "expert_answers.csv").open(encoding="utf-8", newline="")))
    sums = [row for row in rows if not row["key"]]
    asked = [row["question"].removeprefix("What is ").rstrip("?") for row in sums]
    pairs = [sorted(map(int, words.split(" + "))) for words in asked]
    answers = [f"{words} is {sum(pair)}." for words, pair in zip(asked, pairs)]
    assert [row["answer"] for row in sums] == answers and len({tuple(pair) for pair in pairs}) == len(pairs) == 470
    facts = {row["question"]: (row["answer"], row["key"]) for row in rows if row["key"]}
    known = [row for row in read_table(ROOT / "grpo_utils/tiny/questions.jsonl") if row["task"] == "fact"]
    assert facts == {row["question"]: (row["right"][1], row["right"][0]) for row in known}


WITHOUT, WITH = "wording_reward: 0.5}", "wording_reward: 0.5, judge_reward: 1.0}"


@pytest.fixture
def judged(project):
    """The project, and its judge in REWARDS."""
    kept = (project / "rewards.py").read_text(encoding="utf-8")
    assert WITHOUT in kept
    (project / "rewards.py").write_text(kept.replace(WITHOUT, WITH), encoding="utf-8")
    yield project
    (project / "rewards.py").write_text(kept, encoding="utf-8")


def train_with(project, patch, reply, fake_judge):
    """A short training run with a judge that replies so; what it said, its report, and what the judge was asked."""
    with fake_judge.FakeJudge(reply) as judge:
        settings = dict(JUDGE_BASE_URL=judge.url, JUDGE_MODEL="fake", JUDGE_API_KEY=KEY, NO_PROXY="127.0.0.1")
        for name, value in settings.items():
            patch.setitem(ALONE, name, value)
        run = in_folder(project, "train.py", *SHORT)
    assert run.returncode == 0, run.stderr[-3000:]
    told = run.stdout + run.stderr
    assert KEY not in told and "Traceback" not in told
    written = [path for path in (project / "outputs").rglob("*") if path.is_file()]
    assert written and not [path for path in written if KEY.encode() in path.read_bytes()]
    return run.stdout, json.loads((project / "outputs" / "own_data" / "report.json").read_text()), judge.seen


@pytest.mark.slow
def test_a_judge_that_fails_now_and_then_is_heard_and_does_not_end_the_training(judged, monkeypatch, modules):
    _, fake_judge = modules

    def flaky(body, nth):
        failures = {0: (401, KEY), 2: (200, fake_judge.completion(f"I am sure: 10. {KEY}")), 4: (200, "<html>")}
        return failures.get(nth % 6) or fake_judge.honest(body, nth)

    said, report, seen = train_with(judged, monkeypatch, flaky, fake_judge)
    assert report["steps"] == 3 and "status 401" in said and re.search(r"judge_reward 0\.(?!00)", said), said
    assert 3 < len(seen) <= 3 * 64 and seen[0][0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.slow
def test_a_dead_judge_does_not_end_the_training_even_if_no_other_reward_scores(judged, monkeypatch, modules):
    text = (judged / "rewards.py").read_text(encoding="utf-8")
    (judged / "rewards.py").write_text(text + "\n\nREWARDS = {judge_reward: 1.0}\n", encoding="utf-8")
    said, report, seen = train_with(judged, monkeypatch, lambda body, nth: (500, KEY), modules[1])
    assert report["steps"] == 3 and 1 <= said.count("got no score") <= 2  # a failed call, and the pause
    assert len(seen) < 64  # left alone after the first failures


@pytest.mark.slow
def test_a_judge_without_an_address_is_told_before_anything_is_loaded(judged):
    run = in_folder(judged, "train.py", *SHORT)
    assert "judge_reward needs JUDGE_BASE_URL and JUDGE_MODEL" in run.stderr and "Traceback" not in run.stderr
    assert run.returncode and "Loading weights" not in run.stderr


@pytest.mark.slow
def test_bad_rows_are_named_before_anything_is_loaded(project):
    (project / "mine.csv").write_text("question,answer\nWho?,\nWho else?,Ana,Ben\n")
    run = in_folder(project, "train.py", *SHORT, "--dataset_name", "mine.csv")
    assert "bad rows in mine.csv: 2" in run.stderr and "line 3: has 3 fields" in run.stderr
    assert run.returncode and "Loading weights" not in run.stderr and "Traceback" not in run.stderr


#: Language, gold answer, an answer that means the same, and one that has the same digits or words.
WRITTEN = [
    ("de", "24,50 Euro.", "Es sind 24,50 Euro.", "50,24 Euro."),
    ("de", "1.250 Euro.", "1250 Euro.", "1,25 Euro."),
    ("de", "Um 10:22 Uhr.", "Der Zug kommt um 10:22 Uhr.", "Um 22:10 Uhr."),
    ("de", "Der Zug kommt um 10.22 Uhr.", "Um 10.22 Uhr kommt der Zug.", "Der Zug kommt um 22.10 Uhr."),
    ("de", "Es war am 3.4.2026.", "Am 3.4.2026.", "Es war am 4.3.2026."),
    ("de", "Version 1.2.3", "Die Version 1.2.3", "Version 3.2.1"),
    ("es", "Cuesta 3,14", "3,14 cuesta", "Cuesta 14,3"),
    ("fr", "1\u202f250,50 €", "1250,50 €", "250,50 €"),
    ("en", "At 9:05.", "At 09:05.", "At 5:09."),
    ("en", "1,250 apples", "1250 apples", "1.25 apples"),
    ("en", "A bag of 5kg", "It is a bag of 5kg", "A bag of 6kg"),
    ("en", "192.168.0.1", "It is 192.168.0.1.", "192.168.1.0"),
]


@pytest.mark.parametrize("language, gold, right, wrong", WRITTEN)
def test_numbers_are_read_as_the_language_writes_them(language, gold, right, wrong, tmp_path):
    """Numbers that fall apart into their digits are a set of parts, and "50,24" was as right as "24,50"."""
    with rewards_in(language, tmp_path) as rewards:
        row = dict(question="?", answer=gold, key="")
        assert [rewards.is_right(text, row) for text in (gold, right, wrong)] == [True, True, False]


@contextmanager
def rewards_in(language, folder, small=""):
    """The rewards for answers in a language, with more small words of German."""
    written = (TEMPLATE / "rewards.py").read_text(encoding="utf-8")
    written = written.replace('LANGUAGE = "en"', f'LANGUAGE = "{language}"', 1).replace(
        '"de": "', f'"de": "{small} ', 1
    )
    (folder / "rewards.py").write_text(written)
    (folder / "judge.py").write_text("judge_all = None")
    with imported(folder, "rewards", "judge") as (rewards, _):
        yield rewards


def test_the_german_answer_of_the_readme_counts_as_it_says(tmp_path):
    row = dict(question="Wie hoch ist der Preis in Euro?", answer="24 Euro.", key="")
    assert all(
        text in (TEMPLATE / "README.md").read_text(encoding="utf-8") for text in (row["question"], row["answer"])
    )
    for small, counts in (("", False), ("kostet", True)):
        with rewards_in("de", tmp_path, small) as rewards:
            assert rewards.is_right("Der Preis ist 24 Euro.", row) and not rewards.is_right("Es kostet 25 Euro.", row)
            assert rewards.is_right("Es kostet 24 Euro.", row) is counts
