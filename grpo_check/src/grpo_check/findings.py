"""The result of a check: a record for one finding, and a base class for reports."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from grpo_core.errors import CourseError

#: The most severe comes first.
_SEVERITIES = ("error", "warning", "note")


def advice(why: str, fixes: Sequence[str]) -> list[str]:
    """The lines that say why something matters and what to do."""
    lines = [f"Why: {why}"] if why else []
    return lines + [f"{'' if number else 'Do:':4} {fix}" for number, fix in enumerate(fixes)]


@dataclass(frozen=True)
class Finding:
    """One problem that a check found.

    Attributes:
        code: a short name; ``grpo-check explain CODE`` says what it means.
        severity: ``error``, ``warning`` or ``note``.
        what: what was found; this, ``why`` and ``fixes`` are sentences that start in lower case and end with a stop.
        why: why it matters.
        fixes: what to do, the most likely fix first.
        seen: the evidence, such as numbers from a log or a completion.
        subject: what it is about, such as the name of a reward.
        link: where to read more.

    >>> print(Finding("no_eos", "error", "the tokenizer has no eos_token.", "no turn ever ends.", ("set it.",)))
    error   no_eos: the tokenizer has no eos_token.
            Why: no turn ever ends.
            Do:  set it.
    """

    code: str
    severity: str
    what: str
    why: str = ""
    fixes: tuple[str, ...] = ()
    seen: str = ""
    subject: str = ""
    link: str = ""

    def __str__(self) -> str:
        """The finding as a few lines of text."""
        lines = [f"{self.severity:8}{self.code}: {self.what}", self.seen, *advice(self.why, self.fixes)]
        return "\n        ".join(filter(None, [*lines, self.link and f"More: {self.link}"]))


@dataclass(frozen=True)
class Report:
    """The findings of a check; `in_order` puts errors first.

    Attributes:
        findings: all of them.
        failing: the severities with which a report is not ok; ``--strict`` adds warnings.

    >>> report = Report((Finding("no_pad", "warning", "the tokenizer has no pad_token."),))
    >>> print(report)
    warning no_pad: the tokenizer has no pad_token.
    ok: 0 errors, 1 warning
    >>> report.ok, report.codes
    (True, {'no_pad'})
    """

    findings: tuple[Finding, ...]
    failing: tuple[str, ...] = field(default=("error",), kw_only=True)

    @property
    def not_judged(self) -> dict[str, str]:
        """What could not be judged, and for each why and what to do; nothing, for most checks."""
        return {}

    @property
    def failed(self) -> bool:
        """Whether a finding has one of the severities in ``failing``: by default, whether there is an error."""
        return any(finding.severity in self.failing for finding in self.findings)

    @property
    def ok(self) -> bool:
        """Whether everything was judged, and nothing failed."""
        return not self.failed and not self.not_judged

    @property
    def exit_code(self) -> int:
        """What a command that prints the report exits with: 1 if something failed, 2 if something was not judged."""
        return 1 if self.failed else 2 if self.not_judged else 0

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that stop a run."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def codes(self) -> set[str]:
        """The codes of all findings."""
        return {finding.code for finding in self.findings}

    def stop_on_errors(self) -> None:
        """Raise one `CourseError` that lists every error; do nothing if there is none."""
        if self.errors:
            listed = "\n".join(map(str, self.errors))
            raise CourseError(f"this run would fail or be wasted ({self.count('error')}):\n{listed}")

    def keeping(self, wanted: Callable[[Finding], bool]) -> Self:
        """The same report with some of its findings only."""
        return replace(self, findings=tuple(filter(wanted, self.findings)))

    def lines(self) -> list[str]:
        """All lines of the report except the last one, which has the verdict."""
        return [str(finding) for finding in self.findings]

    def count(self, severity: str) -> str:
        """How many findings have a severity, such as "2 errors"."""
        count = sum(finding.severity == severity for finding in self.findings)
        return f"{count} {severity}{'s' * (count != 1)}"

    def last_line(self) -> str:
        """The verdict."""
        return f"{'ok' if self.ok else 'NOT OK'}: {self.count('error')}, {self.count('warning')}"

    def __str__(self) -> str:
        """The findings, then a line with the verdict."""
        return "\n".join([*self.lines(), self.last_line()])

    __repr__ = __str__


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Errors, then warnings, then notes, each in the order in which they were found."""
    return tuple(sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity)))
