"""Combine several rewards: weights, and a set of rewards to start from.

    >>> rewards, weights = math_rewards()
    >>> [reward.__name__ for reward in rewards], weights
    (['correctness_reward', 'strict_format_reward', 'incremental_format_reward'], [2.0, 0.5, 0.5])

TRL adds up the rewards times their weights (``GRPOConfig(reward_weights=…)``); a ``None`` adds
nothing. Rule of thumb: give correctness more weight than all other rewards together, so that a wrong
answer never earns more than a correct one to the same prompt. In a group that is all correct or all wrong,
the other rewards still decide, at any weight (docs/rewards.md, "How a policy exploits each reward").
"""

from collections.abc import Callable, Sequence
from statistics import mean, stdev
from typing import NamedTuple

from ..errors import CourseError
from .correctness import correctness_reward
from .format import incremental_format_reward, strict_format_reward


class RewardSet(NamedTuple):
    """Reward functions and their weights."""

    rewards: list[Callable]
    weights: list[float]


def math_rewards() -> RewardSet:
    """Rewards to start from, for mathematics in the course's tags. The maximum is 3.0."""
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


def group_advantages(rewards: Sequence[float], num_generations: int) -> list[float]:
    """The advantages: each reward minus its group's mean, divided by the group's standard deviation.

    As TRL computes them with ``scale_rewards="group"``: ``(r - mean) / (std + 1e-4)``, std with ``ddof=1``
    (Shao et al. 2024, arXiv 2402.03300). The rewards of a group follow one another.

    >>> [round(a, 2) for a in group_advantages([3.0, 1.0, 1.0, 3.0], 4)], group_advantages([3.0, 3.0], 2)
    ([0.87, -0.87, -0.87, 0.87], [0.0, 0.0])
    """
    if num_generations < 2 or len(rewards) % num_generations:
        raise CourseError(f"{len(rewards)} rewards are not divisible by num_generations={num_generations}.")
    advantages = []
    for start in range(0, len(rewards), num_generations):
        group = rewards[start : start + num_generations]
        advantages += [(reward - mean(group)) / (stdev(group) + 1e-4) for reward in group]
    return advantages
