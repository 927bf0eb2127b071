"""What each metric that TRL logs means, in a sentence; read in TRL 1.14's trainer."""

import re
from collections.abc import Sequence

#: A metric's name (NAME stands for a reward function's), and what it means.
METRICS = {
    "reward": "the weighted sum of all rewards, averaged over the batch: the curve to watch",
    "reward_std": "its standard deviation over the whole batch (before TRL 0.27: within groups)",
    "frac_reward_zero_std": "share of groups whose completions all scored the same: they give no gradient",
    "rewards/NAME/mean": "one reward function's mean, before its weight",
    "rewards/NAME/std": "its standard deviation over the batch; 0 at every step: a dead reward",
    "loss": "what the optimizer minimizes; says nothing about progress",
    "grad_norm": "length of the gradient before clipping; 0 where all groups tie, nan where all is lost",
    "learning_rate": "the rate of this step",
    "entropy": "mean uncertainty of the next token, in nats; how far the samples can still differ",
    "kl": "mean divergence from the reference model, nats a token; only logged where beta > 0",
    "clip_ratio/region_mean": "share of tokens whose ratio was clipped; 0 where each batch is used once",
    "clip_ratio/low_mean": "share clipped from below",
    "clip_ratio/high_mean": "share clipped from above",
    "clip_ratio/low_min": "the smallest share clipped from below, of all completions",
    "clip_ratio/high_max": "the largest share clipped from above, of all completions",
    "completions/mean_length": "tokens of a completion, on average",
    "completions/min_length": "tokens of the shortest",
    "completions/max_length": "tokens of the longest",
    "completions/clipped_ratio": "share of completions cut off at max_completion_length",
    "completions/mean_terminated_length": "tokens of those that ended by themselves; 0 if none did",
    "completions/min_terminated_length": "tokens of the shortest of these",
    "completions/max_terminated_length": "tokens of the longest of these",
    "num_tokens": "tokens seen so far, prompts and completions",
    "step_time": "seconds for a step, sampling included",
    "epoch": "share of the dataset seen",
    "step": "optimizer steps so far",
}


def what_is(key: str) -> str:
    """The meaning of one logged metric, or "" if it is none of TRL's.

    >>> what_is("rewards/correctness_reward/mean")
    "one reward function's mean, before its weight"
    >>> what_is("my_own_metric")
    ''
    """
    return METRICS.get(re.sub(r"^rewards/.+/", "rewards/NAME/", key), "")


def metrics_table(log_history: Sequence[dict]) -> str:
    """A Markdown table: each metric that a run logged, its meaning, its first and last value.

    >>> print(metrics_table([{"reward": 0.5, "step": 1}, {"reward": 2.0, "step": 2}]))
    | metric | what it means | first | last |
    |---|---|---|---|
    | `reward` | the weighted sum of all rewards, averaged over the batch: the curve to watch | 0.5 | 2 |
    | `step` | optimizer steps so far | 1 | 2 |
    """
    steps = [entry for entry in log_history if "reward" in entry]
    known = sorted((key for key in steps[-1] if what_is(key)), key=_place)
    rows = [f"| `{key}` | {what_is(key)} | {steps[0][key]:.3g} | {steps[-1][key]:.3g} |" for key in known]
    return "\n".join(["| metric | what it means | first | last |", "|---|---|---|---|", *rows])


def _place(key: str) -> int:
    return list(METRICS.values()).index(what_is(key))
