"""Combine several rewards: weights, adaptive weights, and a set of rewards to start from.

    >>> rewards, weights = math_rewards()
    >>> [reward.__name__ for reward in rewards], weights
    (['correctness_reward', 'strict_format_reward', 'incremental_format_reward'], [2.0, 0.5, 0.5])

TRL adds up the rewards times their weights (``GRPOConfig(reward_weights=…)``); a ``None`` adds
nothing. Rule of thumb: give correctness more weight than all other rewards together, so that a wrong
answer never pays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import CourseError
from .correctness import correctness_reward
from .format import incremental_format_reward, strict_format_reward
from .text import is_async, reward_name


class RewardSet(NamedTuple):
    """Reward functions and their weights."""

    rewards: list[Callable]
    weights: list[float]


def math_rewards() -> RewardSet:
    """The rewards of lesson 03, for mathematics in the course's tags. The maximum is 3.0."""
    return RewardSet([correctness_reward, strict_format_reward, incremental_format_reward], [2.0, 0.5, 0.5])


def weighted_sum(scores: Sequence[Sequence[float | None]], weights: Sequence[float]) -> list[float | None]:
    """The weighted sum for each completion, as TRL computes it; ``None`` if no reward applied.

    Args:
        scores: one list per reward, with one score per completion.

    >>> weighted_sum([[1.0, 0.0, None], [1.0, None, None]], [2.0, 0.5])
    [2.5, 0.0, None]
    """
    sums = []
    for row in zip(*scores, strict=True):
        parts = [weight * score for weight, score in zip(weights, row, strict=True) if score is not None]
        sums.append(sum(parts) if parts else None)
    return sums


def adaptive_weights(
    log_history: Sequence[dict], names: Sequence[str], weights: Sequence[float], window: int = 10, floor: float = 0.25
) -> list[float]:
    """Weights that decrease as a reward is learned, computed only from the log.

    ``weight * (1 - (1 - floor) * mean)``, where ``mean`` is the reward's mean over the last
    ``window`` logged steps, clipped to 0 to 1. It starts at the full weight and ends at ``floor`` times
    the weight when every completion earns the reward. It depends only on the history, so a resumed run
    has the same weights. If all rewards are learned equally, their proportions do not change.

    Args:
        log_history: ``trainer_state.log_history``, with ``rewards/{name}/mean`` entries.
        names: the names of the rewards, whose scores are between 0 and 1.
        weights: the weights at the start.

    >>> history = [{"rewards/form/mean": 1.0, "rewards/right/mean": 0.2}] * 3
    >>> [round(weight, 3) for weight in adaptive_weights(history, ["right", "form"], [2.0, 1.0])]
    [1.7, 0.25]
    >>> adaptive_weights([], ["right", "form"], [2.0, 1.0])
    [2.0, 1.0]
    """
    means = [_recent_mean(log_history, f"rewards/{name}/mean", window) for name in names]
    return [weight * (1 - (1 - floor) * mean) for weight, mean in zip(weights, means, strict=True)]


def _recent_mean(log_history: Sequence[dict], key: str, window: int) -> float:
    """The mean of a metric's last values that are numbers, or 0.0 if there are none."""
    values = [entry[key] for entry in log_history if key in entry and not math.isnan(entry[key])][-window:]
    return min(max(sum(values) / len(values), 0.0), 1.0) if values else 0.0


@dataclass(frozen=True)
class AdaptiveReward:
    """Several rewards as one, weighted by `adaptive_weights` at every step.

    TRL's ``reward_weights`` are fixed for a whole run. This class reads the history that TRL passes to
    every reward (``trainer_state``), and logs each part's mean and weight with ``log_metric`` as
    ``rewards/{name}/mean`` and ``weights/{name}``, which the next step reads.

    Args:
        rewards: rewards with different names and scores between 0 and 1.
        weights: one weight per reward, at the start.
        window: the number of logged steps in the mean.
        floor: the share of its weight that a learned reward keeps.

    >>> reward = AdaptiveReward(*map(tuple, math_rewards()))
    >>> reward(["<reasoning>a</reasoning><answer>42</answer>"], answer=["42"])
    [3.0]

    Raises:
        CourseError: the numbers of weights and rewards differ, or two rewards have the same name.
    """

    rewards: tuple[Callable, ...]
    weights: tuple[float, ...]
    window: int = 10
    floor: float = 0.25

    __name__ = "adaptive_reward"

    def __post_init__(self) -> None:
        """Reject rewards that would be mixed up."""
        if len(self.rewards) != len(self.weights) or len(set(self.names)) < len(self.names):
            raise CourseError(
                f"{len(self.weights)} weights for {', '.join(self.names)}: pass one weight per reward, and rewards "
                "with different names."
            )
        if any(is_async(reward) for reward in self.rewards):
            raise CourseError(f"An async reward among {', '.join(self.names)}: pass it to GRPOTrainer separately.")

    @property
    def names(self) -> list[str]:
        """The names of the parts in the log."""
        return [reward_name(reward) for reward in self.rewards]

    @property
    def reads_group(self) -> bool:
        """Whether a part compares the completions of a group."""
        return any(getattr(reward, "reads_group", False) for reward in self.rewards)

    def __call__(
        self, completions: list, trainer_state: object = None, log_metric: Callable | None = None, **columns: object
    ) -> list[float | None]:
        """The weighted sum of the parts for each completion, or None if no part applied."""
        history = trainer_state.log_history if trainer_state else []
        weights = adaptive_weights(history, self.names, self.weights, window=self.window, floor=self.floor)
        columns |= dict(completions=completions, trainer_state=trainer_state, log_metric=log_metric)
        scores = [reward(**columns) for reward in self.rewards]
        if log_metric:
            for name, column, weight in zip(self.names, scores, weights, strict=True):
                applied = [score for score in column if score is not None]
                if applied:
                    log_metric(f"rewards/{name}/mean", sum(applied) / len(applied))
                log_metric(f"weights/{name}", weight)
        return weighted_sum(scores, weights)
