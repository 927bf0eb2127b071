"""The words that a native reader would not use stay out of everything a person can read."""

import io
import re
import subprocess
import tokenize
from pathlib import Path

import nbformat
import pytest
from conftest import ROOT
from lessons import said

#: What gave the old text away, and what to write.
WORDS = {
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "mending": "fixing",
    "anew": "again",
    "seldom": "rarely",
    "whoever": "anyone who",
    "likelier": "more likely",
    "many a": "many",
    "many an": "many",
    "trainings": "training runs",
}
WORD = re.compile(rf"\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
#: "X is no Y", but not "there is no Y", "is no longer" or "is no better".
IS_NO = re.compile(
    r"(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|less\b|better\b|worse\b)\w+", re.IGNORECASE
)
#: Right where they are: (file, what is found there).
ALLOWED = {
    ("CHANGELOG.md", "mend"),  # the old name of an attribute
    ("templates/tool_agent/environment.py", "is no expression"),  # the model reads it while it trains
}


def readable() -> list[Path]:
    """Every tracked text that a person reads: pages, sources of lessons, and code."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    kinds = {".md", ".py", ".yml", ".toml"}
    return [ROOT / name for name in names if Path(name).suffix in kinds and name != f"tests/{Path(__file__).name}"]


def prose(path: Path) -> str:
    """What a page says, or a program's comments, docstrings and messages; each on a line of its own."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return " ".join(text.split())
    f_string = getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)  # a kind of its own from Python 3.12 on
    kinds = {tokenize.STRING, tokenize.COMMENT, f_string}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return " ".join(" ".join(token.string.strip("# ").split()) for token in tokens if token.type in kinds)


@pytest.mark.parametrize("path", readable(), ids=lambda path: str(path.relative_to(ROOT)))
def test_it_is_plain_english(path):
    text = prose(path)
    found = [*WORD.findall(text), *IS_NO.findall(text)]
    name = str(path.relative_to(ROOT))
    assert not [(what, WORDS.get(what.lower())) for what in found if (name, what) not in ALLOWED]


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_a_lesson_printed_is_plain_english(path):
    printed = " ".join(said(nbformat.read(path, as_version=4)).split())
    assert not [*WORD.findall(printed), *IS_NO.findall(printed)]


def test_the_rules_find_what_they_name():
    assert WORD.findall("It was mended anew. Many a run") == ["mended", "anew", "Many a"]
    assert IS_NO.findall("This is no number") and not IS_NO.findall("There is no number, and it is no longer here")
