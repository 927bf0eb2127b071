"""A control in place of the rewards.py of `make real`: it pays 0 or 1 at random."""

import random

from true_rewards import gold_text, is_in_form, is_right


def coin_toss_reward(completions: list, **kwargs) -> list[float]:
    """A coin toss for each completion. The trainer's seed also seeds Python's random numbers."""
    return [float(random.random() < 0.5) for _ in completions]


REWARDS = {coin_toss_reward: 1.0}
__all__ = ["REWARDS", "gold_text", "is_in_form", "is_right"]
