"""The scores of one dataset row's completions, as the rules read them."""

import re
from collections.abc import Iterable

from ..matrix import Case
from ..trying.trial import Scored, Trial


class Row:
    """The scores of one dataset row's completions. All attributes except ``scored`` leave out scores of None."""

    def __init__(self, scored: list[tuple[Case, float | None]]):
        self.scored = scored
        self.pairs = [(case, score) for case, score in scored if score is not None]
        self.clean = self.get("clean")
        self.right = worst(self.of("clean"))
        self.nothing = self.get("nothing")
        wrongs = [pair for pair in self.of("wrong") if pair[0].id != "untagged wrong"]  # in the requested format
        self.most_for_wrong = max([0.0, *(score for _, score in wrongs)])
        plain = sorted(near(wrongs), key=lambda pair: pair[1])
        self.usual_wrong = plain[len(plain) // 2] if plain else None

    def of(self, *roles: str) -> list[Scored]:
        """The completions with these roles."""
        return [pair for pair in self.pairs if pair[0].role in roles]

    def get(self, id: str) -> Scored | None:
        """The completion with this id, if there is one."""
        return next((pair for pair in self.pairs if pair[0].id == id), None)


def rows_of(trial: Trial) -> list[Row]:
    """The dataset rows of a trial."""
    numbers = sorted({case.number for case, _ in trial.scored})
    return [Row([pair for pair in trial.scored if pair[0].number == number]) for number in numbers]


def answered_rows(trial: Trial) -> list[Row]:
    """The dataset rows, if the reward is tested with answers, and in a format in which a right one is paid.

    In another format, an example of the user's may be paid, and then the others say nothing.
    """
    if not trial.answered:
        return []
    rows = rows_of(trial)
    row = None if trial.plan.told else row_of_example(rows)
    own, clean = (row.get("example"), row.clean) if row else (None, None)
    return [] if own and clean and own[1] > clean[1] else rows


def row_of_example(rows: list[Row]) -> Row | None:
    """The row that pays an example of the user's most; None if there is no example."""
    shown = [row for row in rows if row.get("example")]
    return max(shown, key=lambda row: row.get("example")[1], default=None)


def near(wrongs: list[Scored]) -> list[Scored]:
    """Wrong answers that differ only in their distance from the gold answer; all if there are none."""
    return [pair for pair in wrongs if pair[0].id == "near"] or wrongs


def alike(pairs: list[Scored]) -> list[list[Scored]]:
    """The pairs whose completions differ only in digits, each group of them.

    A reward that asks for an integer pays 43 and not 42.84, however near either is.
    """
    groups: dict[str, list[Scored]] = {}
    for case, score in pairs:
        groups.setdefault(re.sub(r"[0-9]+", "0", case.text), []).append((case, score))
    return list(groups.values())


def best(pairs: Iterable[Scored]) -> Scored | None:
    """The pair with the highest score."""
    return max(pairs, key=lambda pair: pair[1], default=None)


def worst(pairs: Iterable[Scored]) -> Scored | None:
    """The pair with the lowest score."""
    return min(pairs, key=lambda pair: pair[1], default=None)
