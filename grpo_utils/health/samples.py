"""What the policy says to held-out prompts while it trains, kept in files that a person can read."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..evaluation import wilson_interval
from ..rewards import is_strictly_right

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

COLUMNS = ("step", "n", "in_form", "low", "high", "right", "ended", "distinct")


@dataclass(frozen=True)
class Samples:
    """Completions of ``n`` held-out prompts: texts, and for each whether it is in form, right and ended."""

    prompts: list[str]
    golds: list[str]
    texts: list[str]
    formed: list[bool]
    right: list[bool]
    ended: list[bool]

    @property
    def distinct(self) -> float:
        """The share of different completions."""
        return len(set(self.texts)) / len(self.texts)

    def row(self, step: int) -> dict:
        """One line of ``checks.csv``: shares of ``n``, the format rate with its 95 % Wilson interval."""
        n = len(self.texts)
        low, high = wilson_interval(sum(self.formed), n)
        rates = {"in_form": sum(self.formed) / n, "low": low, "high": high, "right": sum(self.right) / n}
        rates |= {"ended": sum(self.ended) / n, "distinct": self.distinct}
        return {"step": step, "n": n, **{name: round(rate, 3) for name, rate in rates.items()}}

    def page(self, step: int) -> str:
        """The samples for a reader."""
        said = zip(self.prompts, self.golds, self.texts, self.formed, self.right, self.ended, strict=True)
        lines = [f"=== step {step}"]
        for prompt, gold, text, formed, right, ended in said:
            marks = ["in form" if formed else "not in form", "right" if right else "not right"]
            lines += [f"--- {prompt}  (gold: {gold})", text, f"[{', '.join(marks + ['cut off'] * (not ended))}]"]
        return "\n".join(lines) + "\n\n"


def take_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: "Dataset",
    max_new_tokens: int,
    in_form: Callable[[str], bool],
) -> Samples:
    """Sample one completion for each row at temperature 1, leaving random numbers and mode as they were.

    A training that is watched so goes the way it would have gone unwatched.
    """
    import torch

    was_training = model.training
    model.eval()
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(0)
        new = _generate(model, tokenizer, rows["prompt"], max_new_tokens)
    model.train(was_training)
    texts = tokenizer.batch_decode(new, skip_special_tokens=True)
    return Samples(
        prompts=[prompt if isinstance(prompt, str) else str(prompt[-1]["content"]) for prompt in rows["prompt"]],
        golds=list(rows["answer"]),
        texts=texts,
        formed=[in_form(text) for text in texts],
        right=[is_strictly_right(text, gold) for text, gold in zip(texts, rows["answer"], strict=True)],
        ended=(new == tokenizer.eos_token_id).any(dim=1).tolist(),
    )


def _generate(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", prompts: Sequence, max_new_tokens: int
) -> "torch.Tensor":
    """New tokens of shape (prompts, at most max_new_tokens), of strings as they are and of messages in the template."""
    texts = [
        prompt
        if isinstance(prompt, str)
        else tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)
        for prompt in prompts
    ]
    inputs = tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)
    output = model.generate(
        **inputs.to(model.device),
        max_new_tokens=max_new_tokens,
        do_sample=True,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        use_cache=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return output[:, inputs["input_ids"].shape[1] :]


def keep(folder: Path, step: int, samples: Samples) -> None:
    """Add to ``samples.txt`` and ``checks.csv``; what an earlier part of the run wrote stays."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "samples.txt").open("a", encoding="utf-8") as page:
        page.write(samples.page(step))
    table = folder / "checks.csv"
    is_new = not table.exists()
    with table.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(samples.row(step))
