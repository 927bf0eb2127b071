"""How long the prompts are in tokens, and a filter, since TRL 1.x has none."""

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

    TRL 1.x has no ``max_prompt_length`` and never truncates a prompt: filter beforehand. How many went
    is ``len(rows)`` before less after.

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
