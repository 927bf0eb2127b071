"""A finished run as a Markdown table to share: versions, machine, times, before and after, and nothing personal.

A report also has paths and every setting, so a text is copied only if it matches one of the patterns or lists below.
"""

import re
from importlib import metadata

from grpo_core.training.measuring import PACKAGES, p_text
from grpo_core.training.policy import BACKENDS
from grpo_core.training.publishing import is_hub_id, public_name

from . import smollm2
from .models import TINY
from .profiles import FAMILIES, PROFILES

MISSING = "not recorded"
_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc|\.post|\.dev)\d+)*(\+(cpu|cu\d+)\b)?")
SYSTEM = re.compile(r"(Linux|Windows|Darwin) (x86_64|AMD64|aarch64|arm64|ARM64)")
CARD = re.compile(r"(NVIDIA|Tesla|Quadro|GeForce|GRID|AMD)[\w .-]{0,60}")
#: Models of this course: the tiny models, a template's folder with a copy of one, and SmolLM2.
_KNOWN_MODELS = (*TINY, "tiny-model", smollm2.NAME)
#: Owners whose models are named. Any other owner may be the reader.
_PUBLISHERS = ("unsloth", "Qwen", "google", "meta-llama", "HuggingFaceTB", "LiquidAI", "mistralai", "microsoft")
#: Profiles of lessons, and config files of templates.
SETTINGS = (*PROFILES, "config", "config.cpu", "config.8gpu")


def block(report: dict) -> str:
    """The table to paste."""
    rows = [f"| {name} | {value} |" for name, value in lines(report).items()]
    return "\n".join(["| | this run |", "|---|---|", *rows])


def lines(report: dict) -> dict[str, str]:
    """The rows of the table, which are also the columns of "Run by readers" in docs/results.md."""
    machine = report.get("machine", {})
    return {
        "card": _card_text(machine, report.get("processes")),
        "system": f"{fitting(SYSTEM, machine.get('system'))}, Python {fitting(_VERSION, machine.get('python'))}",
        "profile": one_of(SETTINGS, report.get("profile")),
        "family": _family_text(report.get("family")),
        "model": _model_text(report.get("model")),
        "backend": f"{one_of(BACKENDS, report.get('backend'))}, {_bits_text(report.get('load_in_4bit'))}",
        "steps": number(report.get("steps"), "d"),
        "seconds per step": _seconds_per_step(report),
        "seconds in all": number(report.get("wall_seconds"), ".0f"),
        "peak GPU memory": _peak_text(machine),
        "before": rates_text(report.get("before")),
        "after": rates_text(report.get("after")),
        "paired test": p_text(report["p_value"]) if is_number(report.get("p_value")) else MISSING,
        "merged": rates_text(report["merged"]) if "merged" in report else "no",
        "packages": _packages_text(report.get("versions", {})),
    }


def is_number(value: object) -> bool:
    """Whether a value is a number, and not a bool."""
    return type(value) in (int, float)


def number(value: object, spec: str) -> str:
    """A formatted number, or "not recorded".

    >>> number(36.24, ".0f"), number(None, ".0f")
    ('36', 'not recorded')
    """
    return format(value, spec) if is_number(value) else MISSING


def fitting(pattern: re.Pattern, text: object) -> str:
    """The beginning of a text that matches a pattern.

    >>> fitting(_VERSION, "2.13.0+cu128"), fitting(_VERSION, "5.18.0.dev0+alice"), fitting(_VERSION, "/home/alice")
    ('2.13.0+cu128', '5.18.0.dev0', 'not recorded')
    """
    found = pattern.match(str(text))
    return found[0] if found else MISSING


def one_of(known: tuple[str, ...], name: object) -> str:
    """A name if it is known, else "another".

    >>> one_of(SETTINGS, "t4"), one_of(SETTINGS, "alices-config"), one_of(SETTINGS, "")
    ('t4', 'another', 'not recorded')
    """
    if name in (None, ""):
        return MISSING
    return str(name) if name in known else "another"


