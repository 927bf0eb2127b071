"""Read rows of your own from a CSV, TSV or JSONL file: all bad rows are reported with a fix, and some are held out."""

import difflib
import re
import unicodedata
import zlib
from collections.abc import Callable
from pathlib import Path

from .table import Columns, read_table

EXCEL_ERRORS = {"#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!"}
LOST = re.compile("[\0\ufffd\ud800-\udfff]")  # characters lost when the file was written
SHOWN = 20  # problems to list; the rest are only counted
#: Rows are held out by a checksum, in the order of its last digit: a share of 0.1 holds out those with a 0.
ORDER = "0512346789"


def read_rows(name: str, columns: Columns, problem: Callable[[dict], str] = lambda row: "", others: str = "") -> list:
    """All rows of a file, as dictionaries with its columns and ``split`` ("train", "test", or "").

    A bad row ends the program with a list of all of them: one that lacks a column or has an empty one, has the same
    text in its first column as an earlier row, or for which ``problem`` returns what is wrong and how to fix it.
    ``others`` has the datasets that are not files, for the error if there is no such file.
    """
    path = Path(name)
    if not path.is_file():
        here = [str(other) for other in path.parent.glob("*.*")]
        near = difflib.get_close_matches(name, [*here, *re.findall(r"'(.+?)'", others)], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SystemExit(f"Error: dataset_name={name!r} is not a file here{others and f', and not {others}'}.{hint}")
    rows, problems, seen = [], {}, {}
    for line, row in read_table(path, columns._replace(optional=(*columns.optional, "split"))):
        found = row if isinstance(row, str) else problem_of(row, columns) or problem(row) or repeated(row, line, seen)
        if found:
            problems.setdefault(found, []).append(line)
        else:
            rows.append(row)
    if problems:
        raise SystemExit(f"Error: bad rows in {path}: {sum(map(len, problems.values()))}\n  {listed(problems)}")
    if not rows:
        raise SystemExit(f"Error: {path} has no rows. A row has {' and '.join(columns.wanted)}.")
    return rows


def problem_of(row: dict, columns: Columns) -> str:
    """What is wrong with the texts of a row, and how to fix it; "" for a valid row. A split is read without case."""
    for name in (*columns.wanted, *columns.optional):
        text = row[name]
        if not text and name in columns.wanted:
            return f"the {name} is empty: fill it in, or delete the row"
        if lost := LOST.search(text):
            return f"the {name} contains {lost[0]!a}, a character that was lost when the file was written"
        if text in EXCEL_ERRORS:
            return f"the {name} is {text}, a spreadsheet error: enter the text itself"
    row["split"] = row["split"].casefold()
    if row["split"] not in ("", "train", "test"):
        return f"the split is {row['split']!r}: use train, test, or leave it empty"
    return ""


def repeated(row: dict, line: int, seen: dict) -> str:
    """The problem if an earlier row has the same text in its first column, else ""."""
    (name, key), *rest = [(column, same_question(text)) for column, text in row.items() if column != "split"]
    first, before = seen.setdefault(key, (line, rest))
    if first == line:
        return ""
    if other := [column for (column, text), (_, earlier) in zip(rest, before, strict=True) if text != earlier]:
        return f"has the same {name} as line {first}, but another {other[0]}: keep one"
    return f"duplicates line {first}: delete one"


def listed(problems: dict[str, list[int]]) -> str:
    """Each problem once, with the lines that have it.

    >>> print(listed({"is empty": [2], "has no column 'answer'": [3, 4, 5, 6]}))
    line 2: is empty.
      lines 3, 4, 5 and 1 more: has no column 'answer'.
    """
    texts = []
    for problem, lines in list(problems.items())[:SHOWN]:
        more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
        where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:3]))}{more}"
        texts.append(f"{where}: {problem}{'' if problem.endswith('?') else '.'}")
    rest = sum(map(len, list(problems.values())[SHOWN:]))
    return "\n  ".join([*texts, *([f"and {rest} more"] if rest else [])])


def of_split(rows: list[dict], split: str, share: float) -> list[dict]:
    """The rows of a split: those that name it, and of those that name none, the ones that a checksum puts there."""
    held_out = [row["split"] or ("test" if is_held_out(next(iter(row.values())), share) else "train") for row in rows]
    return [row for row, side in zip(rows, held_out, strict=True) if side == split]


def is_held_out(key: str, share: float = 0.1) -> bool:
    """Whether a row is held out, by a checksum of its key: adding rows never moves it, and a larger share only adds.

    >>> is_held_out("What is 15 + 27?") == is_held_out(" what is  15 + 27")
    True
    >>> [sum(is_held_out(f"{n} + 5", share) for n in range(10_000)) for share in (0.1, 0.2, 0.25)]
    [995, 2031, 2523]
    """
    checksum = zlib.crc32(same_question(key).encode())
    return ORDER.index(str(checksum % 10)) / 10 + checksum // 10 % 1000 / 10_000 < share


def same_question(text: str) -> str:
    """A text without case, extra spaces and final punctuation, to find duplicates."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).rstrip("?!. ")
