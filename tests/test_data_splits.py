"""Pairs of rows that ask the same, and rows that the policy solves sometimes."""

import pytest
from datasets import Dataset
from grpo_core.errors import CourseError

from grpo_utils import chat_prompt, drop_tied, find_twins
from grpo_utils.data.sources import addition_rows
from grpo_utils.data.splits import numbers_key, prompt_key


def asked(*questions: str) -> list[dict]:
    return [{"prompt": chat_prompt(question)} for question in questions]


def test_keys_ignore_case_spaces_system_prompts_and_how_an_accent_is_coded():
    one, two = chat_prompt("What is é + 2?"), chat_prompt("what is\ne\u0301 + 2? ", system_prompt=None)
    assert prompt_key(one) == prompt_key(two)
    assert prompt_key(one) != prompt_key(chat_prompt("What is 2 + 3?"))


def test_examples_in_the_prompt_hide_no_leak():
    """All turns were joined, so the same question under other examples was none."""
    train, test = ([{"prompt": chat_prompt("What is 3 + 4?", examples=[(asked, "x")])}] for asked in ("a?", "b 1 2?"))
    assert [twin.how for twin in find_twins(train, test)] == ["same"]


def test_messages_without_a_user_have_a_key_too():
    said = [[{"role": "assistant", "content": text}] for text in "ab"]
    assert prompt_key(said[0]) != prompt_key(said[1])


@pytest.mark.parametrize(
    ("question", "key"),
    [("1,250 and 3", "3 1250"), ("3.50 and 2", "2 3.5"), ("1.2.3 and 7 and 8", "7 8"), ("Only 7", "only 7")],
)
def test_numbers_are_read_from_a_prompt(question, key):
    assert numbers_key(question) == key


def test_twins_within_one_set():
    """The training rows hold a + b and b + a, as two questions; the held-out ones do not."""
    assert not find_twins(addition_rows(200, "test"))
    twins = find_twins(addition_rows(500))
    assert twins and {twin.how for twin in twins} == {"numbers"}
    assert all(twin.first < twin.second for twin in twins)


def test_twins_across_two_sets_are_the_most_alike():
    train = asked("Ana has 3 pens and buys 4.", "What is 3 + 4?")
    twins = find_twins(train, asked("what is 4 + 3?", "WHAT is 3 + 4?", "What is 9 + 9?"))
    assert [(twin.first, twin.second, twin.how) for twin in twins] == [(1, 1, "same"), (1, 0, "numbers")]


ROWS = Dataset.from_list(asked("a?", "b?", "c?", "d?"))


def test_prompts_that_are_always_or_never_solved_are_dropped():
    assert [row["prompt"][-1]["content"] for row in drop_tied(ROWS, [0.0, 0.125, 0.875, 1.0])] == ["b?", "c?"]
    assert len(drop_tied(ROWS, [0.1, 0.3, 0.5, 0.9], low=0.2, high=0.8)) == 2


def test_rates_that_do_not_fit():
    for rates, message in (
        ([0.5], "1 rates for 4 rows"),
        ([0.5, 2, 0, 0], "not a pass rate"),
        ([0.0] * 4, "No row"),
    ):
        with pytest.raises(CourseError, match=message):
            drop_tied(ROWS, rates)
