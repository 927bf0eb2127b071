# Generated from grpo_utils 0.1.0, grpo_utils/run/training.py; the same in every template.
"""TRL's trainer with one line per log entry; training that Ctrl-C, a reward or a full disk ends without loss."""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from accelerate.utils import gather_object
from datasets import Dataset
from safetensors import SafetensorError
from transformers import TrainerCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback
from trl import GRPOTrainer

from .policy import keep_trainable_fp32
from .scoring import RewardError, guarded


class Lines(TrainerCallback):
    """One line per log entry: the rewards, the share of groups that taught nothing, and how tools were called."""

    def on_log(self, args, state, control, logs=None, **kwargs):
        if logs and "reward" in logs and state.is_world_process_zero:
            found = {k.split("/")[1]: v for k, v in logs.items() if k.startswith("rewards/") and k.endswith("/mean")}
            means = "  ".join(f"{name} {shown(value)}" for name, value in found.items())
            step, reward, tied = state.global_step, shown(logs["reward"]), shown(logs["frac_reward_zero_std"])
            tools = "".join(f"  {k.split('/')[1]} {shown(v)}" for k, v in logs.items() if k.startswith("tools/"))
            print(f"step {step:4}  reward {reward}  {means}  tied {tied}{tools}", flush=True)


def shown(value: float | None) -> str:
    """TRL logs None where no completion got a number."""
    return "none" if value is None else f"{value:.2f}"


class StopOnce(TrainerCallback):
    """Ctrl-C ends the step, saves a checkpoint and stops; a second Ctrl-C stops at once."""

    asked = False

    def on_train_begin(self, args, state, control, **kwargs):
        self.before = signal.signal(signal.SIGINT, self.ask)

    def ask(self, number, frame):
        """Remember that Ctrl-C was pressed."""
        print("\nStopping after this step (Ctrl-C again: at once) ...", flush=True)
        self.asked = True
        signal.signal(signal.SIGINT, self.before)

    def on_step_end(self, args, state, control, **kwargs):
        if any(gather_object([self.asked])):  # of several processes all stop after the same step
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args, state, control, **kwargs):
        signal.signal(signal.SIGINT, self.before)


class Clock(TrainerCallback):
    """Count the seconds of a run over all its pieces: each checkpoint knows those that led to it."""

    def __init__(self, checkpoint: Path | None):
        self.before = seconds_of(checkpoint) if checkpoint else 0.0

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()

    def on_step_end(self, args, state, control, **kwargs):
        state.stateful_callbacks["Clock"] = {"seconds": self.before + time.perf_counter() - self.started}


def seconds_of(checkpoint: Path) -> float:
    """The seconds of training that led to a checkpoint."""
    return state_of(checkpoint)["stateful_callbacks"].get("Clock", {"seconds": 0.0})["seconds"]


def state_of(checkpoint: Path) -> dict:
    """What the trainer wrote about itself."""
    return json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))


def short_enough(rows: Dataset, tokenizer: object, longest: int, **template: object) -> Dataset:
    """The rows whose prompt has at most ``longest`` tokens: TRL never cuts a prompt. ``template``: its tools, say."""

    def fits(row: dict) -> bool:
        made = tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=True, **template)
        return len(made["input_ids"]) <= longest

    kept = rows.filter(fits)
    print(f"{len(kept)} of {len(rows)} prompts have at most {longest} tokens.")
    if not len(kept):
        raise SystemExit("Error: no prompt is left; raise max_prompt_tokens.")
    return kept


def build_trainer(
    policy: object, tokenizer: object, rows: Dataset, rewards: dict[Callable, float], parsed: tuple, **more: object
) -> GRPOTrainer:
    """The trainer of one run; ``rewards`` has each reward with its weight, ``parsed`` is what `start.parse` returns.

    ``more`` goes to TRL (tools, peft_config).
    """
    run, training, model = parsed
    training.reward_weights, functions = list(rewards.values()), [guarded(reward) for reward in rewards]
    if run.reward_model:  # TRL loads it, and calls it like the functions
        training.reward_weights.append(run.reward_model_weight)
        functions.append(run.reward_model)
    given = dict(reward_funcs=functions, callbacks=[Lines()]) | more
    trainer = GRPOTrainer(model=policy, processing_class=tokenizer, args=training, train_dataset=rows, **given)
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    if model.use_peft and not training.deepspeed_plugin:  # ZeRO-3 needs the adapter in its base's type
        keep_trainable_fp32(trainer.model)
    return trainer


