"""Find the known error texts in what somebody pasted, and say for each its cause, its fix and the version with the fix.

The table is ``error_texts.yaml``. Variable parts of a text, such as numbers, paths and names, are written as ``…``.

>>> [found.library for found in find("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0")]
['torch']
>>> find("I like GRPO")
[]
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files

import yaml
from rapidfuzz.fuzz import partial_ratio

#: The similarity, in percent, from which on a text counts as found; `tests/test_error_texts.py` measures it.
THRESHOLD = 90
#: A shorter piece of an error text says too little.
SHORTEST_PIECE = 12
#: Errors come at the end, and a log can be long.
LAST_CHARACTERS = 30_000
#: What terminals, launchers and vLLM put in front of a line or around it.
DECORATION = re.compile(r"\x1b\[[\d;]*m|^\[rank\d+\]: ?|^\(\w+ pid=\d+\) ?|[│╭╮╰╯─]", re.MULTILINE)
NAME = re.compile(r"[`'\"][\w.=-]+[`'\"]")
#: How we know that a record is true.
KNOWN = {
    "tried": "a test triggers this error",
    "read": "we read this in the library's source",
    "thread": "we read this in the thread",
}


@dataclass(frozen=True)
class ErrorText:
    """One error text of a library.

    Attributes:
        text: the message as it is printed.
        library: the package that it comes from.
        cause: why it appears.
        fixed: the first version without it, ``by`` and a version without it, ``open``, or ``not a bug``.
        do: what to do.
        source: a thread as ``owner/repository#number``, or the file of the library that raises it.
        known: one of the keys of `KNOWN`.
        entry: the heading in docs/ that says more.
    """

    text: str
    library: str
    cause: str
    fixed: str
    do: str
    source: str
    known: str
    entry: str = ""

    def __str__(self) -> str:
        """All that is known about it, in a few lines."""
        lines = [f"{self.library}: {self.text}"]
        lines += [f"Cause:  {self.cause}", f"Do:     {self.do}"]
        lines += [f"Fixed:  {self.fixed} (installed here: {self.library} {installed(self.library.lower())})."]
        lines += [f"Source: {self.source} ({KNOWN[self.known]})."]
        lines += [f"More:   docs/{self.entry} in the course's repository."] if self.entry else []
        return "\n    ".join(lines)


def installed(package: str) -> str:
    """The version of an installed package.

    >>> installed("no-such-package")
    'not installed'
    """
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


@cache
def error_texts() -> tuple[ErrorText, ...]:
    """All records of the table, in its order."""
    table = files(__package__).joinpath("error_texts.yaml").read_text(encoding="utf-8")
    return tuple(ErrorText(**record) for record in yaml.safe_load(table))


def find(pasted: str) -> list[ErrorText]:
    """The records whose texts are in what was pasted, at most three, the one that explains most of it first."""
    text = compact(DECORATION.sub("", pasted[-LAST_CHARACTERS:]))
    scores = {record: score(record.text, text) for record in error_texts()}
    good = [record for record, percent in scores.items() if percent >= THRESHOLD]
    return sorted(good, key=lambda record: scores[record] * len(record.text), reverse=True)[:3]


def score(text: str, pasted: str) -> float:
    """How much of an error text is in what was pasted, in percent; 100 also for a piece of the text.

    Names in quotes must be there exactly, because two errors often differ by nothing else.

    >>> text = "got an unexpected keyword argument 'prompts'"
    >>> score(text, compact("TypeError: reward() got an unexpected keyword argument 'prompts'"))
    100.0
    >>> score(text, compact("TypeError: reward() got an unexpected keyword argument 'prompt'"))
    0.0
    """
    if len(pasted) >= SHORTEST_PIECE and pasted in compact(text):
        return 100.0
    if not all(compact(name) in pasted for name in NAME.findall(text)):
        return 0.0
    parts = [compact(part) for part in text.split("…") if part.strip()]
    covered = sum(len(part) * partial_ratio(part, pasted) for part in parts if len(part) <= len(pasted))
    return covered / sum(map(len, parts))


def compact(text: str) -> str:
    """A text without white space and capitals, because terminals break lines where they like.

    >>> compact("CUDA out of\\n    memory")
    'cudaoutofmemory'
    """
    return "".join(text.split()).casefold()
