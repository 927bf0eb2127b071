"""TRL's trainer with one line per log entry; after Ctrl-C, a failed reward or a full disk, the run can resume."""

import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from pathlib import Path

from accelerate.utils import gather_object
from datasets import Dataset
from grpo_core.training.policy import keep_trainable_fp32
from grpo_core.training.resuming import resume, state_of
from grpo_core.training.time_limit import TimeLimit
from safetensors import SafetensorError
from transformers import TrainerCallback, TrainerState
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from trl import GRPOTrainer

from .folder import changes
from .scoring import RewardError, guarded
from .start import Settings


class Lines(TrainerCallback):
    """One line per log entry: rewards, share of tied groups (they teach nothing), tool metrics, and the time left."""

    def on_train_begin(self, args, state, control, **kwargs):
        self.started, self.first = time.perf_counter(), state.global_step

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "reward" in logs and state.is_world_process_zero:
            found = {k.split("/")[1]: v for k, v in logs.items() if k.startswith("rewards/") and k.endswith("/mean")}
            means = "  ".join(f"{name} {shown(value)}" for name, value in found.items())
            step, reward, tied = state.global_step, shown(logs["reward"]), shown(logs["frac_reward_zero_std"])
            tools = "".join(f"  {k.split('/')[1]} {shown(v)}" for k, v in logs.items() if k.startswith("tools/"))
            print(f"step {step:4}  reward {reward}  {means}  tied {tied}{tools}  {self.left(state)} left", flush=True)

    def left(self, state: TrainerState) -> timedelta:
        """The time that the remaining steps take, if they take as long as those since the start or the checkpoint."""
        seconds = (time.perf_counter() - self.started) / (state.global_step - self.first)
        return timedelta(seconds=round(seconds * (state.max_steps - state.global_step)))


def shown(value: float | None) -> str:
    """A metric with two decimals; TRL logs None if no completion got a score."""
    return "none" if value is None else f"{value:.2f}"


class StopOnce(TrainerCallback):
    """On Ctrl-C, finish the step, save a checkpoint and stop; on a second Ctrl-C, stop at once."""

    asked = False

    def on_train_begin(self, args, state, control, **kwargs):
        self.before = signal.signal(signal.SIGINT, self.ask)

    def ask(self, number, frame):
        """Remember that Ctrl-C was pressed."""
        print("\nStopping after this step (press Ctrl-C again to stop at once) ...", flush=True)
        self.asked = True
        signal.signal(signal.SIGINT, self.before)

    def on_step_end(self, args, state, control, **kwargs):
        if any(gather_object([self.asked])):  # all processes stop after the same step
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args, state, control, **kwargs):
        signal.signal(signal.SIGINT, self.before)


class Clock(TrainerCallback):
    """Count a run's training seconds across resumes; each checkpoint stores the seconds up to it."""

    def __init__(self, checkpoint: Path | None):
        self.before = seconds_of(checkpoint) if checkpoint else 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        state.stateful_callbacks["Clock"] = {"seconds": self.before + time.perf_counter() - self.started}


def seconds_of(checkpoint: Path) -> float:
    """The training seconds up to a checkpoint."""
    return state_of(checkpoint)["stateful_callbacks"].get("Clock", {"seconds": 0.0})["seconds"]


def build_trainer(
    policy: object, tokenizer: object, rows: Dataset, rewards: dict[Callable, float], settings: Settings, **more: object
) -> GRPOTrainer:
    """The trainer of one run; ``rewards`` maps each reward to its weight.

    ``more`` has further arguments of `GRPOTrainer` (tools, peft_config), or other callbacks than `Lines`.
    """
    run, arguments = settings.run, copy(settings.training)  # the settings stay as they were given
    arguments.reward_weights, functions = list(rewards.values()), [guarded(reward) for reward in rewards]
    if run.reward_model:  # TRL loads it and calls it like a function
        arguments.reward_weights.append(run.reward_model_weight)
        functions.append(run.reward_model)
    callbacks = [*more.pop("callbacks", [Lines()]), TimeLimit(run.max_minutes)]
    options = dict(reward_funcs=functions, callbacks=callbacks) | more
    trainer = GRPOTrainer(model=policy, processing_class=tokenizer, args=arguments, train_dataset=rows, **options)
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    if settings.model.use_peft and not arguments.deepspeed_plugin:  # ZeRO-3 needs the adapter in the base's dtype
        keep_trainable_fp32(trainer.model)
    return trainer


