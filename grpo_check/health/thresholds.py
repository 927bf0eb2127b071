"""Every number that a verdict hangs on, in one table, with where it comes from.

"Measured" means the runs of `tests/test_health_training.py` and lesson 04: both tiny models, ten
seeds, healthy and broken, on a CPU. "Simulated" means the logs of `tests/health_logs.py`, drawn after
published runs. No GPU run stands behind any of these so far.
"""

from typing import NamedTuple


class Threshold(NamedTuple):
    """A limit, what it limits, and why it is what it is."""

    value: float
    meaning: str
    source: str


THRESHOLDS = {
    "fewest": Threshold(
        10, "training steps before anything but nan, kl and strings is judged", "half of what a verdict may take"
    ),
    "window": Threshold(5, "entries whose mean stands for 'now'", "halves the noise of a single entry (1 / sqrt 5)"),
    "sure": Threshold(
        5.0, "standard errors that make a change sure", "simulated: asked at every step, three would cry wolf"
    ),
    "risen": Threshold(
        3.5, "standard errors by which a reward has risen", "simulated: noise alone passes it in one of 250 looks"
    ),
    "recent": Threshold(60, "training steps that a hack may take to show", "simulated: a late hack within one run"),
    "trend_steps": Threshold(
        20, "training steps before a trend is judged", "measured: a healthy run has risen by then"
    ),
    "likely": Threshold(
        2.0, "standard errors of a rise, below which a reward is said not to rise", "one in ten flat runs passes it"
    ),
    "patience": Threshold(
        100, "training steps after which 'the reward does not rise' is an alarm", "simulated: GSM8K rises within these"
    ),
    "nan_in_a_row": Threshold(
        3, "entries in a row with a grad_norm that is no number", "fp16's scaler skips single steps while it settles"
    ),
    "kl": Threshold(
        2.0, "nats a token from the reference model, three times running", "measured: healthy to 0.4, exploded 5 to 16"
    ),
    "entropy_gone": Threshold(
        0.05, "of the first entropy, with no more reward than at first", "measured: healthy runs keep a fifth and more"
    ),
    "entropy_burst": Threshold(
        5.0, "times the first entropy, with no more reward than at first", "measured: collapsed runs 20 to 40 times"
    ),
    "entropy_moved": Threshold(2.0, "times the first entropy, up or down, with a lost reward", "measured: 3 and more"),
    "reward_lost": Threshold(0.75, "of the best reward, surely, with a second sign", "measured: nearly all is lost"),
    "distinct": Threshold(
        0.3, "different completions for each different gold answer", "different questions have different answers"
    ),
    "tied_surely": Threshold(
        0.7, "of the groups tied, the low end of the interval over the steps", "ten of ten steps, or 18 of 20"
    ),
    "right": Threshold(0.9, "of the completions right", "with nine in ten right, most groups of eight tie"),
    "clipped": Threshold(
        0.8, "of the completions cut off", "four of five cannot give their answer; healthy runs here: under 0.05"
    ),
    "at_limit": Threshold(
        0.95, "of the greatest mean length, in logs that do not say what was cut off", "cut ones pull the mean up"
    ),
    "short_limit": Threshold(
        32,
        "tokens, the least that is taken for such a limit",
        "chosen: shorter ones may be answers that all have one length",
    ),
    "ended": Threshold(0.5, "of completions end when given four times the room", "then the limit was the fault"),
    "constant": Threshold(1e-8, "standard deviation of a reward that does not vary", "rounding of fp32 sums"),
    "format": Threshold(
        0.05, "of the completions in form, and not rising", "a quarter of the tiny models' start (0.2)"
    ),
    "longer": Threshold(1.5, "times the mean length before", "measured: healthy runs grow to 1.2"),
    "shorter": Threshold(0.67, "of the mean length before", "as `longer`, the other way"),
    "correct_fell": Threshold(
        0.4,
        "of its best value lost by correctness, surely",
        "simulated: healthy runs of small batches lose 0.3 by noise",
    ),
    "matters": Threshold(
        0.1,
        "of what a reward can pay, below which a change is small",
        "five steps of 8 completions: a standard error of 0.08",
    ),
    "stalled": Threshold(
        10.0,
        "times the median step without the end of one",
        "chosen: only steps are timed, so evaluation, checkpoints and samples may take longer",
    ),
    "stalled_seconds": Threshold(
        30.0, "seconds at least before a step is called stalled", "chosen: a compilation, a busy machine"
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
