"""A model card made from `report.json` alone; ``card.md`` next to this file has its text.

    write_card("outputs/run/merged", read_report("outputs/run"), kind="merged")

The card has the base, the data, the rewards and their weights, the settings, the results before and after with their
intervals, and the versions. It says "no improvement shown" if none was shown. If the report has a ``merged_p_value``,
the card of a merged model compares the base with the merged model. The card names no license unless you choose one.
"""

import json
from decimal import ROUND_UP, Context
from pathlib import Path

from grpo_core.errors import CourseError, check_choice
from grpo_core.training.measuring import rates_table, verdict
from grpo_core.training.publishing import is_hub_id, public_name

from .adapters import CODE, loading_code, where_the_base_is

#: The library that loads it, and its relation to the base, in the Hub's words.
KINDS = {"adapter": ("peft", "adapter"), "merged": ("transformers", "finetune")}
#: A dataset of this course on the Hub, and in words. The course generates the addition problems itself.
DATASETS = {"gsm8k": ("openai/gsm8k", "GSM8K"), "addition": (None, "two-digit addition problems, made by the course")}

#: The training arguments that a reader asks for first; `report.json` has them all.
SETTINGS = (
    *("learning_rate", "lr_scheduler_type", "optim", "per_device_train_batch_size", "gradient_accumulation_steps"),
    *("num_generations", "max_completion_length", "temperature", "beta", "loss_type", "scale_rewards"),
)


def model_card(report: dict, *, kind: str = "merged", license: str = "") -> str:
    """The text of a model card for a run, from its report. ``kind`` is ``merged`` or ``adapter``.

    ``license`` is a Hub identifier such as ``apache-2.0``. It depends on the base, so there is no default.

    Raises:
        CourseError: an unknown kind, or the report lacks a value that the card needs.
    """
    from jinja2 import Environment, StrictUndefined, UndefinedError

    check_choice("kind", kind, tuple(KINDS))
    layout = Environment(undefined=StrictUndefined, trim_blocks=True)
    template = layout.from_string(Path(__file__).with_name("card.md").read_text(encoding="utf-8"))
    optional = {"merged": None, "merge_difference": None}
    try:
        words = dict(header=_header(report, kind, license), kind=kind, **_base(report), **_result(report, kind))
        return template.render(optional | report | words, settings=SETTINGS, rounded_up=_rounded_up) + "\n"
    except (KeyError, UndefinedError) as error:
        raise CourseError(
            f"The report lacks a value that a model card needs: {error}. Finish the run, or add it to the report."
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


def _base(report: dict) -> dict[str, object]:
    """What the model is, how to load an adapter, how to ask a merged model, and its data in words."""
    base, prompt, data = report["model"], report["config"]["system_prompt"], report["config"]["profile"]["dataset"]
    messages = [{"role": "system", "content": prompt}] if prompt else []
    messages += [{"role": "user", "content": "What is 15 + 27?"}]
    return {
        "name": public_name(base),
        "template_kwargs": report["config"].get("chat_template_kwargs"),
        "code": CODE.format(load=loading_code(base)),
        "messages": [json.dumps(message, ensure_ascii=False) for message in messages],
        "remark": where_the_base_is(base),
        "data": DATASETS.get(data, (None, data))[1],
    }


def _result(report: dict, kind: str) -> dict[str, str]:
    """The table of rates, its last sentence, and what that sentence compares with "before"."""
    of_merged = kind == "merged" and "merged_p_value" in report
    after, p_value = ("merged", "merged_p_value") if of_merged else ("after", "p_value")
    return {
        "table": rates_table(report["before"], report["after"], report.get("merged")),
        "sentence": verdict(report["before"], report[after], report[p_value]),
        "compared": after,
    }


def _rounded_up(value: float) -> str:
    """One digit that is never less than the value: ``.0e`` alone may round down.

    >>> _rounded_up(7.2e-7), _rounded_up(7e-7)
    ('8e-07', '7e-07')
    """
    return f"{float(Context(prec=1, rounding=ROUND_UP).create_decimal(repr(value))):.0e}"
