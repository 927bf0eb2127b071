"""Which part of a completion a reward reads: the model's own text, and an answer after its thinking."""

import pytest

from grpo_utils.rewards import (
    AnswerReward,
    completion_text,
    correctness_reward,
    extract_after_thinking,
    split_thinking,
    think_format_reward,
)

RIGHT = "<answer>42</answer>"
ASKED = {"role": "assistant", "content": "<answer>1</answer>"}


@pytest.mark.parametrize("role", ["tool", "user", "system", "function"])
def test_text_that_the_model_did_not_write_is_not_paid(role):
    other = {"role": role, "content": RIGHT}
    assert correctness_reward([[ASKED, other], [other]], answer=["42"] * 2) == [0.0, 0.0]


def test_the_last_message_of_the_model_is_read_also_before_a_tools():
    own, tool = {"role": "assistant", "content": RIGHT}, {"role": "tool", "content": "41"}
    assert correctness_reward([[ASKED, tool, own], [own, tool], [own, ASKED]], answer=["42"] * 3) == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    "completion",
    [
        RIGHT,
        [{"content": RIGHT}],
        ({"role": "assistant", "content": RIGHT},),
        [{"role": "assistant", "content": [{"type": "text", "text": "<answer>4"}, {"text": "2</answer>"}]}],
        [{"role": "assistant", "content": [{"type": "image"}, {"type": "text", "text": RIGHT}]}],
    ],
)
def test_every_shape_of_a_completion_is_read(completion):
    assert completion_text(completion) == RIGHT


@pytest.mark.parametrize(
    "completion",
    [
        *(None, [], (), 42, {}, [None], ["text", 42], [{}], [{"role": "assistant", "content": 42}]),
        *([{"role": "assistant", "content": None}], [{"content": [{"type": "image"}, "text", 1, {"text": 2}]}]),
    ],
)
def test_a_completion_without_text_says_nothing(completion):
    assert completion_text(completion) == ""


THOUGHT = [
    "<think>15 + 27</think>42",
    "15 + 27</think>42",
    "\n<think>\n15 + 27\n</think>\n\n42\n",
    "15 + 27\n</think>\n42",
]
UNTHOUGHT = {
    "no answer": "<think>15 + 27</think>",
    "no answer after a prefilled tag": "15 + 27</think> \n",
    "empty thinking": "<think> </think>42",
    "empty thinking after a prefilled tag": "</think>42",
    "thinking twice": "<think>a</think>42<think>b</think>43",
    "closed twice": "<think>a</think>b</think>42",
    "opened twice": "<think><think>a</think>42",
    "opened inside": "<think>a <think>b</think>42",
    "text before": "Well. <think>a</think>42",
    "never closed": "<think>a 42",
    "no thinking": "42",
    "nothing": "",
}


@pytest.mark.parametrize("text", THOUGHT)
def test_thinking_is_paid_whether_or_not_the_template_opened_it(text):
    assert think_format_reward([text]) == [1.0]
    assert split_thinking(text) == ("15 + 27", "42")
    assert AnswerReward(extract=extract_after_thinking)([text], answer=["42"]) == [1.0]


@pytest.mark.parametrize("text", UNTHOUGHT.values(), ids=UNTHOUGHT)
def test_thinking_that_is_empty_or_repeated_or_leads_to_no_answer_is_not_paid(text):
    assert think_format_reward([text]) == [0.0]


@pytest.mark.parametrize(
    ("thought", "content", "score"),
    [
        ("15 + 27", "42", 1.0),
        (" ", "42", 0.0),
        ("", "42", 0.0),
        ("15 + 27", "", 0.0),
        ("15 + 27", "42</think>", 0.0),
        ("a <think> b", "42", 0.0),
        (None, "15 + 27</think>42", 1.0),
        (None, "42", 0.0),
    ],
)
def test_a_thought_that_trl_has_parsed_is_read(thought, content, score):
    own = {"role": "assistant", "reasoning_content": thought, "content": content}
    tool = {"role": "tool", "content": "41", "reasoning_content": "not the model's"}
    assert think_format_reward([[own], [own, tool], [tool]]) == [score, score, 0.0]


@pytest.mark.parametrize(
    "text", [UNTHOUGHT[name] for name in ("thinking twice", "opened twice", "closed twice", "no answer")]
)
def test_no_answer_is_found_after_thinking_that_is_not_clear(text):
    assert extract_after_thinking(text) is None
