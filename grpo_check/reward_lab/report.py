"""What a probe found, for a terminal and for a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

#: Every code, how severe it is, and what it means.
CODES = {
    "raises": ("error", "breaks the contract: an exception on some completion"),
    "wrong_length": ("error", "breaks the contract: not one score for each completion"),
    "not_finite": ("error", "breaks the contract: a score that is no finite number"),
    "unbounded_time": ("error", "its time grows far faster than the completion: one completion can hang training"),
    "changes_inputs": ("error", "changes what TRL hands to the next reward"),
    "runs_model_text": ("error", "executes what the model writes"),
    "dead": ("error", "the same score for everything"),
    "wrong_beats_right": ("error", "some wrong answer scores at least as much as a right one in the asked form"),
    "pays_missing_answer": ("error", "no answer is paid"),
    "pays_abstaining": ("error", "a missing answer pays more than a wrong one, so a policy stops trying"),
    "none_for_wrong": ("error", "every wrong answer scores None, so no group shows what is wrong"),
    "farmable": ("error", "junk, repetition or stuffing raises the score above a clean completion's"),
    "length_farm": ("error", "filler raises the score far above that of an ordinary completion"),
    "order_dependent": ("error", "a completion's score changes with its neighbours"),
    "chat_only": ("warning", "does not handle strings as it handles chat messages"),
    "string_only": ("warning", "does not handle chat messages as it handles strings"),
    "untagged": ("warning", "a right answer outside the requested form is paid in full"),
    "form_outweighs": ("warning", "the form alone pays more than the right answer in it"),
    "too_strict": ("warning", "a right answer in another usual writing gets nothing"),
    "slow": ("warning", "would cost more than 1 % of a step"),
}
LONGEST_SHOWN = 160


@dataclass(frozen=True)
class Finding:
    """One fault: its code and severity, a sentence, and the completion and score that show it."""

    code: str
    sentence: str
    completion: str | None = None
    score: float | None = None
    reward: str = ""

    @property
    def severity(self) -> str:
        """``error`` or ``warning``."""
        return CODES[self.code][0]

    def __str__(self) -> str:
        """The fault in two lines."""
        head = f"{self.severity:8}{self.code}: {self.sentence}"
        return head if self.completion is None else f"{head}\n        {shorten(self.completion)}"


def shorten(text: str) -> str:
    """A completion on one line, its middle left out where it is long.

    >>> shorten("a" * 400) == "'" + "a" * 100 + "' … '" + "a" * 40 + "' (400 characters)"
    True
    """
    return repr(text) if len(text) <= LONGEST_SHOWN else f"{text[:100]!r} … {text[-40:]!r} ({len(text)} characters)"


@dataclass(frozen=True)
class Scored:
    """One row of the score matrix."""

    reward: str
    gold: str
    what: str
    label: str
    completion: str | None
    score: float | None


@dataclass(frozen=True)
class ProbeReport:
    """What `probe` found.

    Attributes:
        findings: every fault, errors first.
        scored: the score matrix, one `Scored` for each reward and completion.
        judged: a sentence for each reward, by its name: in which form, by which rules.
    """

    findings: tuple[Finding, ...]
    scored: tuple[Scored, ...]
    judged: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether there is no error; warnings do not count."""
        return not any(finding.severity == "error" for finding in self.findings)

    @property
    def codes(self) -> set[str]:
        """The codes of all findings."""
        return {finding.code for finding in self.findings}

    @property
    def table(self) -> "DataFrame":
        """The score matrix for a notebook: a row for each completion, a column for each reward."""
        import pandas

        keys = ["gold", "label", "what", "completion"]
        shown = ("(no content)" if row.completion is None else shorten(row.completion) for row in self.scored)
        rows = [{**vars(row), "completion": text} for row, text in zip(self.scored, shown, strict=True)]
        frame = pandas.DataFrame(rows, columns=[*keys, "reward", "score"])
        wide = frame.pivot_table(index=keys, columns="reward", values="score", sort=False, dropna=False)
        return wide.dropna(how="all").reset_index().rename_axis(columns=None)

    def __str__(self) -> str:
        """The findings, and a last line with the verdict."""
        errors = sum(finding.severity == "error" for finding in self.findings)
        warnings = len(self.findings) - errors
        counts = f"{errors} error{'s' * (errors != 1)}, {warnings} warning{'s' * (warnings != 1)}"
        said = []
        for name, sentence in self.judged.items():
            said += [f"{name}: {sentence}"]
            said += [indent(str(finding), "  ") for finding in self.findings if finding.reward == name]
        return "\n".join([*said, f"{'ok' if self.ok else 'NOT OK'}: {counts}"])

    __repr__ = __str__


def in_order(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors before warnings, each in the order of the table of codes."""
    order = list(CODES)
    return tuple(sorted(findings, key=lambda finding: order.index(finding.code)))
