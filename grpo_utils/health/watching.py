"""Watch a run while it trains: say once what is wrong, keep samples, stop what is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import TrainerCallback

from ..rewards import split_form
from .diagnosis import diagnose
from .samples import keep, take_samples
from .thresholds import limit

if TYPE_CHECKING:
    from datasets import Dataset

#: What no further step can mend.
LOST = ("nan", "kl_explosion")


def in_asked_form(text: str) -> bool:
    """Whether a completion is in the course's form."""
    return split_form(text) is not None


class HealthCallback(TrainerCallback):
    """Diagnose a run as it goes: ``trainer.add_callback(HealthCallback(test_rows))``.

    Each verdict is printed once. ``nan`` and ``kl_explosion`` stop the run, after the policy and
    the log were saved beside the checkpoints (none of which is touched). Every ``every`` steps a few
    held-out prompts are answered and their form is checked. Files, below the run's ``output_dir``:

        health/verdicts.txt   what was said
        health/samples.txt    prompts, completions, whether in form and right
        health/checks.csv     one line a check: rates, with the interval of the format rate
        lost-at-step-N/       what was saved of a lost run

    Args:
        rows: held-out rows with ``prompt`` and ``answer``; None: no samples.
        every: optimizer steps between samples; one sampling costs at most one batch's generation, so
            that at 100 it stays below 1 % of the training.
        count: how many rows are answered each time.
        in_form: whether a completion (text) is in the asked form.
        stop: whether a lost run is stopped.
    """

    def __init__(
        self,
        rows: "Dataset | None" = None,
        *,
        every: int = 100,
        count: int = 16,
        in_form: Callable[[str], bool] = in_asked_form,
        stop: bool = True,
    ):
        self.rows = rows.select(range(min(count, len(rows)))) if rows is not None else None
        self.every, self.in_form, self.stop = every, in_form, stop
        self.told: set[str] = set()

    def on_train_begin(self, args, state, control, processing_class=None, train_dataloader=None, **kwargs):
        """Note whether prompts are strings although there is a chat template, which no log shows."""
        self.folder = Path(args.output_dir) / "health"
        prompt = train_dataloader.dataset[0]["prompt"]
        if isinstance(prompt, str) and processing_class.chat_template:
            state.log_history.append({"step": state.global_step, "health/string_prompts": 1.0})

    def on_log(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Diagnose, and say what is new."""
        if not any("reward" in entry for entry in state.log_history):
            return
        for verdict in diagnose(state.log_history):
            if verdict.code in self.told or verdict.code in ("healthy", "too_short"):
                continue
            self.told.add(verdict.code)
            self._tell(state, str(verdict))
            if verdict.code in LOST and self.stop:
                self._stop(args, state, control, model, processing_class)

    def on_step_end(self, args, state, control, model=None, processing_class=None, **kwargs):
        """Every so often: answer held-out prompts, and check the form."""
        due = state.global_step % self.every == 0 or self._room_wanted(state)
        if self.rows is None or not due or not state.is_world_process_zero:
            return
        samples = take_samples(model, processing_class, self.rows, args.max_completion_length, self.in_form)
        keep(self.folder, state.global_step, samples)
        row = samples.row(state.global_step)
        entry = {"step": state.global_step, "health/heldout_format": row["in_form"], "health/distinct": row["distinct"]}
        if self._room_wanted(state):
            room = take_samples(model, processing_class, self.rows, 4 * args.max_completion_length, self.in_form)
            entry["health/ended_with_room"] = sum(room.ended) / len(room.ended)
        state.log_history.append(entry)

    def on_train_end(self, args, state, control, **kwargs):
        """Say where the files are, and how the run ended."""
        if any("reward" in entry for entry in state.log_history):
            verdicts = diagnose(state.log_history)
            self._tell(state, "at the end: " + "; ".join(f"{v.code} ({v.seen})" for v in verdicts))

    def _room_wanted(self, state) -> bool:
        """Once, where all is cut off from the start: would the completions end, given four times the room?"""
        if any("health/ended_with_room" in entry for entry in state.log_history):
            return False
        clipped = [e["completions/clipped_ratio"] for e in state.log_history if "completions/clipped_ratio" in e]
        return len(clipped) == limit("window") and min(clipped) >= limit("clipped")

    def _tell(self, state, text: str) -> None:
        if not state.is_world_process_zero:
            return
        print(f"\nhealth: {text}", flush=True)
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "verdicts.txt").open("a", encoding="utf-8") as page:
            page.write(text + "\n\n")

    def _stop(self, args, state, control, model, processing_class) -> None:
        """Save the policy and the log where no checkpoint is rotated away for it, and end the training."""
        control.should_training_stop = True
        folder = Path(args.output_dir) / f"lost-at-step-{state.global_step}"
        if state.is_world_process_zero:
            folder.mkdir(parents=True, exist_ok=True)
            model.save_pretrained(folder)
            processing_class.save_pretrained(folder)
            state.save_to_json(str(folder / "trainer_state.json"))
            self._tell(state, f"stopped; policy and log as they were: {folder}. Earlier checkpoints are untouched.")
