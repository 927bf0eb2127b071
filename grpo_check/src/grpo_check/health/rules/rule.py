"""What the rules about a log have in common; see `grpo_check.rule`."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ...findings import Finding
from ...logs.log import Log
from ...rule import Rule
from .. import limits

#: Kinds of symptoms: rewards teach nothing, completions do not end, their lengths change, or a reward is hacked.
UNPAID, ENDLESS, LENGTH, HACKED = "unpaid", "endless", "length", "hacked"
#: All that a lost policy explains.
LOST = (UNPAID, ENDLESS, LENGTH, HACKED)


@dataclass(frozen=True)
class LogRule(Rule):
    """A rule about the log of a run. Its findings have the numbers that they rest on in ``seen``.

    Its example is a log, or the text of an error.

    Attributes:
        symptom: the kind of symptom that it finds, which a lost policy explains; "" if it finds another problem.
        hides: the kinds of symptoms, or single codes, that it explains, which are then not listed.
        steps: how many training steps a log needs before the rule looks at it; none for the text of an error.
        early: whether it is too early to be sure, so that an error is only a warning.
        harmless: whether it finds no problem, but something to note next to any outcome.
        at_the_end: whether `HealthCallback` reports it only when training ends, because it may still change.
        link: the command that explains the code; "" for what needs no explanation.
    """

    symptom: str = ""
    hides: tuple[str, ...] = ()
    steps: int = limits.FEWEST_STEPS
    early: Callable[[Log], bool] | None = None
    harmless: bool = False
    at_the_end: bool = False
    link: str = "grpo-check explain {code}"

    def __call__(self, log: Log) -> list[Finding]:
        """What the rule finds, each with its sentence, the step, and where to read more."""
        if log.steps < self.steps:
            return []
        findings = super().__call__(log)
        early = bool(findings) and self.early is not None and self.early(log)
        step = f" ({log.unit} {log.step})" if log.step else ""
        return [
            replace(
                finding,
                what=f"{finding.what or self.meaning}{step}.",
                severity="warning" if early and finding.severity == "error" else finding.severity,
                link=self.link.format(code=self.code),
            )
            for finding in findings
        ]


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
