"""Prompts as the model reads them, their lengths, how often they are solved, and the figures of both."""

import pytest
from datasets import Dataset
from grpo_core.errors import CourseError
from grpo_core.training.generating import encode_prompts, render_prompt

from grpo_utils import (
    chat_prompt,
    drop_long_prompts,
    pass_rates,
)
from grpo_utils.data.filters import prompt_lengths
from grpo_utils.data.sources import addition_rows
from grpo_utils.models import model_path
from grpo_utils.plots import length_histogram, pass_rate_bars


@pytest.fixture(scope="module")
def tokenizer():
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))


def test_messages_are_rendered_and_strings_stay_as_they_are(tokenizer):
    assert render_prompt(tokenizer, "What is 2 + 2?") == "What is 2 + 2?"
    rendered = render_prompt(tokenizer, chat_prompt("What is 2 + 2?"))
    assert "<|im_start|>user\nWhat is 2 + 2?<|im_end|>" in rendered and rendered.endswith("assistant\n")
    with_example = render_prompt(tokenizer, chat_prompt("b?", None, [("a?", "A")]))
    assert "<|im_start|>assistant\nA<|im_end|>\n<|im_start|>user\nb?<|im_end|>" in with_example


def test_strings_are_encoded_as_trl_does_it(tokenizer):
    texts = ["Question: What is 2 + 2?\nAnswer:", "What is 15 + 27?"]
    ours = encode_prompts(tokenizer, texts)
    kept = [ids[mask.bool()].tolist() for ids, mask in zip(ours["input_ids"], ours["attention_mask"])]
    assert kept == tokenizer(text=texts)["input_ids"]
    assert kept[0] == ours["input_ids"][0].tolist()[-len(kept[0]) :]  # padded on the left


@pytest.mark.parametrize("prompt", [str, chat_prompt])
def test_long_prompts_are_dropped_by_their_true_length(tokenizer, prompt):
    rows = Dataset.from_list([{"prompt": prompt(text)} for text in ("What is 2 + 2?", "What is 2 + 2? " * 9)])
    lengths = prompt_lengths(rows, tokenizer)
    rendered = [render_prompt(tokenizer, row["prompt"]) for row in rows]
    assert lengths == [len(ids) for ids in tokenizer(rendered)["input_ids"]]
    assert [len(drop_long_prompts(rows, tokenizer, most)) for most in lengths] == [1, 2]
    with pytest.raises(CourseError, match=f"No prompt has at most 5 tokens; the shortest has {lengths[0]}"):
        drop_long_prompts(rows, tokenizer, 5)


@pytest.mark.slow
def test_pass_rates_are_the_share_of_samples_that_are_right(tiny):
    from grpo_utils import evaluate_samples

    rows = Dataset.from_list(addition_rows(6, "test"))
    rates = pass_rates(*tiny, rows, samples=4, max_new_tokens=32, seed=1)
    said = evaluate_samples(*tiny, rows, samples=4, max_new_tokens=32, seed=1)
    assert rates == [sum(right) / 4 for right in said.right] and 0 < sum(rates) < 6


def test_the_histogram_holds_every_prompt_and_marks_the_limit():
    axes = length_histogram([10, 10, 11, 40], limit=30).axes[0]
    assert sum(bar.get_height() for bar in axes.patches) == 4
    assert axes.lines[0].get_xdata()[0] == 30


def test_prompts_of_one_length_have_a_histogram():
    assert length_histogram([7, 7], limit=9).axes[0].patches[0].get_height() == 2


def test_the_bars_count_the_prompts_by_right_answers():
    axes = pass_rate_bars({"easy": [1.0, 0.875], "hard": [0.0, 0.0]}, samples=8).axes[0]
    heights = [bar.get_height() for bar in axes.patches]
    assert heights[:9] == [0, 0, 0, 0, 0, 0, 0, 1, 1] and heights[9:] == [2, 0, 0, 0, 0, 0, 0, 0, 0]
