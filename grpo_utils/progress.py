"""A progress bar for GRPO training that looks the same in a terminal and in a saved notebook."""

import sys

from tqdm import tqdm
from transformers import Trainer, TrainerCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback

#: Logged metrics that the bar shows, and their short names.
SHOWN = {
    "reward": "reward",
    "rewards/correctness_reward/mean": "correct",
    "frac_reward_zero_std": "tied",
}


#: Fits 80 columns: a longer line would wrap at every refresh.
LINE = "{desc} {percentage:3.0f}%|{bar:10}| {n_fmt}/{total_fmt} {elapsed}<{remaining}{postfix}"


class ProgressBar(TrainerCallback):
    """One line: steps done, time left, and the newest rewards."""

    def __init__(self, name: str = "GRPO") -> None:
        self.name = name

    def on_train_begin(self, args, state, control, **kwargs):
        sizes = dict(total=state.max_steps, initial=state.global_step, desc=self.name)
        # The place is fixed: a bar that a stopped run left open would move this one down, a line at each refresh.
        self.bar = tqdm(**sizes, file=sys.stdout, bar_format=LINE, mininterval=1.0, position=0)

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step < state.max_steps:  # the last step's rewards are not logged yet
            self.bar.update(state.global_step - self.bar.n)

    def on_log(self, args, state, control, logs=None, **kwargs):
        # TRL logs None for a reward that scored no completion since the last log.
        shown = {name: f"{logs[key]:.2f}" for key, name in SHOWN.items() if logs.get(key) is not None}
        if shown:
            self.bar.set_postfix(shown, refresh=False)

    def on_train_end(self, args, state, control, **kwargs):
        self.bar.n = state.global_step
        self.bar.close()  # draws it a last time


def show_progress(trainer: Trainer, name: str = "GRPO") -> None:
    """Replace the trainer's log printing with one `ProgressBar`; ``name`` is the method at its beginning."""
    for callback in (PrinterCallback, ProgressCallback):
        trainer.remove_callback(callback)
    trainer.callback_handler.callbacks.insert(0, ProgressBar(name))  # it ends its line before other callbacks print
