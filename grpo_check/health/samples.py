"""What the policy says to held-out prompts while it trains, kept in files that a person can read."""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError
from grpo_utils.evaluation.statistics import wilson_interval
from grpo_utils.rewards import TAGS, is_strictly_right, split_form
from grpo_utils.run.measuring import sampling

if TYPE_CHECKING:
    import torch
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

COLUMNS = ("step", "n", "in_form", "low", "high", "right", "ended", "distinct")


@dataclass(frozen=True)
class Samples:
    """Completions of ``n`` held-out prompts: texts, and for each whether it is in form, right and ended.

    ``formed`` and ``right`` are empty where there is no form to check, or no gold answer.
    """

    prompts: list[str]
    golds: list[str]
    texts: list[str]
    formed: list[bool]
    right: list[bool]
    ended: list[bool]

    @property
    def distinct(self) -> float:
        """Different completions for each different gold answer (prompt, if there are no golds); at most 1."""
        wanted = len(set(self.golds or self.prompts))
        return min(1.0, len(set(self.texts)) / wanted)

    def row(self, step: int) -> dict:
        """One line of ``checks.csv``: shares of ``n``, the format rate with its 95 % Wilson interval."""
        n, rates = len(self.texts), {"ended": sum(self.ended) / len(self.texts), "distinct": self.distinct}
        if self.formed:
            low, high = wilson_interval(sum(self.formed), n)
            rates |= {"in_form": sum(self.formed) / n, "low": low, "high": high}
        if self.right:
            rates["right"] = sum(self.right) / n
        return {"step": step, "n": n, **{name: round(rate, 3) for name, rate in rates.items()}}

    def page(self, step: int) -> str:
        """The samples for a reader."""
        lines = [f"=== step {step}"]
        for i, (prompt, text) in enumerate(zip(self.prompts, self.texts, strict=True)):
            marks = ["in form" if self.formed[i] else "not in form"] if self.formed else []
            marks += ["right" if self.right[i] else "not right"] if self.right else []
            marks += [] if self.ended[i] else ["cut off"]
            gold = f"  (gold: {self.golds[i]})" if self.golds else ""
            lines += [f"--- {prompt}{gold}", text, f"[{', '.join(marks)}]"]
        return "\n".join(lines) + "\n\n"


def choose_rows(rows: "Dataset | Sequence[dict]", count: int) -> list[dict]:
    """The first few held-out rows, checked.

    Raises:
        CourseError: there are none, or one has no prompt.
    """
    chosen = [rows[i] for i in range(min(count, len(rows)))]
    if not chosen:
        raise CourseError("HealthCallback got no held-out rows. Leave the argument out, or give some.")
    if any(not row.get("prompt") for row in chosen):
        raise CourseError(f"HealthCallback: a held-out row has no 'prompt'; its columns are {', '.join(chosen[0])}.")
    return chosen


def asked_form(rows: Sequence[dict]) -> Callable[[str], bool] | None:
    """How to tell the course's form, if the prompts ask for it; another form this module cannot know."""
    return in_course_form if all(tag in str(rows[0]["prompt"]) for tag in TAGS) else None


def in_course_form(text: str) -> bool:
    """Whether a completion is in the course's form."""
    return split_form(text) is not None


def take_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: Sequence[dict],
    max_new_tokens: int,
    batch_size: int,
    in_form: Callable[[str], bool] | None,
    template: dict | None = None,
) -> Samples:
    """Sample one completion for each row at temperature 1, leaving random numbers and mode as they were.

    A training that is watched so goes the way it would have gone unwatched. ``template`` goes to
    the chat template, as `GRPOConfig`'s ``chat_template_kwargs``.
    """
    import torch

    texts, ended = [], []
    with sampling(model), torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(0)
        for start in range(0, len(rows), batch_size):
            prompts = [row["prompt"] for row in rows[start : start + batch_size]]
            new = _generate(model, tokenizer, prompts, max_new_tokens, template or {})
            texts += tokenizer.batch_decode(new, skip_special_tokens=True)
            ended += (new == tokenizer.eos_token_id).any(dim=1).tolist()
    return _judged(rows, texts, ended, in_form)


def _judged(rows: Sequence[dict], texts: list[str], ended: list[bool], in_form: Callable | None) -> Samples:
    golds = [row["answer"] for row in rows] if all(isinstance(row.get("answer"), str) for row in rows) else []
    return Samples(
        prompts=[
            row["prompt"] if isinstance(row["prompt"], str) else str(row["prompt"][-1]["content"]) for row in rows
        ],
        golds=golds,
        texts=texts,
        formed=[in_form(text) for text in texts] if in_form else [],
        right=[is_strictly_right(text, gold) for text, gold in zip(texts, golds, strict=True)]
        if golds and in_form
        else [],
        ended=ended,
    )


def _generate(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", prompts: list, max_new_tokens: int, template: dict
) -> "torch.Tensor":
    """New tokens of shape (prompts, at most max_new_tokens); strings as they are, messages in the chat template."""
    plain = isinstance(prompts[0], str)
    texts = [
        prompt
        if plain
        else tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False, **template)
        for prompt in prompts
    ]
    inputs = tokenizer(text=texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=plain)
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
