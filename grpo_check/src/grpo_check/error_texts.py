"""Find the known error texts in what somebody pasted, and say for each its cause, its fix and the version with the fix.

The table is ``error_texts.yaml``. Variable parts of a text, such as numbers, paths and names, are written as ``…``.

>>> [found.library for found in find("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0")]
['torch']
>>> find("I like GRPO")
[]
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from grpo_core.errors import CourseError
from grpo_core.training.measuring import installed_version

from .pasted import plain

#: The similarity, in percent, from which on a text counts as found; `tests/test_error_texts.py` measures it.
THRESHOLD = 90
#: The similarity of one of its parts, in percent, below which that part counts as missing, which saves time.
_LOWEST = 60
#: A shorter piece of an error text says too little.
_SHORTEST_PIECE = 12
#: More records than this are no answer.
MOST = 3
NAME = re.compile(r"[`'\"]([\w.=<>-]+)[`'\"]")
QUOTES = re.compile(r"[`'\"]")
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
        entry: the page in the repository, and its heading, that says more.
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
        lines += [f"Fixed:  {self.fixed} (installed here: {self.package} {installed(self.package.lower())})."]
        lines += [f"Source: {self.source} ({KNOWN[self.known]})."]
        lines += [f"More:   {self.entry} in the repository of grpo-check."] if self.entry else []
        return "\n    ".join(lines)

    @property
    def package(self) -> str:
        """The package of the version with the fix, or else the library."""
        name, _, number = self.fixed.removeprefix("by ").partition(" ")
        return name if number[:1].isdigit() else self.library


def installed(package: str) -> str:
    """The version of an installed package.

    >>> installed("no-such-package")
    'not installed'
    """
    return installed_version(package) or "not installed"


@cache
def error_texts() -> tuple[ErrorText, ...]:
    """All records of the table, in its order."""
    import yaml

    table = files(__package__).joinpath("error_texts.yaml").read_text(encoding="utf-8")
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader  # libyaml takes a tenth of the time
    return tuple(ErrorText(**record) for record in yaml.load(table, Loader=loader))


def find(pasted: str) -> list[ErrorText]:
    """The records whose texts are in what was pasted, at most three, the one that explains most of it first.

    What is itself a piece of a record finds that record.

    Raises:
        CourseError: it is a piece of too many records.
    """
    shown = plain(pasted)
    if pieces := _with_piece(compact(shown)):
        return pieces
    scores = {record: score(record.text, shown) for record in error_texts()}
    good = [record for record, percent in scores.items() if percent >= THRESHOLD]
    return sorted(good, key=lambda record: scores[record] * len(record.text), reverse=True)[:MOST]


def _with_piece(piece: str) -> list[ErrorText]:
    """The records whose texts contain a piece.

    Raises:
        CourseError: there are too many.
    """
    bare = QUOTES.sub("", piece)
    long = len(bare) >= _SHORTEST_PIECE
    found = [record for record in error_texts() if long and bare in QUOTES.sub("", compact(record.text))]
    if len(found) > MOST:
        texts = "".join(f"\n  {record.text}" for record in found)
        raise CourseError(f"{len(found)} known error texts contain this. Give more of your error, as in one of:{texts}")
    return found


def score(text: str, pasted: str) -> float:
    """How much of an error text is in what was pasted, in percent.

    Names in quotes must be there exactly, because two errors often differ by nothing else.

    >>> text = "got an unexpected keyword argument 'prompts'"
    >>> score(text, "TypeError: reward() got an unexpected keyword argument 'prompts'")
    100.0
    >>> score(text, "TypeError: reward() got an unexpected keyword argument 'prompt'")
    0.0
    """
    from rapidfuzz.fuzz import partial_ratio_alignment

    there, whole = compact(pasted), text if QUOTES.search(pasted) else QUOTES.sub("", text)
    parts = [compact(part) for part in whole.split("…") if part.strip()]
    found = [partial_ratio_alignment(part, there, score_cutoff=_LOWEST) for part in parts if len(part) <= len(there)]
    found = [one for one in found if one]
    if not found:
        return 0.0
    window = there[max(0, min(one.dest_start for one in found) - 1) : max(one.dest_end for one in found) + 1]
    if not all(_has_name(name, window, pasted) for name in NAME.findall(text)):
        return 0.0
    return sum((one.src_end - one.src_start) * one.score for one in found) / sum(map(len, parts))


def _has_name(name: str, window: str, pasted: str) -> bool:
    """Whether a name is in the part of the text that was found: in quotes, or bare if a shell removed all quotes.

    >>> _has_name("prompt", "keyerror:'prompt'", "KeyError: 'prompt'"), _has_name("prompt", "", "KeyError: prompt")
    (True, True)
    >>> _has_name("prompt", "keyerror:'prompts'", "KeyError: 'prompts'")
    False
    """
    if QUOTES.search(pasted):
        return re.search(QUOTES.pattern + re.escape(name.casefold()) + QUOTES.pattern, window) is not None
    return re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.])", pasted, flags=re.IGNORECASE) is not None


@lru_cache(2048)  # every record is compared with the same pasted text
def compact(text: str) -> str:
    """A text without white space and capitals, because terminals break lines where they like.

    >>> compact("CUDA out of\\n    memory")
    'cudaoutofmemory'
    """
    return "".join(text.split()).casefold()
