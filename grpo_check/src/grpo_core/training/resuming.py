"""Train from a checkpoint to the last step, also where transformers alone would lose the adapter."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .checkpoints import newest_checkpoint

if TYPE_CHECKING:
    from trl import GRPOTrainer


def train_or_resume(trainer: "GRPOTrainer", say: Callable[[str], None] = print) -> Path | None:
    """Train to the last step, from the newest complete checkpoint in the run's ``output_dir`` if there is one.

    `resume` explains what ``trainer.train(resume_from_checkpoint=True)`` loses.

    Returns:
        The checkpoint that it resumed from; None if the run started at step 0.
    """
    checkpoint = newest_checkpoint(trainer.args.output_dir, say)
    if checkpoint and is_last(trainer, checkpoint):
        say(f"{checkpoint.name}: all steps were done; it is loaded, and nothing is trained.")
    resume(trainer, checkpoint)
    return checkpoint


def resume(trainer: "GRPOTrainer", checkpoint: Path | None) -> float:
    """Train to the last step, from a checkpoint if there is one; return the seconds.

    ``trainer.train(resume_from_checkpoint=True)`` **loses the adapter** if ``beta`` is above zero: TRL then keeps a
    second adapter ("ref") in a subfolder of the checkpoint, and transformers 5.17 loads only what is in subfolders.
    Build the trainer with the policy as it was when the run began, because the reference is copied from it.

    A checkpoint of the last step is loaded without training; transformers would train one more step.
    """
    if checkpoint and (checkpoint / "adapter_model.safetensors").exists():
        load_adapter(trainer.model, checkpoint)
    if checkpoint and is_last(trainer, checkpoint):
        load_last(trainer, checkpoint)
        return 0.0
    return trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None).metrics["train_runtime"]


def is_last(trainer: "GRPOTrainer", checkpoint: Path) -> bool:
    """Whether no step is left. A run that counts epochs keeps its number of steps unless the epochs were raised."""
    state, arguments = state_of(checkpoint), trainer.args
    if arguments.max_steps > 0:
        return state["global_step"] >= arguments.max_steps
    return state["global_step"] >= state["max_steps"] and arguments.num_train_epochs <= state["num_train_epochs"]


def load_last(trainer: "GRPOTrainer", checkpoint: Path) -> None:
    """Restore the weights (unless an adapter, which is already loaded) and the log after the last step."""
    from transformers import TrainerState

    if not (checkpoint / "adapter_model.safetensors").exists():
        trainer._load_from_checkpoint(str(checkpoint))  # in one file or in shards
    trainer.state = TrainerState.load_from_json(str(checkpoint / "trainer_state.json"))


def load_adapter(policy: object, folder: str | Path) -> None:
    """Load saved adapter weights into the policy's adapter, which has the same shape."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(policy, load_peft_weights(str(folder), device=str(policy.device)))


def state_of(checkpoint: Path) -> dict:
    """The trainer's saved state."""
    return json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
