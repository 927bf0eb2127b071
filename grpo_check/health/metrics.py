"""The meaning of each metric that TRL logs, from the trainer of TRL 1.14."""

import re
from collections.abc import Sequence

from .log import numbers_of, read_history, today

#: Each metric and its meaning. NAME is the name of a reward function.
METRICS = {
    "reward": "the weighted sum of all rewards, averaged over the batch: the curve to watch",
    "reward_std": "standard deviation of the reward over the whole batch (before TRL 0.27: within groups)",
    "frac_reward_zero_std": "share of groups whose completions all scored the same, which give no gradient",
    "rewards/NAME/mean": "mean of one reward function, before its weight",
    "rewards/NAME/std": "standard deviation of one reward function over the batch; 0 at every step means a dead reward",
    "loss": "the value that the optimizer minimizes; it does not show progress",
    "grad_norm": "norm of the gradient before clipping; 0 if all groups tie, nan if the run has diverged",
    "learning_rate": "the learning rate of this step",
    "entropy": "mean entropy of the next token, in nats; it shows how much samples can still differ",
    "kl": "mean divergence from the reference model, in nats per token; with beta = 0 not logged, or 0 (Unsloth)",
    "clip_ratio/region_mean": "share of tokens whose ratio was clipped; 0 if each batch is used once",
    "clip_ratio/low_mean": "share of tokens clipped from below",
    "clip_ratio/high_mean": "share of tokens clipped from above",
    "clip_ratio/low_min": "the smallest share clipped from below in any completion",
    "clip_ratio/high_max": "the largest share clipped from above in any completion",
    "completions/mean_length": "mean length of a completion in tokens",
    "completions/min_length": "length of the shortest completion",
    "completions/max_length": "length of the longest completion",
    "completions/clipped_ratio": "share of completions cut off at max_completion_length",
    "completions/mean_terminated_length": "mean length of completions that ended by themselves; 0 if none did",
    "completions/min_terminated_length": "length of the shortest of these",
    "completions/max_terminated_length": "length of the longest of these",
    "num_tokens": "tokens seen so far, in prompts and completions",
    "step_time": "seconds per step, including sampling",
    "epoch": "passes over the dataset so far",
    "step": "optimizer steps so far",
}


def what_is(key: str) -> str:
    """The meaning of a logged metric, by its current or an older name, or "" if TRL does not log it.

    >>> what_is("rewards/correctness_reward/mean")
    "mean of one reward function, before its weight"
    >>> what_is("completion_length")
    'mean length of a completion in tokens'
    >>> what_is("my_own_metric")
    ''
    """
    return METRICS.get(_pattern(key), "")


def _pattern(key: str) -> str:
    return re.sub(r"^rewards/.+/", "rewards/NAME/", today(key))


def metrics_table(log_history: Sequence[dict]) -> str:
    """A Markdown table of the metrics that a run logged: meaning, first value and last value.

    >>> print(metrics_table([{"reward": 0.5, "step": 1}, {"reward": 2.0, "step": 2}]))
    | metric | meaning | first | last |
    |---|---|---|---|
    | `reward` | the weighted sum of all rewards, averaged over the batch: the curve to watch | 0.5 | 2 |
    | `step` | optimizer steps so far | 1 | 2 |

    Raises:
        CourseError: the log contains no step of a GRPO run.
    """
    read_history(log_history)  # raises if there is nothing to show
    steps = [raw for raw in log_history if "reward" in numbers_of(raw)]
    names = dict.fromkeys(key for raw in steps for key in raw if isinstance(key, str) and what_is(key))
    rows = []
    for key in sorted(names, key=lambda name: list(METRICS).index(_pattern(name))):
        found = [number for raw in steps for number in numbers_of({key: raw.get(key)}).values()]
        rows += [f"| `{key}` | {what_is(key)} | {found[0]:.3g} | {found[-1]:.3g} |"] if found else []
    return "\n".join(["| metric | meaning | first | last |", "|---|---|---|---|", *rows])
