"""Generate completions to prompts as in training: TRL's rendering of the prompts, and its decoding."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


def generate(
    policy: object,
    tokenizer: object,
    prompts: Sequence[list[dict]],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    batch_size: int = 200,
    seed: int = 0,
    chat_template_kwargs: dict | None = None,
) -> list[str]:
    """Generate one completion for each prompt; ``temperature=0.0`` decodes greedily.

    Pass the ``chat_template_kwargs`` of `GRPOConfig`, so that the policy reads the prompts that it trains on. A policy
    in training mode returns to training mode afterwards.
    """
    import torch
    from tqdm import trange

    torch.manual_seed(seed)
    decoding = generation_arguments(tokenizer, temperature, max_new_tokens)
    how = f"sample at temperature {temperature:g}" if temperature else "decode greedily"
    completions, bar = [], dict(desc=how, unit="batch", file=sys.stdout, leave=False, delay=10)  # after ten seconds
    with evaluation_mode(policy), torch.inference_mode():
        for start in trange(0, len(prompts), batch_size, **bar):
            some = prompts[start : start + batch_size]
            inputs = encode_prompts(tokenizer, some, chat_template_kwargs=chat_template_kwargs).to(policy.device)
            outputs = policy.generate(**inputs, **decoding)
            completions += tokenizer.batch_decode(outputs[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return completions


def generation_arguments(tokenizer: object, temperature: float, max_new_tokens: int) -> dict:
    """All arguments of transformers' ``generate`` that TRL sets for a policy, with the tokens that end and pad."""
    arguments = decoding_at(temperature) | dict(max_new_tokens=max_new_tokens, use_cache=True)
    return arguments | dict(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)


def decoding_at(temperature: float) -> dict:
    """The arguments of transformers' ``generate`` for sampling as TRL does by default, or for greedy decoding at 0."""
    sampled = dict(do_sample=True, temperature=temperature, top_p=1.0, top_k=0)
    return (sampled if temperature else dict(do_sample=False)) | dict(repetition_penalty=1.0)


def encode_prompts(
    tokenizer: object,
    prompts: Sequence[str | list[dict]],
    tools: Sequence[list | None] | None = None,
    chat_template_kwargs: dict | None = None,
) -> object:
    """Apply the chat template to prompts, and return left-padded tensors of shape (prompts, longest).

    Plain strings get no template but, as in TRL, the tokenizer's special tokens (often a BOS).
    Pass either messages or strings, not both. ``tools`` has the tools of each prompt; ``chat_template_kwargs`` are
    further variables of the template, such as ``enable_thinking``.
    """
    plain = bool(prompts) and isinstance(prompts[0], str)
    pairs = zip(prompts, tools or [None] * len(prompts), strict=True)
    texts = [render_prompt(tokenizer, prompt, offered, chat_template_kwargs) for prompt, offered in pairs]
    return tokenizer(text=texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=plain)


def render_prompt(
    tokenizer: object,
    prompt: str | list[dict],
    tools: list | None = None,
    chat_template_kwargs: dict | None = None,
) -> str:
    """The text that the model reads, as TRL renders it: messages in the chat template, up to where the answer starts.

    A plain string is not changed, because TRL applies no template to it. ``chat_template_kwargs`` are those of
    `GRPOConfig`.
    """
    if isinstance(prompt, str):
        return prompt
    options = dict(chat_template_kwargs or {}, add_generation_prompt=True, tokenize=False)
    return tokenizer.apply_chat_template(prompt, tools=tools, **options)


@contextmanager
def evaluation_mode(policy: object) -> Iterator[None]:
    """Put a policy into evaluation mode, and restore its mode afterwards.

    A model loaded by Unsloth turns gradient checkpointing off to sample; only its ``for_training`` turns it on again.
    """
    was_training = policy.training
    checkpointing = next(filter(None, (getattr(m, "gradient_checkpointing", False) for m in policy.modules())), False)
    policy.eval()
    try:
        yield
    finally:
        policy.train(was_training)
        if was_training and hasattr(policy, "for_training"):
            policy.for_training(use_gradient_checkpointing=checkpointing)


def prompt_lengths(rows: Mapping, tokenizer: object, chat_template_kwargs: dict | None = None) -> list[int]:
    """The number of tokens of each prompt, including the chat template; ``rows`` has a column of prompts."""
    prompts = list(rows["prompt"])
    plain = bool(prompts) and isinstance(prompts[0], str)
    rendered = [render_prompt(tokenizer, prompt, chat_template_kwargs=chat_template_kwargs) for prompt in prompts]
    return [len(ids) for ids in tokenizer(rendered, add_special_tokens=plain)["input_ids"]]
