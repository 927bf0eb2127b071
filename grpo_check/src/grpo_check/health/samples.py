"""Samples of held-out prompts during training, kept in readable files."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError
from grpo_core.rewards import correctness_reward, is_strictly_right, split_form
from grpo_core.training.generating import encode_prompts, evaluation_mode, generation_arguments
from grpo_core.training.measuring import wilson_interval

from ..prompts import asks_for_tags, question_text

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: How many held-out rows are sampled each time.
COUNT = 16
COLUMNS = ("step", "n", "in_form", "low", "high", "right", "ended", "distinct")


def choose_rows(rows: "Dataset | Sequence[dict]") -> list[dict]:
    """Check and return the first few held-out rows.

    Raises:
        CourseError: there are no rows, or a row has no prompt.
    """
    chosen = [rows[i] for i in range(min(COUNT, len(rows)))]
    if not chosen:
        raise CourseError("HealthCallback got an empty list of held-out rows. Pass some rows, or omit the argument.")
    if any(not row.get("prompt") for row in chosen):
        raise CourseError(f"HealthCallback: a held-out row has no 'prompt'. Its columns are {', '.join(chosen[0])}.")
    return chosen


def can_judge(rows: Sequence[dict]) -> bool:
    """Whether samples show which answers are correct: the prompts ask for tags around the answer, with gold answers."""
    return asks_for_tags([row["prompt"] for row in rows]) and _have_golds(rows)


def _have_golds(rows: Sequence[dict]) -> bool:
    return all(isinstance(row.get("answer"), str) for row in rows)


def take_samples(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    rows: Sequence[dict],
    max_new_tokens: int,
    batch_size: int,
    template: dict | None = None,
) -> list[dict]:
    """Sample one completion per row at temperature 1, and restore the random state and the training mode.

    So sampling does not change the run. ``template`` is passed to the chat template, like the
    ``chat_template_kwargs`` of `GRPOConfig`.

    Returns:
        For each row ``prompt``, ``gold``, ``text``, and whether the completion is formatted (``in_form``), formatted
        and correct (``right``), correct as `correctness_reward` counts it (``answers``), and ended by itself
        (``ended``). The first three are None if the prompts do not ask for tags around the answer; ``right`` and
        ``answers`` also without gold answers.
    """
    import torch

    said = []
    with evaluation_mode(model), torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(0)
        for start in range(0, len(rows), batch_size):
            prompts = [row["prompt"] for row in rows[start : start + batch_size]]
            said += _generate(model, tokenizer, prompts, max_new_tokens, template)
    formed, answered = asks_for_tags([row["prompt"] for row in rows]), _have_golds(rows)
    return [_judged(row, *pair, formed, answered) for row, pair in zip(rows, said, strict=True)]


def _generate(
    model: "PreTrainedModel",
    tokenizer: "PreTrainedTokenizerBase",
    prompts: list,
    max_new_tokens: int,
    template: dict | None,
) -> list[tuple[str, bool]]:
    """Completions, and whether each ended. Strings are used as they are, messages with the chat template."""
    inputs = encode_prompts(tokenizer, prompts, chat_template_kwargs=template).to(model.device)
    output = model.generate(**inputs, **generation_arguments(tokenizer, 1.0, max_new_tokens))
    new = output[:, inputs["input_ids"].shape[1] :]
    ended = (new == tokenizer.eos_token_id).any(dim=1).tolist()
    return list(zip(tokenizer.batch_decode(new, skip_special_tokens=True), ended, strict=True))


def _judged(row: dict, text: str, ended: bool, formed: bool, answered: bool) -> dict:
    """The sample of one row, with its format and correctness where they are known."""
    prompt, gold = row["prompt"], row["answer"] if answered else None
    return {
        "prompt": question_text(prompt),
        "gold": gold,
        "text": text,
        "in_form": split_form(text) is not None if formed else None,
        "right": is_strictly_right(text, gold) if formed and answered else None,
        "answers": correctness_reward([text], answer=[gold]) == [1.0] if formed and answered else None,
        "ended": ended,
    }


def share(samples: Sequence[dict], what: str) -> float | None:
    """The share of samples for which something is true, or None if it is not known."""
    number = count(samples, what)
    return None if number is None else number / len(samples)


def count(samples: Sequence[dict], what: str) -> float | None:
    """The number of samples for which something is true, or None if it is not known."""
    marks = [sample[what] for sample in samples]
    return None if None in marks else float(sum(marks))


def distinct(samples: Sequence[dict]) -> float:
    """Distinct completions per distinct gold answer (or prompt, without gold answers); at most 1.

    >>> distinct([{"prompt": "a", "gold": "1", "text": "x"}, {"prompt": "b", "gold": "2", "text": "x"}])
    0.5
    """
    wanted = {sample["gold"] or sample["prompt"] for sample in samples}
    return min(1.0, len({sample["text"] for sample in samples}) / len(wanted))


def keep(folder: Path, step: int, samples: Sequence[dict]) -> None:
    """Append to ``samples.txt``, ``samples.jsonl`` and ``checks.csv``.

    The format rate has a 95% Wilson interval, ``low`` to ``high``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "samples.txt").open("a", encoding="utf-8") as page:
        page.write("\n".join([f"=== step {step}", *map(_shown, samples)]) + "\n\n")
    with (folder / "samples.jsonl").open("a", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"step": step, **sample}) + "\n" for sample in samples)
    row = {what: share(samples, what) for what in ("in_form", "right", "ended")}
    if row["in_form"] is not None:
        row["low"], row["high"] = wilson_interval(sum(sample["in_form"] for sample in samples), len(samples))
    row |= {"step": step, "n": len(samples), "distinct": distinct(samples)}
    table = folder / "checks.csv"
    is_new = not table.exists()
    with table.open("a", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow({name: round(value, 3) if isinstance(value, float) else value for name, value in row.items()})


def _shown(sample: dict) -> str:
    """A sample as text."""
    marks = {"in_form": ("formatted", "not formatted"), "right": ("correct", "not correct"), "ended": ("", "cut off")}
    said = [words[not sample[what]] for what, words in marks.items() if sample[what] is not None]
    gold = f"  (gold: {sample['gold']})" if sample["gold"] is not None else ""
    return f"--- {sample['prompt']}{gold}\n{sample['text']}\n[{', '.join(filter(None, said))}]"
