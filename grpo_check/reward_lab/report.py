"""The codes of a probe, and its printed report."""

from dataclasses import dataclass
from textwrap import indent

from ..findings import Finding, Report
from .matrix import Case

#: Every code with its severity and its meaning. Findings are listed in this order.
CODES = {
    "raises": ("error", "raises an exception on some completion"),
    "wrong_length": ("error", "does not return one score per completion"),
    "not_finite": ("error", "returns a score that is not a finite number"),
    "unbounded_time": ("error", "its run time grows far faster than the text, so one completion can hang training"),
    "changes_inputs": ("error", "changes the arguments that TRL passes to the next reward"),
    "runs_model_text": ("error", "executes text that the model wrote"),
    "dead": ("error", "gives every completion the same score"),
    "wrong_beats_right": ("error", "a wrong answer scores at least as much as a correct one in the requested format"),
    "pays_missing_answer": ("error", "a completion without an answer earns something"),
    "pays_abstaining": ("error", "a missing answer scores more than a wrong one, so the policy learns not to answer"),
    "none_for_wrong": ("error", "every wrong answer scores None, so a group contains only correct answers"),
    "farmable": ("error", "junk, repetition or stuffing scores more than a clean completion"),
    "length_farm": ("error", "filler raises the score far above that of an ordinary completion"),
    "order_dependent": ("error", "a completion's score depends on the rest of the batch"),
    "chat_only": ("warning", "does not score strings as it scores chat messages"),
    "string_only": ("warning", "does not score chat messages as it scores strings"),
    "untagged": ("warning", "a correct answer outside the requested format earns the full score"),
    "form_outweighs": ("warning", "the format alone earns more than the correct answer in it"),
    "too_strict": ("warning", "a correct answer in another common notation earns nothing"),
    "slow": ("warning", "takes more than 1% of a step"),
}
LONGEST_SHOWN = 160


def finding(code: str, what: str, case: Case | None = None, *fixes: str) -> Finding:
    """A finding of the lab, with a completion that shows it."""
    return Finding(code, CODES[code][0], what, fixes=fixes, seen=shown(case.text) if case else "")


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
