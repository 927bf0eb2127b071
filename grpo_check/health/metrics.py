"""What each metric that TRL logs means, in a sentence; read in TRL 1.14's trainer."""

import re
from collections.abc import Sequence

from .log import numbers_of, read_history, today

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
    "kl": "mean divergence from the reference model, nats per token; with beta = 0 not logged, or 0 (Unsloth)",
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
    """The meaning of one logged metric under its present or an older name, or "" if it is none of TRL's.

    >>> what_is("rewards/correctness_reward/mean")
    "one reward function's mean, before its weight"
    >>> what_is("completion_length")
    'tokens of a completion, on average'
    >>> what_is("my_own_metric")
    ''
    """
    return METRICS.get(_pattern(key), "")


def _pattern(key: str) -> str:
    return re.sub(r"^rewards/.+/", "rewards/NAME/", today(key))


def metrics_table(log_history: Sequence[dict]) -> str:
    """A Markdown table: each metric that a run logged, its meaning, its first and last value.

    >>> print(metrics_table([{"reward": 0.5, "step": 1}, {"reward": 2.0, "step": 2}]))
    | metric | what it means | first | last |
    |---|---|---|---|
    | `reward` | the weighted sum of all rewards, averaged over the batch: the curve to watch | 0.5 | 2 |
    | `step` | optimizer steps so far | 1 | 2 |

    Raises:
        CourseError: there is no step of a GRPO run in it.
    """
    read_history(log_history)  # raises where there is nothing to show
    steps = [raw for raw in log_history if "reward" in numbers_of(raw)]
    names = dict.fromkeys(key for raw in steps for key in raw if isinstance(key, str) and what_is(key))
    rows = []
    for key in sorted(names, key=lambda name: list(METRICS).index(_pattern(name))):
        found = [number for raw in steps for number in numbers_of({key: raw.get(key)}).values()]
        rows += [f"| `{key}` | {what_is(key)} | {found[0]:.3g} | {found[-1]:.3g} |"] if found else []
    return "\n".join(["| metric | what it means | first | last |", "|---|---|---|---|", *rows])
