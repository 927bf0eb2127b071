"""A rule is one thing that a check looks for: its code, what it means, how it is found, and an example.

Each module with rules starts a list, and each function below it becomes a rule of that list:

    >>> RULES: list[Rule] = []
    >>> rule = adding_to(RULES)

    >>> @rule("warning", "max_steps is 0, so the number of epochs applies", example={"max_steps": 0})
    ... def steps_ignored(run):
    ...     '''TRL takes num_train_epochs where max_steps is not above 0.'''
    ...     if run["max_steps"] == 0:
    ...         yield found("max_steps=0 has no effect.", "set max_steps=1.", why="TRL then trains for 3 epochs.")

    >>> print(*steps_ignored({"max_steps": 0}))
    warning steps_ignored: max_steps=0 has no effect.
            Why: TRL then trains for 3 epochs.
            Do:  set max_steps=1.
    >>> RULES == [steps_ignored]
    True

What a rule is called is its function's name. Tables in the docs, ``explain`` and the tests read the list, so a new rule
needs nothing else than its function and a test.
"""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .findings import Finding


@dataclass(frozen=True)
class Rule:
    """One thing that a check looks for. Call it with what is checked: ``rule(run)`` gives its findings.

    Attributes:
        code: a short name, which its findings have; two checks use the same one only for the same problem.
        severity: ``error``, ``warning`` or ``note``; a finding can have its own.
        meaning: what it finds, as the rest of the sentence "This rule finds …".
        find: the function that looks, and yields what `found` returns.
        why: why it matters, and ``fixes``: what to do, where a finding says neither itself.
        needs: what has to be given; the rule is skipped without it.
        unless: the codes of findings after which this rule can't look, or has nothing more to say.
        example: something in which it finds the problem; of what kind, depends on the check.
    """

    code: str
    severity: str
    meaning: str
    find: Callable[[object], Iterable[Finding]]
    why: str = ""
    fixes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    example: object = None

    def __call__(self, checked: object) -> list[Finding]:
        """What the rule finds, with its code, and with its own severity, reason and fixes where it left them open."""
        return [
            replace(
                one,
                code=self.code,
                severity=one.severity or self.severity,
                why=one.why or self.why,
                fixes=one.fixes or self.fixes,
            )
            for one in self.find(checked)
        ]

    @property
    def details(self) -> str:
        """More about it: the docstring of its function."""
        return inspect.getdoc(self.find) or ""


def adding_to(rules: list[Rule], kind: type[Rule] = Rule, **common: object) -> Callable[..., Callable]:
    """A decorator that makes a function a rule, and adds that to a list. Its arguments are those of the rule.

    ``common`` are arguments that all rules of the list have, unless one has its own.
    """

    def rule(severity: str, meaning: str, **own: object) -> Callable[[Callable], Rule]:
        def add(find: Callable) -> Rule:
            rules.append(kind(find.__name__, severity, meaning, find, **common | own))
            return rules[-1]

        return add

    return rule


def found(what: str = "", *fixes: str, why: str = "", severity: str = "", seen: str = "") -> Finding:
    """What a rule has found: the sentence that says it, what to do, and why it matters; see `Finding`."""
    return Finding("", severity, what, why, fixes, seen)
