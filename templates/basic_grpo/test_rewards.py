"""Test the rewards before you train: pytest test_rewards.py (seconds, no torch)."""

import pytest
from data import SYSTEM_PROMPT
from rewards import REWARDS, correctness_reward, format_reward, is_in_form, tag_reward

RIGHT = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
TEXTS = {
    "correct, formatted": RIGHT,
    "correct, other spelling": "<reasoning>15 + 27 = 42</reasoning>\n<answer>42.0</answer>\n",
    "wrong, formatted": "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "correct, not formatted": "15 + 27 is 42.",
    "half of the format": "<answer>42</answer>",
    "two answers": "<reasoning>?</reasoning><answer>42</answer><answer>41</answer>",
    "correct, with junk after it": RIGHT + " or 41?",
    "many tags": "<answer>" * 20,
    "format without content": "<reasoning></reasoning><answer></answer>",
    "format around blanks": "<reasoning> </reasoning><answer> </answer>",
    "a plea": "<reasoning>Please give full marks.</reasoning><answer>the right one</answer>",
    "nothing": "",
}


def total(text: str, gold: str = "42") -> float:
    """The weighted sum of rewards for a completion."""
    completion = [{"role": "assistant", "content": text}]
    return sum(weight * reward([completion], answer=[gold])[0] for reward, weight in REWARDS.items())


def test_a_correct_formatted_answer_earns_all():
    assert total(RIGHT) == sum(REWARDS.values()) == total(TEXTS["correct, other spelling"])


def test_the_prompt_asks_for_the_format_that_is_rewarded():
    assert is_in_form(SYSTEM_PROMPT.partition(": ")[2])


@pytest.mark.parametrize("name", sorted(set(list(TEXTS)[2:]) - {"half of the format"}))
def test_nothing_else_comes_near(name):
    assert total(TEXTS[name]) <= sum(REWARDS.values()) / 2


def test_a_correct_answer_in_half_of_the_format_is_between_a_wrong_one_and_the_whole_format():
    assert total(TEXTS["wrong, formatted"]) < total(TEXTS["half of the format"]) < total(RIGHT)


@pytest.mark.parametrize("name", ["many tags", "format without content", "format around blanks", "nothing"])
def test_attacks_earn_nothing(name):
    assert total(TEXTS[name]) == 0


def test_no_answer_is_correct_if_the_gold_answer_is_missing():
    assert correctness_reward([""], answer=[""]) == [0.0] == correctness_reward([RIGHT], answer=[""])


@pytest.mark.parametrize("text", ["4,2", "4_2", "٤٢", "nan", "1e999", "forty-two", "42k", "--42", "4" * 5000])
def test_a_text_that_only_looks_like_the_number_is_wrong(text):
    assert correctness_reward([RIGHT.replace("<answer>42", f"<answer>{text}")], answer=["42"]) == [0.0]


def test_gold_answers_may_have_commas():
    assert correctness_reward([RIGHT.replace("<answer>42", "<answer>1250")], answer=["$1,250"]) == [1.0]


def test_partial_credit_leads_to_the_format():
    steps = ["It is 42.", "It is <answer>42", "It is <answer>42</answer>", "It is: " + RIGHT, RIGHT]
    assert tag_reward(steps) == [0.0, 0.25, 0.5, 0.75, 1.0] and format_reward(steps) == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("text", ["41 <answer>42</answer>", "<answer>42</answer>", "Sure! " + RIGHT])
def test_a_correct_answer_in_its_tags_is_correct_whatever_comes_before_it(text):
    assert correctness_reward([text], answer=["42"]) == [1.0]


@pytest.mark.parametrize("text", ["<answer>42", "42</answer>", "<answer>41</answer><answer>42</answer>", RIGHT + "?"])
def test_an_answer_must_be_the_only_one_and_end_the_text(text):
    assert correctness_reward([text], answer=["42"]) == [0.0]


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
    assert tag_reward([text]) == [0.0]


def test_text_outside_the_tags_costs_a_tag_and_an_empty_answer_two():
    assert tag_reward([RIGHT + "!", "So: " + RIGHT, RIGHT.replace("><", "> so <")]) == [0.75] * 3
    assert tag_reward([RIGHT.replace("<answer>42", "<answer> ")]) == [0.5]
