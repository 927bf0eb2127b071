"""Tasks with a check and no answers: their examples are right, tricks are not, and no answer breaks a check."""

import doctest
import json
import random

import bench_checked
import pytest
from checked import arms, learned, programs, reading, spelling, tasks
from checked.arms import ARMS
from checked.measuring import judged
from checked.tasks import (
    TASKS,
    Task,
    check_letter,
    check_query,
    check_sentence,
    check_sum,
    held_out,
    run_query,
    training_rows,
)
from free.training import replace_files
from hypothesis import given
from hypothesis import strategies as st
from template_projects import imported

from grpo_utils.real.training import write_project

EACH = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
PEOPLE = [["Ann", "Rome", 30], ["Ben", "Oslo", 50], ["Fay", "Rome", 41]]


@EACH
def test_the_examples_are_right_and_differ_from_the_prompts(task: Task):
    for drawn, answer in task.shown:
        assert all(task.parts(answer, drawn).values()), task.parts(answer, drawn)
    asked = {row["prompt"][-1]["content"] for row in task.rows(16)}
    assert len(asked) == 16 and not asked & {turn["content"] for turn in task.examples(len(task.shown))}


@EACH
def test_the_same_seed_draws_the_same_prompts(task: Task):
    assert task.rows(5) == task.rows(5) != task.rows(5, seed=1)


def test_a_task_with_few_prompts_gives_all_of_them_to_training_except_those_held_out():
    every, asked = 18 * 17 * 3, {row["prompt"][-1]["content"] for row in training_rows("letter", 2000, seed=0)}
    assert every * 0.99 < len(asked | {row["prompt"][-1]["content"] for row in held_out("letter")}) <= every


@EACH
@given(text=st.text(max_size=80))
def test_no_text_breaks_a_check(task: Task, text: str):
    (row,) = task.rows(1)
    parts = task.parts(text, row["drawn"])
    assert parts and all(type(right) is bool for right in parts.values())


@EACH
def test_a_text_that_goes_on_and_on_is_wrong_in_every_part(task: Task):
    for drawn, answer in task.shown:
        assert not any(task.parts(answer + " " * 2000, drawn).values())


def test_every_basket_has_a_right_answer():
    for row in TASKS["basket"].rows(50):
        cheapest = sorted(row["drawn"]["prices"].items(), key=lambda pair: pair[1])[:3]
        answer = "{" + ", ".join(f'"{item}": {price}' for item, price in cheapest) + "}"
        assert all(TASKS["basket"].parts(answer, row["drawn"]).values())


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("river bread rabbit.", "sentence"),
        ("The river has bread and the rabbit sleeps. It rains.", "sentence"),
        ("Here is a sentence: the river has bread and a rabbit.", "sentence"),
        ("The rivers have bread for the rabbit.", "words"),
        ("The river " + "very " * 11 + "bread rabbit.", "length"),
    ],
)
def test_a_trick_with_the_sentence_is_wrong_in_one_part(text, wrong):
    parts = check_sentence(text, ["river", "bread", "rabbit"])
    assert [name for name, right in parts.items() if not right] == [wrong]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT name FROM people WHERE name = 'Ann' OR name = 'Fay'",
        "SELECT 'Ann' FROM people",
        "SELECT name FROM people WHERE city = 'Rome'; DROP TABLE people",
        "SELECT * FROM people WHERE city = 'Rome'",
        "SELECT name FROM people",
        "The query is SELECT name FROM people WHERE city = 'Rome'",
        "SELECT name FROM people WHERE city = 'Rome'\nLIMIT 2",
    ],
)
def test_a_query_that_is_not_an_answer_is_not_right(text):
    assert not all(check_query(text, PEOPLE, ["Ann", "Fay"]).values())


def test_a_query_can_neither_write_nor_run_for_long_nor_fill_the_memory():
    many = ", ".join(f"people p{n}" for n in range(12))
    for text in (
        "DELETE FROM people",
        "ATTACH 'file' AS other",
        "SELECT name FROM people WHERE length(hex(zeroblob(900000000))) > 1",
        f"SELECT count(*) FROM {many}",
    ):
        assert run_query(text, PEOPLE) is None
    assert run_query("SELECT name FROM people WHERE city LIKE 'R%'", PEOPLE) == [("Ann",), ("Fay",)]


