"""The printed report of a preflight."""

from dataclasses import dataclass, field

from ..findings import Report
from .estimate import Estimate


@dataclass(frozen=True, repr=False)
class PreflightReport(Report):
    """The result of `preflight`.

    ``ok`` says that no error was found; ``skipped`` says where none was looked for.

    Attributes:
        findings: all findings, errors first.
        estimate: memory and minutes, or None if too little was given.
        skipped: what was not checked, and why.
        notes: useful facts that are neither errors nor warnings.
    """

    estimate: Estimate | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The findings, the estimate, the notes, and what was skipped."""
        estimate = [str(self.estimate)] if self.estimate else []
        notes = [f"note    {note}" for note in self.notes]
        skipped = [f"skipped {what}: {why}" for what, why in self.skipped.items()]
        return [*super().lines(), *estimate, *notes, *skipped]

    def last_line(self) -> str:
        """The verdict. It is "ok" only if nothing was skipped."""
        if not self.ok or not self.skipped:
            return super().last_line()
        return f"{self.count('error')}, {self.count('warning')}; not checked: {', '.join(self.skipped)}"
