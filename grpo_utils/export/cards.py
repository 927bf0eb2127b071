"""A model card that says what was done, made from `report.json` alone.

    write_card("outputs/run/merged", read_report("outputs/run"), kind="merged")

A card written by hand says what its author remembers. This one says what the run wrote down: base,
data, rewards and weights, settings, before and after with intervals, versions. It says "no
improvement shown" where that is so. The licence is yours to choose: without one, none is claimed.
"""

from pathlib import Path

from ..errors import CourseError
from ..evaluation import before_after
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
{merge}
## Versions

{versions}
"""

CODE = {
    "merged": """from transformers import pipeline

chat = pipeline("text-generation", model="FOLDER_OR_ID_OF_THIS_MODEL")
messages = [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": "What is 15 + 27?"}]
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
        return CARD.format(**_header_parts(report, kind, license), **_training_parts(report), **_result_parts(report))
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
        "code": CODE[kind].replace("{load}", loading_code(base)),
        "remark": where_the_base_is(base),
        "system_prompt": report["config"]["system_prompt"] or "(none)",
    }


def _header(report: dict, kind: str, license: str) -> str:
    """The YAML of the card. A base that is not on the Hub is told in the text: here it would be a dead link."""
    from huggingface_hub import ModelCardData

    library, relation = KINDS[kind]
    on_hub = is_hub_id(report["model"])
    dataset = ON_THE_HUB.get(report["config"]["profile"]["dataset"])
    return ModelCardData(
        base_model=report["model"] if on_hub else None,
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


def _result_parts(report: dict) -> dict[str, object]:
    rates = report["before"], report["after"], report["p_value"]
    merge = (
        "\nThe policy was trained with its base in the bits given above; merged, it stands on the unquantized base. "
        f"In fp32 the merge changed no logit by more than {report['merge_difference']:.0e}.\n"
        if "merge_difference" in report
        else ""
    )
    return {
        "n": report["before"]["n"],
        "table": before_after(*rates, report.get("merged")),
        "merge": merge,
        "versions": ", ".join(f"{package} {version}" for package, version in _versions(report).items()),
    }


def _versions(report: dict) -> dict[str, str]:
    """The versions of what took part: Unsloth may be installed and not used."""
    unused = () if report["backend"] == "unsloth" else ("unsloth", "unsloth_zoo")
    return {package: version for package, version in report["versions"].items() if package not in unused}
