"""The figures that the lessons share, each shown with a text for those who cannot see it."""

from .base import COLORS, MARKERS, show
from .diagrams import diagram
from .rates import (
    length_histogram,
    pass_rate_bars,
    show_before_and_after,
    show_changes,
    show_differences,
    show_pass_at_k,
    show_points,
    show_shares,
)
from .runs import (
    logged,
    reward_and_truth,
    reward_curve,
    show_reward_and_accuracy,
    show_reward_and_truth,
    show_rewards,
    show_run_curves,
)
from .tokens import show_tokens
