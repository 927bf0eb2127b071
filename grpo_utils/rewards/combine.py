"""Several rewards as one: weights, weights that adapt, and a set to start from.

    >>> rewards, weights = math_rewards()
    >>> [reward.__name__ for reward in rewards], weights
    (['correctness_reward', 'strict_format_reward', 'incremental_format_reward'], [2.0, 0.5, 0.5])

TRL multiplies each reward by its weight and adds (``GRPOConfig(reward_weights=…)``); a ``None`` adds
nothing. Rule of thumb: correctness outweighs all the rest together, so that nothing else is ever
worth a wrong answer.
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
    """Reward functions, and as many weights."""

    rewards: list[Callable]
    weights: list[float]


def math_rewards() -> RewardSet:
    """For mathematics in the course's tags; lesson 03 trains with it. At most 3.0."""
    return RewardSet([correctness_reward, strict_format_reward, incremental_format_reward], [2.0, 0.5, 0.5])


def weighted_sum(scores: Sequence[Sequence[float | None]], weights: Sequence[float]) -> list[float | None]:
    """What TRL makes of several rewards: one sum a completion; ``None`` where no reward applied.

    Args:
        scores: one list for each reward, each with one score for each completion.

    >>> weighted_sum([[1.0, 0.0, None], [1.0, None, None]], [2.0, 0.5])
    [2.5, 0.0, None]
    """
    sums = []
    for row in zip(*scores, strict=True):
        parts = [weight * score for weight, score in zip(weights, row, strict=True) if score is not None]
        sums.append(sum(parts) if parts else None)
    return sums


def group_advantages(rewards: Sequence[float], num_generations: int) -> list[float]:
    """What a group sees: each reward minus its group's mean, divided by the group's standard deviation.

    As TRL computes it with ``scale_rewards="group"``: ``(r - mean) / (std + 1e-4)``, std with ``ddof=1``
    (Shao et al. 2024, arXiv 2402.03300). Groups stand one after the other.

    >>> [round(a, 2) for a in group_advantages([3.0, 1.0, 1.0, 3.0], 4)], group_advantages([3.0, 3.0], 2)
    ([0.87, -0.87, -0.87, 0.87], [0.0, 0.0])
    """
    if num_generations < 2 or len(rewards) % num_generations:
        raise CourseError(f"{len(rewards)} rewards cannot be cut into groups of num_generations={num_generations}.")
    advantages = []
    for start in range(0, len(rewards), num_generations):
        group = rewards[start : start + num_generations]
        mean = sum(group) / len(group)
        spread = math.sqrt(sum((reward - mean) ** 2 for reward in group) / (len(group) - 1))
        advantages += [(reward - mean) / (spread + 1e-4) for reward in group]
    return advantages


def adaptive_weights(
    log_history: Sequence[dict], names: Sequence[str], weights: Sequence[float], window: int = 10, floor: float = 0.25
) -> list[float]:
    """Weights that fade as a reward is learned, from what was logged and nothing else.

    ``weight * (1 - (1 - floor) * mean)``, where ``mean`` is the reward's mean over the last
    ``window`` logged steps, held between 0 and 1: at first the full weight, ``floor`` of it once the
    reward is always earned. A pure function of the history, so a resumed run goes on with the same
    weights. All learned alike, the proportions are the first ones again.

    Args:
        log_history: ``trainer_state.log_history``, with ``rewards/{name}/mean`` entries.
        names: of the rewards, whose scores lie between 0 and 1.
        weights: at the start.

    >>> history = [{"rewards/form/mean": 1.0, "rewards/right/mean": 0.2}] * 3
    >>> [round(weight, 3) for weight in adaptive_weights(history, ["right", "form"], [2.0, 1.0])]
    [1.7, 0.25]
    >>> adaptive_weights([], ["right", "form"], [2.0, 1.0])
    [2.0, 1.0]
    """
    means = [_recent_mean(log_history, f"rewards/{name}/mean", window) for name in names]
    return [weight * (1 - (1 - floor) * mean) for weight, mean in zip(weights, means, strict=True)]


def _recent_mean(log_history: Sequence[dict], key: str, window: int) -> float:
    """The mean of a metric's last values that are numbers; 0.0 before there are any."""
    values = [entry[key] for entry in log_history if key in entry and not math.isnan(entry[key])][-window:]
    return min(max(sum(values) / len(values), 0.0), 1.0) if values else 0.0


@dataclass(frozen=True)
class AdaptiveReward:
    """Several rewards as one, weighted by `adaptive_weights` at every step.

    TRL's own ``reward_weights`` stay as they are for a whole run. This reads the history that TRL hands
    to every reward (``trainer_state``), and logs each part's mean and weight with ``log_metric``,
    so that the next step can read them: as ``rewards/{name}/mean`` and ``weights/{name}``.

    Args:
        rewards: each with scores between 0 and 1, and a name of its own.
        weights: at the start, as many.
        window: how many logged steps back the mean looks.
        floor: the share of its weight that a learned reward keeps.

    >>> reward = AdaptiveReward(*map(tuple, math_rewards()))
    >>> reward(["<reasoning>a</reasoning><answer>42</answer>"], answer=["42"])
    [3.0]

    Raises:
        CourseError: when it is made, if there are not as many weights as rewards, or two of one name.
    """

    rewards: tuple[Callable, ...]
    weights: tuple[float, ...]
    window: int = 10
    floor: float = 0.25

    __name__ = "adaptive_reward"

    def __post_init__(self) -> None:
        """Reject what would mix up parts."""
        if len(self.rewards) != len(self.weights) or len(set(self.names)) < len(self.names):
            raise CourseError(
                f"{len(self.weights)} weights for {', '.join(self.names)}: give one weight for each reward, "
                "and each reward a name of its own."
            )
        if any(is_async(reward) for reward in self.rewards):
            raise CourseError(f"An async reward among {', '.join(self.names)}: give it to GRPOTrainer on its own.")

    @property
    def names(self) -> list[str]:
        """The names under which the parts are logged."""
        return [reward_name(reward) for reward in self.rewards]

    @property
    def reads_group(self) -> bool:
        """Whether one of the parts compares completions of a group."""
        return any(getattr(reward, "reads_group", False) for reward in self.rewards)

    def __call__(
        self, completions: list, trainer_state: object = None, log_metric: Callable | None = None, **columns: object
    ) -> list[float | None]:
        """The weighted sum of the parts, a completion; None where none of them applied."""
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
