"""Read a trainer's log, from any version of TRL since 0.17.

    >>> log = read_history([{"train/global_step": 1, "train/reward": 0.5, "train/rewards/f/mean": "0.5"}])
    >>> log.values("rewards/f/mean"), log.entries[0]["step"]
    ([0.5], 1)

``frac_reward_zero_std`` came with 0.18, ``entropy`` with 0.20, ``step_time`` with 0.26 (read in TRL's tags).
``reward_std`` was the mean of the groups' until 0.26 and is that of the whole batch since 0.27. Unsloth's own
trainer logs no ``entropy``, and a ``kl`` of 0.0 with beta 0. Exports of W&B call all of it ``train/…``.
"""

import bisect
import contextlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from grpo_core.errors import CourseError

from . import limits
from .names import kind_of


@dataclass
class Log:
    """One entry per logged training step, under TRL's names, and the checks of the health callback.

    Attributes:
        entries: the logged steps, each with its ``step``.
        checks: the checks that the callback added.
        truth: names of the rewards that measure correctness; if empty, they are recognized by name.
        rewards: the names of all reward functions, in their order.
        unscored: the names of those that never scored a completion, so that TRL logs None for them.
        error: the text of the exception that stopped the run, and its step where no entry shows it.
    """

    entries: list[dict[str, float]] = field(default_factory=list)
    checks: list[dict[str, float]] = field(default_factory=list)
    truth: tuple[str, ...] = ()
    rewards: dict[str, None] = field(default_factory=dict)
    unscored: dict[str, None] = field(default_factory=dict)
    error: str = ""
    error_step: int = 0

    def add(self, log_history: Iterable[dict]) -> None:
        """Read further entries, whatever their order; see `_place` for steps that come twice."""
        for raw in log_history:
            entry = _numbers_of(raw)
            if any(key.startswith("health/") for key in entry):
                self.checks.append(entry)
            elif "reward" in entry:
                known = math.isfinite(entry.get("step", math.nan))
                entry["step"] = int(entry["step"]) if known else self.entries[-1]["step"] + 1 if self.entries else 1
                self._place(entry)
                self.rewards |= dict.fromkeys(_rewards_in(entry))
                logged = dict.fromkeys(_rewards_in(raw)) | self.unscored
                self.unscored = {name: None for name in logged if name not in self.rewards}

    def _place(self, entry: dict[str, float]) -> None:
        """Put an entry where its step belongs.

        The newest step again: one entry in two parts. An earlier step again: the run was resumed there, or another
        one began, and what was logged from there on is dropped. An earlier step for the first time: out of order.
        """
        step = entry["step"]
        if self.entries and step == self.entries[-1]["step"]:
            self.entries[-1] |= entry
            return
        at = bisect.bisect_left(self.entries, step, key=lambda known: known["step"])
        if at < len(self.entries) and self.entries[at]["step"] == step:
            del self.entries[at:]
            self.checks = [check for check in self.checks if at and check.get("step", step) < step]
            self.rewards, self.unscored = (self.rewards, self.unscored) if at else ({}, {})
        self.entries.insert(at, entry)

    @property
    def step(self) -> int:
        """The newest step."""
        return self.entries[-1]["step"] if self.entries else self.error_step

    @property
    def per_entry(self) -> int:
        """Training steps of which one entry is the mean (TRL's ``logging_steps``)."""
        steps = [entry["step"] for entry in self.entries]
        gaps = [after - before for before, after in itertools.pairwise(steps)] or steps or [1]
        return max(1, int(median(gaps)))

    @property
    def steps_each(self) -> list[int]:
        """Training steps of which each entry is the mean: `per_entry`, or fewer, as at the end of many runs."""
        steps, most = [0, *(entry["step"] for entry in self.entries)], self.per_entry  # once: a median of the log
        return [min(max(1, after - before), most) for before, after in itertools.pairwise(steps)]

    @property
    def steps(self) -> int:
        """Training steps that the entries cover."""
        return sum(self.steps_each)

    def entries_in(self, steps: float) -> int:
        """How many of the last entries cover so many training steps, at least one."""
        return 1 + sum(covered < steps for covered in itertools.accumulate(reversed(self.steps_each)))

    def values(self, key: str, steps: float = math.inf) -> list[float]:
        """The values of one metric where it was logged, of the last so many steps; NaN and infinity left out."""
        values = [entry[key] for entry in self.entries if key in entry and math.isfinite(entry[key])]
        return values if steps == math.inf else values[-self.entries_in(steps) :]

    def checked(self, key: str) -> list[float]:
        """The values of one of the callback's own checks."""
        return [check[f"health/{key}"] for check in self.checks if f"health/{key}" in check]

    def kind(self, name: str) -> str:
        """The kind of a reward: correctness if it was declared so, otherwise by its name."""
        return "correctness" if name in self.truth else kind_of(name)

    def of_kind(self, kind: str) -> list[str]:
        """The rewards of one kind; for correctness the declared ones, if there are any."""
        known = [name for name in self.rewards if self.means(name)]
        if kind == "correctness" and self.truth:
            return [name for name in known if name in self.truth]
        return [name for name in known if self.kind(name) == kind]

    def means(self, name: str) -> list[float]:
        """One reward's means."""
        return self.values(f"rewards/{name}/mean")

    def spreads(self, name: str) -> list[float]:
        """One reward's standard deviations."""
        return self.values(f"rewards/{name}/std")

    def ever_varied(self, name: str) -> bool:
        """Whether a reward ever gave different scores."""
        means = self.means(name)
        return max([*self.spreads(name), max(means) - min(means)]) > limits.CONSTANT

    def scores(self, name: str = "") -> tuple[list[float], list[float]]:
        """The means of one reward (of their sum, if not named), and the spreads of the same steps, if any."""
        keys = (f"rewards/{name}/mean", f"rewards/{name}/std") if name else ("reward", "reward_std")
        both = [tuple(entry[key] for key in keys) for entry in self.entries if all(key in entry for key in keys)]
        pairs = [pair for pair in both if all(map(math.isfinite, pair))]
        return ([mean for mean, _ in pairs], [std for _, std in pairs]) if pairs else (self.values(keys[0]), [])

    @property
    def tied(self) -> list[float]:
        """The share of tied groups at each step; in TRL 0.17, 1.0 where ``reward_std`` was 0 and else 0.0."""
        spreads = self.values("reward_std")
        return self.values("frac_reward_zero_std") or [float(spread == 0.0) for spread in spreads]

    @property
    def clipped(self) -> list[float]:
        """The share of completions cut off at each step."""
        return self.values("completions/clipped_ratio")


