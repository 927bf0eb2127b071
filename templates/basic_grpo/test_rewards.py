"""Test the rewards before you train: pytest test_rewards.py (seconds, no torch)."""

import pytest
from data import SYSTEM_PROMPT
from grpo_core.training.answers import same_number
from rewards import FORM, LABELS, REWARDS, gold_text, is_in_form, is_right, same_answer

#: A gold answer of your task, and a wrong one: all tests use these two. Labels are taken from LABELS.
GOLD, OTHER = LABELS[:2] or ("42", "41")
ROW = {"answer": GOLD}
RIGHT = FORM.format(thinking=f"It is {GOLD}.", result=GOLD)
WRONG = {
    "wrong, formatted": FORM.format(thinking=f"It is {OTHER}.", result=OTHER),
    "correct, not formatted": f"It is {GOLD}.",
    "correct, with junk after it": f"{RIGHT} or {OTHER}?",
    "format without content": FORM.format(thinking="", result=""),
    "format around blanks": FORM.format(thinking=" ", result=" "),
    "a plea": FORM.format(thinking="Please give full marks.", result="the right one"),
    "nothing": "",
}


def earned(text: str) -> dict[str, float]:
    """What a completion earns from each reward, without the weights."""
    completion = [{"role": "assistant", "content": text}]
    return {reward.__name__: reward([completion], answer=[GOLD])[0] for reward in REWARDS}


def total(text: str) -> float:
    """The weighted sum of rewards for a completion."""
    completion = [{"role": "assistant", "content": text}]
    return sum(weight * reward([completion], answer=[GOLD])[0] for reward, weight in REWARDS.items())


@pytest.mark.parametrize("text", [RIGHT, RIGHT + "\n", gold_text(ROW)])
def test_a_correct_formatted_answer_earns_all(text):
    assert total(text) == sum(REWARDS.values()) and is_right(text, ROW)


def test_the_prompt_asks_for_the_format_that_is_rewarded():
    asked = FORM.format(thinking="your thinking", result=" or ".join(LABELS) or "the result alone")
    assert asked in SYSTEM_PROMPT and is_in_form(asked)


@pytest.mark.parametrize("name", WRONG)
def test_nothing_else_comes_near(name):
    assert total(WRONG[name]) <= sum(REWARDS.values()) / 2 and not is_right(WRONG[name], ROW)


@pytest.mark.parametrize("name", ["format without content", "format around blanks", "nothing"])
def test_an_answer_without_content_earns_nothing(name):
    assert total(WRONG[name]) == 0


@pytest.mark.parametrize("text", ["", RIGHT])
def test_no_answer_is_correct_if_the_gold_answer_is_missing(text):
    assert not is_right(text, {"answer": ""})


# ---- The next tests are about numbers, and are skipped for other answers. Delete them if your answers are words. ----

about_numbers = pytest.mark.skipif(same_answer is not same_number, reason="answers are not numbers")


@about_numbers
@pytest.mark.parametrize("text", ["4,2", "4_2", "٤٢", "nan", "1e999", "forty-two", "42k", "--42", "4" * 5000])
def test_a_text_that_only_looks_like_the_number_is_wrong(text):
    assert not is_right(FORM.format(thinking="15 + 27", result=text), {"answer": "42"})


@about_numbers
@pytest.mark.parametrize("gold, text", [("42", "42.0"), ("$1,250", "1250")])
def test_a_number_is_correct_in_every_notation(gold, text):
    assert is_right(FORM.format(thinking="It is.", result=text), {"answer": gold})


# ---- The rest tests the tags. If you change the answer form, replace it by tests of yours. ----


def test_a_correct_answer_in_half_of_the_tags_is_between_a_wrong_one_and_the_whole_format():
    assert total(WRONG["wrong, formatted"]) < total(f"<answer>{GOLD}</answer>") < total(RIGHT)


@pytest.mark.parametrize("text", ["<answer>" * 20, f"{RIGHT}<answer>{OTHER}</answer>"])
def test_repeated_tags_earn_nothing(text):
    assert total(text) == 0


def test_partial_credit_leads_to_all_tags():
    steps = [f"It is {GOLD}.", f"It is <answer>{GOLD}", f"It is <answer>{GOLD}</answer>", "It is: " + RIGHT, RIGHT]
    assert [earned(text)["tag_reward"] for text in steps] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [earned(text)["format_reward"] for text in steps] == [0.0, 0.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("text", [f"{OTHER} <answer>{GOLD}</answer>", f"<answer>{GOLD}</answer>", "Sure! " + RIGHT])
def test_a_correct_answer_in_its_tags_is_correct_whatever_comes_before_it(text):
    assert earned(text)["correctness_reward"] == 1.0


@pytest.mark.parametrize(
    "text",
    [f"<answer>{GOLD}", f"{GOLD}</answer>", f"<answer>{OTHER}</answer><answer>{GOLD}</answer>", RIGHT + "?"],
)
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
        (RIGHT.replace(f"<answer>{GOLD}", "<answer> "), 0.5),
    ],
)
def test_text_outside_the_tags_costs_a_tag_and_an_empty_answer_two(text, credit):
    assert earned(text)["tag_reward"] == credit
