"""Is the length right? Counted in tokens (``completion_ids``), which is what generation costs.

    >>> TargetLengthReward(tokens=100)([""] * 3, completion_ids=[[0] * 50, [0] * 100, [0] * 300])
    [0.5, 1.0, 0.0]

Characters and words are other lengths: never use ``len(text)`` for this. Against over-long answers
take TRL's ``get_soft_overlong_punishment(max_completion_len, soft_punish_cache)``, DAPO's formula
(Yu et al. 2025, arXiv 2503.14476, eq. 13). All length rewards are gamed by filler: keep their
weight small and correctness beside them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import CourseError


def _check_tokens(tokens: int) -> None:
    if tokens < 1:
        raise CourseError(f"tokens={tokens}: a length is a positive number of tokens.")


@dataclass(frozen=True)
class TargetLengthReward:
    """1.0 at ``tokens`` tokens, falling in a straight line to 0.0 at none and at twice as many.

    ``max(0, 1 - |length - tokens| / tokens)``. Gamed by: filler up to the target.

    >>> TargetLengthReward(tokens=10)(["", ""], completion_ids=[[1] * 8, [1] * 25])
    [0.8, 0.0]
    """

    tokens: int

    __name__ = "target_length_reward"

    def __post_init__(self) -> None:
        """Refuse a target that divides by zero."""
        _check_tokens(self.tokens)

    def __call__(
        self, completions: Sequence[object], completion_ids: Sequence[Sequence[int]], **kwargs: object
    ) -> list[float]:
        """Between 0.0 and 1.0 a completion."""
        return [max(0.0, 1.0 - abs(len(ids) - self.tokens) / self.tokens) for ids in completion_ids]


@dataclass(frozen=True)
class MinimumLengthReward:
    """1.0 from ``tokens`` tokens on, below that the share reached.

    ``min(1, length / tokens)``. Gamed by: filler, which it cannot tell from reasoning.

    >>> MinimumLengthReward(tokens=10)(["", ""], completion_ids=[[1] * 5, [1] * 25])
    [0.5, 1.0]
    """

    tokens: int

    __name__ = "minimum_length_reward"

    def __post_init__(self) -> None:
        """Refuse a minimum that divides by zero."""
        _check_tokens(self.tokens)

    def __call__(
        self, completions: Sequence[object], completion_ids: Sequence[Sequence[int]], **kwargs: object
    ) -> list[float]:
        """Between 0.0 and 1.0 a completion."""
        return [min(1.0, len(ids) / self.tokens) for ids in completion_ids]
