"""Continue a run that was stopped, also where ``trainer.train(resume_from_checkpoint=True)`` would not."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from .run.checkpoints import newest_checkpoint
from .run.resuming import is_last, resume

if TYPE_CHECKING:
    from transformers import Trainer


def train_or_resume(trainer: "Trainer", say: Callable[[str], None] = print) -> Path | None:
    """Train to the last step, from the newest complete checkpoint in the run's ``output_dir`` if there is one.

    `grpo_utils.run.resuming.resume` explains what ``trainer.train(resume_from_checkpoint=True)`` loses.

    Returns:
        The checkpoint that it resumed from; None if the run started at step 0.
    """
    checkpoint = newest_checkpoint(trainer.args.output_dir, say)
    if checkpoint and is_last(trainer, checkpoint):
        say(f"{checkpoint.name}: all steps were done; it is loaded, and nothing is trained.")
    resume(trainer, checkpoint)
    return checkpoint
