"""Filter rows for training: prompts that are not too long, and that the policy sometimes solves."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError
from grpo_core.training.generating import prompt_lengths

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedTokenizerBase


def drop_long_prompts(
    rows: "Dataset", tokenizer: "PreTrainedTokenizerBase", max_tokens: int, chat_template_kwargs: dict | None = None
) -> "Dataset":
    """The rows whose prompt has at most ``max_tokens`` tokens.

    TRL 1.x has no ``max_prompt_length`` and never truncates a prompt, so filter first. To count the dropped rows,
    compare ``len(rows)`` before and after.

    Raises:
        CourseError: no row is left.
    """
    lengths = prompt_lengths(rows, tokenizer, chat_template_kwargs)
    kept = [index for index, length in enumerate(lengths) if length <= max_tokens]
    if not kept:
        raise CourseError(
            f"No prompt has at most {max_tokens} tokens; the shortest has {min(lengths)}. "
            "Raise max_prompt_length, or shorten the system prompt."
        )
    return rows.select(kept)


def drop_tied(rows: "Dataset", rates: Sequence[float], low: float = 0.0, high: float = 1.0) -> "Dataset":
    """The rows that the policy sometimes solves: those with ``low`` < rate < ``high``.

    If all completions of a group get the same reward, their advantages are all 0. DAPO (Yu et al. 2025,
    arXiv 2503.14476) skips such groups during training. This function filters once, before training, for
    the policy that the rates come from (`grpo_utils.pass_rates`).

    Args:
        rows: the dataset.
        rates: for each row, the share of correct samples, from 0 to 1.
        low, high: the bounds, which are not included.

    Raises:
        CourseError: the numbers of rates and rows differ, a rate is not from 0 to 1, or no row is left.
    """
    if len(rates) != len(rows):
        raise CourseError(f"{len(rates)} rates for {len(rows)} rows. Pass one rate per row, in the same order.")
    odd = [rate for rate in rates if not 0 <= rate <= 1]
    if odd:
        raise CourseError(f"{odd[0]} is not a pass rate, which is the share of correct samples, from 0 to 1.")
    kept = [index for index, rate in enumerate(rates) if low < rate < high]
    if not kept:
        raise CourseError(
            f"No row has a pass rate between {low} and {high}; the lowest is {min(rates)}, the highest {max(rates)}. "
            "Use easier or harder rows, or more samples per prompt."
        )
    return rows.select(kept)
