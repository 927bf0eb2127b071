"""One reward, and everything that was seen of it while it was called, in the form in which the rules read it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ...findings import Finding
from ...rule import found
from ..calling import Outcome, Printed, call, reads_group
from ..matrix import Case
from ..report import shown
from .planning import Plan

#: Smaller differences are rounding errors.
ROUNDING = 1e-9
#: Two scores of the same completion may differ by this share of the largest score: TRL's float32 has seven digits.
SAME = 1e-5
#: The codes of the faults that show while a reward is called.
OBSERVED = ("raises", "wrong_length", "not_finite", "unbounded_time", "random", "changes_inputs", "runs_model_text")
OBSERVED += ("order_dependent", "mixes_groups", "chat_only", "string_only", "slow")
#: Those after which nothing else can be tested.
STOPPING = "random", "unbounded_time"
#: Seconds that a call may wait, and how many more for each completion.
IDLE, IDLE_EACH = 20.0, 0.5

Scored = tuple[Case, float]


class NotJudgedError(Exception):
    """The reward cannot be tried further: the reason, and what to do, as sentences."""


class SpentError(Exception):
    """As many completions as asked for have been scored."""


@dataclass
class Trial:
    """Everything that was seen of one reward.

    Attributes:
        name: of the reward.
        reward: the function.
        plan: with what it is tried.
        most: the most completions that it may be called with; None for no limit.
        tried: how many it was called with so far.
        grouped: whether it compares the completions of a group.
        answered: whether its scores should depend on the answer.
        partial: whether it is one of several, whose weighted sum tells right from wrong, so it may be partial credit.
        length_alone: whether it scores the length of a text, and nothing that is in it.
        not_judged: why it could not be tried, and what to do; "" if it was.
        observed: what was noticed while it was called, by the code of the rule that reports it.
        scored: each completion of the matrix with its score.
        without_gold: cases with their score, their score if the gold answer is missing too, and what that is then.
        filled: series of growing filler; the first one has none.
        prints: what it printed, and ``logs`` what it wrote to stderr.
        reached: what it reached for outside of this process, in words, and whether that is an address.
    """

    name: str
    reward: Callable
    plan: Plan
    most: int | None = None
    tried: int = 0
    grouped: bool = False
    answered: bool = False
    partial: bool = False
    length_alone: bool = False
    not_judged: str = ""
    observed: dict[str, list[Finding]] = field(default_factory=lambda: {code: [] for code in OBSERVED})
    scored: list[tuple[Case, float | None]] = field(default_factory=list)
    without_gold: list[tuple[Case, float, float, str]] = field(default_factory=list)
    filled: list[list[tuple[Case, float | None]]] = field(default_factory=list)
    prints: Printed = field(default_factory=Printed)
    logs: Printed = field(default_factory=Printed)
    reached: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.grouped = reads_group(self.reward)

    def score(self, rows: list[Case], *, chat: bool | None = None, cpu: float | None = None) -> Outcome:
        """Score some completions in one batch, as TRL does.

        Args:
            rows: the completions.
            chat: whether they are messages; by default as planned.
            cpu: seconds of processor time after which the call is cut off.

        Raises:
            NotJudgedError: the reward waits for something that does not come.
            SpentError: these would be more completions than it may be called with.
        """
        if self.most is not None and self.tried + len(rows) > self.most:
            raise SpentError
        self.tried += len(rows)
        kind, idle = self.plan.chat if chat is None else chat, IDLE + IDLE_EACH * len(rows)
        seen = dict(prints=self.prints, logs=self.logs, reached=self.reached)
        outcome = call(self.reward, rows, kind, cpu=cpu, idle=idle, **seen)
        if outcome.code == "stuck":
            raise NotJudgedError(
                f"a call with {len(rows)} completion{'s' * (len(rows) > 1)} was {outcome.error}, while the processor "
                "was free, so it waits for something, such as a server. Start that, or put an upper limit on the wait."
            )
        return outcome

    def needs_from_outside(self) -> str:
        """What this reward reaches for outside of its process, as the end of a sentence; "" if it does not."""
        first = " and ".join([*self.reached][:2])
        return first and f"and it {first}. Run it where what it needs is at hand, or start that."

    def add(self, code: str, what: str, case: Case | None = None, *fixes: str, severity: str = "") -> None:
        """Note a finding for the rule of this code, with the completion that shows it.

        Raises:
            KeyError: no rule reports what is observed under this code.
        """
        self.observed[code].append(found(what, *fixes, severity=severity, seen=shown(case.text) if case else ""))

    @property
    def stopped(self) -> bool:
        """Whether nothing else can be tested."""
        return bool(self.not_judged or self.observed["random"] or (self.observed["unbounded_time"] and not self.scored))

    @property
    def all_equal(self) -> bool:
        """Whether all completions have the same score."""
        return len(self.scored) > 1 and len({score for _, score in self.scored}) == 1

    def differ(self, one: float | None, other: float | None) -> bool:
        """Whether two scores of the same completion are not the same."""
        if one is None or other is None:
            return one is not other
        return abs(one - other) > SAME * max((abs(score) for _, score in self.scored if score), default=0.0)
