"""The first of two stages in place of the rewards.py of `make real`: it pays for the form, and reads no value."""

from true_rewards import alone_reward, gold_text, is_in_form, is_right, keys_reward

REWARDS = {keys_reward: 0.5, alone_reward: 0.5}
__all__ = ["REWARDS", "gold_text", "is_in_form", "is_right"]
