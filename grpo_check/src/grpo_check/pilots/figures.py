"""What sampled groups say: shares with intervals, the pull of the reward, tokens and seconds."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations
from statistics import fmean, median, pstdev
from typing import NamedTuple

from grpo_core.intervals import mean_interval
from grpo_core.rewards import group_advantages, weighted_sum

from ..preflights.planned import PlannedRun
from .sampling import Group

#: Forward passes that one forward and one backward pass cost together; checkpointing repeats the forward pass.
_FORWARD_AND_BACKWARD = 3


@dataclass(frozen=True)
class Share:
    """The mean of a share of each prompt, with a 95% bootstrap interval over the prompts.

    The completions of one prompt are not independent, so the interval counts prompts.

    >>> print(Share((1.0, 0.0, 0.0, 0.5) * 8))
    38% (23% to 53%)
    """

    of_prompts: tuple[float, ...]

    @property
    def value(self) -> float:
        """The share."""
        return fmean(self.of_prompts)

    def __str__(self) -> str:
        """The share and its interval in percent."""
        low, high = interval(self.of_prompts)
        return f"{self.value:.0%} ({max(low, 0):.0%} to {min(high, 1):.0%})"


@lru_cache(maxsize=1000)
def interval(values: tuple[float, ...]) -> tuple[float, float]:
    """The ends of the 95% interval of the mean."""
    estimate = mean_interval(values, bounds=(-1.0, 1.0) if all(0 <= value <= 1 for value in values) else None)
    return estimate.low, estimate.high


class Mean(NamedTuple):
    """A mean of signed numbers, and the ends of its 95% interval.

    >>> print(Mean(0.9, -0.1, 1.2))
    +0.90 (-0.10 to +1.20)
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """The mean and its interval, with signs."""
        return f"{self.value:+.2f} ({self.low:+.2f} to {self.high:+.2f})"


class Rewards(NamedTuple):
    """The mean, least and largest reward, and the mean standard deviation within a group."""

    mean: float
    least: float
    most: float
    spread: float


class Tokens(NamedTuple):
    """The mean length of the completions, its 95th percentile, and the longest."""

    mean: float
    usual: int
    longest: int


@dataclass(frozen=True)
class Figures:
    """The figures of a pilot.

    Attributes:
        size: completions per group in the planned run.
        sampled: completions that were sampled per prompt, 8 at least.
        tied: groups of ``size`` whose completions all score the same.
        tied_larger: the same for groups of ``sampled``.
        truncated: completions without EOS.
        right, formed: correct, and correctly formatted completions; None if not known.
        pull: the advantage of correct completions in groups of ``size`` that have correct and wrong ones; None if there
            are no such groups.
        ending: the same for completions that end, in groups that also have truncated ones.
        reward, tokens: of all completions.
        seconds: per step of the planned run, for sampling, scoring and learning; the last is None if not measured.
    """

    size: int
    sampled: int
    tied: Share
    tied_larger: Share
    truncated: Share
    right: Share | None
    formed: Share | None
    pull: Mean | None
    ending: Mean | None
    reward: Rewards
    tokens: Tokens
    seconds: tuple[float, float, float | None]


def figures(run: PlannedRun, some: Sequence[Group], forward: float | None) -> Figures:
    """The figures of scored groups; ``forward`` is the time of a forward pass per completion, None if not measured."""
    size, sampled, keys = run["num_generations"], len(some[0].lengths), [_keys(run, one) for one in some]
    sums = [[value for value in _sums(run, one) if value is not None] or [0.0] for one in some]
    known, lengths = [*chain(*sums)], sorted(chain(*(one.lengths for one in some)))
    return Figures(
        size=size,
        sampled=sampled,
        tied=Share(tuple(_tie_chance(one, size) for one in keys)),
        tied_larger=Share(tuple(_tie_chance(one, sampled) for one in keys)),
        truncated=Share(tuple(1 - fmean(one.ended) for one in some)),
        right=_share([one.right for one in some]),
        formed=_share([one.formed for one in some]),
        pull=_pull(run, [(one, one.right) for one in some]),
        ending=_pull(run, [(one, one.ended) for one in some]),
        reward=Rewards(fmean(known), min(known), max(known), fmean(map(pstdev, sums))),
        tokens=Tokens(fmean(lengths), lengths[math.ceil(0.95 * len(lengths)) - 1], lengths[-1]),
        seconds=_seconds(run, some, forward),
    )


