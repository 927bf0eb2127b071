"""Read a CSV or JSONL file as records with line numbers; an error names the line, the problem and the fix."""

import csv
import difflib
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path

ENDINGS = (".csv", ".tsv", ".jsonl")
QUOTES = 'Is a quotation mark not closed? Inside a text, write it twice: "".'
#: Other names of the columns.
ALSO_CALLED = {
    "question": ("prompt", "problem", "query", "instruction", "input"),
    "answer": ("solution", "ground_truth", "final_answer", "target", "gold", "reference", "response", "output"),
}
MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks of UTF-16


def read_table(path: Path, wanted: tuple[str, ...], known: tuple[str, ...]) -> list[tuple[int, dict | str]]:
    """(line, record) for each valid record, else (line, problem). The columns ``wanted`` are required, those in
    ``known`` must be texts, and others may be anything.
    """
    if path.suffix.lower() not in ENDINGS:
        raise SystemExit(f"Error: {str(path)!r} must end in {', '.join(ENDINGS)}.")
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.*")], n=1)
        raise SystemExit(f"Error: there is no file {str(path)!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
    text = decoded(path)
    return list(json_lines(text, wanted, known) if path.suffix.lower() == ".jsonl" else csv_rows(path, text, wanted))


def decoded(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark."""
    data, fix = path.read_bytes(), "Save it as UTF-8 (in Excel: CSV UTF-8)."
    book, wide = data[:4] == b"PK\3\4", data[:2] in MARKS or data.count(b"\0") > len(data) / 4
    if book or wide:
        raise SystemExit(f"Error: {path} looks like {'an Excel workbook' if book else 'UTF-16'}. {fix}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, around = data[: error.start].count(b"\n") + 1, data[error.start - 12 : error.start + 12]
        shown = around.decode("cp1252", "replace")
        raise SystemExit(f"Error: {path}, line {line} is not UTF-8 (as cp1252: {shown!r}). {fix}") from None


def csv_rows(path: Path, text: str, wanted: tuple[str, ...]) -> Iterator[tuple[int, dict | str]]:
    """The rows of a CSV file, separated by commas, semicolons or tabs as in its header."""
    first = text.lstrip().split("\n", 1)[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    line, header = 1, None
    try:
        for row in rows:
            if header is None and any(row) and not row[0].startswith("sep="):  # Excel's own first line
                header = [name.strip().casefold() for name in row]
                check_header(path, header, wanted)
            elif header and any(row):
                same = len(row) == len(header)
                yield line, dict(zip(header, row, strict=True)) if same else fields_differ(row, header)
            line = rows.line_num + 1
    except csv.Error as error:
        raise SystemExit(f"Error: {path}, line {line}: {error}. {QUOTES}") from None


def fields_differ(row: list[str], header: list[str]) -> str:
    return f"has {len(row)} fields, but the header has {len(header)}: quote any text that contains the separator"


def check_header(path: Path, header: list[str], wanted: tuple[str, ...]) -> None:
    """Stop if a column is missing or appears twice."""
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise SystemExit(f"Error: {path} has the column {twice[0]!r} twice; rename one.")
    for name in wanted:
        if name not in header:
            raise SystemExit(f"Error: {path} has no column {name!r}; its columns are {header}.{nearest(name, header)}.")


def nearest(name: str, there: list[str]) -> str:
    """What to do about a missing column: rename the one that has the same content, or one with a typo, or add it."""
    typos = difflib.get_close_matches(name, there, n=1, cutoff=0.8)
    meant = [*typos, *(one for one in ALSO_CALLED.get(name, ()) if one in there)]
    return f" Rename {meant[0]!r}" if meant else " Add it"


def json_lines(text: str, wanted: tuple[str, ...], known: tuple[str, ...]) -> Iterator[tuple[int, dict | str]]:
    """The objects of a JSONL file. (Lines end only at \\n, because a text may contain Python's other line ends.)"""
    for line, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            record = json.loads(written, parse_constant=reject, parse_float=finite)
        except (ValueError, RecursionError) as error:
            yield line, f"is not valid JSON ({error})"
            continue
        yield line, as_texts(record, wanted, known) if isinstance(record, dict) else "is not a JSON object: {…}"


def reject(word: str) -> None:
    raise ValueError(f"JSON has no {word}")


def finite(digits: str) -> float:
    """A float that is a number; Python reads 1e400 as inf."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large for a number; write it in quotes")
    return value


def as_texts(record: dict, wanted: tuple[str, ...], known: tuple[str, ...]) -> dict | str:
    """The known columns of a record as texts, or its problem."""
    record = {name.strip().casefold(): "" if value is None else value for name, value in record.items()}
    for name in wanted:
        if name not in record:
            return f"has no column {name!r}; its columns are {list(record)}.{nearest(name, list(record))}"
    record = {name: value for name, value in record.items() if name in known}
    odd = [name for name, value in record.items() if isinstance(value, bool | list | dict)]
    if odd:
        value = record[odd[0]]
        chat = isinstance(value, list) and value and isinstance(value[-1], dict) and "content" in value[-1]
        fix = ": keep the content of its last message" if chat else ""
        return f"the column {odd[0]!r} has a {type(value).__name__} instead of text{fix}"
    return {name: str(value) for name, value in record.items()}
