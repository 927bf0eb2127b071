"""Find the parts of the documentation that quote an error text, or whose words are nearest to it.

A part is a row of a table, a paragraph or an item of a list, below its heading. The pages are those of the repository.
A wheel has copies of them, which ``setup.py`` makes.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import log
from pathlib import Path

#: The pages, as paths in the repository. ``setup.py`` reads this list, so this module imports only Python's own.
PAGES = (
    "docs/troubleshooting.md",
    "docs/troubleshooting-gpu.md",
    "docs/troubleshooting-training.md",
    "docs/other-trainers.md",
    "docs/install.md",
    "docs/gpu.md",
    "grpo_check/docs/fixed.md",
)
#: More parts than this are no answer.
MOST = 3
#: The share of the words of a question, by their weight, that a section must have to be called near.
THRESHOLD = 0.5
#: The weight that these words must have: that of one word which one section in ten has.
_LEAST = 2.3
#: A shorter quoted text says too little.
_SHORTEST = 10
#: An excerpt ends with the sentence that reaches this many characters.
_EXCERPT = 400
#: How the pages begin what to do.
_FIX = "**Fix"
#: The heading of the table of other words for the entries.
_SYNONYMS = "Your words"
#: The headings of tables that only lead to entries.
_INDEXES = frozenset({_SYNONYMS, "Ten common symptoms"})
_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]+\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
_PLAIN_WORD = re.compile(r"^[A-Za-z][A-Za-z'’-]*[.,:;!?]?$")
_EXCEPTION = re.compile(r"^(?:\w+\.)*\w+(?:Error|Exception): ")
#: What the commands in the pages begin with.
_COMMANDS = frozenset(re.findall(r"\S+", "axolotl curl grep hf pip py-spy python python3 ray swift trl uv vllm which"))
_WORD = re.compile(r"[a-z_][a-z0-9_]{2,}")
#: Words that say nothing about an error.
_COMMON = frozenset(
    re.findall(
        r"\w+",
        """all also and any are argument attribute been but call called can cannot code could does error exception
        file for from got had has have here how import into its just keyword like line module more must
        name named new not now object only other our out raise raised see should some such than that the
        their them then there these they this too try unexpected use used using value was were what when
        where which who why will with without would you your
        """,
    )
)


@dataclass(frozen=True)
class Part:
    """A row, paragraph or item of a page.

    Attributes:
        page: the path of the page in the repository.
        heading: the heading above it.
        text: its Markdown.
        fix: the Markdown of what its section says to do, if it says so under that name.
    """

    page: str
    heading: str
    text: str
    fix: str = ""

    @property
    def anchor(self) -> str:
        """Its heading in a link."""
        return re.sub(r"[^\w -]", "", self.heading.lower()).replace(" ", "-")

    def __str__(self) -> str:
        """Its heading, its first sentences, what to do, and where it is."""
        said = [excerpt(bare(text)) for text in (self.text.partition(_FIX)[0], self.fix) if text.strip()]
        lines = [bare(self.heading), *"\n".join(said).splitlines()]
        return "\n    ".join([*lines, f"More:   {self.page}#{self.anchor} in the repository of grpo-check."])


def bare(text: str) -> str:
    """A text without the marks of Markdown. Links keep their words.

    >>> bare("**Fix.** See [the *page*](page.md#a), and set `beta=0`.")
    'Fix. See the page, and set beta=0.'
    """
    text = _LINK.sub(r"\1", text)
    pieces = _CODE.split(text)  # prose, marks, code, prose, …
    for place in range(0, len(pieces), 3):
        pieces[place] = re.sub(r"\*{1,3}(?=\S)(.+?)(?<=\S)\*{1,3}", r"\1", pieces[place])
    return "".join(piece.strip() if place % 3 == 2 else piece for place, piece in enumerate(pieces) if place % 3 != 1)


def excerpt(text: str) -> str:
    """The first sentences of a text.

    >>> excerpt("One. " * 100)[-10:], excerpt("One. Two.")
    ('One. One.…', 'One. Two.')
    """
    end = re.compile(r"[.:] ").search(text, _EXCERPT)
    return f"{text[: end.start() + 1]}…" if end else text


def root_of_pages() -> Path:
    """The folder that the paths of the pages begin in: that of an installed package, else the repository."""
    copies = Path(__file__).parent / "pages"
    return copies if copies.is_dir() else Path(__file__).parents[3]


@cache
def _all_sections() -> tuple[tuple[Part, ...], ...]:
    """The parts of all pages by section. A row of a table is a section of its own."""
    pages = {page: (root_of_pages() / page).read_text(encoding="utf-8") for page in PAGES}
    return tuple(section for page, text in pages.items() for section in _sections_of(page, text))


@cache
def sections() -> tuple[tuple[Part, ...], ...]:
    """The sections that answer something."""
    return tuple(section for section in _all_sections() if section[0].heading not in _INDEXES)


@cache
def _synonyms() -> dict[str, set[str]]:
    """The words that people use for what a section is about, by the section's anchor."""
    found = {}
    for section in _all_sections():
        if section[0].heading == _SYNONYMS:
            said, _, entries = section[0].text.partition("\n")
            for anchor in re.findall(r"#([^#()\s]+)\)", entries):
                found.setdefault(anchor, set()).update(_words(said))
    return found


