"""docs/watch-it-cheat.html replays the runs of lesson 02 that the README shows, and its picture is drawn from it."""

import gzip
import re

import browser
import pytest
from figures import read_runs, stored_text
from grpo_check.health.rules import RULES
from grpo_check.replay.page import page_of, runs_of
from record_replays import CURVES, PAGE, PICTURE, REAL, RUNS, SHOWN, SUBTITLE, TITLE, truth
from replay_animation import animation

#: The runs that the README's figure shows, in its order.
LESSON_02 = [run.name for run in RUNS if "lesson 02" in run.about]


@pytest.fixture(scope="module")
def runs():
    return runs_of(PAGE.read_text(encoding="utf-8"))


def test_its_runs_are_those_of_the_lesson(runs):
    shown, steps = read_runs(stored_text())
    recorded = [run for run in runs if run["name"] in LESSON_02]
    for run, lesson in zip(recorded, shown, strict=True):
        curves = {curve["label"]: dict(curve["points"]) for curve in run["curves"]}
        assert [curves["reward (total)"][step] for step in steps] == pytest.approx(lesson.reward, abs=0.006)
        assert [curves[truth.__name__][step] for step in steps] == pytest.approx(lesson.correct, abs=0.006)


def test_flawed_rewards_are_named_and_sound_ones_are_not(runs):
    severe = {run["name"]: {v["code"] for v in run["verdicts"] if v["severity"] == "error"} for run in runs}
    assert [bool(codes) for codes in severe.values()] == [True, True, True, False, False, False]
    assert [len(run["steps"]) for run in runs[:-1]] == [run.steps for run in RUNS] and runs[-1]["name"] == REAL
    assert all(run["story"] and run["ending"] for run in runs)
    assert not any(re.search("cheat|sound|luck|nothing can", run["name"] + run["story"]) for run in runs)


def test_its_verdicts_are_in_the_words_of_the_rules_of_today(runs):
    rules = {rule.code: rule for rule in RULES}
    for verdict in (verdict for run in runs for verdict in run["verdicts"]):
        rule = rules[verdict["code"]]
        assert verdict["what"] == f"{rule.meaning} (step {verdict['step']}).", "make replays"
        assert (verdict["why"], tuple(verdict["fixes"])) == (rule.why, rule.fixes), "make replays"


def test_a_run_that_earned_nothing_has_a_picture(runs):
    flat = [{"label": label, "points": [[1, 0.0]]} for label in CURVES.values()]
    picture = animation({**runs[0], "curves": flat, "steps": runs[0]["steps"][:1]}, SUBTITLE, [1], CURVES)
    assert picture.count("<g ") == 1 and ">0.00<" in picture and ">0%<" in picture


def test_it_is_small_enough_to_send():
    assert len(gzip.compress(PAGE.read_bytes())) < 1e6


def test_page_and_picture_are_written_by_the_scripts_of_today(runs):
    assert PAGE.read_text(encoding="utf-8") == page_of(runs, TITLE), "python experiments/record_replays.py --write"
    assert PICTURE.read_text(encoding="utf-8") == animation(runs[0], SUBTITLE, SHOWN, CURVES)


@browser.needs_browser
def test_another_run_is_chosen(tmp_path, runs):
    with browser.chromium(tmp_path) as page:
        page.open(PAGE)
        page.run("{const e = document.getElementById('run'); e.value = 4; e.dispatchEvent(new Event('change'))}")
        assert page.run("document.getElementById('story').textContent") == runs[4]["story"]
        assert page.run("document.getElementById('at').textContent") == f"step 1 of {RUNS[4].steps}"
        assert [address for address in page.requests() if not address.startswith("file:")] == []
