"""What a probe found, for a terminal and for a notebook."""

from dataclasses import dataclass
from textwrap import indent
from typing import TYPE_CHECKING

from ..findings import Finding, Report
from .matrix import Case

if TYPE_CHECKING:
    from pandas import DataFrame

#: Every code, how severe it is, and what it means; findings are listed in this order.
CODES = {
    "raises": ("error", "breaks the contract: an exception on some completion"),
    "wrong_length": ("error", "breaks the contract: not one score for each completion"),
    "not_finite": ("error", "breaks the contract: a score that is not a finite number"),
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
    "order_dependent": ("error", "a completion's score changes with its neighbors"),
    "chat_only": ("warning", "does not handle strings as it handles chat messages"),
    "string_only": ("warning", "does not handle chat messages as it handles strings"),
    "untagged": ("warning", "a right answer outside the requested form is paid in full"),
    "form_outweighs": ("warning", "the form alone pays more than the right answer in it"),
    "too_strict": ("warning", "a right answer in another usual writing gets nothing"),
    "slow": ("warning", "would cost more than 1 % of a step"),
}
LONGEST_SHOWN = 160


def finding(code: str, what: str, case: Case | None = None, *fixes: str) -> Finding:
    """A finding of the lab, with the completion that shows it."""
    return Finding(code, CODES[code][0], what, fixes=fixes, seen=shown(case.text) if case else "")


def shown(text: str | None) -> str:
    """A completion on one line, its middle left out where it is long.

    >>> shown("a" * 400) == "'" + "a" * 100 + "' … '" + "a" * 40 + "' (400 characters)"
    True
    """
    if text is None:
        return "(a chat message without content)"
    return repr(text) if len(text) <= LONGEST_SHOWN else f"{text[:100]!r} … {text[-40:]!r} ({len(text)} characters)"


@dataclass(frozen=True, repr=False)
class ProbeReport(Report):
    """What `probe` found.

    Attributes:
        findings: every fault, errors first.
        scored: the score matrix, one dict for each reward and completion.
        judged: a sentence for each reward, by its name: in which form, by which rules.
    """

    scored: tuple[dict, ...]
    judged: dict[str, str]

    @property
    def table(self) -> "DataFrame":
        """The score matrix for a notebook: a row for each completion, a column for each reward."""
        import pandas

        keys = ["gold", "label", "what", "completion"]
        rows = [{**row, "completion": shown(row["completion"])} for row in self.scored]
        frame = pandas.DataFrame(rows, columns=[*keys, "reward", "score"])
        wide = frame.pivot_table(index=keys, columns="reward", values="score", sort=False, dropna=False)
        return wide.dropna(how="all").reset_index().rename_axis(columns=None)

    def lines(self) -> list[str]:
        """For each reward how it was judged, and its findings."""
        lines = []
        for name, sentence in self.judged.items():
            found = [indent(str(finding), "  ") for finding in self.findings if finding.subject == name]
            lines += [f"{name}: {sentence}", *found]
        return lines
