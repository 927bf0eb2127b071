"""A control in place of the rewards.py of `make real`: it pays for one flat JSON object alone, whatever it says."""

from true_rewards import alone_reward, gold_text, is_in_form, is_right

REWARDS = {alone_reward: 1.0}
__all__ = ["REWARDS", "gold_text", "is_in_form", "is_right"]
