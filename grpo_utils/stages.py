"""Several training runs in a row that carry one adapter; each can be cut off, and is resumed.

    stages = [
        Stage("format", [strict_format_reward], [1.0], steps=20, rows=rows),
        Stage("correctness", *math_rewards(), steps=20, rows=rows),
    ]
    logs = run_stages(policy, tokenizer, stages, "outputs/stages", profile=profile)

    outputs/stages/
        1-format/
            start/               the adapter as the stage began with it
            settings.json        what it was trained with
            checkpoint-10/ …     the newest two
            adapter/             the adapter as the stage left it
            trainer_state.json   its log
            finished.json        written last: the stage is done
        2-correctness/ …

Run it again with the same plan and folder: finished stages are skipped, an unfinished one is resumed from
its newest complete checkpoint. **What is carried from stage to stage is the adapter and nothing else**: the
optimizer's state, the learning-rate schedule and the log are new in each stage. With ``beta`` above zero
the reference is the policy as it was when the stage began.
"""

import functools
import json
import re
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING

from .arguments import training_arguments
from .errors import CourseError
from .profiles import Profile
from .run.folder import FREE, FREE_STARTS, checkpoint_step, is_broken, newest_checkpoint, settings_changed, write_mark

if TYPE_CHECKING:
    from datasets import Dataset
    from peft import PeftModel
    from transformers import PreTrainedTokenizerBase, Trainer

#: Arguments that a stage cannot override, and what sets them. It is saved by steps, with all that resuming needs.
OWN = {
    "max_steps": "steps",
    "reward_weights": "weights",
    "output_dir": "the folder of run_stages",
    "save_strategy": "save_every of run_stages",
    "save_only_model": "run_stages",
}

#: Said where the model differs.
MOVED = (
    " (A model on disk is known by its path. If it was merely moved, write the new path into settings.json of each "
    "stage.)"
)

FINISHED = "finished.json"
STATE = "trainer_state.json"
SETTINGS = "settings.json"


@dataclass(frozen=True)
class Stage:
    """One training run of a plan.

    Attributes:
        name: short, of letters, digits, ``_`` and ``-``: it becomes a folder.
        rewards, weights: as many weights as reward functions.
        steps: optimizer steps.
        rows: the prompts, with the columns that the rewards need.
        overrides: of `training_arguments`, for example ``{"learning_rate": 5e-4}``.
    """

    name: str
    rewards: Sequence[Callable]
    weights: Sequence[float]
    steps: int
    rows: "Dataset"
    overrides: dict = field(default_factory=dict)


def check_stages(stages: Sequence[Stage]) -> None:
    """Raise a CourseError at the first mistake in a plan, before anything is loaded or trained.

    >>> check_stages([])
    Traceback (most recent call last):
    ...
    grpo_utils.errors.CourseError: There are no stages to train. Give at least one Stage.
    >>> check_stages([Stage("form", [len], [1.0, 2.0], 5, rows=[])])
    Traceback (most recent call last):
    ...
    grpo_utils.errors.CourseError: Stage 'form' has 1 rewards and 2 weights. Give one weight for each reward.
    """
    if not stages:
        raise CourseError("There are no stages to train. Give at least one Stage.")
    names = [stage.name for stage in stages]
    for stage in stages:
        _check_stage(stage)
        if names.count(stage.name) > 1:
            raise CourseError(f"Two stages are called {stage.name!r}. Give each a name of its own: it is a folder.")


def _check_stage(stage: Stage) -> None:
    rewards, weights = len(stage.rewards), len(stage.weights)
    mistakes = [
        (name in stage.overrides, f"overrides {name!r}, which is set by {own}. Leave it out.")
        for name, own in OWN.items()
    ]
    mistakes += [
        (not re.fullmatch(r"[\w-]+", stage.name), "becomes a folder: use only letters, digits, '_' and '-'."),
        (not rewards, "has no rewards. Give at least one reward function."),
        (rewards != weights, f"has {rewards} rewards and {weights} weights. Give one weight for each reward."),
        (stage.steps < 1, f"has steps={stage.steps}. Give at least 1, or leave the stage out."),
        (not len(stage.rows), "has no rows to train on."),
    ]
    for wrong, said in mistakes:
        if wrong:
            raise CourseError(f"Stage {stage.name!r} {said}")


