"""Find the model of a finished run, and load it to answer questions."""

import json
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.training.policy import load_base

from .report import read_report

if TYPE_CHECKING:
    import torch

logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # it suggests a kernel that nobody needs


def model_in(folder: Path) -> Path:
    """The folder of a model: ``folder`` itself, or the ``model`` in a run's output folder."""
    for place in (folder, folder / "model"):
        if (place / "adapter_config.json").is_file() or (place / "config.json").is_file():
            return place
    if not folder.is_dir():
        where = "" if folder.is_absolute() else f" in {Path.cwd()}"
        raise SystemExit(
            f"Error: there is no folder {folder}{where}. Start the command in the folder of your project, or "
            "name the whole path of a finished run's output_dir."
        )
    raise SystemExit(f"Error: there is no model in {folder}; name the output_dir of a finished run, or a merged model.")


def of_a_run(folder: Path) -> Path:
    """The folder of a model that has the report of its run beside it, as `train.py` leaves them."""
    model = model_in(folder)
    if model == folder and not (folder.parent / "report.json").is_file():
        raise SystemExit(
            f"Error: {folder} has a model, but no report of a run of train.py beside it. If it is from sft.py, let "
            "train.py go on from it, and name the output_dir of that run. If it is a merged model in a folder of its "
            "own, name the run."
        )
    return model


def base_of(model: Path) -> str | None:
    """The base of an adapter, as a hub id or an absolute path; None for a whole model."""
    config = model / "adapter_config.json"
    if not config.is_file():
        return None
    base = json.loads(config.read_text(encoding="utf-8"))["base_model_name_or_path"]
    if Path(base).is_absolute() and not Path(base).is_dir():
        raise SystemExit(
            f"Error: {model} is an adapter for the base model in {base}, and that folder is gone. Put it back, or "
            f"write its new absolute path or its hub id as base_model_name_or_path into {config}."
        )
    return base


def trained_in(report: dict) -> "torch.dtype":
    """The dtype in which the model of a report was trained."""
    import torch

    training = report["config"]["training"]
    return torch.bfloat16 if training["bf16"] else torch.float16 if training["fp16"] else torch.float32


def load(folder: Path) -> tuple:
    """The model in a folder, its tokenizer and the report of its run.

    It is loaded with plain transformers: an adapter in 4 bits if it was trained so, on a CPU in fp32.
    """
    import torch
    from transformers import AutoTokenizer

    model = of_a_run(folder)
    report = read_report(model.parent)
    on_gpu = torch.cuda.is_available()
    policy = load_base(
        str(model),
        dtype=trained_in(report) if on_gpu else torch.float32,
        load_in_4bit=base_of(model) is not None and report["load_in_4bit"],
        device_map={"": 0} if on_gpu else "cpu",
    )
    return policy, AutoTokenizer.from_pretrained(model), report
