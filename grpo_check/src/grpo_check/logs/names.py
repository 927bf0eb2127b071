"""What names mean: which metric of TRL a name is, and whether a reward measures correctness, format or length."""

import re
from functools import lru_cache

#: The metrics that are read, and the other names that they have. The first of them that an entry has counts.
SPELLINGS = {
    # W&B has its own count of steps; ms-swift writes "5/100"; a notebook's table has a column "Step".
    "step": (
        "global_step",
        "training/global_step",
        "step",
        "Step",
        "global_step/max_steps",
        "iteration",
        "trainer/global_step",
        "_step",
    ),
    "loss": ("loss", "Training Loss"),
    "reward": (
        *("reward", "mean_reward", "reward_mean", "reward/mean", "avg_reward"),
        *("critic/score/mean", "critic/rewards/mean", "critic_score_mean", "critic_rewards_mean"),  # verl
    ),
    "reward_std": ("reward_std", "reward/std"),
    "completions/clipped_ratio": (
        *("completions/clipped_ratio", "clipped_ratio", "truncation_rate", "truncated_ratio"),
        *("response_length/clip_ratio", "response_length_clip_ratio"),  # verl
    ),
    "completions/mean_length": (
        *("completions/mean_length", "completion_length"),  # TRL until 0.16; Unsloth has both
        *("mean_completion_length", "completion_length_mean"),
        *("response_length/mean", "response_length_mean"),  # verl
    ),
    "entropy": ("entropy", "entropy/mean", "actor/entropy", "actor/entropy_loss"),  # ms-swift, verl
    "kl": ("kl", "actor/kl_loss", "actor_kl_loss"),
    "grad_norm": ("grad_norm", "actor/grad_norm", "actor_grad_norm"),
    "learning_rate": ("learning_rate", "actor/lr"),
}
_KNOWN = {name: (metric, rank) for metric, names in SPELLINGS.items() for rank, name in enumerate(names)}
#: The mean of a reward in TRL until 0.16, without its ``/mean``.
_REWARD = re.compile(r"rewards/[^/]+")
#: Shares of correct answers that a trainer of one's own logs beside its rewards.
_SHARE_RIGHT = re.compile(
    r"(?:train_|mean_|batch_)?(?:accuracy|acc|exact_match|pass@1|(?:correct|solve|solved|success|pass)_rate)"
)
#: The words of each kind of reward; the first kind with a word of the name counts.
_KIND_WORDS = (
    ("penalty", "penalty punish punishment overlong repetition copyright"),
    ("length", "length long longer short shorter brevity tokens words verbosity"),
    ("correctness", "correct correctness accuracy accurate"),
    (
        "form",
        "format formatting formatted xml xmlcount tag tags think json structure structured style strict soft form",
    ),
    ("correctness", "answer answers exact solve solved solves truth right verify verified verifiable"),
    ("correctness", "numbers equation math gsm8k countdown test tests pass success succeed succeeds succeeded"),
)


def in_words_of_trl(entry: dict) -> dict:
    """An entry of a log under TRL's names, whoever wrote it.

    >>> in_words_of_trl({"train/global_step": 5, "_step": 9, "train/rewards/f": 0.5, "completion_length": 80.0})
    {'step': 5, 'rewards/f/mean': 0.5, 'completions/mean_length': 80.0}
    """
    ranked: dict[str, tuple[int, object]] = {}
    for name, value in entry.items():
        if isinstance(name, str):
            metric, rank = metric_of(name)
            if metric not in ranked or (rank < ranked[metric][0] and value is not None):
                ranked[metric] = rank, value
    return {metric: value for metric, (_, value) in ranked.items()}


@lru_cache(maxsize=1000)
def metric_of(name: str) -> tuple[str, int]:
    """The name of a metric in TRL, and how many spellings count before this one.

    >>> metric_of("train/reward"), metric_of("rewards / f / mean"), metric_of("Step")
    (('reward', 0), ('rewards/f/mean', 0), ('step', 3))
    >>> metric_of("train/accuracy")  # as a reward with weight 0
    ('rewards/accuracy/mean', 2)
    """
    plain = "/".join(map(str.strip, name.split("/"))).removeprefix("train/")  # W&B; a notebook's table has spaces
    if plain.startswith("eval/"):
        plain = f"eval_{plain[5:]}"
    if _REWARD.fullmatch(plain):
        return f"{plain}/mean", 1
    if is_share_right(plain):
        return f"rewards/{plain}/mean", 2
    return _KNOWN.get(plain) or _KNOWN.get(plain.lower(), (plain, 0))


def is_share_right(name: str) -> bool:
    """Whether a metric is a share of correct answers, from 0 to 1, by its name.

    >>> is_share_right("accuracy"), is_share_right("accuracy_reward")
    (True, False)
    """
    return _SHARE_RIGHT.fullmatch(name.lower()) is not None


def kind_of(name: str) -> str:
    """``correctness``, ``form``, ``length``, ``penalty`` or ``other``.

    >>> [kind_of(name) for name in ("correctness_reward", "match_format_exactly", "soft_overlong_punishment")]
    ['correctness', 'form', 'penalty']
    >>> [kind_of(name) for name in ("strict_correctness_reward", "answer_length_reward", "stage_reward")]
    ['correctness', 'length', 'other']
    """
    words = set(re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().replace("-", "_").split("_"))
    return next((kind for kind, known in _KIND_WORDS if words & {*known.split()}), "other")
