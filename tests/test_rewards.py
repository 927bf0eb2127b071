import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_utils.data.sources import gsm8k_rows
from grpo_utils.rewards import (
    TAGS,
    AnswerReward,
    correctness_reward,
    exact_reward,
    extract_after_hashes,
    extract_all,
    fuzzy_reward,
    incremental_format_reward,
    is_strictly_right,
    math_rewards,
    same_answer,
    strict_format_reward,
    weighted_sum,
)

REWARDS, WEIGHTS = math_rewards()
CLEAN = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"

ATTACKS = {
    "repeated tags": CLEAN + "<answer>42</answer>",
    "whole form twice": CLEAN * 2,
    "tags in the wrong order": "<answer>42</answer><reasoning>15 + 27 = 42</reasoning>",
    "swapped pair": "</reasoning>15 + 27 = 42<reasoning><answer>42</answer>",
    "nested": "<reasoning><answer>42</answer></reasoning>",
    "trailing text": CLEAN + " I am sure.",
    "text before": "Well: " + CLEAN,
    "text between": "<reasoning>a</reasoning> so <answer>42</answer>",
    "no reasoning": "<reasoning> </reasoning><answer>42</answer>",
    "no answer": "<reasoning>15 + 27 = 42</reasoning><answer> </answer>",
    "unclosed": "<reasoning>15 + 27 = 42 <answer>42",
    "other case": CLEAN.upper(),
    "empty tags after a plain answer": "It is 42.<reasoning></reasoning><answer></answer>",
    "empty tags alone": "<reasoning></reasoning><answer></answer>",
    "form after other text": "blah <reasoning> </reasoning> foo <answer>x</answer>",
    "one trailing tag": "15 + 27 is 42. </answer>",
}


def test_line_breaks_in_the_form_are_allowed():
    text = "\n<reasoning>\n15\n+ 27\n</reasoning>\n<answer>\n42\n</answer>\n"
    assert strict_format_reward([text]) == [1.0] and is_strictly_right(text, "42")


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_no_attack_passes_for_the_form(text):
    assert strict_format_reward([text]) == [0.0]
    assert not is_strictly_right(text, "42")


@pytest.mark.parametrize("text", ATTACKS.values(), ids=ATTACKS)
def test_no_attack_earns_more_than_the_clean_form(text):
    assert incremental_format_reward([text])[0] < 1.0
    assert weighted_sum([reward([text], answer=["42"]) for reward in REWARDS], WEIGHTS)[0] <= 2.375


@pytest.mark.parametrize("text", ["It is 42.", "", "15 + 27 is 42. "])
def test_tags_appended_to_other_text_earn_nothing(text):
    for tail in ("<reasoning></reasoning><answer></answer>", "</answer>", "</reasoning>", "<answer> ", "".join(TAGS)):
        assert incremental_format_reward([text + tail]) == [0.0]


@pytest.mark.parametrize("tag", TAGS)
def test_one_more_tag_or_tail_never_pays_on_a_complete_form(tag):
    for more in (CLEAN + tag, tag + CLEAN, CLEAN.replace("42</a", f"42{tag}</a"), CLEAN + "x"):
        assert incremental_format_reward([more])[0] < 1.0


def test_each_tag_in_its_place_pays():
    growing = ["", "<reasoning>a", "<reasoning>a</reasoning>", "<reasoning>a</reasoning><answer>b", CLEAN]
    assert incremental_format_reward(growing) == [0.0, 0.25, 0.5, 0.75, 1.0]


#: What small instruction models write, and the tags that count.
PARTIAL = {
    "15 + 27 = 42, so the answer is 42.": 0,
    "Let me think. <answer>42": 1,
    "Let me think. 15 + 27 = 42. <answer>42</answer>": 2,
    "<answer>42</answer>": 2,
    "15 + 27 = 42</reasoning><answer>42</answer>": 2,
    "<reasoning>15 + 27 = 42</reasoning> The answer is 42.": 2,
    "<reasoning>15 + 27 = 42 <answer>42</answer>": 3,
    "<reasoning>15 + 27 = 42</reasoning><answer>42": 3,
    "Sure! " + CLEAN: 3,
    CLEAN + " I hope this helps.": 3,
}


@pytest.mark.parametrize(("text", "tags"), PARTIAL.items())
def test_a_missing_tag_or_text_outside_does_not_lose_the_other_tags(text, tags):
    assert incremental_format_reward([text]) == [0.25 * tags]


#: Numbers with a sign, and wrong numbers; docs/rewards.md has a table of other notations.
RIGHT = [("-5", "-5"), ("+5", "5")]
WRONG = [("95", "100"), ("-5", "5"), ("5", "15"), ("", ""), ("4 2", "42")]


@pytest.mark.parametrize(("pairs", "score"), [(RIGHT, 1.0), (WRONG, 0.0)])
def test_a_sign_is_read_and_other_numbers_are_wrong(pairs, score):
    texts, golds = [f"<answer>{said}</answer>" for said, _ in pairs], [gold for _, gold in pairs]
    assert correctness_reward(texts, answer=golds) == [score] * len(pairs)


@pytest.mark.parametrize("reward", [correctness_reward, exact_reward, fuzzy_reward])
@pytest.mark.parametrize("gold", [None, "", " ", "42"])
def test_a_missing_answer_never_scores(gold, reward):
    texts = ["", "42", "<answer></answer>", "<answer>None</answer>", "<answer>42", "42</answer>", "</answer>42<answer>"]
    texts += [] if gold == "42" else ["<answer>42</answer>"]
    nothing = None if gold is None else 0.0
    assert reward(texts, answer=[gold] * len(texts)) == [nothing] * len(texts)
    assert not same_answer(None, gold)


fragments = st.sampled_from([*TAGS, "42", "-", ",", ".", "$", " ", "\n", "答", "٣", "\0", "<", ">"])
texts_of_tags = st.lists(fragments, max_size=30).map("".join)


@settings(max_examples=200, deadline=None)
@given(texts_of_tags, texts_of_tags)
def test_no_text_around_the_whole_form_pays(before, after):
    assert incremental_format_reward([before + CLEAN + after])[0] in (0.0, 0.75, 1.0)


@settings(max_examples=200, deadline=None)
@given(texts_of_tags)
def test_only_the_strict_form_earns_all_the_format_credit(text):
    partial, strict = incremental_format_reward([text])[0], strict_format_reward([text])[0]
    assert (partial == 1.0) == (strict == 1.0)


pieces = st.sampled_from([*TAGS, "a", " ", "42"])


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, max_size=4).map("".join), st.integers(0, 3))
def test_no_tag_put_twice_ever_pays(text, index):
    assert incremental_format_reward([text + TAGS[index] * 2]) == [0.0]


def test_real_reference_solutions_are_right_and_wrong_for_another_row(gsm8k_records):
    gold = [row["answer"] for row in gsm8k_rows(gsm8k_records)]
    other = gold[1:] + gold[:1]
    solutions = [record["answer"] for record in gsm8k_records]
    formed = [f"<reasoning>{s}</reasoning><answer>{s.split('#### ')[1]}</answer>" for s in solutions]
    labels = [solution.split("#### ")[1] for solution in solutions]
    by_hashes, alone = AnswerReward(extract=extract_after_hashes), AnswerReward(extract=extract_all)
    for reward, texts in ((correctness_reward, formed), (by_hashes, solutions), (alone, labels)):
        assert reward(texts, answer=gold) == [1.0] * len(gold)
        assert reward(texts, answer=other) == [float(a == b) for a, b in zip(gold, other)]
