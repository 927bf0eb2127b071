"""Rows that are worth training on: prompts that are not too long, and that the policy solves sometimes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import CourseError
from .prompts import render_prompt

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def prompt_lengths(rows: "Dataset", tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """Tokens of each prompt, as the model will see it (chat template included)."""
    prompts = list(rows["prompt"])
    plain = bool(prompts) and isinstance(prompts[0], str)
    rendered = [render_prompt(tokenizer, prompt) for prompt in prompts]
    return [len(ids) for ids in tokenizer(rendered, add_special_tokens=plain)["input_ids"]]


def drop_long_prompts(rows: "Dataset", tokenizer: "PreTrainedTokenizerBase", max_tokens: int) -> "Dataset":
    """The rows whose prompt has at most ``max_tokens`` tokens.

    TRL 1.x has no ``max_prompt_length`` and never truncates a prompt: filter beforehand. The number of dropped
    rows is the difference of ``len(rows)`` before and after.

    Raises:
        CourseError: no row is left.
    """
    lengths = prompt_lengths(rows, tokenizer)
    kept = [index for index, length in enumerate(lengths) if length <= max_tokens]
    if not kept:
        raise CourseError(
            f"No prompt has at most {max_tokens} tokens; the shortest has {min(lengths)}. "
            "Raise max_prompt_length, or shorten the system prompt."
        )
    return rows.select(kept)


def drop_tied(rows: "Dataset", rates: Sequence[float], low: float = 0.0, high: float = 1.0) -> "Dataset":
    """The rows that the policy solves sometimes: those with ``low`` < rate < ``high``.

    Where all completions of a group earn the same, their advantages are all 0. DAPO (Yu et al. 2025,
    arXiv 2503.14476) leaves such groups out while it trains; this does it once, beforehand, for the
    policy that the rates come from (`grpo_utils.pass_rates`) and for no later one.

    Args:
        rows: the dataset.
        rates: for each row the share of its samples that is right, from 0 to 1.
        low, high: the bounds, both left out themselves.

    Raises:
        CourseError: there are not as many rates as rows, one is not a share, or no row is left.
    """
    if len(rates) != len(rows):
        raise CourseError(f"{len(rates)} rates for {len(rows)} rows. Give the rates of these rows, in their order.")
    odd = [rate for rate in rates if not 0 <= rate <= 1]
    if odd:
        raise CourseError(f"{odd[0]} is not a pass rate, the share of samples that is right, from 0 to 1.")
    kept = [index for index, rate in enumerate(rates) if low < rate < high]
    if not kept:
        raise CourseError(
            f"No row has a pass rate between {low} and {high}; the lowest is {min(rates)}, the highest {max(rates)}. "
            "Take easier or harder rows, or more samples per prompt."
        )
    return rows.select(kept)
