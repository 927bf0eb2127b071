"""How many right forms of an answer a reward pays too little, and how many wrong ones too much."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..trying.trial import ROUNDING, Scored, Trial
from .rows import Row, rows_of

#: Scores of equally right (or wrong) answers may differ (by length, say) by this share of the gap between both.
SLACK = 0.02
#: How many forms a line names.
_MOST_NAMED = 4


@dataclass(frozen=True)
class Count:
    """How many forms there are, and which of them are paid as they should not be."""

    of: int
    amiss: list[str]

    def __str__(self) -> str:
        """The count, with the first few names."""
        more = f" and {len(self.amiss) - _MOST_NAMED} more" if len(self.amiss) > _MOST_NAMED else ""
        named = f": {'; '.join(self.amiss[:_MOST_NAMED])}{more}" if self.amiss else ""
        return f"{len(self.amiss)} of {self.of}{named}"


def underpaid(trial: Trial) -> Count:
    """The right forms that earn less than the plain one, in any row."""
    return _count(trial, ("clean", "writing"), lambda row, low, pair: pair[1] < row.clean[1] - _slack(row, low))


def overpaid(trial: Trial) -> Count:
    """The wrong forms that earn more than a usual wrong one, in any row.

    For a reward that does not depend on the answer: the broken formats that earn as much as a whole one.
    """
    if trial.answered:
        return _count(trial, ("wrong", "missing", "hedge"), lambda row, low, pair: pair[1] > low + _slack(row, low))
    return _count(trial, ("broken",), lambda row, low, pair: pair[1] >= row.clean[1] - ROUNDING)


def _count(trial: Trial, roles: tuple[str, ...], is_amiss: Callable) -> Count:
    """The forms with some roles, and those that are amiss in a row where a right answer earns more than a wrong one."""
    forms: dict[str, bool] = {}
    for row, low in _telling(trial):
        for pair in row.of(*roles):
            if not trial.answered and pair[0].role == "clean" and pair[0].id not in ("clean", "lines"):
                continue  # what is a wrong answer where there are answers
            forms[pair[0].what] = forms.get(pair[0].what, False) or is_amiss(row, low, pair)
    names = [what.removeprefix("correct, ") for what, amiss in forms.items() if amiss]
    return Count(len(forms), names)


def _telling(trial: Trial) -> Iterator[tuple[Row, float]]:
    """The rows in which a right answer earns more than a usual wrong one, or than none, and what that earns."""
    for row in rows_of(trial):
        low: Scored | None = row.usual_wrong if trial.answered else row.nothing
        if row.clean and low and row.clean[1] > low[1] + ROUNDING:
            yield row, low[1]


def _slack(row: Row, low: float) -> float:
    return SLACK * (row.clean[1] - low) + ROUNDING
