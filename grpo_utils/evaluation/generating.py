"""Completions from a model, sampled or greedy."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..data import encode_prompts
from ..errors import CourseError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def generate(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> list[str]:
    """One completion for each prompt; ``temperature=0.0`` decodes greedily.

    The model goes back to training mode afterwards if that is where it was.
    """
    import torch
    from tqdm import trange

    torch.manual_seed(seed)
    completions = []
    slow = dict(desc="generate", file=sys.stdout, leave=False, delay=10)  # a bar after ten seconds, no widget
    with sampling(model):
        for start in trange(0, len(prompts), batch_size, **slow):
            completions += _generate_batch(
                model, tokenizer, prompts[start : start + batch_size], max_new_tokens, temperature
            )
    return completions


def answer_twice(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> tuple[list[str], list[str]]:
    """Two completions for each prompt: all the sampled ones, and all the greedy ones."""
    how = dict(max_new_tokens=max_new_tokens, batch_size=batch_size)
    sampled = generate(model, tokenizer, prompts, temperature=temperature, seed=seed, **how)
    return sampled, generate(model, tokenizer, prompts, temperature=0.0, **how)


@contextmanager
def sampling(model: "PreTrainedModel") -> Iterator[None]:
    """Put a model into evaluation mode, and afterwards back into the mode that it was in.

    A model that Unsloth loaded turns gradient checkpointing off to sample, and only its ``for_training`` turns it on.
    """
    was_training = model.training
    checkpointing = next(filter(None, (getattr(m, "gradient_checkpointing", False) for m in model.modules())), False)
    model.eval()
    try:
        yield
    finally:
        model.train(was_training)
        if was_training and hasattr(model, "for_training"):
            model.for_training(use_gradient_checkpointing=checkpointing)


def generate_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    samples: int,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
) -> list[list[str]]:
    """``samples`` completions for each prompt, of shape (prompts, samples).

    Raises:
        CourseError: fewer than one sample, or several at temperature 0, where all are the same.
    """
    if samples < 1:
        raise CourseError(f"samples={samples}: nothing would be sampled. Give 1 or more.")
    if samples > 1 and temperature == 0:
        raise CourseError(f"samples={samples} at temperature 0 would all be the same. Give a temperature above 0.")
    repeated = [prompt for prompt in prompts for _ in range(samples)]
    how = dict(max_new_tokens=max_new_tokens, temperature=temperature, batch_size=batch_size, seed=seed)
    texts = generate(model, tokenizer, repeated, **how)
    return [texts[start : start + samples] for start in range(0, len(texts), samples)]


def _generate_batch(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    max_new_tokens: int,
    temperature: float,
) -> list[str]:
    import torch

    inputs = encode_prompts(tokenizer, prompts).to(model.device)
    decoding = (
        dict(do_sample=False) if temperature == 0 else dict(do_sample=True, temperature=temperature, top_p=1.0, top_k=0)
    )
    with torch.inference_mode():
        output = model.generate(
            **inputs,
            **decoding,
            max_new_tokens=max_new_tokens,
            use_cache=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    return tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