def test_lists_and_sums_are_read_as_a_whole():
    assert not any(check_letter("bread, boat, cat", "bc", 3).values())
    assert not check_letter("b, boat, cat, cow", "bc", 3)["form"]
    assert not check_letter("bread, cat, boat, cow", "bc", 3)["letters"]
    assert not check_sum("2 + 3 + 4 = 9 and so on", 9, 1)["form"]
    assert not check_sum("2 + 3 + 4 = 10", 10, 1)["total"] and not check_sum("1 + 3 + 5 = 9", 9, 1)["different"]


def test_a_drawn_sum_can_be_written():
    for seed in range(50):
        drawn = TASKS["sum"].draw(random.Random(seed))
        assert drawn["total"] >= 3 * drawn["above"] + 6


# The bench


def pilot(task="sentence", examples=3, greedy="0001" * 16, sampled=(1, 0, 0, 0) * 8):
    (row,) = TASKS[task].rows(1)
    parts = TASKS[task].parts("", row["drawn"])
    more = dict(parts=dict.fromkeys(parts, 0.5), most_common_start=0.25)
    return dict(task=task, examples=examples, greedy=greedy, sampled=list(sampled)) | more


@pytest.mark.parametrize(
    ("greedy", "sampled", "verdict"),
    [
        ("0001" * 16, (1, 0, 0, 0) * 8, "yes"),
        ("0111" * 16, (1, 0, 0, 0) * 8, "no: with examples, greedy accuracy is 0.3 or more"),
        ("0000" * 16, (0,) * 32, "no: hardly a sample is right"),
        ("0001" * 16, (1,) * 32, "no: too many groups hold a right sample"),
    ],
)
def test_a_task_fits_if_examples_fail_and_some_groups_hold_a_right_sample(greedy, sampled, verdict):
    rows = [pilot(examples=count, greedy=greedy, sampled=sampled) for count in (0, 3)]
    assert bench_checked.fits(rows) == verdict
    assert bench_checked.fits(rows[:1]) == bench_checked.NOT_YET


def test_a_pilot_is_judged_part_by_part():
    (drawn, right), _, _ = TASKS["sum"].shown
    rows = [dict(drawn=drawn)] * 2
    found = judged("sum", rows, [[right], ["38"]], [[right] * 4 + ["4 + 2 + 32 = 38"] * 4])
    assert (found["greedy"], found["sampled"]) == ("10", [4])
    assert found["parts"] == dict(form=1.0, different=0.5, total=1.0)


def test_the_page_names_every_pilot_and_what_is_missing():
    text = bench_checked.section(dict(rows=[]))
    assert text.count(f"| {bench_checked.NOT_YET} |") == len(bench_checked.PILOTS)
    about = dict(date="d", processor="p", python="3", versions=dict(trl="1"))
    text = bench_checked.section(about | dict(rows=[pilot(examples=0), pilot()]))
    greedy, passed = (bench_checked.with_interval(0.25, count) for count in (bench_checked.PROMPTS, 32))
    parts = "words 0.50, length 0.50, sentence 0.50"
    assert f"| sentence | 3 | {greedy} | 0.031 | {passed} | {parts} | 0.25 |" in text
    assert "- sentence: yes" in text
    pilots, arms = text.split("What training adds")
    for table in (pilots, arms):
        assert len({line.count("|") for line in table.splitlines() if line.startswith("|")}) == 1
    assert arms.count(f"| {bench_checked.NOT_YET} |") == len(ARMS)


def test_only_tasks_that_suit_are_compared_and_grpo_with_each_other_arm():
    rows = [pilot(task, count) for task in ("basket", "query", "letter") for count in (0, 3)]
    assert {run["task"] for run in bench_checked.comparisons(rows)} == {"basket", "query"}
    assert not bench_checked.comparisons(rows[:1])
    arm = dict(pilot("query"), seed=0, different=0.5, minutes=3.2, texts=["SELECT\nname"] * 4)
    del arm["examples"]
    rows += [dict(arm, arm="3 examples"), dict(arm, arm="GRPO", greedy="1" * 64)]
    assert bench_checked.differences(rows).startswith("- query, GRPO compared with 3 examples: +0.750")
    assert "`SELECT name`" in bench_checked.answers_of(rows) and len(bench_checked.answers_of(rows).splitlines()) == 2


def test_programs_write_correct_answers():
    pytest.importorskip("spylls", reason="in experiments/requirements.txt only")
    for task, write in programs.PROGRAMS.items():
        for row in tasks.training_rows(task, 20, 0):
            assert all(tasks.TASKS[task].parts(write(row["drawn"], random.Random(1)), row["drawn"]).values())


