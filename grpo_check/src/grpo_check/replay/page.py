"""Recorded runs into one HTML file that loads nothing, with the texts of strangers as data.

The data stands in a block that no browser executes, and the page shows it as text only. The policy of the page allows
one script, ours by its hash, so that a completion cannot run anything even if it found a way into the page's markup.
"""

import base64
import hashlib
import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

from grpo_core.errors import CourseError

from .records import Completion, Group, Recording, Step
from .sampling import Cut, fitted, without_middle
from .summary import UNKNOWN, Paid, Verdict, curves_of, most_paid, verdicts_of, weights_of

#: The first line of every page that this module writes; a file without it is not replaced.
MARK = "<!doctype html><!-- grpo-check replay -->"
#: What could end the block of data or begin markup, and two signs that JavaScript once took for ends of lines.
_ESCAPED = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}


@dataclass
class Texts:
    """Texts by their number, so that a text that occurs often is stored once."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        """The number of a text."""
        return self.numbers.setdefault(text, len(self.numbers))


def write_replay(recording: Recording, file: str | Path) -> tuple[str, ...]:
    """Write the page of a recording; returns the notes that it shows.

    Raises:
        CourseError: the file exists and is no page of this command, or it cannot be written.
    """
    file = Path(file)
    run = run_of(recording)
    try:
        _refuse_to_replace(file)
        _write_whole(file, page_of([run], recording.name))
    except OSError as error:
        raise CourseError(f"{str(file)!r} cannot be written: {error.strerror}. Choose another --output.") from error
    return run["notes"]


def _write_whole(file: Path, text: str) -> None:
    """Write a file that is either whole or as it was before."""
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        partial.write_text(text, encoding="utf-8", errors="replace")
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)


def _refuse_to_replace(file: Path) -> None:
    """Raise an error for a file that is not a page of this command."""
    if file.is_dir():
        raise CourseError(f"{str(file)!r} is a folder. Give --output the name of a file, such as replay.html.")
    if file.exists() and not is_replay(file):
        raise CourseError(f"{str(file)!r} exists and is not a replay. Choose another name with --output.")


def is_replay(file: Path) -> bool:
    """Whether this module wrote a file."""
    if not file.is_file():  # a device, or a pipe that nobody writes to
        return False
    with file.open("rb") as opened:
        return opened.read(len(MARK)) == MARK.encode()


def page_of(runs: Sequence[dict], title: str) -> str:
    """The whole page, from the data of its runs."""
    room = files(__package__)
    style, script = (room.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("css", "js"))
    parts = {
        "policy": policy_of(style, script),
        "title": html.escape(title),
        "style": style,
        "data": _as_block(runs[:1]),
        "script": script,
        "more": _as_block(runs[1:]),
    }
    head, *rest = room.joinpath("page.html").read_text("utf-8").split("{{")  # a text that is put in is not read again
    return MARK + head + "".join(parts[name] + tail for name, _, tail in (part.partition("}}") for part in rest))


def runs_of(page: str) -> list[dict]:
    """The data of its runs, from a whole page. The first run stands before the script, so that it is shown at once."""
    blocks = re.findall(r'<script type="application/json" id="(?:data|more)">(.*?)</script>', page, re.DOTALL)
    return [run for block in blocks for run in json.loads(block)]


def policy_of(style: str, script: str) -> str:
    """The content security policy: nothing is loaded, and only this style and this script are used."""
    return (
        f"default-src 'none'; style-src '{_digest_of(style)}'; script-src '{_digest_of(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest_of(text: str) -> str:
    """How a policy names an element by its content."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _as_block(data: object) -> str:
    r"""JSON that is safe inside a script element.

    >>> _as_block("</script>")
    '"\\u003c/script\\u003e"'
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPED)


def run_of(recording: Recording) -> dict:
    """A recording as data for the page."""
    weights, note = weights_of(recording)
    kept, texts = fitted(recording.noting(note)), Texts()
    steps = [_step_of(step, weights, texts) for step in kept.steps]
    return {
        "name": kept.name,
        "rewards": kept.rewards,
        "weights": weights,
        "total": "sum" if note == UNKNOWN else "total",
        "extras": kept.extras,
        "story": kept.story,
        "ending": kept.ending,
        "heldOut": kept.held_out,
        "notes": kept.notes,
        "steps": steps,
        "curves": [
            {"label": curve.label, "kind": curve.kind, "points": [[step, exact(value)] for step, value in curve.points]}
            for curve in curves_of(recording, weights)
        ],
        "verdicts": list(map(_verdict_of, verdicts_of(recording.log))),
        "paid": [_paid_of(paid, texts) for paid in most_paid(recording, weights)],
        "texts": list(texts.numbers),
    }


def _step_of(step: Step, weights: Sequence[float], texts: Texts) -> dict:
    """A step as data."""
    return {"step": step.number, "groups": [_group_of(group, weights, texts) for group in step.groups]}


def _group_of(group: Group, weights: Sequence[float], texts: Texts) -> dict:
    """A group as data, sorted by advantage, or by what was earned where no advantage was logged."""

    def order(each: Completion) -> tuple[float, float]:
        total = each.total(weights)
        return tuple(-value if value is not None else float("inf") for value in (each.advantage, total))

    rows = [row_of(each, weights, texts) for each in sorted(group.completions, key=order)]
    return {"prompt": texts.number(group.prompt), "tied": group.is_tied, "rows": rows}


def row_of(each: Completion, weights: Sequence[float], texts: Texts) -> list:
    """A completion as data: text, length, advantage, total, rewards, extras."""
    length = each.length if isinstance(each, Cut) else len(each.text)
    rewards = [short(reward) for reward in each.rewards]
    extras = [texts.number(text) for text in each.extras]
    return [texts.number(each.text), length, short(each.advantage), short(each.total(weights)), rewards, extras]


def short(value: float | None) -> float | None:
    """A number with the digits that a page shows."""
    return None if value is None else float(f"{value:.4g}")


def exact(value: float) -> float:
    """A mean with so many digits that rounding it once more changes nothing."""
    return float(f"{value:.7g}")


def _paid_of(paid: Paid, texts: Texts) -> dict:
    """One of the most paid texts as data."""
    shown = texts.number(without_middle(paid.text))
    return {"text": shown, "reward": short(paid.reward), "times": paid.times, "steps": [paid.steps[0], paid.steps[-1]]}


def _verdict_of(verdict: Verdict) -> dict:
    """A verdict as data."""
    finding = verdict.finding
    names = ("code", "severity", "what", "seen", "why", "fixes")
    return {"step": verdict.step, **{name: getattr(finding, name) for name in names}}
