"""Start and end a lesson's run: one call checks every setting, another writes the report."""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.errors import check_choice, check_count
from grpo_core.training.measuring import finish, mcnemar_p_value, write_report
from grpo_core.training.policy import BACKENDS

from . import smollm2
from .arguments import check_report_to
from .data.prompts import SYSTEM_PROMPT
from .install import check_gpu, check_versions
from .models import check_model, choose_model, fit_model, lora_arguments, model_path
from .profiles import FAMILIES, PROFILES, Profile, find_profile, prepare_machine
from .runs import processor_seconds, resume_run, reward_settings, seconds_since_start, start_run

if TYPE_CHECKING:
    from trl import GRPOTrainer

    from .evaluation.judging import Evaluation


@dataclass(frozen=True)
class Setup:
    """What `setup` found and decided.

    Attributes:
        profile: the sizes, with the reader's steps, held-out rows and bits.
        reason: why this profile was chosen.
        family, model, backend: as chosen; ``model`` is a public name.
        path: the path or hub id that the model is loaded from.
        folder: a new, empty folder, or that of the run that is continued; None for a lesson that saves nothing.
        checkpoint: where that run continues; None for a new run.
    """

    profile: Profile
    reason: str
    family: str
    model: str
    backend: str
    path: str
    folder: Path | None
    checkpoint: Path | None


def setup(
    profile: str, family: str, model: str = "", backend: str = "unsloth", bits: int = 0, steps: int = 0,
    eval_rows: int = 0, minutes: float = 0, report_to: str = "none", output_dir: str = "outputs/run",
    resume: bool = False,
) -> Setup:  # fmt: skip
    """Find the machine's profile, check all settings, prepare the process, and create the run's folder.

    It prints what it found. Call it before torch and transformers are imported; 0 and "" mean the profile default.
    With ``resume``, the run in ``output_dir`` is continued. ``minutes`` is the limit of `TimeLimit`.

    Raises:
        CourseError: a setting is not valid, the model is not available, a package has an untested version, or there is
            no checkpoint to resume from.
    """
    sizes, reason = find_profile(profile)
    name = choose_model(sizes, family, model)
    sizes, warning = fit_model(sizes, name)
    check_choice("BACKEND", backend, BACKENDS)
    check_choice("BASE_BITS", bits, (0, 4, 16))
    check_count("STEPS", steps)
    check_count("EVAL_ROWS", eval_rows)
    check_count("MINUTES", minutes, "no limit")
    check_report_to(report_to)
    own = dict(steps=steps, eval_rows=eval_rows, load_in_4bit=bits == 4 if bits else None)
    sizes = replace(sizes, **{key: value for key, value in own.items() if value or value is False})
    prepare_machine(sizes, offline=not model)
    check_model(name)
    print(f"Profile {sizes.name}: {reason}.", f"Why: {sizes.why}.", f"Model: {name}", sep="\n")
    print(*([warning] if warning else []), f"Versions: {check_versions(backend)}", sep="\n")
    print(f"Device: {check_gpu(sizes)}")
    if resume:
        folder, checkpoint = resume_run(output_dir)
        note = f"The run in {folder} continues from {checkpoint.name}."
    else:
        (folder, note), checkpoint = start_run(output_dir, model), None
    own = steps or eval_rows or model
    print(
        note, f"Time for the whole lesson: {'not estimated for these settings' if own else sizes.expected}.", sep="\n"
    )
    if sizes.name != "cpu":
        limit = f"Training stops before a step that would end after {minutes:g} minutes" if minutes else "No time limit"
        print(f"{limit} (MINUTES). The first step takes longer, because it compiles the model.")
        print("To shorten the lesson, lower MINUTES, STEPS or EVAL_ROWS.")
    return Setup(sizes, reason, family, name, backend, model_path(name), folder, checkpoint)


@dataclass(frozen=True)
class TinySetup(Setup):
    """What `setup_tiny` found and decided: a `Setup` of the ``cpu`` profile, plus:

    Attributes:
        steps: optimizer steps of one training run; 0 for a lesson that does not train.
        machine: the profile of the reader's own machine.
    """

    steps: int
    machine: Profile


def setup_tiny(
    profile: str, family: str, steps: int = 0, default_steps: int = 0, output_dir: str = "", offline: bool = True
) -> TinySetup:
    """`setup` for a lesson that uses the tiny model on the CPU, on every machine.

    ``steps`` of 0 means ``default_steps``, which is 0 for a lesson that does not train. Call it before torch and
    transformers are imported.

    Raises:
        CourseError: a setting is not valid.
    """
    machine, reason = find_profile(profile)  # an unknown name is an error now
    check_choice("FAMILY", family, FAMILIES)
    check_count("STEPS", steps)
    sizes = PROFILES["cpu"]
    prepare_machine(sizes, offline=offline)
    model, steps = sizes.models[family], steps or default_steps
    print(f"Model: {model}, on the CPU." + (f" Steps of a training run: {steps}" if steps else ""))
    folder, note = start_run(output_dir) if output_dir else (None, "")
    print(note, end="\n" if note else "")
    return TinySetup(sizes, reason, family, model, "transformers", model_path(model), folder, None, steps, machine)


