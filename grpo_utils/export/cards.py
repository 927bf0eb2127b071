"""A model card made from `report.json` alone.

    write_card("outputs/run/merged", read_report("outputs/run"), kind="merged")

The card has the base, the data, the rewards and their weights, the settings, the results before and after with their
intervals, and the versions. It says "no improvement shown" if none was shown. If the report has a ``merged_p_value``,
the card of a merged model compares the base with the merged model. The card names no license unless you choose one.
"""

import json
from decimal import ROUND_UP, Context
from pathlib import Path

from ..errors import CourseError
from ..profiles import check_choice
from ..run.measuring import rates_table, verdict
from . import adapters
from .adapters import is_hub_id, loading_code, public_name, where_the_base_is

#: The library that loads it, and its relation to the base, in the Hub's words.
KINDS = {"adapter": ("peft", "adapter"), "merged": ("transformers", "finetune")}
WHAT = {
    "adapter": "A LoRA adapter for `{}`, trained with GRPO. It does nothing without its base.",
    "merged": "`{}`, trained with GRPO and merged: it needs no adapter.",
}
CODE = {
    "adapter": adapters.CODE,
    "merged": """from transformers import pipeline

chat = pipeline("text-generation", model="FOLDER_OR_ID_OF_THIS_MODEL")
messages = [
{messages}]
print(chat(messages, max_new_tokens=256, do_sample=False)[0]["generated_text"][-1]["content"])""",
}
#: A dataset of this course on the Hub, and in words. The course generates the addition problems itself.
DATASETS = {"gsm8k": ("openai/gsm8k", "GSM8K"), "addition": (None, "two-digit addition problems, made by the course")}

#: The training arguments that a reader asks for first; `report.json` has them all.
SETTINGS = (
    *("learning_rate", "lr_scheduler_type", "optim", "per_device_train_batch_size", "gradient_accumulation_steps"),
    *("num_generations", "max_completion_length", "temperature", "beta", "loss_type", "scale_rewards"),
)

CARD = """---
{header}
---

# {title}

{what}

## How to use it

```python
{code}
```
{remark}
The model was trained with this system prompt, and expects it:

```text
{prompt}
```

## Training

GRPO with TRL{and_unsloth}: {steps} steps, seed {seed}, base in {bits}, on {config[train_rows]} rows of {dataset}.

| reward | weight |
|---|---|
{rewards}

| setting | value |
|---|---|
{settings}
| `lora_rank` | {config[lora][r]} |
| `lora_alpha` | {config[lora][lora_alpha]} |

## Before and after

On {before[n]} held-out prompts, the same before and after. Accuracy counts correct answers in the required format.

```text
{table}
{sentence}
```

{compared}

## Versions

{used}

The tokenizer was saved by transformers 5 and needs transformers 5 to be loaded.
"""


def model_card(report: dict, *, kind: str = "merged", license: str = "") -> str:
    """The text of a model card for a run, from its report. ``kind`` is ``merged`` or ``adapter``.

    ``license`` is a Hub identifier such as ``apache-2.0``. It depends on the base, so there is no default.

    Raises:
        CourseError: an unknown kind, or the report lacks a value that the card needs.
    """
    check_choice("kind", kind, tuple(KINDS))
    try:
        header = _header(report, kind, license)
        words = _base_in_words(report, kind) | _training_in_words(report) | _result_in_words(report, kind)
        return CARD.format_map(report | words | {"header": header})
    except KeyError as error:
        raise CourseError(
            f"The report has no {error}, which a model card needs. Finish the run, or add the value to the report."
        ) from error


def write_card(folder: str | Path, report: dict, *, kind: str = "merged", license: str = "") -> Path:
    """Write `model_card` to ``folder`` as README.md, in place of a README that a library left there."""
    path = Path(folder) / "README.md"
    path.write_text(model_card(report, kind=kind, license=license), encoding="utf-8")
    return path


def _header(report: dict, kind: str, license: str) -> str:
    """The YAML of the card. It leaves out a base that is not on the Hub, which would be a dead link."""
    from huggingface_hub import ModelCardData

    library, relation = KINDS[kind]
    base = public_name(report["model"])
    dataset, _ = DATASETS.get(report["config"]["profile"]["dataset"], (None, None))
    return ModelCardData(
        base_model=base if is_hub_id(base) else None,
        base_model_relation=relation if is_hub_id(base) else None,
        datasets=[dataset] if dataset else None,
        library_name=library,
        license=license or None,
        pipeline_tag="text-generation",
        tags=["grpo", "trl", "lora", *(["unsloth"] if report["backend"] == "unsloth" else [])],
    ).to_yaml()


def _base_in_words(report: dict, kind: str) -> dict[str, str]:
    """What the model is, and how to ask it, with one message per line."""
    base, prompt = report["model"], report["config"]["system_prompt"]
    name = public_name(base)
    messages = [{"role": "system", "content": prompt}] if prompt else []
    messages += [{"role": "user", "content": "What is 15 + 27?"}]
    lines = "".join(f"    {json.dumps(message, ensure_ascii=False)},\n" for message in messages)
    return {
        "title": f"{name.split('/')[-1]}, GRPO{', adapter' if kind == 'adapter' else ''}",
        "what": WHAT[kind].format(name),
        "code": CODE[kind].format(load=loading_code(base), messages=lines),
        "remark": where_the_base_is(base),
        "prompt": prompt or "(none)",
    }


def _training_in_words(report: dict) -> dict[str, object]:
    config, with_unsloth = report["config"], report["backend"] == "unsloth"
    dataset = config["profile"]["dataset"]
    unused = () if with_unsloth else ("unsloth", "unsloth_zoo")  # installed, but it took no part
    return {
        "and_unsloth": " and Unsloth" if with_unsloth else "",
        "bits": "4 bits" if report["load_in_4bit"] else "16 or 32 bits",
        "dataset": DATASETS.get(dataset, (None, dataset))[1],
        "rewards": "\n".join(f"| `{reward['name']}` | {reward['weight']:g} |" for reward in config["rewards"]),
        "settings": "\n".join(f"| `{name}` | {config['training_arguments'][name]} |" for name in SETTINGS),
        "used": ", ".join(f"{name} {version}" for name, version in report["versions"].items() if name not in unused),
    }


def _result_in_words(report: dict, kind: str) -> dict[str, str]:
    """The table of rates, what its last sentence compares, and what the merge changed."""
    of_merged = kind == "merged" and "merged_p_value" in report
    after, p_value = ("merged", "merged_p_value") if of_merged else ("after", "p_value")
    compared = f'The last sentence compares "before" with "{after}".'
    if "merged" in report:
        compared += ' "after" is the policy as it was trained, and "merged" has the unquantized base.'
        compared += ' "before" is the base in 4 bits.' if report["load_in_4bit"] else ""
    if "merge_difference" in report:
        compared += f"\nIn fp32 the merge changed no logit by more than {_rounded_up(report['merge_difference'])}."
    return {
        "table": rates_table(report["before"], report["after"], report.get("merged")),
        "sentence": verdict(report["before"], report[after], report[p_value]),
        "compared": compared,
    }


def _rounded_up(value: float) -> str:
    """One digit that is never less than the value: ``.0e`` alone may round down.

    >>> _rounded_up(7.2e-7), _rounded_up(7e-7)
    ('8e-07', '7e-07')
    """
    return f"{float(Context(prec=1, rounding=ROUND_UP).create_decimal(repr(value))):.0e}"