def train(trainer: GRPOTrainer, checkpoint: Path | None) -> float:
    """Train to the end, from a checkpoint if there is one; the seconds that it took, also before the checkpoint."""
    stop, clock = StopOnce(), Clock(checkpoint)
    trainer.add_callback(stop)
    trainer.add_callback(clock)
    with explained(trainer.args.output_dir):
        seconds = resume(trainer, checkpoint)
    note_ties(trainer)
    if stop.asked:
        raise SystemExit(f"Stopped after step {trainer.state.global_step}. The same command goes on from there.")
    return clock.before + seconds


@contextmanager
def explained(folder: str | Path) -> Iterator[None]:
    """Say what to do about a reward that fails, and about a disk that is full."""
    try:
        yield
    except RewardError as error:
        fix = "Fix rewards.py and run again with --accept_changes true: checkpoints stay."
        raise SystemExit(f"Error: {error}\n{fix}") from None
    except (OSError, RuntimeError, SafetensorError) as error:
        if shutil.disk_usage(folder).free > 50 << 20:
            raise
        raise SystemExit(f"Error: the disk is full ({error}). Make room; the same command goes on.") from error


def save(trainer: GRPOTrainer, folder: Path) -> None:
    """Save the policy (of an adapter the adapter alone) and its tokenizer."""
    with explained(trainer.args.output_dir):
        trainer.save_model(folder)


def resume(trainer: GRPOTrainer, checkpoint: Path | None) -> float:
    """Train to the last step, from a checkpoint if there is one; the seconds that it took.

    ``trainer.train(resume_from_checkpoint=True)`` **loses the adapter** where ``beta`` is above zero: TRL then keeps
    a second adapter ("ref"), which is saved in a folder below the checkpoint, and transformers 5.17 loads what lies in
    such folders and nothing else. Build the trainer with the policy as it was when the run began: the reference is
    copied from it.

    A checkpoint of the last step is loaded and not trained; transformers would train one step more.
    """
    if checkpoint and (checkpoint / "adapter_model.safetensors").exists():
        load_adapter(trainer.model, checkpoint)
    if checkpoint and is_last(trainer, checkpoint):
        load_last(trainer, checkpoint)
        return 0.0
    return trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None).metrics["train_runtime"]


def is_last(trainer: GRPOTrainer, checkpoint: Path) -> bool:
    """Whether no step is left. A run that counts epochs ends where it was begun to end, unless they were raised."""
    state, arguments = state_of(checkpoint), trainer.args
    if arguments.max_steps > 0:
        return state["global_step"] >= arguments.max_steps
    return state["global_step"] >= state["max_steps"] and arguments.num_train_epochs <= state["num_train_epochs"]


def load_last(trainer: GRPOTrainer, checkpoint: Path) -> None:
    """Leave the trainer as it was after its last step: the weights (an adapter's are loaded before) and the log."""
    from transformers import TrainerState

    if not (checkpoint / "adapter_model.safetensors").exists():
        trainer._load_from_checkpoint(str(checkpoint))  # whole models, and those saved in parts
    trainer.state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))


def load_adapter(policy: object, folder: str | Path) -> None:
    """Put the saved weights of an adapter into the policy's own, of the same shape."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(policy, load_peft_weights(str(folder), device=str(policy.device)))


def note_ties(trainer: GRPOTrainer) -> None:
    """Say so if next to nothing could be learned: a group whose completions all earn the same teaches nothing."""
    tied = [entry["frac_reward_zero_std"] for entry in trainer.state.log_history if "frac_reward_zero_std" in entry]
    if tied and sum(tied) / len(tied) > 0.95:
        print(f"Note: in {sum(tied) / len(tied):.0%} of the groups no reward differed, so next to nothing was learned.")
        print("Use easier rows, a model that is right now and then, or a reward with a slope.")