def setup_real(profile: str, model: str = smollm2.NAME, bits: int = 16, output_dir: str = "outputs/lesson05") -> Setup:
    """`setup` for a lesson that trains a real model: on the GPU if there is one, else on all cores of the CPU.

    SmolLM2 is fetched if it is missing. With ``bits`` of 16, the frozen base is in bf16, or in fp32 on a machine that
    is slow in bf16. Call it before torch and transformers are imported.

    Raises:
        CourseError: a setting is not valid, the model is not available, or too little memory is free.
    """
    machine, reason = smollm2.find_machine(profile)
    check_choice("BASE_BITS", bits, (4, 16))
    prepare_machine(machine, offline=model == smollm2.NAME, threads=os.cpu_count())
    if machine.name == "cpu":
        smollm2.check_memory()
    if model == smollm2.NAME:
        smollm2.fetch()
    check_model(model)
    dtype = smollm2.dtype_on(machine)
    sizes = replace(PROFILES["cpu"], name=machine.name, dtype=dtype, load_in_4bit=bits == 4)
    device = check_gpu(sizes)
    folder, note = start_run(output_dir, model)
    print(f"Profile {machine.name}: {reason}.", f"Model: {model}, on {device}, in {dtype}.", sep="\n")
    print(f"Base: {'4 bits' if sizes.load_in_4bit else 'not quantized'}. {note}")
    print(f"Time for the whole lesson: {_expected_time(sizes)}. To shorten it, lower EVAL_ROWS.")
    return Setup(sizes, reason, "", model, "unsloth", model_path(model), folder, None)


def _expected_time(sizes: Profile) -> str:
    """The time that a lesson with SmolLM2 takes, and how it is known."""
    if sizes.name != "cpu":
        return "15 to 25 minutes on a T4 (estimated), some of them to compile the first step"
    if sizes.dtype == "bfloat16":
        return "one to two hours on two cores (measured)"
    return f"two hours or more on two cores (estimated). {smollm2.SLOW_IN_BF16.removesuffix('.')}"


def report_run(
    run: Setup, trainer: "GRPOTrainer", before: "Evaluation", after: "Evaluation", decoding: dict,
    merged: "Evaluation | None" = None, **entries: object,
) -> None:  # fmt: skip
    """Print the before/after tables of a run and write its ``report.json``: every figure, version and setting.

    ``decoding`` has the settings that `evaluate` was called with. ``merged`` is the evaluation of the merged model,
    and ``entries`` go into the report too.
    """
    finish(
        run.folder,
        vars(before),
        vars(after),
        merged=vars(merged) if merged else None,
        profile=run.profile.name,
        family=run.family,
        model=run.model,
        backend=run.backend,
        load_in_4bit=run.profile.load_in_4bit,
        steps=trainer.state.global_step,
        seed=trainer.args.seed,
        train_seconds=next(e["train_runtime"] for e in trainer.state.log_history if "train_runtime" in e),
        wall_seconds=seconds_since_start(),
        processor_seconds=processor_seconds(),
        config=_settings(run, trainer, decoding),
        resumed_from=run.checkpoint.name if run.checkpoint else None,
        **entries,
    )


def report_merged(run: Setup, before: "Evaluation", merged: "Evaluation", difference: float) -> None:
    """Add the evaluation of the merged model to a run's ``report.json``.

    ``difference`` is the largest difference of a logit that merging made (see `check_merged`).
    """
    report = json.loads((run.folder / "report.json").read_text(encoding="utf-8"))
    times = dict(wall_seconds=seconds_since_start(), processor_seconds=processor_seconds())
    p_value = mcnemar_p_value(before.right, merged.right)
    entries = dict(merged=merged.summary(), merged_p_value=p_value, merge_difference=difference)
    write_report(run.folder, report | times | entries)


def _read_by_template(trainer: "GRPOTrainer") -> dict:
    """The ``chat_template_kwargs`` that the chat template reads; all later prompts need them as well."""
    given, template = trainer.args.chat_template_kwargs or {}, str(trainer.processing_class.chat_template)
    return {name: value for name, value in given.items() if name in template}


def _settings(run: Setup, trainer: "GRPOTrainer", decoding: dict) -> dict:
    """Everything needed to repeat a run."""
    return {
        "system_prompt": SYSTEM_PROMPT,
        "chat_template_kwargs": _read_by_template(trainer),
        "machine": run.reason,
        "profile": asdict(run.profile),
        "train_rows": len(trainer.train_dataset),
        "rewards": reward_settings(trainer.reward_funcs, trainer.args.reward_weights),
        "lora": lora_arguments(run.profile) | {"random_state": trainer.args.seed},
        "evaluation": decoding,
        "training_arguments": trainer.args.to_dict(),
    }
