"""Stop without loss and go on: whole checkpoints, Ctrl-C, and folders that belong to another run."""

import json
import re
import signal
import time
from pathlib import Path

from accelerate.utils import gather_object
from transformers import TrainerCallback

CHECKPOINT = re.compile(r"checkpoint-(\d+)")


def begin(folder: Path, belongs_to: dict) -> Path | None:
    """The checkpoint to go on from, or None; a finished run in the folder is renamed and kept.

    ``belongs_to`` is what a run cannot change on the way: its model, and how that is loaded.
    """
    if (folder / "report.json").exists():
        kept = folder.with_name(f"{folder.name}-{time.strftime('%Y%m%d-%H%M%S')}")
        folder.rename(kept)
        print(f"{folder} held a finished run: it is kept as {kept}.")
    mark, begun = folder / "run.json", [*folder.glob("**/checkpoint-*"), *folder.glob("*/finished.json")]
    if mark.exists() and begun:
        check_same(folder, json.loads(mark.read_text(encoding="utf-8")), belongs_to)
        return newest_whole(folder)
    if begun:
        raise SystemExit(f"Error: {folder} holds checkpoints of something else; choose another output_dir.")
    folder.mkdir(parents=True, exist_ok=True)
    mark.write_text(json.dumps(belongs_to, indent=2), encoding="utf-8")
    return None


def check_same(folder: Path, was: dict, now: dict) -> None:
    """Stop if the folder belongs to another run."""
    changed = [f"{key} was {was.get(key)!r}, is {now[key]!r}" for key in now if was.get(key) != now[key]]
    if changed:
        raise SystemExit(f"Error: {folder} was begun otherwise: {'; '.join(changed)}. Choose another output_dir.")


def newest_whole(folder: Path) -> Path | None:
    """The newest checkpoint that was saved to its end: a full disk or a lost machine may leave half of one."""
    found = [path for path in folder.glob("checkpoint-*") if CHECKPOINT.fullmatch(path.name)]
    for path in sorted(found, key=lambda path: int(CHECKPOINT.fullmatch(path.name)[1]), reverse=True):
        if is_whole(path):
            print(f"Going on from {path}.")
            return path
        print(f"{path} is not whole and is passed over.")
    return None


def is_whole(checkpoint: Path) -> bool:
    """The log is written last, so a checkpoint with a readable log has all the rest."""
    try:
        json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return any(checkpoint.glob("optimizer*")) or any(checkpoint.glob("global_step*"))  # the latter: DeepSpeed's


def load_adapter(policy: object, checkpoint: Path) -> None:
    """Put a checkpoint's adapter back: with beta above zero, TRL 1.14 loads its reference copy and nothing else."""
    from peft import load_peft_weights, set_peft_model_state_dict

    set_peft_model_state_dict(policy, load_peft_weights(str(checkpoint), device=str(policy.device)))


class StopOnce(TrainerCallback):
    """Ctrl-C ends the step, saves a checkpoint and stops; a second Ctrl-C stops at once."""

    asked = False

    def on_train_begin(self, args, state, control, **kwargs):
        self.before = signal.signal(signal.SIGINT, self.ask)

    def ask(self, number, frame):
        """Remember that Ctrl-C was pressed."""
        print("\nStopping after this step (Ctrl-C again: at once) ...", flush=True)
        self.asked = True
        signal.signal(signal.SIGINT, self.before)

    def on_step_end(self, args, state, control, **kwargs):
        if any(gather_object([self.asked])):  # of several processes all stop after the same step
            control.should_save = control.should_training_stop = True

    def on_train_end(self, args, state, control, **kwargs):
        signal.signal(signal.SIGINT, self.before)
