"""Answer many prompts that begin with the same words, such as instructions and examples.

`generate` of transformers reads these words again for each copy of each prompt. Here they are read once, and so is each
prompt of which several samples are drawn. Answers that ended leave the batch. `generate` gives the same greedy answers,
and samples from the same distribution.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grpo_core.training.generating import render_prompt

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache, PreTrainedModel, PreTrainedTokenizerBase

#: Given the tokens of each answer so far, which tokens may come next: a mask of shape (answers, vocabulary).
Allowed = Callable[[list[list[int]]], "torch.Tensor"]


def answer(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: Sequence[list[dict]],
    *,
    max_new_tokens: int,
    samples: int = 1,
    temperature: float = 0.0,
    seed: int = 0,
    allowed: Allowed | None = None,
) -> list[list[str]]:
    """``samples`` answers to each prompt, of shape (prompts, samples); greedy at a temperature of 0."""
    import torch
    from transformers import DynamicCache

    random = torch.Generator().manual_seed(seed)
    first, rests = encode(tokenizer, prompts)
    with torch.inference_mode(), shared_attention(model):
        prefix = read_prefix(model, first)
        ids, mask = padded(rests)
        cache = DynamicCache(config=model.config)
        logits = forward(model, ids, mask, cache, prefix)
        cache.batch_repeat_interleave(samples)
        logits, mask = (one.repeat_interleave(samples, dim=0) for one in (logits, mask))
        tokens = [[] for _ in logits]
        alive = list(range(len(tokens)))  # the answers that have not ended, one for each row of the cache
        for _ in range(max_new_tokens):
            if allowed:
                logits = logits.masked_fill(~allowed([tokens[row] for row in alive]), float("-inf"))
            chosen = next_tokens(logits, temperature, random)
            for row, token in zip(alive, chosen.tolist(), strict=True):
                tokens[row].append(token)
            keep = (chosen != tokenizer.eos_token_id).nonzero()[:, 0]
            if not len(keep):
                break
            if len(keep) < len(alive):
                alive = [alive[place] for place in keep.tolist()]
                chosen, mask = chosen[keep], mask[keep]
                cache.batch_select_indices(keep)
            mask = torch.cat([mask, mask.new_ones(len(alive), 1)], dim=1)
            logits = forward(model, chosen[:, None], mask, cache, prefix)
    texts = tokenizer.batch_decode(tokens, skip_special_tokens=True)
    return [texts[start : start + samples] for start in range(0, len(texts), samples)]


def encode(tokenizer: "PreTrainedTokenizerBase", prompts: Sequence[list[dict]]) -> tuple[list[int], list[list[int]]]:
    """The tokens that all prompts begin with, and the rest of each prompt; at least one token is left in each rest."""
    texts = [render_prompt(tokenizer, prompt) for prompt in prompts]
    ids = tokenizer(texts, add_special_tokens=False)["input_ids"]
    same = shared(ids)
    return ids[0][:same], [each[same:] for each in ids]


def shared(ids: Sequence[Sequence[int]]) -> int:
    """How many tokens all sequences begin with, without the last token of the shortest.

    >>> shared([[1, 2, 3, 4], [1, 2, 5]]), shared([[1, 2], [1, 2]])
    (2, 1)
    """
    shortest = min(map(len, ids))
    return next((n for n in range(shortest - 1) if len({each[n] for each in ids}) > 1), shortest - 1)


def read_prefix(model: "PreTrainedModel", first: list[int]) -> "DynamicCache":
    """The keys and values of what all prompts begin with: a batch of one, empty if they share nothing."""
    import torch
    from transformers import DynamicCache

    cache = DynamicCache(config=model.config)
    if first:
        forward(model, torch.tensor([first]), torch.ones(1, len(first), dtype=torch.bool), cache, None)
    return cache


def padded(rests: list[list[int]]) -> tuple["torch.Tensor", "torch.Tensor"]:
    """The rests of all prompts, filled up on the left, and which of these tokens are real."""
    import torch

    longest = max(map(len, rests))
    tokens = torch.tensor([[0] * (longest - len(rest)) + rest for rest in rests])
    return tokens, torch.tensor([[False] * (longest - len(rest)) + [True] * len(rest) for rest in rests])


def forward(
    model: "PreTrainedModel",
    tokens: "torch.Tensor",
    mask: "torch.Tensor",
    cache: "DynamicCache",
    prefix: "DynamicCache | None",
) -> "torch.Tensor":
    """The logits after the last of the ``tokens``. ``mask`` (rows, all tokens after the prefix) says which are real."""
    import torch

    new, total = tokens.shape[1], mask.shape[1]
    before = prefix.get_seq_length() if prefix else 0
    positions = (before + mask.cumsum(dim=1) - 1).clamp(min=0)[:, -new:]
    earlier = torch.ones(new, total, dtype=torch.bool).tril(total - new)
    itself = torch.eye(total, dtype=torch.bool)[-new:]  # what fills up must see something, or it becomes NaN
    seen = (earlier & mask[:, None, None, :]) | itself
    how = dict(attention_mask=seen, position_ids=positions, past_key_values=cache, logits_to_keep=1, prefix=prefix)
    return model(tokens, **how).logits[:, -1].float()


@contextmanager
def shared_attention(model: "PreTrainedModel") -> Iterator[None]:
    """Let a model attend to a prefix that all rows share, without a copy of its keys and values for each row."""
    from transformers import AttentionInterface

    AttentionInterface.register("shared_prefix", attend)
    usual = model.config._attn_implementation
    model.config._attn_implementation = "shared_prefix"
    try:
        yield
    finally:
        model.config._attn_implementation = usual


def attend(
    module: object,
    query: "torch.Tensor",
    key: "torch.Tensor",
    value: "torch.Tensor",
    attention_mask: "torch.Tensor",
    scaling: float,
    prefix: "DynamicCache | None" = None,
    **others: object,
) -> tuple["torch.Tensor", None]:
    """Attention to a shared prefix and to each row's own tokens; what transformers calls an attention function.

    Shapes: query (rows, heads, new tokens, size); key and value (rows, groups of heads, own tokens, size).
    """
    import torch

    rows, heads, new, size = query.shape
    groups = key.shape[1]
    each = heads // groups
    grouped = query.reshape(rows, groups, each * new, size) * scaling
    scores = grouped @ key.transpose(-1, -2)
    scores = scores.view(rows, groups, each, new, -1).masked_fill(~attention_mask[:, :, None], float("-inf"))
    scores, own = scores.view(rows, groups, each * new, -1), key.shape[2]
    if prefix and prefix.get_seq_length():
        keys, values = (getattr(prefix.layers[module.layer_idx], name)[0] for name in ("keys", "values"))
        of_groups = grouped.transpose(0, 1).reshape(groups, -1, size)  # all rows at once: one product per group
        first = (of_groups @ keys.transpose(-1, -2)).view(groups, rows, each * new, -1).transpose(0, 1)
        scores = torch.cat([first, scores], dim=-1)
    weights = scores.float().softmax(dim=-1).to(value.dtype)
    found = weights[..., weights.shape[-1] - own :] @ value
    if weights.shape[-1] > own:
        of_groups = weights[..., :-own].transpose(0, 1).reshape(groups, rows * each * new, -1)
        found = found + (of_groups @ values).view(groups, rows, each * new, size).transpose(0, 1)
    return found.view(rows, heads, new, size).transpose(1, 2).contiguous(), None


def next_tokens(logits: "torch.Tensor", temperature: float, random: "torch.Generator") -> "torch.Tensor":
    """The most likely token of each row, or one that is drawn."""
    if not temperature:
        return logits.argmax(dim=-1)
    return (logits / temperature).softmax(dim=-1).multinomial(1, generator=random)[:, 0]


def schema_mask(tokenizer: "PreTrainedTokenizerBase", schema: dict, vocabulary: int) -> Allowed:
    """Which tokens keep an answer within a JSON schema, by llguidance; its keys come in the order of the schema."""
    import torch
    from llguidance import LLMatcher, LLTokenizer
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    options = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}  # as json.dumps writes
    grammar = LLMatcher.grammar_from_json_schema(schema, overrides=options)
    reader = LLTokenizer(bytewise(tokenizer), n_vocab=vocabulary, eos_token=tokenizer.eos_token_id)

    def allowed(answers: list[list[int]]) -> "torch.Tensor":
        bits = allocate_token_bitmask(len(answers), vocabulary)
        for row, tokens in enumerate(answers):
            matcher = LLMatcher(reader, grammar)
            if not matcher.consume_tokens(tokens):
                raise ValueError(f"These tokens left the schema: {tokenizer.decode(tokens)!r}. {matcher.get_error()}")
            fill_next_token_bitmask(matcher, bits, row)
        return torch.from_numpy(unpacked(bits))[:, :vocabulary]

    return allowed


def bytewise(tokenizer: "PreTrainedTokenizerBase") -> str:
    """The tokenizer as JSON, with the decoder that belongs to its tokens.

    transformers gives a tokenizer from a GGUF file a decoder that begins with SentencePiece's. llguidance goes by the
    decoder, and would read the token for a blank, "Ġ", as that letter.
    """
    parts = json.loads(tokenizer.backend_tokenizer.to_str())
    if parts["pre_tokenizer"]["type"] == "ByteLevel":
        parts["decoder"] = parts["pre_tokenizer"]
    return json.dumps(parts | dict(padding=None, truncation=None))


def unpacked(bits: object) -> object:
    """A mask of 32 tokens per integer as one of booleans."""
    import numpy

    return numpy.unpackbits(bits.view(numpy.uint8), axis=1, bitorder="little").astype(bool)


def batches(count: int, size: int) -> Iterator[range]:
    """The numbers below ``count`` in parts of at most ``size``.

    >>> list(batches(5, 2))
    [range(0, 2), range(2, 4), range(4, 5)]
    """
    return (range(start, min(start + size, count)) for start in range(0, count, size))
