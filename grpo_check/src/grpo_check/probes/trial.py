"""What the lab observed about one reward, in the form in which the rules read it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from ..findings import Finding
from ..rule import found
from .calling import Outcome, call
from .growth import Growth
from .matrix import Case
from .planning import Plan
from .report import shown

#: Smaller differences are rounding errors.
ROUNDING = 1e-9
#: Two scores of the same completion may differ by this share of the largest score: TRL's float32 has seven digits.
SAME = 1e-5
#: The codes of faults after which nothing else can be tested.
STOPPING = "random", "unbounded_time"

Scored = tuple[Case, float]


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


@dataclass
class Trial:
    """Everything the lab observed about one reward.

    Attributes:
        reward: its name, and ``subject`` the function.
        plan: how it is probed.
        grouped: whether it compares the completions of a group.
        answered: whether its scores should depend on the answer.
        partial: whether it is one of several, whose weighted sum tells right from wrong, so it may be partial credit.
        observed: what was noticed while it was called, for each rule that reports such findings, by its code.
        scored: each completion of the matrix with its score.
        without_gold: cases with their score, their score if the gold answer is missing too, and what that is then.
        filled: series of growing filler; the first one has none.
    """

    reward: str
    subject: Callable
    plan: Plan
    grouped: bool
    observed: dict[str, list[Finding]]
    answered: bool = False
    partial: bool = False
    scored: list[tuple[Case, float | None]] = field(default_factory=list)
    without_gold: list[tuple[Case, float, float, str]] = field(default_factory=list)
    filled: list[list[tuple[Case, float | None]]] = field(default_factory=list)

    def score(self, rows: list[Case]) -> Outcome:
        """Score some completions in one batch, as TRL does."""
        return call(self.subject, rows, self.plan.chat)

    def add(self, code: str, what: str, case: Case | None = None, *fixes: str, **more: str) -> None:
        """Note a finding, see `showing`, for the rule of this code.

        Raises:
            KeyError: no rule reports what is observed under this code.
        """
        self.observed[code].append(showing(what, case, *fixes, **more))

    def add_growth(self, growth: Growth | None) -> None:
        """Note a run time that grows too fast, if there is one."""
        if growth:
            self.add("unbounded_time" if growth.endless else "slow", growth.what, growth.case, *growth.fixes)

    @property
    def stopped(self) -> bool:
        """Whether nothing else can be tested."""
        return bool(self.observed["random"]) or bool(self.observed["unbounded_time"] and not self.scored)

    @cached_property
    def rows(self) -> list[Row]:
        """The dataset rows, once everything is scored."""
        numbers = sorted({case.number for case, _ in self.scored})
        return [Row([pair for pair in self.scored if pair[0].number == number]) for number in numbers]

    @property
    def answered_rows(self) -> list[Row]:
        """The dataset rows, if the reward is tested with answers."""
        return self.rows if self.answered else []

    def differ(self, one: float | None, other: float | None) -> bool:
        """Whether two scores of the same completion are not the same."""
        if one is None or other is None:
            return one is not other
        return abs(one - other) > SAME * max((abs(score) for _, score in self.scored if score), default=0.0)


def showing(what: str, case: Case | None, *fixes: str, why: str = "", severity: str = "") -> Finding:
    """A finding with the completion that shows it, if there is one."""
    return found(what, *fixes, why=why, severity=severity, seen=shown(case.text) if case else "")


def near(wrongs: list[Scored]) -> list[Scored]:
    """Wrong answers that differ only in their distance from the gold answer; all if there are none."""
    return [pair for pair in wrongs if pair[0].id == "near"] or wrongs


def best(pairs: Iterable[Scored]) -> Scored | None:
    """The pair with the highest score."""
    return max(pairs, key=lambda pair: pair[1], default=None)


def worst(pairs: Iterable[Scored]) -> Scored | None:
    """The pair with the lowest score."""
    return min(pairs, key=lambda pair: pair[1], default=None)
