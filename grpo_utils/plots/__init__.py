"""The figures that the lessons share, each shown with a text for those who cannot see it."""

from .base import COLORS, MARKERS, show
from .diagrams import diagram, draw_diagram
from .rates import change_chart, difference_chart, length_histogram, pass_at_k_curve, pass_rate_bars
from .runs import logged, reward_and_truth, reward_curve, run_curves, show_learning, show_run_curves, weight_curve
