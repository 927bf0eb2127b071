"""The printed report of a probe."""

from dataclasses import dataclass
from textwrap import indent

from ..findings import Report

LONGEST_SHOWN = 160


def shown(text: str | None) -> str:
    """A completion on one line; the middle of a long one is left out.

    >>> shown("a" * 400) == "'" + "a" * 100 + "' … '" + "a" * 40 + "' (400 characters)"
    True
    """
    if text is None:
        return "(a chat message without content)"
    return repr(text) if len(text) <= LONGEST_SHOWN else f"{text[:100]!r} … {text[-40:]!r} ({len(text)} characters)"


@dataclass(frozen=True, repr=False)
class ProbeReport(Report):
    """The result of `probe`.

    Attributes:
        findings: every finding, errors first.
        scored: the score matrix, one dict per reward and completion (``pandas.DataFrame(report.scored)``).
        judged: for each reward, by name, a sentence that says how it was tested.
    """

    scored: tuple[dict, ...]
    judged: dict[str, str]

    def lines(self) -> list[str]:
        """For each reward, how it was tested and what was found."""
        lines = []
        for name, sentence in self.judged.items():
            found = [indent(str(finding), "  ") for finding in self.findings if finding.subject == name]
            lines += [f"{name}: {sentence}", *found]
        return lines