def train(trainer: GRPOTrainer, checkpoint: Path | None) -> float:
    """Train to the end, from a checkpoint if there is one; return the seconds, also those before the checkpoint."""
    stop, clock = StopOnce(), Clock(checkpoint)
    trainer.add_callback(stop)
    trainer.add_callback(clock)
    with explained(trainer.args.output_dir):
        seconds = resume(trainer, checkpoint)
    note_ties(trainer)
    note_dead_rewards(trainer)
    if stop.asked:
        print(
            f"Stopped after step {trainer.state.global_step}. The same command continues from there.", file=sys.stderr
        )
        raise SystemExit(130)  # as a shell reports a program that Ctrl-C ended
    return clock.before + seconds


def entries(settings: Settings, family: str) -> dict:
    """The report's entries about what was trained, and how; `outcome` has those about the training itself."""
    run, training, model = settings.run, settings.training, settings.model
    return {
        "profile": settings.profile,
        "family": family,
        "model": model.model_name_or_path,
        "backend": "unsloth" if run.use_unsloth else "transformers",
        "load_in_4bit": model.load_in_4bit,
        "seed": training.seed,
        "changes": changes(Path(training.output_dir)),
        "config": {"run": vars(run), "training": training.to_dict(), "model": vars(model)},  # to_dict hides hub_token
    }


def outcome(trainer: GRPOTrainer, seconds: float) -> dict:
    """The report's entries about the training itself, with each reward's weight; "stopped" is `TimeLimit`'s note."""
    notes = [callback.note for callback in trainer.callback_handler.callbacks if isinstance(callback, TimeLimit)]
    rewards = dict(zip(trainer.reward_func_names, trainer.args.reward_weights, strict=True))
    times = {"steps": trainer.state.global_step, "train_seconds": seconds, "stopped": "".join(notes)}
    return {"rewards": rewards, **times}


@contextmanager
def explained(folder: str | Path) -> Iterator[None]:
    """Explain what to do about a reward that fails or a full disk."""
    try:
        yield
    except RewardError as error:
        fix = "Fix rewards.py and run again with --accept_changes true; checkpoints are kept."
        raise SystemExit(f"Error: {error}\n{fix}") from None
    except (OSError, RuntimeError, SafetensorError) as error:
        if shutil.disk_usage(folder).free > 50 << 20:
            raise
        raise SystemExit(f"Error: the disk is full ({error}). Free some space; the same command continues.") from error


def save(trainer: GRPOTrainer, folder: Path) -> None:
    """Save the policy (or only its adapter) and the tokenizer."""
    with explained(trainer.args.output_dir):
        trainer.save_model(folder)
    if trainer.is_world_process_zero():
        remove_empty_card(Path(trainer.args.output_dir, "README.md"))


def remove_empty_card(card: Path) -> None:
    """Remove the card that TRL writes with each checkpoint if it names no base, as for one in a local folder."""
    if card.is_file() and "https://huggingface.co/None" in card.read_text(encoding="utf-8"):
        card.unlink()


def note_ties(trainer: GRPOTrainer) -> None:
    """Print a note if almost nothing could be learned: a group with equal rewards teaches nothing."""
    tied = [entry["frac_reward_zero_std"] for entry in trainer.state.log_history if "frac_reward_zero_std" in entry]
    if tied and sum(tied) / len(tied) > 0.95:
        print(
            f"Note: in {sum(tied) / len(tied):.0%} of the groups all rewards were equal, so almost nothing was learned."
        )
        print("Use easier rows, a model that is sometimes correct, or a reward with partial credit.")


def note_dead_rewards(trainer: GRPOTrainer) -> None:
    """Print a note for each reward that was 0 for every completion, because it may misread what it should pay for."""
    for name, weight in zip(trainer.reward_func_names, trainer.args.reward_weights, strict=True):
        keys = f"rewards/{name}/mean", f"rewards/{name}/std"
        found = [entry.get(key) for entry in trainer.state.log_history for key in keys]
        logged = [value for value in found if value is not None]  # TRL logs None for a reward without any score
        if weight and logged and not any(logged):
            print(f"Note: {name} was 0 for every completion of this run, so it taught nothing.")
            print("If you expected more, look for a completion that it should pay: grpo-check replay, or completions/.")
