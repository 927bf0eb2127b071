"""Build a tiny base model from scratch: tokenizer, chat template, weights, model card.

    python scripts/tiny/build.py qwen --out outputs/tiny-qwen3

It takes about 16 minutes on one CPU core, needs no network, and gives the same weights on the
same machine with the same library versions.
"""

import argparse
import json
import math
from itertools import islice
from pathlib import Path

import torch
from card import write_card
from mixture import Row, rows
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from tqdm.auto import tqdm
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen3Config,
    Qwen3ForCausalLM,
)

FAMILIES = ("qwen", "gemma")
HERE = Path(__file__).parent

VOCABULARY = 512
STEPS = 3000
BATCH = 64
PART = 16
LEARNING_RATE = 3e-3
SEED = 0

#: The special tokens of each family, as in the real models.
CONTROL = {
    "qwen": {"pad": "<|endoftext|>", "eos": "<|im_end|>", "turn": "<|im_start|>"},
    "gemma": {"pad": "<pad>", "eos": "<end_of_turn>", "turn": "<start_of_turn>", "bos": "<bos>"},
}

#: Words that only the chat templates contain.
TEMPLATE_WORDS = "model\n<tool_call>\n</tool_call><tool_response>\n</tool_response>\nTools: calculator(expression)"

#: What the tokenizer never merges across: a tag, a digit, a word with its leading space, white space, or one other
#: character. Tags are frequent in the mixture, so each becomes one token.
PIECES = r"</?\w+>|\d| ?[A-Za-z]+| ?[^\w\s]|\s+|_"


def _response_template(family: str) -> dict:
    """How transformers and TRL split a generated turn into content and tool calls."""
    start = {"qwen": "<|im_start|>assistant\n", "gemma": "<start_of_turn>model\n"}[family]
    end = {"qwen": r"<\|im_end\|>\s*", "gemma": r"<end_of_turn>\s*"}[family]
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": start,
        "fields": {
            "tool_calls": {
                "open": "<tool_call>",
                "close_pattern": r"</tool_call>\s*",
                "repeats": True,
                "content": "json",
                "transform": {"type": "function", "function": "{content}"},
            },
            "content": {"close_pattern": end, "content": "text"},
        },
    }


def _text(row: Row) -> str:
    """The texts of a row and the words of the chat templates, without the special tokens."""
    turns = [*row.prompt, row.completion]
    said = [f"{turn['role']}\n{turn['content']}" for turn in turns]
    calls = [json.dumps(c["function"]) for t in turns for c in t.get("tool_calls", [])]
    return "\n".join([*said, *calls, TEMPLATE_WORDS])


def build_tokenizer(family: str) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer on the mixture and give it the family's chat template.

    >>> tokenizer = build_tokenizer("qwen")
    >>> tokenizer.tokenize("<answer>42</answer>")
    ['<answer>', '4', '2', '</answer>']
    """
    control = CONTROL[family]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(control.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((_text(row) for row in islice(rows(SEED), 20_000)), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=control["pad"],
        eos_token=control["eos"],
        bos_token=control.get("bos"),
        additional_special_tokens=[control["turn"]],
        model_max_length=1024,
        response_template=_response_template(family),
    )
    fast.chat_template = (HERE / "chat_templates" / f"{family}3.jinja").read_text(encoding="utf-8")
    return fast


def build_model(family: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """A model with the family's real architecture and random weights (about 500k parameters)."""
    shape = dict(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )
    torch.manual_seed(SEED)
    if family == "qwen":
        return Qwen3ForCausalLM(Qwen3Config(**shape))
    layers = ["sliding_attention", "full_attention"]
    return Gemma3ForCausalLM(Gemma3TextConfig(**shape, layer_types=layers, sliding_window=64, query_pre_attn_scalar=32))


def encode(tokenizer: PreTrainedTokenizerFast, row: Row) -> tuple[list[int], list[int]]:
    """The token ids of a row, and labels that are -100 except in the completion."""
    render = dict(tools=row.tools, tokenize=False)
    prompt = tokenizer.apply_chat_template(row.prompt, add_generation_prompt=True, **render)
    whole = tokenizer.apply_chat_template([*row.prompt, row.completion], **render)
    completion = whole.removeprefix(prompt).rstrip("\n")
    start = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    end = tokenizer(completion, add_special_tokens=False)["input_ids"]
    return start + end, [-100] * len(start) + end


def _pad(tokenizer: PreTrainedTokenizerFast, encoded: list[tuple]) -> dict[str, torch.Tensor]:
    """Encoded rows as right-padded tensors of shape (rows, longest)."""
    longest = max(len(ids) for ids, _ in encoded)

    def pad(sequences: list[list[int]], filler: int) -> torch.Tensor:
        return torch.tensor([s + [filler] * (longest - len(s)) for s in sequences])

    ids = pad([ids for ids, _ in encoded], tokenizer.pad_token_id)
    labels = pad([labels for _, labels in encoded], -100)
    mask = pad([[1] * len(ids) for ids, _ in encoded], 0)
    return {"input_ids": ids, "labels": labels, "attention_mask": mask}


def _learn_from(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, some_rows: list[Row]) -> float:
    """Add the gradients of the mean token loss of some rows, and return the loss.

    The rows go through the model in batches of similar length, which halves the padding.
    """
    encoded = sorted((encode(tokenizer, row) for row in some_rows), key=lambda pair: len(pair[0]))
    parts = [_pad(tokenizer, encoded[start : start + PART]) for start in range(0, len(encoded), PART)]
    tokens = [int((part["labels"] != -100).sum()) for part in parts]
    total = 0.0
    for part, count in zip(parts, tokens, strict=True):
        loss = model(**part).loss * (count / sum(tokens))
        loss.backward()
        total += loss.item()
    return total


def _rate(step: int, steps: int) -> float:
    """Warm up over the first 5% of the steps, then decay along a cosine to 1%."""
    warm = max(1, steps // 20)
    if step < warm:
        return (step + 1) / warm
    return 0.01 + 0.495 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def train(model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, steps: int) -> list[float]:
    """Train on the next tokens of the mixture's completions, and return the loss of every step."""
    stream = rows(SEED + 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _rate(step, steps))
    torch.set_num_threads(1)  # two are hardly faster at this size, and one is reproducible
    losses = []
    model.train()
    for _ in (bar := tqdm(range(steps), desc="base model")):
        losses.append(_learn_from(model, tokenizer, list(islice(stream, BATCH))))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    return losses


def build(family: str, out: Path, steps: int = STEPS) -> list[float]:
    """Train a tiny model of ``family``, write it to the folder ``out``, and return the loss of every step."""
    tokenizer = build_tokenizer(family)
    model = build_model(family, tokenizer)
    losses = train(model, tokenizer, steps)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return losses


def main() -> None:
    """Build the family named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--out", type=Path, required=True, help="an empty or new folder")
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    build(arguments.family, arguments.out, arguments.steps)
    write_card(arguments.out)


if __name__ == "__main__":
    main()
