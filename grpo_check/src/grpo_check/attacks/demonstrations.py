"""Show the policy what is known to be paid, so that it starts with a form that earns something.

A small model rarely finds a format by itself, and a group in which nothing is paid teaches nothing. After some steps of
supervised training on correct completions of some rows, the policy writes their form on the other rows, where it rarely
knows the answer. What the reward pays for that is what an attack looks for.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .scoring import Paid, Scorer

if TYPE_CHECKING:
    from datasets import Dataset
    from peft import PeftModel
    from transformers import PreTrainedTokenizerBase

#: Optimizer steps, and completions in each.
STEPS, BATCH = 8, 8
#: Characters of the longest completion that is shown; longer ones make every later step slower.
LONGEST = 300
#: Rows that must be left to be attacked; with fewer, the rows that were shown are attacked as well.
FEWEST_ROWS = 4


def demonstrations(scorer: Scorer) -> list[Paid]:
    """For up to half of the rows, the shortest of the best-paid correct completions that are known."""
    known = [one for one in scorer.paid if one.correct and len(one.text) <= LONGEST]
    least = min((one.score for one in scorer.paid), default=0.0)
    best = {one.row: one for one in sorted(known, key=lambda one: (one.score, -len(one.text))) if one.score > least}
    rows = len(scorer.task.rows)
    return [best[row] for row in sorted(best)][: max(rows // 2, 1)]


def rows_to_attack(rows: int, shown: Sequence[Paid]) -> list[int]:
    """The rows of which the policy has seen no answer, or all if these are too few.

    >>> rows_to_attack(6, []), rows_to_attack(2, [])
    ([0, 1, 2, 3, 4, 5], [0, 1])
    """
    left = [row for row in range(rows) if row not in {one.row for one in shown}]
    return left if len(left) >= FEWEST_ROWS else list(range(rows))


def learn(
    policy: "PeftModel", tokenizer: "PreTrainedTokenizerBase", shown: "Dataset", deadline: float, **settings: object
) -> None:
    """Some steps of TRL's supervised training on rows with a prompt and a completion, not beyond the deadline."""
    from datasets import disable_progress_bars
    from transformers import PrinterCallback, TrainerCallback
    from trl import SFTConfig, SFTTrainer

    class Deadline(TrainerCallback):
        def on_step_end(self, args: object, state: object, control: object, **rest: object) -> None:
            control.should_training_stop |= time.monotonic() > deadline

    disable_progress_bars()
    config = SFTConfig(max_steps=STEPS, per_device_train_batch_size=BATCH, max_length=None, **settings)
    trainer = SFTTrainer(policy, args=config, processing_class=tokenizer, train_dataset=shown)
    trainer.remove_callback(PrinterCallback)
    trainer.add_callback(Deadline())
    trainer.train()
