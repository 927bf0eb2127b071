"""Watch a run while it trains: report each problem once, keep samples, stop a lost run."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from transformers import TrainerCallback

from ..findings import Finding
from ..logs.files import has_samples
from ..logs.log import Log
from ..prompts import lacks_template
from . import limits
from .correctness import correctness_of, is_at_top
from .diagnosis import is_early, judge, subjects_of, urgent
from .replaying import leave_page
from .samples import can_judge, choose_rows, count, distinct, keep, share, take_samples
from .stalling import Watchdog

if TYPE_CHECKING:
    from datasets import Dataset

#: Longer logs are judged as a whole only at every tenth entry, so that watching stays cheap.
_LONG_LOG = 40


class HealthCallback(TrainerCallback):
    """Diagnose a run while it trains: ``trainer.add_callback(HealthCallback(test_rows))``.

    The callback prints each verdict once. If a step does not finish, it prints where the process is and
    stops nothing. It stops a run whose weights are not finite, or whose policy moved far from the reference
    model and lost its reward. It then saves policy and log in a separate folder and leaves earlier
    checkpoints alone. Every ``every`` steps it samples answers to a few held-out prompts, and also when the
    reward reaches its top and at the end, so that a verdict knows whether answers are correct. Files in the
    run's ``output_dir``:

        health/verdicts.txt   everything that was printed
        health/samples.txt    prompts and completions, with their format and correctness
        health/samples.jsonl  the same samples for a program
        health/checks.csv     one line per check: rates, with an interval for the format rate
        health/trainer_state.json  the log, when training ends; `diagnose_file` finds it in the run's folder
        health/replay.html    the run as one page, to open in a browser or to send; it shows the completions of
                              ``GRPOConfig(log_completions=True)``, otherwise the samples
        lost-at-step-N/       policy and log of a lost run

    Set ``logging_steps=1`` in `GRPOConfig`. With more, an entry is a mean over several steps and verdicts come later.

    Args:
        rows: held-out rows with ``prompt`` and, optionally, ``answer``. The first 16 are used. Format and correctness
            are checked if the prompts ask for tags around the answer. None: no samples.
        every: optimizer steps between samples. One sampling takes about as long as sampling one training
            batch without vLLM, so 100 adds about 1% (estimated).
        correctness: names of the rewards that measure whether an answer is correct; see `diagnose`.
        stop: whether to stop a lost run.

    Raises:
        CourseError: there are no rows, or a row has no prompt.
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
        """Reset, so that the same callback can watch a second run."""
        self.folder, self.read = Path(args.output_dir) / "health", 0
        self.told = {"stalled"}  # the watchdog reports it at once; the log of a resumed run may contain an old stall
        self.log, self.was_at_top = Log(correctness=self.correctness), False
        self.lost = self.stopped = False  # lost: no checkpoint any more; stopped: it is told and saved apart
        self.sharded = bool(args.deepspeed or args.fsdp)  # no process holds the whole model
        self.watched = min((p for p in model.parameters() if p.requires_grad), key=lambda p: p.numel())
        first = next(iter(train_dataloader.dataset))["prompt"]
        if self.watchdog:
            self.watchdog.stop()
        self.watchdog = Watchdog(self._tell_stall, self.folder / "verdicts.txt")
        if lacks_template(first, processing_class, processing_class.name_or_path):
            self._note(state, string_prompts=1.0)
        if args.gradient_accumulation_steps > 1:  # the fix for NaN depends on it
            self._note(state, accumulation=float(args.gradient_accumulation_steps))
        holds_some = not state.global_step and Path(args.output_dir, "completions").is_dir()
        if holds_some and not args.log_completions:  # they are of an earlier run
            self._note(state, no_completions=1.0)

    def on_log(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Diagnose, and report new findings."""
        if not self.watchdog:  # trainer.evaluate() before train()
            return
        self._catch_up(state)
        if not self.log.entries:
            return
        if self._is_suspect(args):
            control.should_save = False  # a bad checkpoint would push out a good one
        if self._truth_wanted(state):
            self._sample(args, state, model, processing_class)
            self._catch_up(state)
        for finding in self._findings():
            subjects = subjects_of(finding, self.log)
            if not (subjects <= self.told or is_early(finding)):
                self.told |= subjects
                self._tell(state, str(finding))
            if self.stop and not self.stopped and self._is_lost(finding.code):
                self._stop(args, state, control, model, processing_class)

    def on_step_begin(self, args, state, control, **kwargs):
        """Start timing the step."""
        self.watchdog.step_began()

    def on_step_end(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Check the weights, and sample held-out prompts if it is time."""
        import torch

        with self._writing():
            self.watchdog.step_ended()
        if self.watchdog.longest_stall:  # it finished; the watchdog's thread must not write to the log
            self._note(state, stalled=self.watchdog.longest_stall)
            self.watchdog.longest_stall = 0.0
        if not torch.isfinite(self.watched).all():
            self._note(state, not_finite=1.0)
            self.lost = True
            control.should_save, control.should_log = False, True  # `on_log` reports it and stops the run
        elif self._can_sample(state) and (state.global_step % self.every == 0 or self._room_wanted()):
            self._sample(args, state, model, processing_class)

    def on_epoch_end(self, args, state, control, **kwargs):
        """Save no lost policy with ``save_strategy="epoch"``, which asks for a checkpoint after the last step."""
        if self.lost:
            control.should_save = False

    def on_train_end(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Print the final diagnosis."""
        self.watchdog.stop()
        self._catch_up(state)
        if self.log.entries:
            if self._can_judge(state) and not self.log.checked("not_finite") and not correctness_of(self.log).sampled:
                self._sample(args, state, model, processing_class)
                self._catch_up(state)
            found = "; ".join(f"{finding.code} ({finding.seen})" for finding in judge(self.log))
            self._tell(state, f"after {state.global_step} steps: {found}")
            if state.is_world_process_zero:
                self._leave_files(args, state)

    def _leave_files(self, args, state) -> None:
        """Save the log, and the page that replays the run if anything was sampled."""
        log = self.folder / "trainer_state.json"
        with self._writing():
            state.save_to_json(str(log))
            if has_samples(Path(args.output_dir), self.log):
                trouble = leave_page(args.output_dir, log, self.folder / "replay.html", self.correctness)
                if trouble:
                    self._say(f"the page that replays the run could not be written: {trouble}", "")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Write files of the diagnosis. A disk that is full ends neither the run nor loses what was trained."""
        try:
            yield
        except OSError as error:
            print(f"\nhealth: {error.filename or self.folder} could not be written: {error.strerror}", flush=True)

    def _note(self, state, **checks: float) -> None:
        """Add one of the callback's own checks to the log."""
        state.log_history.append({"step": state.global_step, **{f"health/{name}": v for name, v in checks.items()}})

    def _catch_up(self, state) -> None:
        """Read the entries logged since the last call."""
        self.log.add(state.log_history[self.read :])
        self.read = len(state.log_history)

    def _findings(self) -> list[Finding]:
        """Judge the whole log if it is short or at every tenth entry, otherwise only its last entries."""
        entries = self.log.entries
        whole = len(entries) <= _LONG_LOG or len(entries) % 10 == 0
        return judge(self.log) if whole else urgent(Log(entries[-3:], self.log.checks))

    def _is_suspect(self, args) -> bool:
        """Whether the newest entry looks like a divergence; with fp16, single skipped steps are harmless."""
        newest = self.log.entries[-1]
        broken = not math.isfinite(newest.get("loss", 0.0)) or not math.isfinite(newest.get("grad_norm", 0.0))
        return (broken and not args.fp16) or not newest.get("kl", 0.0) < limits.KL

    def _is_lost(self, code: str) -> bool:
        """Whether no further step can fix it: the weights are not finite, or the policy drifted and lost its reward.

        A policy that drifts may lose its reward only later, so this is asked at every entry.
        """
        if code != "kl_explosion":
            return code == "nan"
        rewards, drift = self.log.values("reward"), self.log.values("kl")
        return min(drift[-3:]) >= limits.KL and fmean(rewards[-3:]) < fmean(rewards[:3])

    def _can_sample(self, state) -> bool:
        return bool(self.rows and not self.sharded and state.is_world_process_zero)

    def _can_judge(self, state) -> bool:
        """Whether samples would show how many answers are correct."""
        return self._can_sample(state) and can_judge(self.rows)

    def _truth_wanted(self, state) -> bool:
        """Whether the reward is at its top for the first time, without recent samples that show correct answers."""
        young = self.log.steps < limits.FEWEST_STEPS
        if young or self.was_at_top or not self._can_judge(state) or not is_at_top(self.log):
            return False
        self.was_at_top = True
        return not correctness_of(self.log).sampled

    def _room_wanted(self) -> bool:
        """Whether to try four times the limit once, because all completions were cut off from the start."""
        clipped = self.log.clipped
        early = len(clipped) == self.log.entries_covering(limits.WINDOW)
        return early and min(clipped) >= limits.CLIPPED and not self.log.checked("ended_with_room")

    def _sample(self, args, state, model, processing_class) -> None:
        """Sample the held-out prompts. Running out of memory here stops the sampling, not the run."""
        import torch

        most, batch = args.max_completion_length or 256, args.per_device_train_batch_size
        try:
            samples = take_samples(model, processing_class, self.rows, most, batch, args.chat_template_kwargs)
            checks = {"distinct": distinct(samples), "heldout_format": share(samples, "in_form")}
            checks |= {"heldout_right": count(samples, "answers"), "heldout_sampled": float(len(samples))}
            if self._room_wanted():
                room = take_samples(model, processing_class, self.rows, 4 * most, batch, args.chat_template_kwargs)
                checks["ended_with_room"] = share(room, "ended")
        except torch.OutOfMemoryError:
            self._tell(state, "not enough memory to sample held-out prompts; training continues without samples")
            self.rows = []
            return
        with self._writing():
            keep(self.folder, state.global_step, samples)
        self._note(state, **{name: value for name, value in checks.items() if value is not None})

    def _tell_stall(self, text: str, innermost: str, stacks: str) -> None:
        """Report on every process, because the others only wait for the one that hangs."""
        where = f"Innermost calls:\n{innermost}Stacks of all threads: {self.folder / 'verdicts.txt'}"
        self._say(f"{text} {where}", f"{text}\n{stacks}\n")

    def _tell(self, state, text: str) -> None:
        if state.is_world_process_zero:
            self._say(text, f"{text}\n\n")

    def _say(self, text: str, page: str) -> None:
        print(f"\nhealth: {text}", flush=True)
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "verdicts.txt").open("a", encoding="utf-8") as file:
                file.write(page)

    def _stop(self, args, state, control, model, processing_class) -> None:
        """Save the policy and the log next to the checkpoints, and stop the run."""
        control.should_training_stop, control.should_save = True, False
        self.lost = self.stopped = True
        folder = Path(args.output_dir) / f"lost-at-step-{state.global_step}"
        if not state.is_world_process_zero:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            state.save_to_json(str(folder / "trainer_state.json"))
            if not self.sharded:
                model.save_pretrained(folder)
                processing_class.save_pretrained(folder)
            said = f"Policy and log: {folder}."
        except Exception as error:  # on a full disk, tokenizers raises this very class
            said = f"Policy or log could not be saved in {folder}: {error}."
        self._tell(state, f"training stopped. {said} Earlier checkpoints are unchanged.")
