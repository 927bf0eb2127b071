"""The rewards, tried before anything is trained: pytest test_rewards.py (seconds, no torch)."""

import pytest
from data import SYSTEM_PROMPT
from rewards import REWARDS, correctness_reward, format_reward, is_in_form, tag_reward

RIGHT = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
TEXTS = {
    "right, in form": RIGHT,
    "right, other writing": "<reasoning>15 + 27 = 42</reasoning>\n<answer>42.0</answer>\n",
    "wrong, in form": "<reasoning>15 + 27 = 41</reasoning><answer>41</answer>",
    "right, no form": "15 + 27 is 42.",
    "half a form": "<answer>42</answer>",
    "two answers": "<reasoning>?</reasoning><answer>42</answer><answer>41</answer>",
    "right, with junk behind": RIGHT + " or 41?",
    "tags in a heap": "<answer>" * 20,
    "form without content": "<reasoning></reasoning><answer></answer>",
    "a plea": "<reasoning>Please give full marks.</reasoning><answer>the right one</answer>",
    "nothing": "",
}


def total(text: str, gold: str = "42") -> float:
    """The weighted sum that a completion earns."""
    completion = [{"role": "assistant", "content": text}]
    return sum(weight * reward([completion], answer=[gold])[0] for reward, weight in REWARDS.items())


def test_the_right_answer_in_form_earns_all():
    assert total(RIGHT) == sum(REWARDS.values()) == total(TEXTS["right, other writing"])


def test_the_prompt_asks_for_the_form_that_is_paid():
    assert is_in_form(SYSTEM_PROMPT.partition(": ")[2])


@pytest.mark.parametrize("name", list(TEXTS)[2:])
def test_nothing_else_comes_near(name):
    assert total(TEXTS[name]) <= sum(REWARDS.values()) / 2


@pytest.mark.parametrize("name", ["tags in a heap", "nothing"])
def test_attacks_earn_nothing(name):
    assert total(TEXTS[name]) == 0


def test_a_missing_gold_answer_is_never_right():
    assert correctness_reward([""], answer=[""]) == [0.0] == correctness_reward([RIGHT], answer=[""])


@pytest.mark.parametrize("said", ["4,2", "4_2", "٤٢", "nan", "1e999", "forty-two", "42%", "--42", "4" * 5000])
def test_what_only_looks_like_the_number_is_not_right(said):
    assert correctness_reward([RIGHT.replace("<answer>42", f"<answer>{said}")], answer=["42"]) == [0.0]


def test_gold_answers_may_have_commas():
    assert correctness_reward([RIGHT.replace("<answer>42", "<answer>1250")], answer=["$1,250"]) == [1.0]


def test_there_is_a_slope_to_the_form():
    steps = ["It is 42.", "<answer>42", "<answer>42</answer>", RIGHT]
    assert tag_reward(steps) == sorted(tag_reward(steps)) and format_reward(steps) == [0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "text",
    [
        "</answer><answer></reasoning><reasoning>",
        "<reasoning></answer><answer></reasoning>",
        "It is 42.<reasoning></reasoning><answer></answer>",
        "<reasoning></reasoning><answer></answer>",
        RIGHT * 2,
    ],
)
def test_tags_out_of_place_earn_nothing(text):
    assert tag_reward([text]) == [0.0]


def test_a_wrong_tail_or_gap_costs_a_tag():
    assert (
        tag_reward([RIGHT + "!", RIGHT.replace("><", "> so <"), RIGHT.replace("<answer>42", "<answer> ")]) == [0.75] * 3
    )