def _share(marks: Sequence[list[bool] | None]) -> Share | None:
    """The share of marked completions, None if it is not known which ones are."""
    return None if None in marks else Share(tuple(map(fmean, marks)))


def _sums(run: PlannedRun, one: Group) -> list[float | None]:
    return weighted_sum(one.scores, run["reward_weights"] or [1.0] * len(one.scores))


def _keys(run: PlannedRun, one: Group) -> list:
    """What a tied group has only one of: the weighted sum or, for rewards that are normalized first, every score."""
    if run["multi_objective_aggregation"] == "normalize_then_sum":
        return list(zip(*one.scores, strict=True))
    return [round(value, 6) for value in _sums(run, one) if value is not None]


def _tie_chance(keys: Sequence, size: int) -> float:
    """The chance that ``size`` of the sampled completions, drawn without replacement, all have the same score.

    >>> _tie_chance([0, 0, 0, 1], 4), _tie_chance([0, 0, 0, 1], 2), _tie_chance([1, 1, 1, 1], 2)
    (0.0, 0.5, 1.0)
    """
    if not keys:  # no reward applied
        return 1.0
    drawn = min(size, len(keys))
    return sum(math.comb(count, drawn) for count in Counter(keys).values()) / math.comb(len(keys), drawn)


def _pull(run: PlannedRun, marked: Sequence[tuple[Group, list[bool] | None]]) -> Mean | None:
    """How GRPO values the marked completions, over the groups in which only some are marked."""
    mixed = [(one, marks) for one, marks in marked if marks and 0 < sum(marks) < len(marks)]
    if not mixed:
        return None
    pulls = tuple(_advantage_of(run, one, marks) for one, marks in mixed)
    return Mean(fmean(pulls), *interval(pulls))


def _advantage_of(run: PlannedRun, one: Group, marks: list[bool]) -> float:
    """The mean advantage of the marked completions, over all groups of the planned size in which only some are marked.

    A completion without a reward has none.
    """
    sums = _sums(run, one)
    groups = combinations(range(len(sums)), min(run["num_generations"], len(sums)))
    mixed = [places for places in groups if 0 < sum(marks[n] for n in places) < len(places)]
    return fmean(_marked_advantage([sums[n] for n in places], [marks[n] for n in places]) for places in mixed)


def _marked_advantage(sums: list[float | None], marks: list[bool]) -> float:
    known = [value for value in sums if value is not None]
    advantages = iter(group_advantages(known, len(known)) if len(known) > 1 else [0.0] * len(known))
    each = [0.0 if value is None else next(advantages) for value in sums]
    return fmean(advantage for advantage, marked in zip(each, marks, strict=True) if marked)


def _seconds(run: PlannedRun, some: Sequence[Group], forward: float | None) -> tuple[float, float, float | None]:
    """Seconds per optimizer step: sampling and scoring as measured, learning from the measured forward pass."""
    completions = run["per_device_train_batch_size"] * run["gradient_accumulation_steps"]
    passes = _FORWARD_AND_BACKWARD + bool(run["gradient_checkpointing"]) + bool(run["beta"])
    sampling, scoring = (median(one.seconds[n] for one in some) / run["num_iterations"] for n in (0, 1))
    learning = None if forward is None else forward * passes * completions
    return sampling * completions, scoring * completions, learning


def planned_steps(run: PlannedRun) -> int:
    """Optimizer steps of the planned run."""
    if run["max_steps"] > 0:
        return run["max_steps"]
    completions = run["per_device_train_batch_size"] * run["gradient_accumulation_steps"] * run.processes
    rounds = len(run.train) * run["num_generations"] * run["num_iterations"] / completions
    return math.ceil(run["num_train_epochs"] * rounds)
