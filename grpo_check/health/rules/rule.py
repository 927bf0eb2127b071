"""What the rules about a log have in common; see `grpo_check.rules`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...findings import Finding
from ...rules import Rule, found
from .. import limits
from ..log import Log

#: Symptoms of a policy that earns nothing.
UNPAID = ("dead_reward", "no_gradient", "no_learning", "format_ignored")
#: Symptoms of a policy that is lost.
LOST = (
    *UNPAID,
    "no_eos",
    "all_truncated",
    "length_hacking",
    "reward_hacking_suspected",
    "shrinking_completions",
    "growing_completions",
)


@dataclass(frozen=True)
class LogRule(Rule):
    """A rule about the log of a run. Its function yields what `seen` returns; its example is a log or an error's text.

    Attributes:
        hides: the codes of symptoms that it explains, which are then not listed.
        steps: how many training steps a log needs before the rule looks at it; none for the text of an error.
        early: whether it is too early to be sure, so that an error is only a warning.
        page: the page that explains the code under a heading of its own.
    """

    hides: tuple[str, ...] = ()
    steps: int = limits.FEWEST
    early: Callable[[Log], bool] | None = None
    page: str = "docs/troubleshooting.md"

    def __call__(self, log: Log) -> list[Finding]:
        """What the rule finds, each with its sentence, the step, and a link to the page."""
        if log.steps < self.steps:
            return []
        return [self._placed(one, log) for one in super().__call__(log)]

    def _placed(self, finding: Finding, log: Log) -> Finding:
        early = finding.severity == "error" and self.early is not None and self.early(log)
        return replace(
            finding,
            what=f"{finding.what or self.meaning}{f' (step {log.step})' if log.step else ''}.",
            severity="warning" if early else finding.severity,
            link=self.page and f"{self.page}#{self.code}",
        )


def seen(numbers: str, *fixes: str, what: str = "") -> Finding:
    """What a rule saw, as a sentence with its numbers; what that is, and the fixes, are the rule's own by default."""
    return found(what, "", *fixes, seen=numbers)


def log_of(steps: int, **metrics: float | Callable[[int], float]) -> list[dict]:
    """A small log for an example. Each metric is a number or a function of the step; ``__`` stands for ``/``.

    >>> log_of(2, rewards__f__mean=lambda step: step / 10)
    [{'step': 1, 'reward': 0.5, 'rewards/f/mean': 0.1}, {'step': 2, 'reward': 0.5, 'rewards/f/mean': 0.2}]
    """
    named = {"reward": 0.5} | {name.replace("__", "/"): value for name, value in metrics.items()}
    return [
        {"step": step} | {name: value(step) if callable(value) else value for name, value in named.items()}
        for step in range(1, steps + 1)
    ]
