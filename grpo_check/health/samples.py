"""What the policy says to held-out prompts while it trains, kept in files that a person can read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError
from grpo_utils.rewards import TAGS, is_strictly_right, split_form
from grpo_utils.run.measuring import sampling, wilson_interval

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: How many held-out rows are answered each time.
COUNT = 16
COLUMNS = ("step", "n", "in_form", "low", "high", "right", "ended", "distinct")


def choose_rows(rows: "Dataset | Sequence[dict]") -> list[dict]:
    """The first few held-out rows, checked.

    Raises:
        CourseError: there are none, or one has no prompt.
    """
    chosen = [rows[i] for i in range(min(COUNT, len(rows)))]
    if not chosen:
        raise CourseError("HealthCallback got no held-out rows. Leave the argument out, or give some.")
    if any(not row.get("prompt") for row in chosen):
        raise CourseError(f"HealthCallback: a held-out row has no 'prompt'; its columns are {', '.join(chosen[0])}.")
    return chosen


def take_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: Sequence[dict],
    max_new_tokens: int,
    batch_size: int,
    template: dict | None = None,
) -> list[dict]:
    """Sample one completion for each row at temperature 1, leaving random numbers and mode as they were.

    A run that is watched so goes the way it would have gone unwatched. ``template`` goes to
    the chat template, as `GRPOConfig`'s ``chat_template_kwargs``.

    Returns:
        For each row ``prompt``, ``gold``, ``text``, and whether it is ``in_form``, ``right`` and ``ended``; None where
        the prompts do not ask for the course's form (no other is known here), or there is no gold answer.
    """
    import torch

    said = []
    with sampling(model), torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(0)
        for start in range(0, len(rows), batch_size):
            prompts = [row["prompt"] for row in rows[start : start + batch_size]]
            said += _generate(model, tokenizer, prompts, max_new_tokens, template or {})
    formed = all(tag in str(rows[0]["prompt"]) for tag in TAGS)
    answered = all(isinstance(row.get("answer"), str) for row in rows)
    return [_judged(row, *pair, formed, answered) for row, pair in zip(rows, said, strict=True)]


def _judged(row: dict, text: str, ended: bool, formed: bool, answered: bool) -> dict:
    """A sample of one row, with what can be known of it."""
    prompt, gold = row["prompt"], row["answer"] if answered else None
    return {
        "prompt": prompt if isinstance(prompt, str) else str(prompt[-1]["content"]),
        "gold": gold,
        "text": text,
        "in_form": split_form(text) is not None if formed else None,
        "right": is_strictly_right(text, gold) if formed and answered else None,
        "ended": ended,
    }


def _generate(
    model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", prompts: list, max_new_tokens: int, template: dict
) -> list[tuple[str, bool]]:
    """Texts, and whether each has ended; strings are sampled from as they are, messages in the chat template."""
    plain = isinstance(prompts[0], str)
    how = dict(template, add_generation_prompt=True, tokenize=False)
    texts = prompts if plain else [tokenizer.apply_chat_template(prompt, **how) for prompt in prompts]
    inputs = tokenizer(text=texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=plain)
    ends = dict(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    how = dict(do_sample=True, temperature=1.0, top_p=1.0, top_k=0, use_cache=True)
    output = model.generate(**inputs.to(model.device), max_new_tokens=max_new_tokens, **how, **ends)
    new = output[:, inputs["input_ids"].shape[1] :]
    ended = (new == tokenizer.eos_token_id).any(dim=1).tolist()
    return list(zip(tokenizer.batch_decode(new, skip_special_tokens=True), ended, strict=True))


def share(samples: Sequence[dict], what: str) -> float | None:
    """The share of the samples of which something is true, if it is known."""
    known = [sample[what] for sample in samples if sample[what] is not None]
    return sum(known) / len(known) if known else None


def distinct(samples: Sequence[dict]) -> float:
    """Different completions for each different gold answer (prompt, if there are no golds); at most 1.

    >>> distinct([{"prompt": "a", "gold": "1", "text": "x"}, {"prompt": "b", "gold": "2", "text": "x"}])
    0.5
    """
    wanted = {sample["gold"] or sample["prompt"] for sample in samples}
    return min(1.0, len({sample["text"] for sample in samples}) / len(wanted))


def keep(folder: Path, step: int, samples: Sequence[dict]) -> None:
    """Add to ``samples.txt`` and ``checks.csv``; what an earlier part of the run wrote stays.

    The format rate has its 95 % Wilson interval, ``low`` to ``high``.
    """
    import pandas

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "samples.txt").open("a", encoding="utf-8") as page:
        page.write("\n".join([f"=== step {step}", *map(_shown, samples)]) + "\n\n")
    row = {what: share(samples, what) for what in ("in_form", "right", "ended")}
    if row["in_form"] is not None:
        row["low"], row["high"] = wilson_interval(sum(sample["in_form"] for sample in samples), len(samples))
    row |= {"step": step, "n": len(samples), "distinct": distinct(samples)}
    table = folder / "checks.csv"
    pandas.DataFrame([row], columns=COLUMNS).round(3).to_csv(table, mode="a", header=not table.exists(), index=False)


def _shown(sample: dict) -> str:
    """A sample for a reader."""
    marks = {"in_form": ("in form", "not in form"), "right": ("right", "not right"), "ended": ("", "cut off")}
    said = [words[not sample[what]] for what, words in marks.items() if sample[what] is not None]
    gold = f"  (gold: {sample['gold']})" if sample["gold"] is not None else ""
    return f"--- {sample['prompt']}{gold}\n{sample['text']}\n[{', '.join(filter(None, said))}]"
