"""Several completions for each prompt, from the one sampler in `grpo_utils.run.measuring`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import CourseError
from ..run.measuring import generate

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def generate_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    samples: int,
    temperature: float = 1.0,
    **how: int,
) -> list[list[str]]:
    """``samples`` completions for each prompt, of shape (prompts, samples); ``how``: the sizes and seed of `generate`.

    Raises:
        CourseError: fewer than one sample, or several at temperature 0, where all are the same.
    """
    if samples < 1:
        raise CourseError(f"samples={samples}: nothing would be sampled. Give 1 or more.")
    if samples > 1 and temperature == 0:
        raise CourseError(f"samples={samples} at temperature 0 would all be the same. Give a temperature above 0.")
    repeated = [prompt for prompt in prompts for _ in range(samples)]
    texts = generate(model, tokenizer, repeated, temperature=temperature, **how)
    return [texts[start : start + samples] for start in range(0, len(texts), samples)]


def answer_twice(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    temperature: float = 1.0,
    **how: int,
) -> tuple[list[str], list[str]]:
    """Two completions for each prompt: all the sampled ones, and all the greedy ones."""
    sampled = generate(model, tokenizer, prompts, temperature=temperature, **how)
    return sampled, generate(model, tokenizer, prompts, temperature=0.0, **how)