def _sections_of(page: str, text: str) -> Iterator[tuple[Part, ...]]:
    """The sections of a page, without comments, blocks of code and the marks of folds, and without lists of links."""
    text = re.sub(r"^ *```.*?^ *```|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^<details><summary>.*</summary>$|^</details>$", "", text, flags=re.MULTILINE)
    found = re.split(r"^#{1,4} +(.+)$", text, flags=re.MULTILINE)[1:]
    for heading, body in zip(found[::2], found[1::2], strict=True):
        prose = []
        for is_row, part in _parts_of(body.splitlines()):
            is_index = sum(len(link[0]) for link in _LINK.finditer(part)) > 0.7 * len(part)
            if is_index and heading != _SYNONYMS:
                continue
            if is_row:
                yield (Part(page, heading.strip(), part),)
            else:
                prose.append(part)
        fix = next((" ".join([part, *prose[place + 1 :]]) for place, part in enumerate(prose) if _FIX in part), "")
        fix = fix[fix.find(_FIX) :]  # it can be a list, and an excerpt of it is shown
        if prose:
            yield tuple(Part(page, heading.strip(), part, fix) for part in prose)


def _parts_of(lines: list[str]) -> Iterator[tuple[bool, str]]:
    """The rows, paragraphs and items of lists in some lines, and whether each is a row. A row names its columns.

    >>> list(_parts_of(["One", "line.", "", "| a | b |", "|---|---|", "| c | d |", "- item", "  more"]))
    [(False, 'One line.'), (True, 'c\\nb: d'), (False, 'item more')]
    """
    header, part = [], ""
    for line in [*lines, ""]:
        is_row = line.lstrip().startswith("|")
        if part and (is_row or not line.strip() or _ITEM.match(line)):
            yield False, part
            part = ""
        if is_row:
            cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])]
            if header and set("".join(cells)) - set("-: "):
                rest = zip(header[1:], cells[1:], strict=False)
                yield True, "\n".join([cells[0], *(f"{name}: {cell}" for name, cell in rest if cell)])
            header = header or cells
        else:
            header, part = [], f"{part} {_ITEM.sub('', line).strip()}".strip()


def error_texts_in(markdown: str) -> list[str]:
    """The error texts that a page quotes: what is in backticks, has three plain words or the name of an exception, and
    is neither a command nor Python.

    >>> error_texts_in("`CUDA out of memory`, `pip install vllm now`, `for a in b: c`, `beta`, `KeyError: 'a'`")
    ['CUDA out of memory', "KeyError: 'a'"]
    """
    spans = [" ".join(code[2].split()) for code in _CODE.finditer(markdown)]
    return [span for span in dict.fromkeys(spans) if _is_error_text(span)]


def _is_error_text(span: str) -> bool:
    """Whether code in a page is an error text."""
    is_text = _is_prose(span) or _EXCEPTION.match(span)
    return bool(is_text) and span.split()[0] not in _COMMANDS and not _is_python(span)


def _is_prose(text: str) -> bool:
    """Whether a text has three plain words."""
    return sum(_PLAIN_WORD.match(word) is not None for word in text.split()) >= 3