def _family_text(family: object) -> str:
    """The family; a template reports the model type instead, which begins with the family.

    >>> _family_text("qwen"), _family_text("gemma3_text"), _family_text("llama")
    ('qwen', 'gemma', 'another')
    """
    begins = [name for name in FAMILIES if str(family).startswith(name)]
    return one_of(FAMILIES, begins[0] if begins else family)


def _model_text(model: object) -> str:
    """The name of a tiny or well-known model; of any other model, only its kind.

    >>> _model_text("unsloth/Qwen2.5-1.5B-Instruct"), _model_text("./tiny-model"), _model_text("/home/alice/secret")
    ('unsloth/Qwen2.5-1.5B-Instruct', 'tiny-model', 'a local folder')
    >>> _model_text("alice/my-model")
    'another model'
    """
    if model is None:
        return MISSING
    name = public_name(str(model))
    if name in _KNOWN_MODELS:
        return name
    if not is_hub_id(name):
        return "a local folder"
    return name if name.split("/")[0] in _PUBLISHERS else "another model"


def _bits_text(in_4bit: object) -> str:
    """How the base model was loaded."""
    return {True: "base in 4 bits", False: "base in 16 or 32 bits"}.get(in_4bit, f"4 bits {MISSING}")


def _seconds_per_step(report: dict) -> str:
    """Seconds of training divided by steps.

    >>> _seconds_per_step({"train_seconds": 36.0, "steps": 60})
    '0.60'
    """
    if report.get("resumed_from"):  # the seconds are those since then, and the steps all
        return MISSING
    seconds, steps = report.get("train_seconds"), report.get("steps")
    return number(seconds / steps, ".2f") if is_number(seconds) and is_number(steps) and steps else MISSING


def _card_text(machine: dict, processes: int | None = None) -> str:
    """The GPU and its memory, or the number of CPU cores; then the number of training processes.

    >>> _card_text({"gpu": {"name": "Tesla T4", "memory_gib": 14.6}}), _card_text({"gpu": None, "cores": 2}, 4)
    ('Tesla T4, 14.6 GiB', 'CPU, 2 cores; 4 processes')
    """
    if "gpu" not in machine:
        return MISSING
    several = f"; {processes} processes" if is_number(processes) else ""
    if gpu := machine["gpu"]:
        name = str(gpu.get("name"))
        known = name if CARD.fullmatch(name) else "another card"
        return f"{known}, {number(gpu.get('memory_gib'), '.1f')} GiB{several}"
    return f"CPU, {number(machine.get('cores'), 'd')} cores{several}"


def _peak_text(machine: dict) -> str:
    """The most GPU memory that torch reserved."""
    if "gpu" not in machine:
        return MISSING
    return f"{number(machine['gpu'].get('peak_gib'), '.2f')} GiB" if machine["gpu"] else "no GPU used"


def rates_text(rates: dict | None) -> str:
    """One row of the before/after table."""
    if not rates:
        return MISSING
    low, high = (number(end, ".3f") for end in rates["accuracy_ci95"])
    form, accuracy, greedy = (number(rates[key], ".3f") for key in ("format_rate", "accuracy", "greedy_accuracy"))
    return f"format {form}, accuracy {accuracy} ({low} to {high}), greedy {greedy}, of {number(rates['n'], 'd')}"


def _packages_text(versions: dict) -> str:
    """The packages that affect a run, with their versions."""
    known = [f"{name} {fitting(_VERSION, versions[name])}" for name in PACKAGES if name in versions]
    return ", ".join(known) or MISSING


def where_to_paste() -> str:
    """The issue form's address, if the course's public address is set."""
    urls = metadata.metadata("grpo_utils").get_all("Project-URL") or []
    [address] = [url.removeprefix("Repository, ") for url in urls if url.startswith("Repository, ")] or [""]
    is_set = re.fullmatch(r"https://github\.com/[\w.-]+/[\w.-]+", address)
    return f"{address}/issues/new?template=run-report.yml" if is_set else 'your repository\'s issue form "Share a run".'
