"""What several rules ask about the whole run: are its answers correct, is its reward at the top, does it learn?

A verdict says that answers are correct only because of what is found here.
"""

from dataclasses import dataclass
from math import isfinite

from grpo_core.training.measuring import wilson_interval

from ..logs.log import Log
from ..logs.names import is_share_right
from . import limits
from .trends import clearest_rise, last, rises, share_right, sigmas, span


@dataclass(frozen=True)
class Correctness:
    """The two things that show whether answers are correct: correctness rewards and samples of held-out prompts.

    Attributes:
        rewards: the rewards that measure correctness, by their names or as declared, with their first and last means.
        right, sampled: recently sampled held-out answers that were compared with gold answers.

    >>> Correctness({"accuracy": "0.2 -> 0.9"}, 12, 16).said
    'accuracy 0.2 -> 0.9, 12 of 16 sampled held-out answers correct'
    >>> Correctness({}, 0, 0).known
    False
    """

    rewards: dict[str, str]
    right: int
    sampled: int

    @property
    def known(self) -> bool:
        """Whether anything shows which answers are correct."""
        return bool(self.rewards or self.sampled)

    @property
    def said(self) -> str:
        """What there is to see, in words."""
        samples = f"{self.right} of {self.sampled} sampled held-out answers correct" if self.sampled else ""
        return ", ".join([*(f"{name} {means}" for name, means in self.rewards.items()), *filter(None, [samples])])

    @property
    def confirms_top(self) -> bool:
        """Whether a total reward at its top means correct answers: it has their rewards, or nearly all samples are."""
        return bool(self.rewards) or (bool(self.sampled) and self.right >= limits.RIGHT * self.sampled)

    @property
    def samples_wrong(self) -> bool:
        """Whether clearly fewer than half of the sampled answers are correct."""
        return bool(self.sampled) and wilson_interval(self.right, self.sampled)[1] < limits.HALF


def correctness_of(log: Log) -> Correctness:
    """What a log shows about correctness; samples count only if they are as recent as the means that are compared."""
    means = {name: span(log.means(name)) for name in log.of_kind("correctness")}
    since = log.entries[-min(limits.WINDOW, len(log.entries))]["step"]
    counts = [check for check in log.checks if "health/heldout_right" in check and check.get("step", 0) >= since]
    newest = counts[-1] if counts else {}
    right, sampled = (newest.get(f"health/heldout_{name}", 0.0) for name in ("right", "sampled"))
    if not (isfinite(right) and isfinite(sampled) and 0 <= right <= sampled):
        right = sampled = 0
    return Correctness(means, int(right), int(sampled))


def is_favorable(log: Log) -> bool:
    """Whether what is known speaks for the run: correctness rose or is high, and samples do not contradict it.

    Correctness need not have risen before `limits.TREND_STEPS`.
    """
    shown = correctness_of(log)
    if shown.samples_wrong or not shown.known:
        return False
    names = log.of_kind("correctness")
    rose = any(sigmas(log.means(name)) >= limits.LIKELY for name in names)
    high = any(is_high(log, name) for name in names)
    high = high or (bool(shown.sampled) and shown.right >= limits.HALF * shown.sampled)
    return rose or high or log.steps < limits.TREND_STEPS


def is_high(log: Log, name: str) -> bool:
    """Whether half of what a reward can pay is earned now; its spreads show what it can pay, and a share pays 1."""
    means, spreads = log.scores(name)
    if not spreads and is_share_right(name):
        return max(means) <= 1 and last(means) >= limits.HALF
    return bool(spreads) and share_right(means, spreads) >= limits.HALF


def is_at_top(log: Log) -> bool:
    """Whether nearly all is earned that can be: by the correctness rewards, otherwise by a total that has risen."""
    names = log.of_kind("correctness")
    if not names:
        return share_right(*log.scores()) >= limits.RIGHT and rises(log.values("reward"))
    # What never varied says nothing, unless it is 1.0, a usual accuracy.
    known = [log.ever_varied(name) or log.means(name)[-1] == 1.0 for name in names]
    return all(known) and all(share_right(*log.scores(name)) >= limits.RIGHT for name in names)


def is_learning(log: Log) -> bool:
    """Whether the total or any reward has probably risen within the last hundred steps."""
    curves = [log.values("reward", limits.FLAT_STEPS)]
    curves += [log.values(f"rewards/{name}/mean", limits.FLAT_STEPS) for name in log.rewards]
    return any(clearest_rise(curve) >= limits.LIKELY for curve in curves)
