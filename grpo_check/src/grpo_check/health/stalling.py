"""A watchdog for steps that do not finish. It prints where the process is, once per stall, and stops nothing."""

import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from statistics import median

from . import limits

#: Steps to wait for before the usual duration is known; the first ones compile code and fill caches.
FIRST_STEPS = 3

#: Innermost calls that are printed; the file has all of them.
_INNERMOST = 12


class Watchdog:
    """Watch from another thread whether steps finish, and call ``say`` once per stall.

    The watchdog starts after the first few steps. It stops with `stop`, or when the trainer's ``train()`` has returned
    or raised. One thread of Python code can block all others (a regular expression does), so C code also writes the
    stacks to ``page``, a little later and without a message.

    Args:
        say: called in the watchdog's thread with a message, the innermost calls of the training thread, and all stacks.
        page: the file for stacks when no Python code can run.
    """

    def __init__(self, say: Callable[[str, str, str], None], page: Path):
        self.say, self.page, self.file = say, page, None
        self.seconds: list[float] = []  # of the steps so far
        self.longest_stall = 0.0
        self.began: float | None = None  # start of the current step
        self.told = False
        self.ended, self.trained_in = threading.Event(), threading.get_ident()

    def step_began(self) -> None:
        """Start timing. Work between two steps (evaluation, a checkpoint, samples) is not timed."""
        self.began = time.monotonic()
        if self.file:
            faulthandler.dump_traceback_later(2 * self.patience(), file=self.file)

    def step_ended(self) -> None:
        """Stop timing. A stalled step counts too, so that patience adapts to slower steps."""
        if self.began is not None:
            self.seconds = [*self.seconds[-99:], time.monotonic() - self.began]
        self.began, self.told = None, False
        if self.file:
            faulthandler.cancel_dump_traceback_later()
        elif len(self.seconds) == FIRST_STEPS:
            self.page.parent.mkdir(parents=True, exist_ok=True)
            self.file = self.page.open("a", encoding="utf-8")
            threading.Thread(target=self._watch, name="health-watchdog", daemon=True).start()

    def patience(self) -> float:
        """Seconds after which a step counts as stalled."""
        return max(limits.STALLED_SECONDS, limits.STALLED * median(self.seconds), 2 * max(self.seconds))

    def stop(self) -> None:
        """Stop watching."""
        self.ended.set()
        file, self.file = self.file, None
        if file:
            faulthandler.cancel_dump_traceback_later()
            file.close()

    def _watch(self) -> None:
        while not self.ended.wait(min(1.0, limits.STALLED_SECONDS / 4)):
            began = self.began  # the other thread may finish the step meanwhile
            if not self._is_training():
                self.stop()
            elif began is not None and not self.told and time.monotonic() - began > self.patience():
                self._tell(time.monotonic() - began)

    def _is_training(self) -> bool:
        """Whether the trainer's ``train`` is still on the stack of its thread."""
        from transformers import Trainer

        frame = sys._current_frames().get(self.trained_in)
        return any(code.f_code is Trainer.train.__code__ for code, _ in traceback.walk_stack(frame)) if frame else False

    def _tell(self, waited: float) -> None:
        self.told, self.longest_stall = True, max(self.longest_stall, waited)
        stacks = {ident: traceback.format_stack(frame) for ident, frame in sys._current_frames().items()}
        usual = f"A step usually takes {median(self.seconds):.3g}"
        self.say(
            f"stalled: the current step has run for {waited:.0f} seconds. {usual}. Nothing was stopped.",
            "".join(stacks[self.trained_in][-_INNERMOST:]),  # the most recent call last
            "\n".join(f"thread {ident}:\n{''.join(calls)}" for ident, calls in stacks.items()),
        )
