"""A model card that says what was done, made from `report.json` alone.

    write_card("outputs/run/merged", read_report("outputs/run"), kind="merged")

A card written by hand says what its author remembers. This one says what the run wrote down: base,
data, rewards and weights, settings, before and after with intervals, versions. It says "no
improvement shown" where that is so. The card of a merged model compares the base with the merged model if the
report has a ``merged_p_value`` (of `compare(before, merged)`). The licence is yours to choose: without one, none
is claimed.
"""

import json
from decimal import ROUND_UP, Context
from pathlib import Path

from ..errors import CourseError
from ..evaluation.comparing import rates_table, verdict
from ..profiles import check_choice
from .adapters import is_hub_id, loading_code, public_name, where_the_base_is

KINDS = {"adapter": ("peft", "adapter"), "merged": ("transformers", "finetune")}

#: How a dataset of this course is called on the Hub, and in words. The additions are made by the course.
ON_THE_HUB = {"gsm8k": "openai/gsm8k"}
IN_WORDS = {"gsm8k": "GSM8K", "addition": "two-digit additions, made by the course"}

#: The training arguments that a reader asks for first; `report.json` has them all.
TOLD = (
    "learning_rate",
    "lr_scheduler_type",
    "optim",
    "per_device_train_batch_size",
    "gradient_accumulation_steps",
    "num_generations",
    "max_completion_length",
    "temperature",
    "beta",
    "loss_type",
    "scale_rewards",
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
{system_prompt}
```

## Training

GRPO with TRL{unsloth}: {steps} steps, seed {seed}, base in {bits}, on {train_rows} rows of {dataset}.

| reward | weight |
|---|---|
{rewards}

| setting | value |
|---|---|
{settings}

## Before and after

On {n} held-out prompts, the same before and after. Accuracy is strict: form and answer both right.

```text
{table}
```
{compared}
## Versions

{versions}

The tokenizer was saved by transformers 5; what loads it needs transformers 5 too.
"""

CODE = {
    "merged": """from transformers import pipeline

chat = pipeline("text-generation", model="FOLDER_OR_ID_OF_THIS_MODEL")
messages = [
{messages}]
print(chat(messages, max_new_tokens=256, do_sample=False)[0]["generated_text"][-1]["content"])""",
    "adapter": """from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer

base = {load}
model = PeftModel.from_pretrained(base, "FOLDER_OR_ID_OF_THIS_ADAPTER")
tokenizer = AutoTokenizer.from_pretrained("FOLDER_OR_ID_OF_THIS_ADAPTER")""",
}


def model_card(report: dict, *, kind: str = "merged", license: str = "") -> str:
    """The text of a model card for a run, from its report; ``kind`` is ``merged`` or ``adapter``.

    ``license`` is a Hub identifier such as ``apache-2.0``; it depends on the base, so there is no default.

    Raises:
        CourseError: an unknown kind, or the report lacks what a card has to say.
    """
    check_choice("kind", kind, tuple(KINDS))
    try:
        return CARD.format(
            **_header_parts(report, kind, license), **_training_parts(report), **_result_parts(report, kind)
        )
    except KeyError as error:
        raise CourseError(
            f"The report has no {error}, which a model card needs. Finish the run, or add the value to the report."
        ) from error


def write_card(folder: str | Path, report: dict, *, kind: str = "merged", license: str = "") -> Path:
    """Write `model_card` to ``folder`` as README.md, in place of a README that a library left there."""
    path = Path(folder) / "README.md"
    path.write_text(model_card(report, kind=kind, license=license), encoding="utf-8")
    return path


def _header_parts(report: dict, kind: str, license: str) -> dict[str, str]:
    base, name = report["model"], public_name(report["model"])
    if kind == "merged":
        what = f"`{name}`, trained with GRPO and merged: it needs no adapter."
    else:
        what = f"A LoRA adapter for `{name}`, trained with GRPO. It does nothing without its base."
    return {
        "header": _header(report, kind, license),
        "title": f"{name.split('/')[-1]}, GRPO{', adapter' if kind == 'adapter' else ''}",
        "what": what,
        "code": CODE[kind].replace("{load}", loading_code(base)).replace("{messages}", _messages(report)),
        "remark": where_the_base_is(base),
        "system_prompt": report["config"]["system_prompt"] or "(none)",
    }


def _messages(report: dict) -> str:
    """A question as the model was trained to be asked, a message a line."""
    prompt = report["config"]["system_prompt"]
    messages = [{"role": "system", "content": prompt}] if prompt else []
    messages += [{"role": "user", "content": "What is 15 + 27?"}]
    return "".join(f"    {json.dumps(message, ensure_ascii=False)},\n" for message in messages)


def _header(report: dict, kind: str, license: str) -> str:
    """The YAML of the card. A base that is not on the Hub is told in the text: here it would be a dead link."""
    from huggingface_hub import ModelCardData

    library, relation = KINDS[kind]
    base = public_name(report["model"])
    on_hub = is_hub_id(base)
    dataset = ON_THE_HUB.get(report["config"]["profile"]["dataset"])
    return ModelCardData(
        base_model=base if on_hub else None,
        base_model_relation=relation if on_hub else None,
        datasets=[dataset] if dataset else None,
        library_name=library,
        license=license or None,
        pipeline_tag="text-generation",
        tags=["grpo", "trl", "lora", *(["unsloth"] if report["backend"] == "unsloth" else [])],
    ).to_yaml()


def _training_parts(report: dict) -> dict[str, object]:
    config = report["config"]
    lora = {"lora_rank": config["lora"]["r"], "lora_alpha": config["lora"]["lora_alpha"]}
    settings = {name: config["training_arguments"][name] for name in TOLD} | lora
    return {
        "unsloth": " and Unsloth" if report["backend"] == "unsloth" else "",
        "steps": report["steps"],
        "seed": report["seed"],
        "bits": "4 bits" if report["load_in_4bit"] else "16 or 32 bits",
        "train_rows": config["train_rows"],
        "dataset": IN_WORDS.get(config["profile"]["dataset"], config["profile"]["dataset"]),
        "rewards": "\n".join(f"| `{reward['name']}` | {reward['weight']:g} |" for reward in config["rewards"]),
        "settings": "\n".join(f"| `{name}` | {value} |" for name, value in settings.items()),
    }


def _result_parts(report: dict, kind: str) -> dict[str, object]:
    of_merged = kind == "merged" and "merged_p_value" in report
    said = ("merged", "merged_p_value") if of_merged else ("after", "p_value")
    sentence = verdict(report["before"], *(report[name] for name in said))
    return {
        "n": report["before"]["n"],
        "table": rates_table(report["before"], report["after"], report.get("merged")) + f"\n{sentence}",
        "compared": _compared(report, "merged" if of_merged else "after"),
        "versions": ", ".join(f"{package} {version}" for package, version in _versions(report).items()),
    }


def _compared(report: dict, name: str) -> str:
    """What the rows stand on, which of them the sentence below the table is about, and the proof of the merge."""
    lines = [f'The last sentence compares "before" with "{name}".']
    if "merged" in report:
        lines[0] += ' "after" is the policy as it was trained, "merged" stands on the unquantized base.'
        lines[0] += ' "before" is the base in 4 bits.' if report["load_in_4bit"] else ""
    if "merge_difference" in report:
        lines.append(f"In fp32 the merge changed no logit by more than {_rounded_up(report['merge_difference'])}.")
    return "\n" + "\n".join(lines) + "\n"


def _rounded_up(value: float) -> str:
    """One digit that is never less than the value: ``.0e`` alone may round down.

    >>> _rounded_up(7.2e-7), _rounded_up(7e-7)
    ('8e-07', '7e-07')
    """
    return f"{float(Context(prec=1, rounding=ROUND_UP).create_decimal(repr(value))):.0e}"


def _versions(report: dict) -> dict[str, str]:
    """The versions of what took part: Unsloth may be installed and not used."""
    unused = () if report["backend"] == "unsloth" else ("unsloth", "unsloth_zoo")
    return {package: version for package, version in report["versions"].items() if package not in unused}
