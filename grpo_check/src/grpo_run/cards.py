"""A model card from the report of a run, in place of the empty form that PEFT writes."""

import json
from itertools import takewhile
from pathlib import Path

from grpo_core.training.measuring import rates_table, verdict
from grpo_core.training.publishing import is_hub_id, public_name

from .held_out import read_answers
from .report import read_report
from .trained import base_of

SETTINGS = ("learning_rate", "num_generations", "max_completion_length", "temperature", "beta", "loss_type", "seed")


def write_card(model: Path, run: Path) -> None:
    """Write README.md into the folder of a model that a run trained: its adapter, a merge of it, or all weights."""
    (model / "README.md").write_text(card(model, run), encoding="utf-8")


def card(model: Path, run: Path) -> str:
    """The text of the card. It names no license, which depends on the base and the data."""
    report, is_adapter = read_report(run), base_of(model) is not None
    is_merged = not is_adapter and base_of(run / "model") is not None
    base = public_name(base_of(run / "model") or report["model"])
    settings, training = report["config"]["run"], report["config"]["training"]
    data, backend = settings["dataset_name"], " and Unsloth" if report["backend"] == "unsloth" else ""
    what = "with a LoRA adapter merged into it" if is_merged else "of which all weights were trained"
    what = f"A LoRA adapter for `{base}`, which does nothing without it" if is_adapter else f"`{base}`, {what}"
    bits = "4 bits" if report["load_in_4bit"] else "16 or 32 bits"
    lines = [
        f"---\n{_header(base, data, report, is_adapter)}\n---",
        f"# {base.split('/')[-1]}, trained with GRPO",
        f"{what}. It was trained on at most {settings['train_rows']} rows of `{public_name(data)}`.",
        "## How to ask it",
        _how_to_ask(run, training),
        "## Training",
        f"GRPO with TRL{backend}: {report['steps']} steps, with the base in {bits}. {report['stopped']}".rstrip(),
        _table("reward", "weight", _weights(report)),
        _table("setting", "value", {name: training[name] for name in SETTINGS}),
        *(f"Changed during the run: {change}" for change in report["changes"]),
        "## Before and after",
        f"On {report['before']['n']} held-out prompts, the same before and after. Accuracy counts correct answers in "
        "the required format, sampled at the temperature of training."
        + " These are the results of the adapter; the merged model was not evaluated."
        * is_merged,
        f"```text\n{rates_table(report['before'], report['after'])}\n"
        f"{verdict(report['before'], report['after'], report['p_value'])}\n```",
        "## Versions",
        ", ".join(f"{name} {version}" for name, version in report["versions"].items() if version != "not installed"),
    ]
    return "\n\n".join(lines) + "\n"


def _header(base: str, data: str, report: dict, is_adapter: bool) -> str:
    """The YAML of the card, without what is not on the Hub, which would be a dead link."""
    from huggingface_hub import ModelCardData

    on_hub = is_hub_id(base)
    return ModelCardData(
        base_model=base if on_hub else None,
        base_model_relation=("adapter" if is_adapter else "finetune") if on_hub else None,
        datasets=[data] if is_hub_id(data) and not Path(data).exists() else None,
        library_name="peft" if is_adapter else "transformers",
        pipeline_tag="text-generation",
        tags=["grpo", "trl", *(["unsloth"] if report["backend"] == "unsloth" else [])],
    ).to_yaml()


def _how_to_ask(run: Path, training: dict) -> str:
    """Code with the trained prompt. It shows only what all held-out prompts have in common, and no question."""
    if training["max_tool_calling_iterations"]:
        return "It calls tools, so ask it in the project that trained it: `python ask.py FOLDER QUESTION`."
    prompts = [answer["prompt"] for answer in read_answers(run)]
    start = _common_start({prompt[-1]["content"] for prompt in prompts})
    earlier = [message for message in prompts[0][:-1] if all(message in prompt[:-1] for prompt in prompts)]
    messages = [*earlier, {"role": "user", "content": f"{start}YOUR QUESTION"}]
    options = {"max_new_tokens": training["max_completion_length"], "do_sample": False}
    if training["chat_template_kwargs"]:
        options["tokenizer_encode_kwargs"] = training["chat_template_kwargs"]
    listed = "".join(f"    {json.dumps(message, ensure_ascii=False)},\n" for message in messages)
    call = f"ask(messages, {', '.join(f'{name}={value!r}' for name, value in options.items())})"
    return (
        "```python\nfrom transformers import pipeline\n\n"
        'ask = pipeline("text-generation", model="FOLDER_OR_ID_OF_THIS_MODEL")\n'
        f'messages = [\n{listed}]\nprint({call}[0]["generated_text"][-1]["content"])\n```'
    )


def _common_start(texts: set[str]) -> str:
    """The words with which all of several texts begin; none of a single text, because that is a whole question.

    >>> _common_start({"Sort: a message", "Sort: an order"}), _common_start({"When?", "Where?"})
    ('Sort: ', '')
    """
    pairs = zip(min(texts), max(texts), strict=False) if len(texts) > 1 else ()
    start = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return start[: max(start.rfind(" "), start.rfind("\n")) + 1]


def _weights(report: dict) -> dict[str, float]:
    """The weight of each reward; in a run with stages, of each stage."""
    if "stages" not in report:
        return report["rewards"]
    stages = {part["stage"]["name"]: part["rewards"] for part in report["stages"]}
    return {f"{stage}: {name}": weight for stage, rewards in stages.items() for name, weight in rewards.items()}


def _table(left: str, right: str, rows: dict) -> str:
    return "\n".join([f"| {left} | {right} |", "|---|---|", *(f"| `{key}` | {value} |" for key, value in rows.items())])
