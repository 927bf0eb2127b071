"""What is said of a run beside its verdict: completions that are cut off, their length, a policy that has moved."""

from collections import Counter

from ..logs.log import Log
from . import limits
from .trends import last, span


def remarks(log: Log) -> list[str]:
    """Half a sentence each."""
    cut, moved = last(log.clipped or [0.0]), max(log.values("kl"), default=0.0)
    said = [f"{cut:.0%} of the latest completions cut off"] if cut >= limits.CUT_SAID else []
    lengths = [] if log.clipped else log.values("completions/mean_length")  # near the limit, most are cut off
    said += [f"mean length {span(lengths)} tokens{_limit(lengths)}"] if lengths else []
    return said + ([f"kl up to {moved:.3g}"] if moved >= limits.KL_SAID else [])


def _limit(lengths: list[float]) -> str:
    """That the longest mean length comes again and again, so that it is the limit.

    >>> _limit([200.0] * 9 + [180.0])
    ', exactly 200 in 9 of 10 entries, which is then the limit'
    """
    most, times = Counter(lengths).most_common(1)[0]
    if most < max(lengths) or most < limits.LEAST_LIMIT or times < limits.SAME_LENGTHS:
        return ""
    return f", exactly {most:g} in {times} of {len(lengths)} entries, which is then the limit"