def read_history(log_history: Sequence[dict], correctness: Sequence[str] = ()) -> Log:
    """The training steps of ``trainer.state.log_history`` since its last restart.

    Raises:
        CourseError: it contains no step of a GRPO run.
    """
    if not isinstance(log_history, Sequence) or not all(isinstance(entry, dict) for entry in log_history):
        raise CourseError("a log must be a list of dicts, one per logged step, like trainer.state.log_history.")
    log = Log(truth=tuple(correctness))
    log.add(log_history)
    if not log.entries:
        keys = sorted({str(key) for entry in log_history for key in entry})[:8]
        raise CourseError(
            f"There is no GRPO step in this log: no entry has a 'reward' (found: {', '.join(keys) or 'nothing'}). "
            "Pass the log_history of a GRPOTrainer that has logged; logging_steps=1 logs every step."
        )
    return log


def _numbers_of(raw: dict) -> dict[str, float]:
    """The metrics of one entry that are numbers, under TRL's names.

    >>> _numbers_of({"train/global_step": 3, "kl": None, "train/loss": "0.5"})
    {'step': 3.0, 'loss': 0.5}
    """
    named = {key.removeprefix("train/"): _number(value) for key, value in raw.items() if isinstance(key, str)}
    return {"step" if key == "global_step" else key: number for key, number in named.items() if number is not None}


def _rewards_in(entry: dict) -> list[str]:
    """The names of the rewards in an entry.

    >>> _rewards_in({"reward": 1.0, "rewards/f/mean": None, "train/rewards/g/mean": 0.5})
    ['f', 'g']
    """
    found = (re.fullmatch(r"(?:train/)?rewards/(.+)/mean", key) for key in entry if isinstance(key, str))
    return [name[1] for name in found if name]


def _number(value: object) -> float | None:
    """A float, also of text, as some loggers write it; None for the rest (TRL logs it for a reward that never applied).

    What is beyond all reason is infinite, so that squares of the rest stay finite.
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    beyond = abs(number) > 1e100
    return None if isinstance(value, bool) else math.copysign(math.inf, number) if beyond else number


def read_log(path: str | Path) -> list[dict]:
    """The log entries in a file.

    A ``trainer_state.json``, a folder with one (of several, that of the last step), a JSON list
    of log entries, or JSON lines.

    Raises:
        CourseError: the file does not exist or contains no log.
    """
    file = find_file(path)
    found = _parse(read_text(file), file)
    entries = found.get("log_history") if isinstance(found, dict) else found
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise CourseError(
            f"{str(file)!r} contains no log. Pass a trainer_state.json (every checkpoint has one), "
            "a JSON list of log entries, or JSON lines."
        )
    return entries


def read_text(file: Path) -> str:
    """A file's text, or a CourseError."""
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise CourseError(f"{str(file)!r} is not UTF-8 text ({error.reason}), so it is not a log.") from error
    except OSError as error:
        raise CourseError(f"{str(file)!r} cannot be read: {error.strerror}.") from error


def find_file(path: str | Path, places: Sequence[str] = ("**/trainer_state.json",)) -> Path:
    """The file itself, or of a folder the log of the last step among those in ``places``, which are patterns."""
    path = Path(path)
    if path.is_file():
        return path
    if not path.is_dir():
        raise CourseError(f"There is no file {str(path)!r}.")
    states = itertools.chain.from_iterable(map(path.glob, places))
    if found := max(states, key=_reached, default=None):
        return found
    raise CourseError(
        f"There is no trainer_state.json in {str(path)!r} or its checkpoints. Every checkpoint has one "
        "(save_strategy='steps'), HealthCallback writes one when training ends, and so does "
        "trainer.state.save_to_json(path)."
    )


def _reached(file: Path) -> tuple[int, int]:
    """The step at which a trainer state was written, and the length of its log; (-1, 0) if it cannot be read."""
    try:
        state = json.loads(read_text(file))
        return int(state["global_step"]), len(state["log_history"])
    except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError):
        return -1, 0


def _parse(text: str, file: Path) -> object:
    """JSON, or JSON lines."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as whole:  # RecursionError: thousands of brackets
        lines = [line for line in text.splitlines() if line.strip()]
        with contextlib.suppress(ValueError, RecursionError):
            return [json.loads(line) for line in lines or [""]]
        raise CourseError(
            f"{str(file)!r} is not JSON: {whole}. A log is a trainer_state.json, a JSON list of entries, or one JSON "
            "entry per line, not a CSV or printed output. The file may also be incomplete."
        ) from whole
