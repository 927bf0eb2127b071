"""Measure one cell as `make real` measures a model, batch by batch, so that a stopped measurement goes on."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from benches import ROOT
from grpo_core.rewards.structured import parse_json, same_json

from grpo_utils import smollm2
from grpo_utils.data.extraction import extraction_rows
from grpo_utils.profiles import CPU
from grpo_utils.real.measuring import DECODING, ROWS, SAMPLES, TEMPERATURE

from .answering import answer, batches, encode, schema_mask
from .clock import free_cores, write
from .prompts import TASK, Frame

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

WORK = ROOT / "outputs" / "free"
SAMPLED_ROWS, DEV_ROWS = 100, 100
TOKENS = DECODING["max_new_tokens"]
AT_ONCE = 80  # answers; a batch takes about a minute
KEPT_TEXTS = 20
SCHEMA = {
    "type": "object",
    "properties": {
        "customer": {"type": "string"},
        "item": {"type": "string"},
        "quantity": {"type": "integer"},
        "price": {"type": "number"},
        "city": {"type": "string"},
    },
    "required": ["customer", "item", "quantity", "price", "city"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Answerer:
    """What answers the prompts of a cell: the untrained model or one with an adapter, and how it is asked.

    ``imitated`` is the number of gold answers that the model was shown or trained on, and ``checked`` the number
    that only a reward read. ``about`` is what else the cell stores.
    """

    adapter: Path | None = None
    frame: Frame = field(default=lambda prompt: prompt)
    schema: bool = False
    imitated: int = 0
    checked: int = 0
    about: dict = field(default_factory=dict)


def number_format() -> str:
    """The number format of all cells on this machine: the one that was faster when the first of them began.

    Which is faster is found by trying, so a busy machine might say something else each time.
    """
    kept = WORK / "format.json"
    if not kept.exists():
        write(kept, smollm2.dtype_on(CPU))
    return json.loads(kept.read_text(encoding="utf-8"))


def load(adapter: Path | None = None) -> tuple["PreTrainedModel", "PreTrainedTokenizerBase"]:
    """The model in the number format of this machine; with an adapter, as `make real` saves it: merged, in 16 bits."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, dtype = smollm2.fetch(), getattr(torch, number_format())
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype if adapter is None else torch.float32)
    if adapter:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, str(adapter)).merge_and_unload()
        for weight in model.parameters():
            weight.data = weight.data.to(torch.bfloat16).to(dtype)
    return model.eval(), AutoTokenizer.from_pretrained(folder)


def measure(answerer: Answerer, folder: Path, split: str, seed: int) -> dict:
    """What a cell stores. On development rows, only greedy accuracy, on fewer rows."""
    sizes = (ROWS, SAMPLED_ROWS) if split == "test" else (DEV_ROWS, 0)
    rows = extraction_rows(TASK, sizes[0], split)
    model, tokenizer = load(answerer.adapter)
    mask = schema_mask(tokenizer, SCHEMA, model.config.vocab_size) if answerer.schema else None
    prompts = [answerer.frame(row["prompt"]) for row in rows]

    def answers(chosen: range, samples: int, temperature: float) -> list[list[str]]:
        set_threads()
        how = dict(samples=samples, temperature=temperature, seed=10_000 * seed + chosen.start)
        return answer(model, tokenizer, [prompts[n] for n in chosen], max_new_tokens=TOKENS, allowed=mask, **how)

    greedy = in_parts(sizes[0], AT_ONCE, folder / "greedy", lambda part: answers(part, 1, 0.0))
    sampled = in_parts(
        sizes[1], AT_ONCE // SAMPLES, folder / "sampled", lambda part: answers(part, SAMPLES, TEMPERATURE)
    )
    lengths = [len(prefix) + len(rest) for prompt in prompts for prefix, (rest,) in [encode(tokenizer, [prompt])]]
    return judged(rows, greedy, sampled) | dict(prompt_tokens=round(fmean(lengths), 1))


def in_parts(count: int, size: int, folder: Path, answers: Callable[[range], list[list[str]]]) -> list[list[str]]:
    """The answers to ``count`` prompts, in batches that are each kept in a file."""
    said = []
    for part in batches(count, size):
        kept = folder / f"{part.start:04}.json"
        if not kept.exists():
            write(kept, answers(part))
        said += json.loads(kept.read_text(encoding="utf-8"))
    return said


def judged(rows: Sequence[dict], greedy: Sequence[list[str]], sampled: Sequence[list[str]]) -> dict:
    """Which answers are right, as digits and numbers of right samples; their form; and the first texts.

    ``form`` is the share of greedy answers that are one object with the right keys, and ``fields`` the mean share of
    right fields in them, whether or not the answer goes on.
    """
    golds, texts = [row["answer"] for row in rows], [text for (text,) in greedy]
    right = [same_json(text, gold) for text, gold in zip(texts, golds, strict=True)]
    counts = [sum(same_json(text, gold) for text in said) for said, gold in zip(sampled, golds, strict=False)]
    forms, fields = zip(*(parts_right(text, gold) for text, gold in zip(texts, golds, strict=True)), strict=True)
    found = dict(greedy="".join(str(int(one)) for one in right))
    found |= dict(form=round(fmean(forms), 3), fields=round(fmean(fields), 3))
    kept = dict(texts=texts[:KEPT_TEXTS], sampled_texts=[text for said in sampled for text in said][:KEPT_TEXTS])
    return (found | dict(sampled=counts) if sampled else found) | kept


def parts_right(text: str, gold: str) -> tuple[bool, float]:
    """Whether a text is one object with the keys of the gold object, and the share of these fields that are right.

    >>> parts_right('{"a": 1, "b": 3}', '{"a": 1, "b": 2}'), parts_right('{"a": 1} and', '{"a": 1}')
    ((True, 0.5), (False, 0.0))
    """
    wanted = json.loads(gold)
    try:
        said = parse_json(text)
    except ValueError:
        return False, 0.0
    if not isinstance(said, dict):
        return False, 0.0
    same = [key in said and json.dumps(said[key]) == json.dumps(value) for key, value in wanted.items()]
    return said.keys() == wanted.keys(), fmean(same)


def set_threads(seconds: float = 1.0) -> None:
    """Use the cores that are free. Two threads on one free core are far slower than one: each waits for the other."""
    import torch

    torch.set_num_threads(free_cores(seconds))