def test_the_page_has_what_is_stored():
    section = bench_checked.section(bench_checked.read_stored(bench_checked.STORED))
    assert f"## {bench_checked.TITLE}\n{section}" in bench_checked.FIRST.read_text(encoding="utf-8")


@pytest.mark.parametrize("module", [learned, reading, tasks, spelling], ids=lambda module: module.__name__)
def test_the_examples_in_docstrings_hold(module):
    if module is spelling:
        pytest.importorskip("spylls", reason="in experiments/requirements.txt only")
    assert doctest.testmod(module).failed == 0


def on_held_out(task, write, arm="GRPO"):
    """A row of an arm that answers each held-out prompt of a task with what `write` makes of it."""
    texts = [write(row) for row in held_out(task)]
    found = judged(task, held_out(task), [[text] for text in texts], [[text] for text in texts])
    return found | dict(task=task, arm=arm, unknown_words=["happinesst"], curves=dict(correct=[0.1, 0.2, 0.5]))


def test_lists_of_letters_are_counted_with_and_without_invented_words():
    invented, written = (on_held_out("letter", learned.without_words, arm) for arm in ("GRPO", arms.WRITTEN))
    counts = dict(letter_correct="200", letter_known="200", letter_own_correct="200", letter_own_known="200")
    assert learned.letter_run([invented, written], 2) == counts | dict(letter_early="20%", letter_last="50%")
    unknown = {word for text in invented["texts"][:2] for word in spelling.words(text)}
    invented["unknown_words"] = sorted(unknown)
    left = sum(not unknown & set(spelling.words(text)) for text in invented["texts"])
    counts = learned.letter_run([invented, written], 2)
    assert (counts["letter_known"], counts["letter_own_known"]) == (str(left), "200") and 0 < left <= 198
    told = learned.on_letter([invented, written])
    assert f"GRPO: 200, and {left} if each word" in told and f"{arms.WRITTEN}: 200, and 200 if" in told
    assert learned.letter_run([invented], 2)["letter_correct"] == learned.NOT_YET


def test_a_policy_that_follows_the_rule_is_counted_as_following_it():
    follows = on_held_out("query", lambda row: f"SELECT name FROM people WHERE {learned.city_of_first(row)}")
    assert (learned.followed([follows]), learned.cities([follows])) == ("200", "200")
    constant = on_held_out("query", lambda row: f"SELECT name FROM people WHERE {learned.best_constant()}")
    assert constant["greedy"].count("1") == learned.constant() and learned.followed([constant]) == "0"
    assert follows["greedy"].count("1") == learned.rule() < learned.loop() == 200


def test_no_training_prompt_is_held_out():
    for task in TASKS:
        held = {row["prompt"][-1]["content"] for row in held_out(task)}
        rows = training_rows(task, 560, seed=0)
        assert len(held) == 200 and len(rows) == 560
        assert not held & {row["prompt"][-1]["content"] for row in rows}


def test_the_rewards_of_grpo_are_the_check(tmp_path):
    project = write_project(tmp_path / "project")
    replace_files(project, arms.HERE / "rewards.py", arms.HERE / "data.py")
    with imported(project, "rewards", "data") as [rewards, data]:
        judge_a_sum(rewards, data)


def judge_a_sum(rewards, data):
    rows = data.load_rows("sum", "test", 1, 0)
    drawn = dict(total=38, above=5)
    columns = dict(task=["sum"] * 2, drawn=[json.dumps(drawn)] * 2)
    said = ["13 + 16 + 9 = 38", "13 + 13 + 12 = 38"]
    assert rewards.correctness_reward(said, **columns) == [1.0, 0.0]
    assert rewards.parts_reward(said, **columns) == [1.0, pytest.approx(2 / 3)]
    assert rows[0]["task"] == "sum" and not rewards.is_right("38", rows[0]) and rewards.is_in_form("38")


def test_conditions_are_judged_as_their_queries():
    task = TASKS["query"]
    for row in held_out("query")[:5]:
        for condition in [*learned.BY_CITY, "age < 40", "age > 40", learned.city_of_first(row)]:
            parts = task.parts(f"SELECT name FROM people WHERE {condition}", row["drawn"])
            assert learned.is_right(row, condition) == all(parts.values())
