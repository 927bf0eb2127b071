"""The printed report of an attack."""

from dataclasses import dataclass

from ..findings import Report
from .scoring import Paid

#: What a report without an error does not say.
LIMITS = "An attack that finds no error proves little: a larger model or more steps may find more. Raise --minutes."


@dataclass(frozen=True, repr=False)
class AttackReport(Report):
    """The result of `attack`.

    Attributes:
        findings: every finding, errors first.
        facts: what was done and what happened, in sentences.
        paid: every completion that was scored, with its score and the number of its row.
        rows: the rows that were attacked, by these numbers.
        page: the replay of the training; None if there was no step.
    """

    facts: tuple[str, ...] = ()
    paid: tuple[Paid, ...] = ()
    rows: tuple[dict, ...] = ()
    page: str | None = None

    def lines(self) -> list[str]:
        """What was done, what was found, and where to read more."""
        page = [f"The completions of the training, step by step: {self.page}"] if self.page else []
        return [*self.facts, *map(str, self.findings), *([] if self.errors else [LIMITS]), *page]