def run_stages(
    policy: "PeftModel",
    tokenizer: "PreTrainedTokenizerBase",
    stages: Sequence[Stage],
    folder: str | Path,
    *,
    profile: Profile,
    seed: int = 0,
    save_every: int = 10,
    callbacks: Callable[[], list] = list,
    say: Callable[[str], None] = print,
) -> dict[str, list[dict]]:
    """Train the stages one after the other, or resume what an earlier call left unfinished; their logs by name.

    ``policy`` ends with the adapter of the last stage, whatever was trained now or before. Stage number
    ``i`` (from 0) has the seed ``seed + 1000 * i``, so that no two see the same rows in the same order.

    Args:
        policy: with a fresh adapter; what it holds matters only when the first stage begins.
        save_every: optimizer steps between checkpoints; the newest two are kept.
        callbacks: makes the callbacks of one stage; it is called once for each.
        say: is called with what is skipped, resumed or begun.

    Raises:
        CourseError: a mistake in the plan (see `check_stages`), a policy without an adapter, a folder that was begun
            with another plan (it names what differs), or a stage that a callback stopped before its last step.
    """
    check_stages(stages)
    _check_adapter(policy)
    folder = Path(folder)
    planned = [_arguments(stage, i, folder, profile, seed, save_every) for i, stage in enumerate(stages)]
    _check_folder(folder, [Path(arguments["output_dir"]).name for arguments in planned])
    for stage, arguments in zip(stages, planned, strict=True):
        _check_same_settings(Path(arguments["output_dir"]), _settings(policy, stage, arguments))
    logs = {}
    for stage, arguments in zip(stages, planned, strict=True):
        logs[stage.name] = _run_stage(policy, tokenizer, stage, arguments, callbacks, say)
    return logs


def _check_adapter(policy: "PeftModel") -> None:
    from peft import PeftModel

    if not isinstance(policy, PeftModel):
        raise CourseError(
            f"run_stages carries an adapter from stage to stage, and this {type(policy).__name__} has none. "
            "Load it with load_policy(…), without full_finetuning."
        )


def _arguments(stage: Stage, index: int, folder: Path, profile: Profile, seed: int, save_every: int) -> dict:
    """The arguments of a stage's `GRPOConfig`."""
    usual = {
        "output_dir": str(folder / f"{index + 1}-{stage.name}"),
        "max_steps": stage.steps,
        "reward_weights": list(stage.weights),
        "seed": seed + 1000 * index,
        "save_strategy": "steps",
        "save_steps": save_every,
        "save_total_limit": 2,  # should the newest be cut off, there is one before it
    }
    arguments = training_arguments(profile, **{**usual, **stage.overrides})
    check_save_steps(arguments)
    return arguments


def check_save_steps(arguments: dict) -> None:
    """Raise a CourseError if a checkpoint would fall between two uses of one batch of completions.

    A checkpoint does not hold completions: a run that resumes samples new ones. So it continues exactly only from
    a step at which new ones were due anyway.

    >>> check_save_steps(dict(save_steps=5, steps_per_generation=1, gradient_accumulation_steps=1, num_iterations=2))
    Traceback (most recent call last):
    ...
    grpo_utils.errors.CourseError: save_every=5, but each batch of completions serves 2 steps, and a run resumed in between is not the unbroken one. Use a multiple of 2.
    """  # noqa: E501
    batches, uses = arguments["gradient_accumulation_steps"], arguments["steps_per_generation"]
    uses *= arguments["num_iterations"]
    steps = uses // gcd(uses, batches)
    if arguments["save_steps"] % steps:
        raise CourseError(
            f"save_every={arguments['save_steps']}, but each batch of completions serves {steps} steps, and a run "
            f"resumed in between is not the unbroken one. Use a multiple of {steps}."
        )


