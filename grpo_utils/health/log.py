"""Read what a trainer logged, whatever version of TRL wrote it.

    >>> log = read_history([{"step": 1, "reward": 0.5, "rewards/f": 0.5, "completion_length": 12.0}])
    >>> log.values("rewards/f/mean"), log.values("completions/mean_length")
    ([0.5], [12.0])

TRL 0.14 to 0.16 wrote ``completion_length`` and ``rewards/NAME``; 0.17 and later write
``completions/mean_length`` and ``rewards/NAME/mean``. ``frac_reward_zero_std`` came with 0.18,
``entropy`` with 0.20, ``step_time`` with 0.26 (read in TRL's tags). ``reward_std`` was the mean
of the groups' until 0.26 and is that of the whole batch since 0.27.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import CourseError

OLD_NAMES = {"completion_length": "completions/mean_length"}

FORMAT_NAMES = re.compile(r"format|xml|tag|think|json|struct|style|strict|soft|form_", re.IGNORECASE)
CORRECTNESS_NAMES = re.compile(r"correct|accura|answer|exact|solve|truth|right|verif|numbers", re.IGNORECASE)


@dataclass(frozen=True)
class Log:
    """One entry for each logged training step, under TRL's present names, and what the health callback added."""

    entries: list[dict[str, float]]  # each with its step
    checks: list[dict[str, float]]

    def __len__(self) -> int:
        """The number of logged training steps."""
        return len(self.entries)

    def values(self, key: str) -> list[float]:
        """The values of one metric where it was logged, in the order of the steps."""
        return [entry[key] for entry in self.entries if key in entry]

    def checked(self, key: str) -> list[float]:
        """The values of one of the callback's own checks."""
        return [check[key] for check in self.checks if key in check]

    @property
    def rewards(self) -> list[str]:
        """The names of the reward functions."""
        found = [key.split("/")[1] for entry in self.entries for key in entry if re.fullmatch(r"rewards/.+/mean", key)]
        return list(dict.fromkeys(found))

    def named(self, kind: re.Pattern, but: re.Pattern | None = None) -> list[str]:
        """The rewards whose name says what they are for."""
        return [name for name in self.rewards if kind.search(name) and not (but and but.search(name))]

    @property
    def tied(self) -> list[float]:
        """The share of tied groups at each step; before TRL 0.18, 1.0 where ``reward_std`` was 0 and else 0.0."""
        if self.values("frac_reward_zero_std"):
            return self.values("frac_reward_zero_std")
        return [float(value == 0.0) for value in self.values("reward_std")]


def read_history(log_history: Sequence[dict]) -> Log:
    """The training steps of ``trainer.state.log_history`` since its last restart.

    Raises:
        CourseError: it holds no step of a GRPO training.
    """
    if not all(isinstance(entry, dict) for entry in log_history):
        raise CourseError("A log is a list of dicts, one for each logged step, as in trainer.state.log_history.")
    entries = [_renamed(entry) for entry in log_history]
    steps = _since_last_start([entry for entry in entries if "reward" in entry])
    if not steps:
        keys = sorted({key for entry in entries for key in entry})[:8]
        raise CourseError(
            f"There is no GRPO step in this log: no entry has a 'reward' (found: {', '.join(keys) or 'nothing'}). "
            "Give the log_history of a GRPOTrainer that has logged; logging_steps=1 logs every step."
        )
    checks = [entry for entry in entries if any(key.startswith("health/") for key in entry)]
    return Log(steps, checks)


def _renamed(entry: dict) -> dict[str, float]:
    """One entry under today's names, with its numbers alone."""
    return {_today(key): _number(value) for key, value in entry.items() if _is_number(key, value)}


def _today(key: str) -> str:
    """A metric's present name.

    >>> _today("rewards/my_reward"), _today("completion_length"), _today("kl")
    ('rewards/my_reward/mean', 'completions/mean_length', 'kl')
    """
    return f"{key}/mean" if re.fullmatch(r"rewards/[^/]+", key) else OLD_NAMES.get(key, key)


def _is_number(key: str, value: object) -> bool:
    """TRL logs None for a reward that applied to nothing; some loggers write NaN as null or as text."""
    if value is None:
        return key in ("loss", "grad_norm")
    return isinstance(value, int | float) or value in ("nan", "NaN", "inf", "-inf", "Infinity", "-Infinity")


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _since_last_start(steps: list[dict[str, float]]) -> list[dict[str, float]]:
    """What follows the last place where the step number goes back: several runs in one file."""
    numbered = [entry | {"step": _step(entry, index + 1)} for index, entry in enumerate(steps)]
    starts = [index for index in range(1, len(steps)) if numbered[index]["step"] < numbered[index - 1]["step"]]
    return numbered[starts[-1] :] if starts else numbered


def _step(entry: dict[str, float], otherwise: int) -> int:
    number = entry.get("step", math.nan)
    return int(number) if math.isfinite(number) else otherwise


def read_log(path: str | Path) -> list[dict]:
    """The log entries in a file that somebody brings.

    A ``trainer_state.json``, a folder with one (of several checkpoints, the newest), a JSON list
    of log entries, or JSON lines.

    Raises:
        CourseError: nothing there, or nothing that is a log.
    """
    file = find_file(path)
    text = read_text(file)
    return _entries(_parse(text, file), file)


def _entries(found: object, file: Path) -> list[dict]:
    entries = found.get("log_history") if isinstance(found, dict) else found
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CourseError(
            f"{str(file)!r} holds no log: give a trainer_state.json (it lies in every checkpoint), "
            "a JSON list of log entries, or JSON lines."
        )
    return entries


def read_text(file: Path) -> str:
    """A file's text, or a CourseError."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise CourseError(f"{str(file)!r} is no text in UTF-8 ({error.reason}), so it is no log.") from error


def find_file(path: str | Path) -> Path:
    """The file itself, or the newest trainer_state.json in a folder."""
    path = Path(path)
    if path.is_dir():
        states = sorted(path.rglob("trainer_state.json"), key=lambda state: state.stat().st_mtime)
        if not states:
            raise CourseError(f"There is no trainer_state.json in {str(path)!r} or below; a checkpoint holds one.")
        return states[-1]
    if not path.is_file():
        raise CourseError(f"There is no file {str(path)!r}.")
    return path


def _parse(text: str, file: Path) -> object:
    """JSON, or JSON lines."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as whole:
        try:
            return [json.loads(line) for line in text.strip().splitlines() or [""]]
        except json.JSONDecodeError:
            raise CourseError(
                f"{str(file)!r} is no JSON: {whole.msg} in line {whole.lineno}. Was it cut off while it was written?"
            ) from whole
