"""What happened over the steps of the training."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from .scoring import FIRST, TRAINED, Paid

#: The first and the last steps that are compared: a fifth, and at least two.
_FEWEST = 2


@dataclass(frozen=True)
class Ends:
    """The first and the last steps.

    Attributes:
        steps: how many there were.
        first, last: mean rewards of single steps.
        right: the share of correct completions in the first and the last steps; None if not known.
    """

    steps: int
    first: list[float]
    last: list[float]
    right: tuple[float, float] | None

    def __str__(self) -> str:
        """In words.

        >>> print(Ends(20, [0.1, 0.3], [0.8, 1.0], (0.1, 0.0)))
        from the first 2 to the last 2 of 20 steps, the mean reward went from 0.2 to 0.9, correct ones from 10% to 0%
        """
        ends = f"from the first {len(self.first)} to the last {len(self.last)} of {self.steps} steps"
        said = f"{ends}, the mean reward went from {mean(self.first):.3g} to {mean(self.last):.3g}"
        if self.right is None:
            return said
        return f"{said}, correct ones from {self.right[0]:.0%} to {self.right[1]:.0%}"


def ends_of(paid: Sequence[Paid]) -> Ends | None:
    """The first and the last steps of all; None if there were too few."""
    sampled = [one for one in paid if one.source in (FIRST, TRAINED)]
    steps = sorted({one.step for one in sampled})
    size = max(_FEWEST, len(steps) // 5)
    if len(steps) < 2 * size:
        return None
    parts = [[[one for one in sampled if one.step == step] for step in some] for some in (steps[:size], steps[-size:])]
    first, last = ([mean(one.score for one in step) for step in part] for part in parts)
    known = [[one.correct for step in part for one in step if one.correct is not None] for part in parts]
    return Ends(len(steps), first, last, tuple(map(mean, known)) if all(known) else None)