def _check_folder(folder: Path, names: list[str]) -> None:
    """Raise a CourseError if the folder holds other stages, or a later one was begun before an earlier one ended."""
    others = [path.parent.name for path in sorted(folder.glob("*/" + SETTINGS)) if path.parent.name not in names]
    if others:
        raise CourseError(
            f"{str(folder)!r} holds the stage {others[0]!r}, and this plan has {', '.join(names)}. "
            "Take the plan that the folder was begun with, or give this one a folder of its own."
        )
    for earlier, later in pairwise(names):
        if (folder / later / SETTINGS).exists() and not (folder / earlier / FINISHED).exists():
            raise CourseError(
                f"In {str(folder)!r} the stage {later!r} was begun, but {earlier!r} before it is not finished, so "
                f"{later!r} started from an adapter that is not there. Delete {later!r}, or take a new folder."
            )


def _settings(policy: "PeftModel", stage: Stage, arguments: dict) -> dict:
    """What decides a stage's result, flat and fit for JSON: no code of a reward, and nothing of files and logs."""
    lora = policy.peft_config["default"]
    rewards = [f"{weight} x {describe(f)}" for f, weight in zip(stage.rewards, stage.weights, strict=True)]
    frozen = {str(p.dtype).removeprefix("torch.") for p in policy.parameters() if not p.requires_grad}
    settings = {
        "model": lora.base_model_name_or_path,
        "model's number types": ", ".join(sorted(frozen)),  # a base in 4 bits has uint8
        "LoRA rank": lora.r,
        "LoRA alpha": lora.lora_alpha,
        "LoRA targets": sorted(lora.target_modules),
        "rewards": ", ".join(rewards),
        "rows": _fingerprint(stage.rows),
    }
    settings |= {k: value for k, value in arguments.items() if k not in FREE and not k.startswith(FREE_STARTS)}
    return json.loads(json.dumps(settings, default=str))


def describe(reward: Callable) -> str:
    """A reward with its settings, as text that is the same in every process: no addresses, and sets in order.

    >>> from grpo_utils.rewards import AdaptiveReward, correctness_reward
    >>> describe(AdaptiveReward((correctness_reward,), (2.0,), window=5))
    'AdaptiveReward(rewards=(correctness_reward,), weights=(2.0,), window=5, floor=0.25)'
    >>> describe(functools.partial(len, {"b", "a"})), describe(object())
    ("(<built-in function len>, ({'a', 'b'},), {})", '<object object>')
    """
    if isinstance(reward, functools.partial):
        reward = (reward.func, reward.args, reward.keywords)
    text = " ".join(pformat(reward, width=1).split())  # in one column pprint puts sets in order
    return re.sub(r" at 0x[0-9a-fA-F]+", "", re.sub(r"<function (\S+) at 0x[0-9a-fA-F]+>", r"\1", text))


def _fingerprint(rows: "Dataset") -> str:
    """The number of rows and a checksum of their content and order."""
    checksum = 0
    for row in rows:
        checksum = zlib.crc32(json.dumps(row, sort_keys=True, default=str).encode(), checksum)
    return f"{len(rows)} rows, checksum {checksum:08x}"


def _check_same_settings(folder: Path, settings: dict) -> None:
    """Raise a CourseError if the stage was begun with other settings."""
    if not (folder / SETTINGS).exists():
        return
    before = _read(folder / SETTINGS)
    changed = settings_changed(before, settings, {**before, **settings})
    if changed:
        moved = any(change.startswith("model was") for change in changed)
        raise CourseError(
            f"The stage in {str(folder)!r} was begun with other settings: {'; '.join(changed)}. Use those again, or "
            "give this plan a folder of its own." + (MOVED if moved else "")
        )


