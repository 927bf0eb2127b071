"""Held-out sentences share no name, city or item with training, and the gold answer says what the sentence says."""

import json

import pytest

from grpo_utils import CourseError, load_rows
from grpo_utils.data.extraction import CITIES, ITEMS, NAMES, SENTENCES, extraction_rows
from grpo_utils.rewards import json_reward

TASKS = ("orders", "older")


@pytest.mark.parametrize("words", [NAMES, CITIES, ITEMS], ids=["names", "cities", "items"])
def test_no_word_of_one_split_is_in_another(words):
    every = [word for split in words.values() for word in split.split()]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_rows_are_different_and_repeatable(task, split):
    rows = extraction_rows(task, 300, split, seed=1)
    assert len({row["prompt"][-1]["content"] for row in rows}) == 300
    assert rows == extraction_rows(task, 300, split, seed=1) != extraction_rows(task, 300, split, seed=2)
    assert rows[:50] == extraction_rows(task, 50, split, seed=1)


@pytest.mark.parametrize("task", TASKS)
def test_every_value_of_the_answer_is_in_the_sentence(task):
    for row in extraction_rows(task, 200, "test"):
        sentence = row["prompt"][-1]["content"].rpartition("\n\n")[2]
        assert all(str(value) in sentence for value in json.loads(row["answer"]).values())


def test_the_older_or_younger_person_is_the_answer():
    for row in extraction_rows("older", 200, "test"):
        asked, _, sentence = row["prompt"][-1]["content"].partition("\n\n")
        ages = [int(word) for word in "".join(c if c.isdigit() else " " for c in sentence).split()]
        wanted = max(ages) if "older person" in asked else min(ages)
        gold = json.loads(row["answer"])
        assert len(ages) == 2 and gold["age"] == wanted
        assert sentence.index(gold["name"]) >= 0 and sentence.index(gold["city"]) >= 0


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("split", ["dev", "test"])
def test_new_sentences_are_never_trained_on_and_counted_apart(task, split):
    assert {row["kind"] for row in extraction_rows(task, 60)} == {"known sentence"}
    kinds = [row["kind"] for row in extraction_rows(task, 60, split)]
    assert kinds.count("new sentence") == kinds.count("known sentence") == 30


@pytest.mark.parametrize("task", TASKS)
def test_the_new_sentences_of_a_split_are_in_no_other(task):
    every = [sentence for of in SENTENCES[task].values() for sentence in of]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("task", TASKS)
def test_the_gold_answer_is_right_by_the_courses_own_reward(task):
    rows = load_rows(task, "test", 20)
    assert json_reward(list(rows["answer"]), answer=list(rows["answer"])) == [1.0] * 20


def test_wrong_names_are_named():
    with pytest.raises(CourseError, match="task='order' is unknown. Did you mean 'orders'"):
        extraction_rows("order", 1)
    with pytest.raises(CourseError, match="split='valid' is unknown"):
        extraction_rows("orders", 1, "valid")
    with pytest.raises(CourseError, match="count=10001 is too large"):
        extraction_rows("orders", 10_001)
