"""The file with the log of a run, as given or in a folder, and what else a run leaves in its folder."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import CourseError

from .forms import entries_in
from .log import Log

STATE = "trainer_state.json"
#: Where a trainer and `HealthCallback` leave the log of a run; one in another folder below is of another run.
_WITHIN = ("checkpoint-*", "lost-at-step-*", "health")
LOGS = (STATE, *(f"{place}/{STATE}" for place in _WITHIN))
#: The file in which `HealthCallback` keeps its held-out samples.
SAMPLES = "samples.jsonl"
_STEP = re.compile(r'"global_step"\s*:\s*(\d{1,15})\b')


@dataclass(frozen=True)
class Source:
    """A file that was read, with its text. `entries` are those of the log in it."""

    file: Path
    text: str
    history: list | None = None

    def entries(self) -> list[dict]:
        """The entries of the log.

        Raises:
            CourseError: there are none.
        """
        return entries_in(self.text, str(self.file)) if self.history is None else self.history


def read_log(path: str | Path) -> list[dict]:
    """The log entries in a file, or in the trainer_state.json of the last step in a folder.

    Raises:
        CourseError: the file does not exist or contains no log.
    """
    return open_log(path).entries()


def open_log(path: str | Path, places: Sequence[str] = ()) -> Source:
    """The file itself, or of a folder the log of the last step.

    Args:
        path: a file or a folder.
        places: where in the folder, as patterns; by default, where the one run in it or below it has its logs.

    Raises:
        CourseError: it does not exist or cannot be read, or the folder has no log, or those of several runs.
    """
    path = Path(path)
    try:
        if path.is_file():
            return Source(path, read_text(path))
        if not path.is_dir():
            raise CourseError(f"There is no file {str(path)!r}.")
        newest = _newest([file for place in places for file in path.glob(place)] if places else _states_of_run(path))
    except OSError as error:  # the folder may vanish while it is read
        raise CourseError(f"{str(error.filename or path)!r} cannot be read: {error.strerror}.") from error
    if newest:
        return newest
    raise CourseError(
        f"There is no trainer_state.json in {str(path)!r} or its checkpoints that can be read. Every checkpoint has "
        "one (save_strategy='steps'), HealthCallback writes one when training ends, and so does "
        "trainer.state.save_to_json(path)."
    )


def several_runs(folder: Path, runs: Sequence[Path]) -> CourseError:
    """The error for a folder with several runs, of which none can be chosen for the user."""
    listed = ", ".join(repr(str(run)) for run in runs[:4]) + ", …" * (len(runs) > 4)
    return CourseError(f"{str(folder)!r} holds {len(runs)} runs ({listed}). Pass the folder of one of them.")


def _states_of_run(folder: Path) -> list[Path]:
    """The states of the run in a folder, or of the only run below it."""
    states = [(folder if state.parent == folder else _home_of(state), state) for state in _states_below(folder)]
    homes = sorted({home for home, _ in states})
    if len(homes) > 1 and folder not in homes:
        raise several_runs(folder, homes)
    return [state for home, state in states if len(homes) == 1 or home == folder]


def _home_of(state: Path) -> Path:
    """The folder of the run that wrote a state into one of `LOGS`."""
    own = any(state.parent.match(place) for place in _WITHIN)
    return state.parent.parent if own else state.parent


def _states_below(folder: Path) -> Iterator[Path]:
    """The states in a folder, however deep. What vanishes meanwhile, or may not be read, has none."""
    for place, _, files in os.walk(folder):
        if STATE in files:
            yield Path(place, STATE)


def _newest(files: Iterable[Path]) -> Source | None:
    """The log of the last step, of these the longest. One text at a time is kept, and few are parsed."""
    best, reached = None, -1
    for file in files:
        text = _text_or_none(file)
        step = -1 if text is None else _step_in(text)
        if text is None or (best and step < reached) or (history := _history_in(text)) is None:
            continue
        if best is None or (step, len(history)) > (reached, len(best.history)):
            best, reached = Source(file, text, history), step
    return best


def _text_or_none(file: Path) -> str | None:
    try:
        return read_text(file)
    except CourseError:
        return None


def _step_in(text: str) -> int:
    """The step at which a state was written, without parsing its log; -1 if it says none."""
    return max((int(step) for step in _STEP.findall(text)), default=-1)


def _history_in(text: str) -> list[dict] | None:
    """The entries of a state; None where it cannot be read."""
    try:
        history = json.loads(text)["log_history"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return history if isinstance(history, list) and all(isinstance(entry, dict) for entry in history) else None


def read_text(file: Path) -> str:
    """A file's text. A console's may be cut off inside a character, and PowerShell writes UTF-16.

    Raises:
        CourseError: it cannot be read, or is not text.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        raise CourseError(f"{str(file)!r} cannot be read: {error.strerror}.") from error
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) and len(data) % 2 == 0:
        return data.decode("utf-16", errors="replace")
    if b"\0" in data:
        raise CourseError(f"{str(file)!r} is not text, so it is not a log.")
    return data.decode("utf-8-sig", errors="replace")


def has_samples(folder: Path, log: Log | None = None) -> bool:
    """Whether a run left anything to replay: completions, or samples of held-out prompts."""
    return ((folder / "completions").is_dir() and not logs_none(log)) or bool(samples_in(folder))


def logs_none(log: Log | None) -> bool:
    """Whether `HealthCallback` saw that a run logs no completions; those in its folder are of an earlier one."""
    return log is not None and bool(log.checked("no_completions"))


def samples_in(folder: Path) -> Path | None:
    """The file with samples, if a callback wrote one."""
    file = folder / "health" / SAMPLES
    return file if file.is_file() else None