def _run_stage(
    policy: "PeftModel",
    tokenizer: "PreTrainedTokenizerBase",
    stage: Stage,
    arguments: dict,
    callbacks: Callable,
    say: Callable,
) -> list[dict]:
    """Skip, resume or begin one stage; its log."""
    folder = Path(arguments["output_dir"])
    if (folder / FINISHED).exists():
        say(f"Stage {folder.name}: finished before; its adapter is loaded.")
        load_saved_adapter(policy, folder / "adapter")
    else:
        _start(policy, folder, _settings(policy, stage, arguments))
        checkpoint = newest_checkpoint(folder, say)
        done = f"resumes after step {checkpoint_step(checkpoint)} of" if checkpoint else "begins,"
        say(f"Stage {folder.name}: {done} {stage.steps} steps.")
        _train(_trainer(policy, tokenizer, stage, arguments, callbacks()), stage, checkpoint)
        policy.save_pretrained(folder / "adapter")
        write_mark(folder / FINISHED, {"steps": stage.steps})  # last: whatever ends earlier leaves it unfinished
    return _read(folder / STATE)["log_history"]


def _start(policy: "PeftModel", folder: Path, settings: dict) -> None:
    """Keep the adapter as the stage begins with it; or, where it had begun before, put that one back."""
    if (folder / SETTINGS).exists():
        load_saved_adapter(policy, folder / "start")
        return
    policy.save_pretrained(folder / "start")
    write_mark(folder / SETTINGS, settings)  # after the adapter, which is whole then


def _trainer(
    policy: "PeftModel", tokenizer: "PreTrainedTokenizerBase", stage: Stage, arguments: dict, callbacks: list
) -> "Trainer":
    from trl import GRPOConfig, GRPOTrainer

    from .progress import show_progress
    from .run.policy import keep_trainable_fp32

    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**arguments),
        train_dataset=stage.rows,
        reward_funcs=list(stage.rewards),
        callbacks=callbacks,
    )
    keep_trainable_fp32(policy)
    show_progress(trainer)
    return trainer


def _train(trainer: "Trainer", stage: Stage, checkpoint: Path | None) -> None:
    """Train to the last step, keep the log, and leave the policy with its one adapter."""
    from .run.training import resume

    try:
        resume(trainer, checkpoint)
    finally:
        if "ref" in trainer.model.peft_config:  # TRL's copy of the adapter at the start, where beta is above zero
            trainer.model.delete_adapter("ref")
    trainer.save_state()
    if trainer.state.global_step < stage.steps:
        raise CourseError(
            f"Stage {stage.name!r} was stopped at step {trainer.state.global_step} of {stage.steps}, so it is not "
            "finished and no stage after it was run. What a callback said is above; fix it, and give the plan a new "
            "folder."
        )


def train_or_resume(trainer: "Trainer", say: Callable[[str], None] = print) -> Path | None:
    """Train to the last step, from the newest complete checkpoint in the run's ``output_dir`` if there is one.

    Use it instead of ``trainer.train(resume_from_checkpoint=True)``; `grpo_utils.run.training.resume` says why.

    Returns:
        The checkpoint that it resumed from; None if the run began.
    """
    from .run.training import is_last, resume

    checkpoint = newest_checkpoint(trainer.args.output_dir, say)
    if checkpoint and is_last(trainer, checkpoint):
        say(f"{checkpoint.name}: all steps were done; it is loaded, and nothing is trained.")
    resume(trainer, checkpoint)
    return checkpoint


def load_saved_adapter(policy: "PeftModel", folder: Path) -> None:
    """Put the saved weights of an adapter into the policy's own. (PEFT would look for a missing one on the Hub.)"""
    from .run.training import load_adapter

    load_adapter(policy, _whole(folder / "adapter_model.safetensors").parent)


def _read(path: Path) -> dict:
    return json.loads(_whole(path).read_text(encoding="utf-8"))


def _whole(path: Path) -> Path:
    """The path of what an earlier call wrote, if it is there and whole; on a synchronized drive it may be late."""
    if not path.exists() or is_broken(path):
        raise CourseError(
            f"{str(path)!r} is {'damaged' if path.exists() else 'missing'}: not synchronized yet, or lost. On a "
            "synchronized drive wait for it and run again. If it stays so, copy it back from elsewhere; or delete the "
            "folder of this stage, and of all stages after it, and they are trained again."
        )
    return path
