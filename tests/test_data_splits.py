"""Splits without leakage, and pairs that ask the same."""

import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils import addition_rows, chat_prompt, drop_tied, find_twins, numbers_key, prompt_key, split_rows
from grpo_utils.errors import CourseError


def asked(*questions: str) -> list[dict]:
    return [{"prompt": chat_prompt(question)} for question in questions]


MANY = asked(*(f"What is {n} + 1?" for n in range(2000)))


def test_about_the_share_is_held_out_and_no_row_is_lost():
    for share in (0.02, 0.1, 0.5):
        train, test = split_rows(Dataset.from_list(MANY), share)
        assert len(test) / 2000 == pytest.approx(share, abs=0.03)
        assert sorted(map(str, train + test)) == sorted(map(str, MANY))


def test_another_seed_is_another_split_and_the_same_the_same():
    assert split_rows(MANY, seed=1) == split_rows(MANY, seed=1) != split_rows(MANY, seed=2)
    both = [{str(row) for row in split_rows(MANY, seed=seed)[1]} for seed in (1, 2)]
    assert len(both[0] & both[1]) < 60  # of about 200; by chance 20


def test_a_row_keeps_its_side_when_others_go():
    train, test = split_rows(MANY)
    fewer = split_rows(MANY[::2])
    assert all(row in train for row in fewer[0]) and all(row in test for row in fewer[1])


@given(
    st.lists(st.sampled_from(["What is 2 + 2", "what IS  2 + 2?\tHow many", "how  many", "Who", "who?"]), min_size=2)
)
def test_copies_never_straddle_the_split(questions):
    rows = asked(*questions) + MANY[:50]
    train, test = split_rows(rows, 0.5)
    assert not {prompt_key(row["prompt"]) for row in train} & {prompt_key(row["prompt"]) for row in test}


def test_the_same_numbers_stay_together_if_asked():
    train, test = split_rows(addition_rows(5000), key=numbers_key)
    assert not find_twins(train, test) and len(test) > 400
    assert find_twins(*split_rows(addition_rows(5000)))


@pytest.mark.parametrize("share", [0, 1, -0.1, 10])
def test_a_share_that_is_none(share):
    with pytest.raises(CourseError, match="is not a share of the rows"):
        split_rows(MANY, share)


def test_an_empty_side_is_an_error():
    with pytest.raises(CourseError, match="of 1 rows leaves"):
        split_rows(MANY[:1])


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
