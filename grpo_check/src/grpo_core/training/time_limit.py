"""Stop training by the clock, so that there is time left for the evaluation, the report and the merge."""

import time
from numbers import Real

from accelerate.utils import gather_object
from transformers import TrainerCallback


class TimeLimit(TrainerCallback):
    """Ends training before a step that would probably end later than ``minutes`` after the first began; 0: never.

    A step is expected to take as long as the one before it. The first step of a run is not taken as a measure, because
    on a GPU it also compiles the model. A run that saves checkpoints saves one more when it is stopped.

    Attributes:
        note: why training ended early, as a sentence; "" if it did not.

    >>> TimeLimit(30).note
    ''
    >>> TimeLimit(-1)
    Traceback (most recent call last):
    ...
    ValueError: the time limit is -1 minutes; it must be a number above 0, or 0 for no limit.
    """

    def __init__(self, minutes: float) -> None:
        """Check the limit; the clock starts with the training."""
        if isinstance(minutes, bool) or not isinstance(minutes, Real) or not 0 <= minutes < float("inf"):
            raise ValueError(f"the time limit is {minutes!r} minutes; it must be a number above 0, or 0 for no limit.")
        self.minutes, self.note = minutes, ""

    def on_train_begin(self, args, state, control, **kwargs):
        """Start the clock."""
        self.started = self.step_began = time.monotonic()
        self.first = state.global_step + 1

    def on_step_end(self, args, state, control, **kwargs):
        """Decide whether there is time for one more step; all processes stop after the same one."""
        if not self.minutes:
            return
        now = time.monotonic()
        seconds, self.step_began = now - self.step_began, now
        expected = 0.0 if state.global_step == self.first else seconds
        late = 60 * self.minutes < now - self.started + expected
        if any(gather_object([late])) and state.global_step < state.max_steps:
            self.note = (
                f"Training ended after {state.global_step} of {state.max_steps} steps, because the next one would have "
                f"ended later than the limit of {self.minutes:g} minutes."
            )
            control.should_training_stop = True
            control.should_save = args.save_strategy != "no"

    def on_train_end(self, args, state, control, **kwargs):
        """Say why training ended early."""
        if self.note and state.is_world_process_zero:
            print(self.note)