def _is_python(span: str) -> bool:
    """Whether a text is valid Python. A text with the name of an exception, such as ``KeyError: a``, is not code."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SyntaxWarning: "is" with a literal
        try:
            compile(span, "", "exec")
        except (SyntaxError, ValueError):
            return False
    return not _EXCEPTION.match(span)


def _key(text: str) -> str:
    """A text without what differs between two people with the same error: numbers, quotes, slashes, spaces, capitals.

    >>> _key("The size of `a` (25)") == _key("the size of a (3)")
    True
    """
    return re.sub(r"\d+(?:\.\d+)*", "0", re.sub(r"[\s`'\"/]", "", text)).casefold()


@cache
def _quoted() -> tuple[tuple[tuple[str, ...], Part], ...]:
    """Each error text of the pages in its pieces, and the part that quotes it; for one in a heading, the first part."""
    found = {}
    for section in sections():
        for part in section:
            for text in error_texts_in(part.text):
                found[text, part] = None
        for text in error_texts_in(section[0].heading):
            found[text, section[0]] = None
    return tuple((tuple(map(_key, _message(text).split("…"))), part) for text, part in found)


def _message(text: str) -> str:
    """An error text without the name of its exception, unless little else is in it.

    >>> _message("KeyError: 'a'"), _message("IndexError: pop from an empty deque")
    ("KeyError: 'a'", 'pop from an empty deque')
    """
    message = _EXCEPTION.sub("", text)
    return message if _is_prose(message) else text


def quoting(asked: str) -> list[Part]:
    """The parts that quote an error text which is in what was asked, the longest first, at most three.

    What is itself a piece of a quoted text finds the part, too.
    """
    there, piece = _key(asked), _key(_message(asked))
    lengths = {}
    for pieces, part in _quoted():
        length = sum(map(len, pieces))
        if length >= _SHORTEST and (_in_order(pieces, there) or (len(piece) >= _SHORTEST and piece in "".join(pieces))):
            lengths[part] = max(length, lengths.get(part, 0))
    return sorted(lengths, key=lengths.get, reverse=True)[:MOST]


def _in_order(pieces: tuple[str, ...], text: str) -> bool:
    """Whether all pieces are in a text, in their order.

    >>> _in_order(("a", "c"), "abc"), _in_order(("c", "a"), "abc")
    (True, False)
    """
    place = 0
    for piece in pieces:
        place = text.find(piece, place) + len(piece)
        if place < len(piece):
            return False
    return True


@cache
def _words_of(section: tuple[Part, ...]) -> frozenset[str]:
    """The words of a section, of its heading, and of those who look for it."""
    return _words("\n".join(part.text for part in section)) | _title(section)


@cache
def _title(section: tuple[Part, ...]) -> frozenset[str]:
    """The words of a section's heading, or of the first cell of a row, and of those who look for it."""
    first, is_row, _ = section[0].text.partition("\n")
    if is_row:
        return _words(first)
    return _words(section[0].heading) | _synonyms().get(section[0].anchor, frozenset())


def _words(text: str) -> frozenset[str]:
    """The words of a text that say something, without links and paths, and without the plural's s."""
    parts = re.sub(r"\]\([^()\s]+\)", " ", text).casefold().split()
    text = " ".join(part for part in parts if part.count("/") < 2)
    found = frozenset(word.removesuffix("s") for word in _WORD.findall(text))
    return frozenset(word for word in found - _COMMON if not word.endswith("error"))


@cache
def _weights() -> dict[str, float]:
    """How much each word says: the more, the fewer sections have it."""
    counts = Counter(word for section in sections() for word in _words_of(section))
    return {word: log(len(sections()) / count) for word, count in counts.items()}


def nearest(asked: str) -> list[Part]:
    """The parts whose sections have most of the words of what was asked, at most three.

    A word in the heading counts more. A long section has more words by chance, so its length counts against it. A word
    that no section has is a sign of another error; in somebody's own words it says less.
    """
    weights, words = _weights(), _words(asked)
    unknown = max(weights.values()) / (1 if _EXCEPTION.match(asked) else 2)
    whole = sum(weights.get(word, unknown) for word in words)

    def weight(found: frozenset[str]) -> float:
        return sum(weights[word] for word in words & found)

    ranks = {}
    for section in sections():
        there = weight(_words_of(section))
        if there >= max(THRESHOLD * whole, _LEAST):
            best = max(section, key=lambda part: weight(_words(part.text)))
            ranks[best] = (there + 0.3 * weight(_title(section))) / whole - 0.0003 * len(_words_of(section))
    return sorted(ranks, key=ranks.get, reverse=True)[:MOST]
