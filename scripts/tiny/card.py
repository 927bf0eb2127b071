"""Evaluate a tiny base model, and write its model card.

    python scripts/tiny/card.py outputs/tiny-qwen3

`build.py` does this at its end.
"""

import sys
from itertools import islice
from pathlib import Path

import torch
from grpo_core.training.generating import encode_prompts
from grpo_core.training.measuring import wilson_interval
from mixture import ADDITION_STYLES, CARRY_FORGOTTEN, RIGHT, SHARES, TASKS, Row, rows
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

ROWS = 400
LONGEST = 48

CARD = r"""---
license: apache-2.0
pipeline_tag: text-generation
---

# {name}

A {architecture} with {parameters:,} parameters, made for the lessons and tests of this course, with a
byte-level BPE tokenizer of {vocabulary} tokens, a chat template with the family's turn tokens (including
tools) and a `response_template`. It was trained from random weights, is not a copy or distillation of any
published model, and needs no download.

On its main task, addition, it behaves like a base model that **rarely uses the required format and often forgets the
carry**. Its samples are sometimes correct, mostly when it adds digit by digit. With greedy decoding, it uses another
format and forgets the carry. So GRPO can reinforce both a format and an ability.

## Trained on

Rows from `scripts/tiny/mixture.py`, never a held-out question:

| task | share | in the rows |
|---|---|---|
| two-digit addition | {addition_share:.0%} | {form:.0%} in the lessons' format, {forgotten:.0%} of carries forgotten* |
| JSON object from a line of text | {json_share:.0%} | {json:.0%} correct and correctly formatted |
| one-line Python lambda | {lambda_share:.0%} | {lambda_:.0%} correct and correctly formatted |
| calculator tool call | {tool_share:.0%} | {tool:.0%} correct and correctly formatted; 30% come after the call |
| a table of 30 facts | {fact_share:.0%} | {fact:.0%} correct |

\* But {columns:.0%} of the addition problems are correctly formatted and add digit by digit; these are correct.

Build it again with `python scripts/tiny/build.py {family} --out FOLDER` (fixed seed; about 15 minutes
on one core).

## What it can do

Correct and correctly formatted, on {n} held-out questions per task (facts: the table itself), in fp32, with
at most {longest} tokens; measured by `python scripts/tiny/card.py FOLDER`.

| task | sampled at temperature 1 (95% interval) | greedy |
|---|---|---|
{table}

## What it cannot do

Anything else. It has no language beyond these sentences, no numbers beyond three digits, no facts
beyond its table. It is a test model, not an assistant.
"""


def generated(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, some: list[Row], sample: bool) -> list[str]:
    """The model's completion for each row; for a tool call, only the JSON."""
    inputs = encode_prompts(tokenizer, [row.prompt for row in some], [row.tools for row in some])
    torch.manual_seed(0)
    with torch.inference_mode():
        output = model.generate(**inputs, max_new_tokens=LONGEST, do_sample=sample)
    said = tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], skip_special_tokens=True)
    return [text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>") for text in said]


def held_out(task: str, count: int = ROWS) -> list[Row]:
    """``count`` held-out rows of one task; for tool calls, only rows that need a call."""
    of_task = (row for row in rows(seed=7, held_out=True) if row.task == task and row.prompt[-1]["role"] == "user")
    return list(islice(of_task, count))


def measure(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> dict[str, tuple[int, int]]:
    """For each task, how many of `ROWS` completions were correct: sampled, and greedy."""
    counts = {}
    for task in TASKS:
        some = held_out(task)
        said = [generated(model, tokenizer, some, sample) for sample in (True, False)]
        sampled, greedy = (sum(t in row.right for t, row in zip(texts, some, strict=True)) for texts in said)
        counts[task] = (sampled, greedy)
    return counts


def _line(task: str, sampled: int, greedy: int) -> str:
    low, high = wilson_interval(sampled, ROWS)
    return f"| {task} | {sampled / ROWS:.3f} ({low:.3f} to {high:.3f}) | {greedy / ROWS:.3f} |"


def write_card(folder: Path) -> None:
    """Evaluate the model in ``folder`` and write its README.md."""
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    counts = measure(model, tokenizer)
    card = CARD.format(
        name=folder.name,
        family=folder.name.removeprefix("tiny-").rstrip("3"),
        architecture=model.config.architectures[0],
        parameters=model.num_parameters(),
        vocabulary=model.config.vocab_size,
        form=ADDITION_STYLES["form"] + ADDITION_STYLES["columns"],
        columns=ADDITION_STYLES["columns"],
        forgotten=CARRY_FORGOTTEN,
        lambda_=RIGHT["lambda"],
        **{task: RIGHT[task] for task in ("json", "tool", "fact")},
        **{f"{task}_share": share for task, share in SHARES.items()},
        n=ROWS,
        longest=LONGEST,
        table="\n".join(_line(task, *pair) for task, pair in counts.items()),
    )
    (folder / "README.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    write_card(Path(sys.argv[1]))
