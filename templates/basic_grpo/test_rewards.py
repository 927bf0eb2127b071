"""Test the rewards before you train: pytest test_rewards.py (seconds, no torch)."""

import pytest
from data import SYSTEM_PROMPT
from rewards import FORM, REWARDS, is_in_form, is_right

RIGHT = FORM.format(thinking="15 + 27 = 42", result="42")
WRONG = {
    "wrong, formatted": FORM.format(thinking="15 + 27 = 41", result="41"),
    "correct, not formatted": "15 + 27 is 42.",
    "correct, with junk after it": RIGHT + " or 41?",
    "format without content": FORM.format(thinking="", result=""),
    "format around blanks": FORM.format(thinking=" ", result=" "),
    "a plea": FORM.format(thinking="Please give full marks.", result="the right one"),
    "nothing": "",
}


def earned(text: str) -> dict[str, float]:
    """What a completion earns from each reward, without the weights."""
    completion = [{"role": "assistant", "content": text}]
    return {reward.__name__: reward([completion], answer=["42"])[0] for reward in REWARDS}


def total(text: str) -> float:
    """The weighted sum of rewards for a completion."""
    completion = [{"role": "assistant", "content": text}]
    return sum(weight * reward([completion], answer=["42"])[0] for reward, weight in REWARDS.items())


@pytest.mark.parametrize("text", [RIGHT, RIGHT + "\n", FORM.format(thinking="15 + 27 = 42", result="42.0")])
def test_a_correct_formatted_answer_earns_all(text):
    assert total(text) == sum(REWARDS.values()) and is_right(text, {"answer": "42"})


def test_the_prompt_asks_for_the_format_that_is_rewarded():
    asked = FORM.format(thinking="your thinking", result="the result alone")
    assert asked in SYSTEM_PROMPT and is_in_form(asked)


@pytest.mark.parametrize("name", WRONG)
def test_nothing_else_comes_near(name):
    assert total(WRONG[name]) <= sum(REWARDS.values()) / 2 and not is_right(WRONG[name], {"answer": "42"})


@pytest.mark.parametrize("name", ["format without content", "format around blanks", "nothing"])
def test_an_answer_without_content_earns_nothing(name):
    assert total(WRONG[name]) == 0


@pytest.mark.parametrize("text", ["", RIGHT])
def test_no_answer_is_correct_if_the_gold_answer_is_missing(text):
    assert not is_right(text, {"answer": ""})


@pytest.mark.parametrize("text", ["4,2", "4_2", "٤٢", "nan", "1e999", "forty-two", "42k", "--42", "4" * 5000])
def test_a_text_that_only_looks_like_the_number_is_wrong(text):
    assert not is_right(FORM.format(thinking="15 + 27", result=text), {"answer": "42"})


def test_gold_answers_may_have_commas():
    assert is_right(FORM.format(thinking="1000 + 250", result="1250"), {"answer": "$1,250"})


# ---- The rest tests the tags. If you change the answer form, replace it by tests of yours. ----


def test_a_correct_answer_in_half_of_the_tags_is_between_a_wrong_one_and_the_whole_format():
    assert total(WRONG["wrong, formatted"]) < total("<answer>42</answer>") < total(RIGHT)


@pytest.mark.parametrize("text", ["<answer>" * 20, "<reasoning>?</reasoning><answer>42</answer><answer>41</answer>"])
def test_repeated_tags_earn_nothing(text):
    assert total(text) == 0


def test_partial_credit_leads_to_all_tags():
    steps = ["It is 42.", "It is <answer>42", "It is <answer>42</answer>", "It is: " + RIGHT, RIGHT]
    assert [earned(text)["tag_reward"] for text in steps] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [earned(text)["format_reward"] for text in steps] == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("text", ["41 <answer>42</answer>", "<answer>42</answer>", "Sure! " + RIGHT])
def test_a_correct_answer_in_its_tags_is_correct_whatever_comes_before_it(text):
    assert earned(text)["correctness_reward"] == 1.0


@pytest.mark.parametrize("text", ["<answer>42", "42</answer>", "<answer>41</answer><answer>42</answer>", RIGHT + "?"])
def test_an_answer_tag_must_be_the_only_one_and_end_the_text(text):
    assert earned(text)["correctness_reward"] == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "</answer><answer></reasoning><reasoning>",
        "<reasoning></answer><answer></reasoning>",
        "It is 42.<reasoning></reasoning><answer></answer>",
        "<reasoning></reasoning><answer></answer>",
        "It is 42.</answer>",
        RIGHT * 2,
    ],
)
def test_tags_out_of_place_earn_nothing(text):
    assert earned(text)["tag_reward"] == 0.0


@pytest.mark.parametrize(
    ("text", "credit"),
    [
        (RIGHT + "!", 0.75),
        ("So: " + RIGHT, 0.75),
        (RIGHT.replace("><", "> so <"), 0.75),
        (RIGHT.replace("<answer>42", "<answer> "), 0.5),
    ],
)
def test_text_outside_the_tags_costs_a_tag_and_an_empty_answer_two(text, credit):
    assert earned(text)["tag_reward"] == credit
