"""What lesson 11 needs: the tiny model's tokenizer with thinking tags."""

import json
import tempfile
from pathlib import Path

#: The tiny models' own tags for reasoning, and what a thinking model writes instead.
_RENAMED = {"<reasoning>": "<think>", "</reasoning>": "</think>"}


def thinking_tokenizer(path: str) -> object:
    """A tiny model's tokenizer whose reasoning tags are ``<think>`` and ``</think>``; the ids stay the same.

    Rewards see completions as they were sampled, because the tokenizer has no ``response_template``.

    >>> from grpo_utils.models import model_path
    >>> tokenizer = thinking_tokenizer(model_path("tiny-qwen3"))
    >>> tokenizer.tokenize("<think>7+8</think>")[::4]
    ['<think>', '</think>']
    """
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        AutoTokenizer.from_pretrained(path).save_pretrained(folder)
        file = Path(folder) / "tokenizer.json"
        file.write_text(_with_think_tags(file.read_text(encoding="utf-8")), encoding="utf-8")
        tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.response_template = None
    return tokenizer


def _with_think_tags(text: str) -> str:
    """A ``tokenizer.json`` in which each tag is one token under its new name."""
    spec = json.loads(text)
    model, added = spec["model"], spec["added_tokens"]
    for old, new in _RENAMED.items():
        number = model["vocab"].pop(old)
        model["vocab"][new] = number
        model["merges"] = [merge for merge in model["merges"] if "".join(merge) != old]
        added.append(added[0] | dict(id=number, content=new, special=False))
    return json.dumps(spec)
