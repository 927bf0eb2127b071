"""Watch a run while it trains: say once what is wrong, keep samples, stop what is lost."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import TrainerCallback

from ..findings import Finding
from ..prompts import lacks_template
from . import limits
from .diagnosis import judge
from .log import Log
from .rules import dead_rewards
from .samples import choose_rows, distinct, keep, share, take_samples
from .stalling import Watchdog

if TYPE_CHECKING:
    from datasets import Dataset

#: Logs longer than this are judged as a whole at every tenth entry only, so that watching stays cheap.
LONG = 40


class HealthCallback(TrainerCallback):
    """Diagnose a run as it goes: ``trainer.add_callback(HealthCallback(test_rows))``.

    Each verdict is printed once, and so is where the process is when a step does not end (nothing is
    stopped then). Weights that are not numbers, and a policy that ran away from its reference
    and lost its reward, stop the run; policy and log are saved in a folder of their own, and the
    checkpoints before are not touched. Every ``every`` steps a few held-out prompts are answered. Files,
    below the run's ``output_dir``:

        health/verdicts.txt   what was said
        health/samples.txt    prompts, completions, whether in form and right
        health/checks.csv     one line per check: rates, with the interval of the format rate
        lost-at-step-N/       what was saved of a lost run

    Give `GRPOConfig` ``logging_steps=1``: with more, an entry is a mean over several steps, and verdicts come later.

    Args:
        rows: held-out rows with ``prompt`` and, where there is one, ``answer``; the first 16 are answered, and the
            form is checked where the prompts ask for the course's. None: no samples.
        every: optimizer steps between samples. One sampling takes about as long as sampling one batch
            for training does without vLLM, so at 100 it adds about one percent (estimated).
        correctness: names of the rewards that measure whether an answer is right; see `diagnose`.
        stop: whether a lost run is stopped.

    Raises:
        CourseError: there are no rows, or one has no prompt.
    """

    def __init__(
        self,
        rows: "Dataset | Sequence[dict] | None" = None,
        *,
        every: int = 100,
        correctness: Sequence[str] = (),
        stop: bool = True,
    ):
        self.rows = choose_rows(rows) if rows is not None else []
        self.every, self.correctness, self.stop = every, tuple(correctness), stop
        self.watchdog: Watchdog | None = None

    def on_train_begin(self, args, state, control, model=None, processing_class=None, train_dataloader=None, **kwargs):
        """Start again, also for a second run with the same callback."""
        self.folder, self.read = Path(args.output_dir) / "health", 0
        self.told = {"stalled"}  # the watchdog says it at once; the log of a resumed run may hold an old one
        self.log = Log(truth=self.correctness)
        self.sharded = bool(args.deepspeed or args.fsdp)  # no process has the whole model
        self.watched = min((p for p in model.parameters() if p.requires_grad), key=lambda p: p.numel())
        first = next(iter(train_dataloader.dataset))["prompt"]
        if self.watchdog:
            self.watchdog.stop()
        self.watchdog = Watchdog(self._tell_stall, self.folder / "verdicts.txt")
        if lacks_template(first, processing_class, processing_class.name_or_path):
            self._note(state, string_prompts=1.0)
        if args.gradient_accumulation_steps > 1:  # what to do about NaN depends on it
            self._note(state, accumulation=float(args.gradient_accumulation_steps))

    def on_log(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Diagnose, and say what is new."""
        if not self.watchdog:  # trainer.evaluate() before train()
            return
        self._catch_up(state)
        if not self.log.entries:
            return
        if self._is_suspect(args):
            control.should_save = False  # a bad checkpoint would rotate a good one away
        for finding in self._findings():
            subjects = subjects_of(finding, self.log)
            if subjects <= self.told or is_early(finding):
                continue
            self.told |= subjects
            self._tell(state, str(finding))
            if self.stop and self._is_lost(finding.code):
                self._stop(args, state, control, model, processing_class)

    def on_step_begin(self, args, state, control, **kwargs):
        """Time the step, up to `on_step_end`."""
        self.watchdog.step_began()

    def on_step_end(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Look at the weights; every so often answer held-out prompts and check the form."""
        import torch

        if self.watchdog.longest_stall:  # it ended; the watchdog's thread must not write into the log
            self._note(state, stalled=self.watchdog.longest_stall)
        self.watchdog.step_ended()
        if not torch.isfinite(self.watched).all():
            self._note(state, not_finite=1.0)
            control.should_save, control.should_log = False, True  # `on_log` says it, and stops the run
        elif self._samples_due(state):
            self._sample(args, state, model, processing_class)

    def on_train_end(self, args, state, control, **kwargs):
        """Say how the run ended."""
        self.watchdog.stop()
        self._catch_up(state)
        if self.log.entries:
            found = "; ".join(f"{finding.code} ({finding.seen})" for finding in judge(self.log))
            self._tell(state, f"after {state.global_step} steps: {found}")

    def _note(self, state, **checks: float) -> None:
        """Add a check of the callback's own to the log."""
        state.log_history.append({"step": state.global_step, **{f"health/{name}": v for name, v in checks.items()}})

    def _catch_up(self, state) -> None:
        """Read what was logged since the last time."""
        self.log.add(state.log_history[self.read :])
        self.read = len(state.log_history)

    def _findings(self) -> list[Finding]:
        """Of the whole log while it is short, and at every tenth entry; of its end alone in between."""
        entries = self.log.entries
        whole = len(entries) <= LONG or len(entries) % 10 == 0
        return judge(self.log if whole else Log(entries[-3:], self.log.checks))

    def _is_suspect(self, args) -> bool:
        """Whether the newest entry looks like the beginning of the end; fp16 skips single steps without harm."""
        newest = self.log.entries[-1]
        broken = not math.isfinite(newest.get("loss", 0.0)) or not math.isfinite(newest.get("grad_norm", 0.0))
        return (broken and not args.fp16) or not newest.get("kl", 0.0) < limits.KL

    def _is_lost(self, code: str) -> bool:
        """What no further step can fix: weights that are not numbers, or a policy far away without its reward."""
        rewards = self.log.values("reward")
        return code == "nan" or (code == "kl_explosion" and rewards[-1] < rewards[0])

    def _samples_due(self, state) -> bool:
        due = state.global_step % self.every == 0 or self._room_wanted()
        return bool(due and self.rows and not self.sharded and state.is_world_process_zero)

    def _room_wanted(self) -> bool:
        """Once, where all is cut off from the start: would the completions end, given four times the room?"""
        clipped = self.log.values("completions/clipped_ratio")
        early = len(clipped) == math.ceil(limits.WINDOW / self.log.per_entry)
        return early and min(clipped) >= limits.CLIPPED and not self.log.checked("ended_with_room")

    def _sample(self, args, state, model, processing_class) -> None:
        """Answer the held-out prompts; running out of memory here ends the sampling and not the run."""
        import torch

        most, batch = args.max_completion_length or 256, args.per_device_train_batch_size
        try:
            samples = take_samples(model, processing_class, self.rows, most, batch, args.chat_template_kwargs)
            checks = {"distinct": distinct(samples), "heldout_format": share(samples, "in_form")}
            if self._room_wanted():
                room = take_samples(model, processing_class, self.rows, 4 * most, batch, args.chat_template_kwargs)
                checks["ended_with_room"] = share(room, "ended")
        except torch.OutOfMemoryError:
            self._tell(state, "no memory is left to sample held-out prompts; the run goes on without samples")
            self.rows = []
            return
        keep(self.folder, state.global_step, samples)
        self._note(state, **{name: value for name, value in checks.items() if value is not None})

    def _tell_stall(self, text: str, innermost: str, stacks: str) -> None:
        """On every process: of several that wait for each other, one hangs elsewhere."""
        where = f"Training is here:\n{innermost}all threads: {self.folder / 'verdicts.txt'}"
        self._say(f"{text} {where}", f"{text}\n{stacks}\n")

    def _tell(self, state, text: str) -> None:
        if state.is_world_process_zero:
            self._say(text, f"{text}\n\n")

    def _say(self, text: str, page: str) -> None:
        print(f"\nhealth: {text}", flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "verdicts.txt").open("a", encoding="utf-8") as file:
            file.write(page)

    def _stop(self, args, state, control, model, processing_class) -> None:
        """Save the policy and the log next to the checkpoints, of which none is touched, and end the run."""
        control.should_training_stop, control.should_save = True, False
        folder = Path(args.output_dir) / f"lost-at-step-{state.global_step}"
        if not state.is_world_process_zero:
            return
        folder.mkdir(parents=True, exist_ok=True)
        if not self.sharded:
            model.save_pretrained(folder)
            processing_class.save_pretrained(folder)
        state.save_to_json(str(folder / "trainer_state.json"))
        self._tell(state, f"stopped; policy and log as they were: {folder}. The checkpoints before are untouched.")


def is_early(finding: Finding) -> bool:
    """Whether nothing should be said yet; a reward that never scored is worth a word at once, others wait."""
    waits = finding.severity == "warning" and finding.code != "dead_reward"
    return waits or finding.code in ("healthy", "too_short")


def subjects_of(finding: Finding, log: Log) -> set[str]:
    """What is said once: the code; of dead rewards each by its name, since a second one may die later."""
    dead = finding.code == "dead_reward"
    return {f"{finding.code} {name}" for name in dead_rewards(log)} if dead else {finding.code}
