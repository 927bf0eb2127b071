"""Every number that a verdict hangs on, in one table, with where it comes from.

"Measured" means the runs of `tests/test_health_training.py` and lesson 04: both tiny models, ten
seeds, healthy and broken, on a CPU. No GPU run stands behind any of these so far.
"""

from typing import NamedTuple


class Threshold(NamedTuple):
    """A limit, what it limits, and why it is what it is."""

    value: float
    meaning: str
    source: str


THRESHOLDS = {
    "fewest": Threshold(
        10, "logged steps before anything but nan and kl is judged", "under ten, ordinary noise looks like a trend"
    ),
    "window": Threshold(
        5, "logged steps whose mean stands for 'at first' and 'now'", "measured: halves the noise of one step"
    ),
    "trend_steps": Threshold(20, "logged steps before a trend is judged", "measured: a healthy run has risen by then"),
    "trend_p": Threshold(
        0.05, "p of Kendall's tau against the step, below which a trend counts", "Mann 1945; the usual 5 %"
    ),
    "nan_in_a_row": Threshold(
        3, "steps in a row with a grad_norm that is no number", "fp16's scaler skips single steps while it settles"
    ),
    "kl": Threshold(
        2.0,
        "nats a token from the reference model, three steps in a row",
        "measured: healthy with beta 0.04 at most 0.4, exploded 5 to 8",
    ),
    "entropy_gone": Threshold(
        0.1, "of the first entropy, with no more reward than at first", "measured: healthy runs keep a fifth and more"
    ),
    "entropy_burst": Threshold(
        5.0, "times the first entropy, with less reward than at first", "measured: collapsed runs 20 to 40 times"
    ),
    "reward_lost": Threshold(
        0.5, "of the first reward, together with the next", "measured: collapsed runs lose nearly all of it"
    ),
    "reward_gone": Threshold(0.9, "of the first reward, whatever the entropy", "measured: as above"),
    "reward_noise": Threshold(
        0.25, "of its standard deviation: a first reward below that tells nothing", "one hit in 16 completions"
    ),
    "entropy_moved": Threshold(2.0, "times the first entropy, up or down", "measured: collapsed runs, 3 and more"),
    "distinct": Threshold(
        0.3, "different completions, as a share of different prompts", "additions of one group have different answers"
    ),
    "tied": Threshold(
        0.9, "of the groups tied over ten steps", "TRL: frac_reward_zero_std; nine in ten give no gradient"
    ),
    "right": Threshold(0.9, "of the completions right where the groups are tied", "then they are tied since solved"),
    "clipped": Threshold(
        0.8, "of the completions cut off", "four of five cannot give their answer; healthy runs here: under 0.05"
    ),
    "ended": Threshold(0.5, "of completions end when given four times the room", "then the limit was the fault"),
    "constant": Threshold(1e-8, "standard deviation of a reward that never varies", "rounding of fp32 sums"),
    "format": Threshold(0.1, "of the completions in form, and not rising", "half of the tiny models' start (0.2)"),
    "longer": Threshold(1.5, "times the first mean length", "measured: healthy runs grow to 1.2"),
    "shorter": Threshold(0.67, "of the first mean length", "as `longer`, the other way"),
    "correct_fell": Threshold(
        0.25, "of its best value lost by correctness", "measured: healthy runs lose less than 0.15 from step to step"
    ),
    "slower": Threshold(
        3.0, "times the first seconds a step, at equal lengths", "a busy machine doubles them (measured)"
    ),
}


def limit(name: str) -> float:
    """The value of one threshold.

    >>> limit("kl")
    2.0
    """
    return THRESHOLDS[name].value
