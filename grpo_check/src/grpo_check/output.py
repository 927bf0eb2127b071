"""Print a report: as text for a person, as JSON for a program, or as annotations for GitHub Actions."""

import json
import os
import re
import sys
from dataclasses import asdict
from shutil import get_terminal_size
from textwrap import wrap

from .findings import Finding, Report, advice

FORMATS = ("text", "json", "github")
#: ANSI codes of the severities.
COLORS = {"error": "1;31", "warning": "1;33", "note": "1;36"}
#: What GitHub calls them.
_ANNOTATIONS = {"error": "error", "warning": "warning", "note": "notice"}
SEVERITY = re.compile(rf"^(\s*)({'|'.join(COLORS)})(?= )")
#: Further lines of a finding start here.
_INDENT = " " * 8


#: How an argument of Python is written as an option of the command.
_OPTIONS = (
    (r"columns=\{'(\w+)': \[…\]\}", r"--column \1 '[…]'"),
    (r"answer_column='(\w+)'", r"--answer-column \1"),
    (r"answers=\[…\]", "--answers …"),
    (r"examples=\[…\]", "--example TEXT"),
    (r"pilot\(…, examples=3\)", "grpo-check pilot FILE --examples 3"),
    (r"tags=\(…\)", "--tags …"),
    (r"calls=(…|\d+)", r"--calls \1"),
)


def in_terminal_words(text: str) -> str:
    """A text with the options of the command in place of arguments of Python.

    >>> in_terminal_words("Pass columns={'level': […]} or answers=[…].")
    "Pass --column level '[…]' or --answers …."
    """
    for argument, option in _OPTIONS:
        text = re.sub(argument, option, text)
    return text


def show(report: Report, check: str, how: str) -> str:
    """A report in one of the `FORMATS`.

    >>> report = Report((Finding("leak", "error", "9 held-out prompts are also in the training rows.", "Why not?"),))
    >>> print(show(report, "preflight", "github"))
    ::error title=grpo-check preflight (leak)::9 held-out prompts are also in the training rows.%0AWhy: Why not?
    """
    if how == "json":
        return json.dumps({"check": check, "ok": report.ok, **asdict(report)}, indent=2, default=str)
    if how == "github":
        missed = [Finding("not_judged", "error", reason, subject=what) for what, reason in report.not_judged.items()]
        lines = (annotation(finding, check) for finding in [*report.findings, *missed])
        return in_terminal_words("\n".join(lines))
    return in_terminal_words(as_text(report))


def annotation(finding: Finding, check: str) -> str:
    """A line that GitHub Actions shows on the page of a job."""
    about = f"{finding.subject}: " if finding.subject else ""
    lines = [f"{about}{finding.what}", finding.seen, *advice(finding.why, finding.fixes)]
    text = "\n".join(filter(None, lines))
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{_ANNOTATIONS[finding.severity]} title=grpo-check {check} ({finding.code})::{escaped}"


def as_text(report: Report) -> str:
    """What `print(report)` shows; on a terminal, in its width and in color."""
    if not sys.stdout.isatty():
        return str(report).rstrip("\n")
    lines = [part for line in str(report).splitlines() for part in fitted(line, get_terminal_size().columns)]
    return "\n".join(lines if "NO_COLOR" in os.environ else map(colored, lines))


def fitted(line: str, width: int) -> list[str]:
    """A line in as many as it needs; what follows is indented as the other lines of a finding.

    >>> fitted("warning small_groups: num_generations=2 is small.", 40)
    ['warning small_groups: num_generations=2', '        is small.']
    """
    if len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    further = f"{indent}{_INDENT}" if SEVERITY.match(line) else indent
    return wrap(line, max(width, 40), subsequent_indent=further, drop_whitespace=True, break_on_hyphens=False)


def colored(line: str) -> str:
    """A line whose severity has its color."""
    return SEVERITY.sub(lambda found: f"{found[1]}\x1b[{COLORS[found[2]]}m{found[2]}\x1b[0m", line)
