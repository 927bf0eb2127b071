"""The log of a run: its steps and the checks of `HealthCallback`, from any version of TRL since 0.14.

    >>> log = read_history([{"train/global_step": 1, "train/reward": 0.5, "train/rewards/f/mean": "0.5"}])
    >>> log.values("rewards/f/mean"), log.entries[0]["step"]
    ([0.5], 1)

``rewards/NAME/std`` and ``completions/clipped_ratio`` came with 0.17, ``frac_reward_zero_std`` with 0.18, ``entropy``
with 0.20, ``step_time`` with 0.26 (read in TRL's tags). ``reward_std`` was the mean of the groups' until 0.26 and is
that of the whole batch since 0.27. Unsloth's own trainer logs no ``entropy``, and a ``kl`` of 0.0 with beta 0.
"""

import bisect
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from grpo_core.errors import CourseError

from .names import in_words_of_trl, kind_of, metric_of

#: Standard deviation of a reward that does not vary; rounding of fp32 sums.
CONSTANT = 1e-8


@dataclass
class Log:
    """One entry per logged training step, under TRL's names, and the checks of the health callback.

    Attributes:
        entries: the logged steps, each with its ``step``.
        checks: the checks that the callback added.
        correctness: names of the rewards that measure correctness; if empty, they are recognized by name.
        rewards: the names of all reward functions, in their order.
        unscored: the names of those that never scored a completion, so that TRL logs None for them.
        restarts: how often it began again at its first step; what was logged before is not judged.
        counted: whether some entries had no step, so that they were counted; each may stand for many steps.
        of_evaluation: whether its entries are evaluations, because only those have rewards.
        error: the text of the exception that stopped the run, and its step where no entry shows it.
    """

    entries: list[dict[str, float]] = field(default_factory=list)
    checks: list[dict[str, float]] = field(default_factory=list)
    correctness: tuple[str, ...] = ()
    rewards: dict[str, None] = field(default_factory=dict)
    unscored: dict[str, None] = field(default_factory=dict)
    restarts: int = 0
    counted: bool = False
    of_evaluation: bool = False
    error: str = ""
    error_step: int = 0

    def add(self, log_history: Iterable[dict]) -> None:
        """Read further entries, whatever their order; see `_place` for steps that come twice."""
        for raw in map(in_words_of_trl, log_history):
            entry = _numbers_of(raw)
            if any(key.startswith("health/") for key in entry):
                self.checks.append(entry)
            elif "reward" in entry:
                known = math.isfinite(entry.get("step", math.nan))
                self.counted = self.counted or not known
                entry["step"] = int(entry["step"]) if known else self.step + 1
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
            if not at:
                self.rewards, self.unscored = {}, {}
                self.restarts += 1
        self.entries.insert(at, entry)

    @property
    def step(self) -> int:
        """The newest step."""
        return self.entries[-1]["step"] if self.entries else self.error_step

    @property
    def unit(self) -> str:
        """What its steps are: "step", or "entry" if they were counted because the log does not number them."""
        return "entry" if self.counted else "step"

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

    def entries_covering(self, steps: float) -> int:
        """How many of the last entries cover so many training steps, at least one."""
        return 1 + sum(covered < steps for covered in itertools.accumulate(reversed(self.steps_each)))

    def values(self, key: str, steps: float = math.inf) -> list[float]:
        """The values of one metric where it was logged, of the last so many steps; NaN and infinity left out."""
        values = [entry[key] for entry in self.entries if key in entry and math.isfinite(entry[key])]
        return values if steps == math.inf else values[-self.entries_covering(steps) :]

    def checked(self, key: str) -> list[float]:
        """The values of one of the callback's own checks."""
        return [check[f"health/{key}"] for check in self.checks if f"health/{key}" in check]

    def kind(self, name: str) -> str:
        """The kind of a reward: correctness if it was declared so, otherwise by its name."""
        return "correctness" if name in self.correctness else kind_of(name)

    def of_kind(self, kind: str) -> list[str]:
        """The rewards of one kind; for correctness the declared ones, if there are any."""
        known = [name for name in self.rewards if self.means(name)]
        if kind == "correctness" and self.correctness:
            return [name for name in known if name in self.correctness]
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
        return max([*self.spreads(name), max(means) - min(means)]) > CONSTANT

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
    log = Log(correctness=tuple(correctness))
    log.add(log_history)
    if not log.entries:  # some loggers keep the rewards of evaluations alone
        log = Log(correctness=tuple(correctness), of_evaluation=True)
        log.add(map(_of_evaluation, log_history))
    if not log.entries:
        keys = sorted({str(key) for entry in log_history for key in entry})[:8]
        raise CourseError(
            f"There is no GRPO step in this log: no entry has a 'reward' (found: {', '.join(keys) or 'nothing'}). "
            "A trainer_state.json of the run has all metrics; an export of one chart, or TRL's table in a notebook, "
            "does not."
        )
    return log


def _of_evaluation(raw: dict) -> dict:
    """The metrics of an evaluation under the names that they have in training.

    >>> _of_evaluation({"step": 5, "eval_reward": 0.1, "eval/rewards/f": 0.1})
    {'step': 5, 'reward': 0.1, 'rewards/f': 0.1}
    """
    own = {name: value for name, value in raw.items() if isinstance(name, str)}
    renamed = {re.sub(r"^eval[_/]", "", name): value for name, value in own.items() if re.match(r"eval[_/]", name)}
    return {name: value for name, value in own.items() if metric_of(name)[0] == "step" or "health/" in name} | renamed


def _numbers_of(raw: dict) -> dict[str, float]:
    """The metrics of one entry that are numbers; the step may be written as one of all of them, 3/100.

    >>> _numbers_of({"step": "3/100", "kl": None, "loss": "0.5"})
    {'step': 3.0, 'loss': 0.5}
    """
    step = raw.get("step")
    plain = raw | {"step": step.partition("/")[0]} if isinstance(step, str) else raw
    named = {name: _number(value) for name, value in plain.items()}
    return {name: number for name, number in named.items() if number is not None}


def _rewards_in(entry: dict) -> list[str]:
    """The names of the rewards in an entry.

    >>> _rewards_in({"reward": 1.0, "rewards/f/mean": None, "rewards/g/mean": 0.5})
    ['f', 'g']
    """
    found = (re.fullmatch(r"rewards/(.+)/mean", name) for name in entry)
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
