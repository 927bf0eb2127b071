"""Watch a run while it trains: say once what is wrong, keep samples, stop what is lost."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import TrainerCallback

from grpo_utils.models import is_base_model

from .diagnosis import judge
from .log import Log
from .samples import asked_form, choose_rows, keep, take_samples
from .stalling import Watchdog
from .thresholds import limit
from .verdicts import Verdict

if TYPE_CHECKING:
    from datasets import Dataset

#: Logs longer than this are judged as a whole at every tenth entry only, so that watching stays cheap.
LONG = 40


class HealthCallback(TrainerCallback):
    """Diagnose a run as it goes: ``trainer.add_callback(HealthCallback(test_rows))``.

    Each verdict is printed once, and so is where the process is when a step does not end (nothing is
    stopped then). Weights that are no number, and a policy that ran away from its reference
    and lost its reward, stop the run; policy and log are saved in a folder of their own, and the
    checkpoints before are not touched. Every ``every`` steps a few held-out prompts are answered. Files,
    below the run's ``output_dir``:

        health/verdicts.txt   what was said
        health/samples.txt    prompts, completions, whether in form and right
        health/checks.csv     one line a check: rates, with the interval of the format rate
        lost-at-step-N/       what was saved of a lost run

    Give `GRPOConfig` ``logging_steps=1``: with more, an entry is a mean over several steps, and verdicts come later.

    Args:
        rows: held-out rows with ``prompt`` and, where there is one, ``answer``; None: no samples.
        every: optimizer steps between samples. One sampling takes about as long as sampling one batch
            for training does without vLLM, so that at 100 it stays below 1 % of the training.
        count: how many rows are answered each time.
        in_form: whether a completion (text) is in the asked form; if not given, the course's form is
            checked where the prompts ask for it, and none elsewhere.
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
        count: int = 16,
        in_form: Callable[[str], bool] | None = None,
        correctness: Sequence[str] = (),
        stop: bool = True,
    ):
        self.rows = choose_rows(rows, count) if rows is not None else []
        self.in_form = in_form or (asked_form(self.rows) if self.rows else None)
        self.every, self.correctness, self.stop = every, tuple(correctness), stop
        self.watchdog: Watchdog | None = None

    def on_train_begin(self, args, state, control, model=None, processing_class=None, train_dataloader=None, **kwargs):
        """Start anew, also for a second training with the same callback."""
        self.folder, self.read = Path(args.output_dir) / "health", 0
        self.told = {"stalled"}  # the watchdog says it at once; the log of a resumed run may hold an old one
        self.log = Log(truth=self.correctness)
        self.sharded = bool(args.deepspeed or args.fsdp)  # no process has the whole model
        self.watched = min((p for p in model.parameters() if p.requires_grad), key=lambda p: p.numel())
        first = next(iter(train_dataloader.dataset))["prompt"]
        if self.watchdog:
            self.watchdog.stop()
        self.watchdog = Watchdog(self._tell_stall, self.folder / "verdicts.txt")
        if is_bare_string(first, processing_class) and not is_base_model(processing_class.name_or_path):
            state.log_history.append({"step": state.global_step, "health/string_prompts": 1.0})

    def on_log(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Diagnose, and say what is new."""
        if not self.watchdog:  # trainer.evaluate() before train()
            return
        self._catch_up(state)
        if not self.log.entries:
            return
        if self._is_suspect(args):
            control.should_save = False  # a bad checkpoint would rotate a good one away
            self._note_accumulation(args, state)
        for verdict in self._verdicts():
            subjects = subjects_of(verdict)
            if subjects <= self.told or verdict.code in ("healthy", "too_short") or is_early(verdict):
                continue
            self.told |= subjects
            self._tell(state, str(verdict))
            if self.stop and self._is_lost(verdict):
                self._stop(args, state, control, model, processing_class)

    def on_step_begin(self, args, state, control, **kwargs):
        """Time the step, up to `on_step_end`."""
        self.watchdog.step_began()

    def on_step_end(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Look at the weights; every so often answer held-out prompts and check the form."""
        import torch

        self._note_stall(state)
        if not torch.isfinite(self.watched).all():
            self._note_accumulation(args, state)
            state.log_history.append({"step": state.global_step, "health/not_finite": 1.0})
            self._tell(state, "nan: a trained weight is no number any more")
            self.told.add("nan")
            control.should_save = False
            if self.stop:
                self._stop(args, state, control, model, processing_class)
        elif self.rows and not self.sharded and state.is_world_process_zero and self._sampling_due(state):
            self._sample(args, state, model, processing_class)

    def on_train_end(self, args, state, control, **kwargs):
        """Say how the run ended."""
        self.watchdog.stop()
        self._catch_up(state)
        if self.log.entries:
            self._tell(state, "at the end: " + "; ".join(f"{v.code} ({v.seen})" for v in judge(self.log)))

    def _note_stall(self, state) -> None:
        """A stall that ended belongs into the log; the watchdog's thread must not write there."""
        if self.watchdog.longest_stall:
            state.log_history.append({"step": state.global_step, "health/stalled": self.watchdog.longest_stall})
            self.watchdog.longest_stall = 0.0
        self.watchdog.step_ended()

    def _note_accumulation(self, args, state) -> None:
        """The log does not hold the accumulation, and what to do about NaN depends on it."""
        if args.gradient_accumulation_steps > 1 and not self.log.checked("health/accumulation"):
            steps = float(args.gradient_accumulation_steps)
            state.log_history.append({"step": state.global_step, "health/accumulation": steps})
            self._catch_up(state)

    def _catch_up(self, state) -> None:
        """Read what was logged since the last time."""
        self.log.add(state.log_history[self.read :])
        self.read = len(state.log_history)

    def _verdicts(self) -> list[Verdict]:
        """Of the whole log while it is short, and at every tenth entry; of its end alone in between."""
        if len(self.log) <= LONG or len(self.log) % 10 == 0:
            return judge(self.log)
        return judge(Log(self.log.entries[-3:], self.log.checks))

    def _is_suspect(self, args) -> bool:
        """Whether the newest entry looks like the beginning of the end; fp16 skips single steps without harm."""
        newest = self.log.entries[-1]
        broken = not math.isfinite(newest.get("loss", 0.0)) or not math.isfinite(newest.get("grad_norm", 0.0))
        return (broken and not args.fp16) or not newest.get("kl", 0.0) < limit("kl")

    def _is_lost(self, verdict: Verdict) -> bool:
        """What no further step can mend: weights that are none, or a policy far away without its reward."""
        rewards = self.log.values("reward")
        return verdict.code == "nan" or (verdict.code == "kl_explosion" and rewards[-1] < rewards[0])

    def _sampling_due(self, state) -> bool:
        return state.global_step % self.every == 0 or self._room_wanted()

    def _room_wanted(self) -> bool:
        """Once, where all is cut off from the start: would the completions end, given four times the room?"""
        clipped = self.log.values("completions/clipped_ratio")
        early = len(clipped) == math.ceil(limit("window") / self.log.per_entry)
        return early and min(clipped) >= limit("clipped") and not self.log.checked("health/ended_with_room")

    def _sample(self, args, state, model, processing_class) -> None:
        """Answer the held-out prompts; running out of memory here ends the sampling and not the training."""
        import torch

        most, batch, template = (
            args.max_completion_length or 256,
            args.per_device_train_batch_size,
            args.chat_template_kwargs,
        )
        how = dict(batch_size=batch, in_form=self.in_form, template=template)
        try:
            samples = take_samples(model, processing_class, self.rows, most, **how)
            entry = {"step": state.global_step, "health/distinct": samples.distinct}
            if samples.formed:
                entry["health/heldout_format"] = sum(samples.formed) / len(samples.formed)
            if self._room_wanted():
                room = take_samples(model, processing_class, self.rows, 4 * most, **how)
                entry["health/ended_with_room"] = sum(room.ended) / len(room.ended)
        except torch.OutOfMemoryError:
            self._tell(state, "no memory is left to sample held-out prompts; the training goes on without samples")
            self.rows = []
            return
        keep(self.folder, state.global_step, samples)
        state.log_history.append(entry)

    def _tell_stall(self, text: str, innermost: str, stacks: str) -> None:
        """On every process: of several that wait for each other, one hangs elsewhere."""
        print(f"\nhealth: {text} Training is here:\n{innermost}all threads: {self.folder / 'verdicts.txt'}", flush=True)
        with (self.folder / "verdicts.txt").open("a", encoding="utf-8") as page:
            page.write(f"{text}\n{stacks}\n")

    def _tell(self, state, text: str) -> None:
        if not state.is_world_process_zero:
            return
        print(f"\nhealth: {text}", flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "verdicts.txt").open("a", encoding="utf-8") as page:
            page.write(text + "\n\n")

    def _stop(self, args, state, control, model, processing_class) -> None:
        """Save the policy and the log beside the checkpoints, of which none is touched, and end the training."""
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


def is_early(verdict: Verdict) -> bool:
    """Whether nothing should be said yet; a reward that never scored is worth a word at once, others wait."""
    return verdict.quiet and verdict.code != "dead_reward"


def subjects_of(verdict: Verdict) -> set[str]:
    """What is told once: the code; of dead rewards each by its name, since a second one may die later.

    >>> sorted(subjects_of(Verdict("dead_reward", "form = 0", {"form": 0.0}, 10)))
    ['dead_reward form']
    """
    return {f"{verdict.code} {name}" for name in verdict.numbers} if verdict.code == "dead_reward" else {verdict.code}


def is_bare_string(prompt: object, tokenizer) -> bool:
    """Whether a prompt is a text into which nobody has written the chat template, which there is."""
    return (
        isinstance(prompt, str)
        and bool(tokenizer.chat_template)
        and not any(token in prompt for token in tokenizer.all_special_tokens)
    )
