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


@dataclass(frozen=True)
class Verdict:
    """How one reward was tried.

    Attributes:
        how: in a few words, and ``answered`` whether by the answer.
        counts: how many right forms are paid too little, and how many wrong ones too much.
        not_judged: why it could not be judged, and what to do; "" if it was.
        little_tried: whether only the user's example is paid, so that finding nothing says little.
    """

    how: str
    answered: bool = False
    counts: tuple = ()
    not_judged: str = ""
    little_tried: bool = False

    def lines(self) -> list[str]:
        """What it says besides how: a sentence, or the two counts."""
        if self.not_judged:
            return [f"{self.not_judged[0].upper()}{self.not_judged[1:]}"]
        few, many = ("right answers", "wrong answers") if self.answered else ("whole formats", "broken formats")
        paid = "more than a usual wrong one" if self.answered else "as much as a whole one"
        under, over = self.counts or (None, None)
        return [f"{few} paid too little: {under}.", f"{many} paid {paid}: {over}."] if under and under.of else []


def _word(report: Report, some_not_judged: bool) -> str:
    """The verdict in a few words.

    >>> _word(Report(()), False), _word(Report(()), True)
    ('ok', 'not judged')
    """
    if not report.findings:
        return "not judged" if some_not_judged else "ok"
    counts = [report.count(severity) for severity in ("error", "warning")]
    named = ", ".join(count for count in counts if not count.startswith("0"))
    word = "NOT OK" if report.failed else "not judged" if some_not_judged else "ok"
    return f"{word}{f', {named}' if named else ''}"


@dataclass(frozen=True, repr=False)
class ProbeReport(Report):
    """The result of `probe`.

    Attributes:
        findings: every finding, errors first.
        scored: the score matrix, one dict per reward and completion (``pandas.DataFrame(report.scored)``).
        verdicts: for each reward, by name, how it was tried.
        printed: what the rewards wrote to stderr, each different line once.
    """

    scored: tuple[dict, ...]
    verdicts: dict[str, Verdict]
    printed: tuple[str, ...] = ()

    @property
    def not_judged(self) -> dict[str, str]:
        """For each reward that could not be judged, why, and what to do."""
        return {name: verdict.not_judged for name, verdict in self.verdicts.items() if verdict.not_judged}

    def lines(self) -> list[str]:
        """The verdict, and for each reward how it was tried and what was found."""
        lines = []
        if len(self.verdicts) > 1:
            summed = list(self.verdicts)[-1].startswith("sum of ")
            tried = f"{len(self.verdicts) - summed} rewards{' and their sum' if summed else ''}"
            lines = [f"{_word(self, bool(self.not_judged))}: {tried}."]
        for name, verdict in self.verdicts.items():
            found = self.keeping(lambda one, name=name: one.subject == name and one.severity != "note")
            word = _word(found, bool(verdict.not_judged))
            word = word.replace("ok", "ok as far as tried", 1) if verdict.little_tried else word
            lines.append(f"{word}: {name}." if verdict.not_judged else f"{word}: {name}, {verdict.how}.")
            lines += [indent(line, "  ") for line in [*verdict.lines(), *map(str, found.findings)]]
        return lines

    def __str__(self) -> str:
        """The verdict comes first."""
        return "\n".join(self.lines())

    __repr__ = __str__
