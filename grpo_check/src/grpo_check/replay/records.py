"""A recorded run: steps, each with groups, each with completions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from ..logs.log import Log

#: The characters of a value of a further column that are kept.
EXTRA_LENGTH = 300


@dataclass(frozen=True)
class Completion:
    """One completion and what it earned.

    Attributes:
        rewards: one value per reward function; None where a function did not score it.
        advantage: None where it was not logged.
        extras: the values of further columns, as text.
    """

    text: str
    rewards: tuple[float | None, ...] = ()
    advantage: float | None = None
    extras: tuple[str, ...] = ()

    def total(self, weights: Sequence[float]) -> float | None:
        """The weighted sum of its rewards, as TRL adds them: without those that did not score it.

        >>> Completion("4", (1.0, None, 0.5)).total((2.0, 1.0, 1.0))
        2.5
        """
        paid = [each * weight for each, weight in zip(self.rewards, weights, strict=True) if each is not None]
        return sum(paid) if paid else None


@dataclass(frozen=True)
class Group:
    """The completions of one prompt in one step."""

    prompt: str
    completions: tuple[Completion, ...]

    @property
    def is_tied(self) -> bool:
        """Whether all completions earned the same, so that the group teaches nothing.

        Otherwise the advantages decide where they were logged, because a reward may have the weight 0. They alone do
        not show it: in float32, equal rewards can have advantages of about 0.001.
        """
        if len({each.rewards for each in self.completions}) == 1 and self.completions[0].rewards:
            return True
        advantages = [each.advantage for each in self.completions]
        if None not in advantages:
            return all(abs(advantage) < 1e-6 for advantage in advantages)
        return False


@dataclass(frozen=True)
class Step:
    """What was sampled for one step."""

    number: int
    groups: tuple[Group, ...]

    @property
    def completions(self) -> Iterator[Completion]:
        """The completions of all groups."""
        return (each for group in self.groups for each in group.completions)


@dataclass(frozen=True)
class Recording:
    """A run as it was found in its folder.

    Attributes:
        name: the name of the folder.
        rewards: the names of the reward functions.
        extras: the names of further columns.
        steps: the steps whose completions were logged, in order.
        log: the log of the trainer; None if there is none.
        notes: what a reader should know: files that could not be read, columns that are missing, what was left out.
        held_out: whether these are samples of held-out prompts, which have no groups.
        story: what a reader should look for, and ``ending`` what came of it, which is told at the last step.
        weights: the weights of the rewards by name, if a report of the run has them.
    """

    name: str
    rewards: tuple[str, ...]
    extras: tuple[str, ...]
    steps: tuple[Step, ...]
    log: Log | None = None
    notes: tuple[str, ...] = field(default=())
    held_out: bool = False
    story: str = ""
    ending: str = ""
    weights: dict[str, float] = field(default_factory=dict)

    def noting(self, *notes: str) -> Self:
        """The same recording with further notes."""
        return replace(self, notes=(*self.notes, *filter(None, notes)))


def number_of(value: object) -> float | None:
    """A finite float, or None: TRL logs NaN where a reward function returned None.

    >>> number_of(1), number_of(None), number_of(float("nan")), number_of("much")
    (1.0, None, None, None)
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known.

    >>> mean_of([1.0, None, 0.0])
    0.5
    """
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
