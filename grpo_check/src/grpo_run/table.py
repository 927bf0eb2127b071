"""Read a CSV or JSONL file as records with line numbers; an error names the line, the problem and the fix."""

import csv
import difflib
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ENDINGS = (".csv", ".tsv", ".jsonl")
QUOTES = 'Is a quotation mark not closed? Inside a text, write it twice: "".'
#: Other names of the columns, the most telling first; also German, Spanish and French ones.
ALSO_CALLED = {
    "question": ("prompt", "problem", "query", "instruction", "input", "frage", "pregunta", "message", "text"),
    "answer": (
        *("solution", "ground_truth", "final_answer", "target", "gold", "reference", "response", "output"),
        *("antwort", "respuesta", "réponse", "reponse", "label", "category", "class"),
    ),
    "text": ("input", "question", "document", "content", "message"),
    "completion": ("answer", "response", "output", "target"),
    "expected": ("results", "outputs", "answers"),
    "calls": ("inputs", "arguments", "args"),
    "function": ("name", "entry_point", "function_name"),
}
MARKS = (b"\xff\xfe", b"\xfe\xff")  # byte order marks of UTF-16


class Columns(NamedTuple):
    """The columns of a table that are read: ``wanted`` are required, and others than these three are ignored.

    All are texts. A column ``as_json`` becomes JSON as text, so that a list or an object may be its value.
    """

    wanted: tuple[str, ...]
    optional: tuple[str, ...] = ()
    as_json: tuple[str, ...] = ()


def read_table(path: Path, columns: Columns) -> list[tuple[int, dict | str]]:
    """(line, record) for each record that has the columns, else (line, problem and fix)."""
    if path.suffix.lower() not in ENDINGS:
        raise SystemExit(f"Error: {str(path)!r} must end in {', '.join(ENDINGS)}.")
    text = decoded(path)
    found = json_lines(path, text) if path.suffix.lower() == ".jsonl" else csv_rows(path, text, columns)
    return [(line, with_columns(record, columns) if isinstance(record, dict) else record) for line, record in found]


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


def csv_rows(path: Path, text: str, columns: Columns) -> Iterator[tuple[int, dict | str]]:
    """The rows of a CSV file, separated by commas, semicolons or tabs as in its header."""
    first = text.lstrip().split("\n", 1)[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count), strict=True)
    line, header = 1, None
    try:
        for row in rows:
            if header is None and any(row) and not row[0].startswith("sep="):  # Excel's own first line
                header = [name.strip().casefold() for name in row]
                check_header(path, header, columns.wanted)
            elif header and any(row):
                same = len(row) == len(header)
                record = {name: json_or_text(v, name, columns) for name, v in zip(header, row, strict=same)}
                yield line, record if same else fields_differ(row, header)
            line = rows.line_num + 1
    except csv.Error as error:
        raise SystemExit(f"Error: {path}, line {line}: {error}. {QUOTES}") from None


def fields_differ(row: list[str], header: list[str]) -> str:
    """What is wrong with a row of another length than the header."""
    return f"has {len(row)} fields, but the header has {len(header)}: quote any text that contains the separator"


def check_header(path: Path, header: list[str], wanted: tuple[str, ...]) -> None:
    """Stop if a column is missing or appears twice."""
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise SystemExit(f"Error: {path} has the column {twice[0]!r} twice; rename one.")
    if problem := missing(header, wanted):
        raise SystemExit(f"Error: {path} {problem}.")


def missing(there: list[str], wanted: tuple[str, ...]) -> str:
    """The problem if columns are missing, and which ones to rename: those with the same content, or with a typo.

    >>> missing(["nr.", "frage"], ("question",))
    "has no column 'question'; it has 'nr.', 'frage'. Rename 'frage' to 'question'"
    """
    lost = [name for name in wanted if name not in there]
    if not lost:
        return ""
    free, fixes = [name for name in there if name not in wanted], []
    for name in lost:
        typos = difflib.get_close_matches(name, free, n=1, cutoff=0.8)
        meant = [*typos, *(other for other in ALSO_CALLED.get(name, ()) if other in free)]
        fixes.append(f"rename {meant[0]!r} to {name!r}" if meant else f"add {name!r}, or rename the column that has it")
        free = [other for other in free if other not in meant[:1]]
    fix = " and ".join(fixes)
    has = ", ".join(map(repr, there)) or "none"
    return f"has no column {' or '.join(map(repr, lost))}; it has {has}. {fix[0].upper()}{fix[1:]}"


def json_lines(path: Path, text: str) -> Iterator[tuple[int, dict | str]]:
    """The objects of a JSONL file. (Lines end only at \\n, because a text may contain Python's other line ends.)"""
    start = text.lstrip()[:1]
    first = text.lstrip().split("\n", 1)[0]
    if start not in ("{", "[", '"', "") and any(mark in first for mark in ",;\t"):
        looks = f"its first line {first[:60]!r} looks like CSV"
        raise SystemExit(f"Error: {path} is not JSONL; {looks}. Rename it to {path.stem}.csv.")
    if start == "[" and is_list_of_objects(text):
        write = 'python -c "import json, sys; [print(json.dumps(row)) for row in json.load(sys.stdin)]"'
        raise SystemExit(f"Error: {path} is one JSON list. Write one object per line: {write} < {path} > new.jsonl")
    for line, written in enumerate(text.split("\n"), start=1):
        if not written.strip():
            continue
        try:
            record = json.loads(written, parse_constant=reject, parse_float=finite)
        except (ValueError, RecursionError) as error:
            yield line, f"is not valid JSON ({error})"
            continue
        yield line, record if isinstance(record, dict) else "is not a JSON object: {…}"


def is_list_of_objects(text: str) -> bool:
    """Whether a whole file is one JSON list of objects."""
    try:
        return all(isinstance(row, dict) for row in json.loads(text))
    except (ValueError, RecursionError):
        return False


def reject(word: str) -> None:
    """Refuse a constant such as NaN.

    Raises:
        ValueError: always.
    """
    raise ValueError(f"JSON has no {word}")


def finite(digits: str) -> float:
    """A float that is a number; Python reads 1e400 as inf."""
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large for a number; write it in quotes")
    return value


def json_or_text(cell: str, name: str, columns: Columns) -> object:
    """A cell of a CSV: a text, or the value of the JSON in it. JSON that is not valid stays a text, to be reported."""
    if name not in columns.as_json:
        return cell
    try:
        return json.loads(cell)
    except (ValueError, RecursionError):
        return cell


def with_columns(record: dict, columns: Columns) -> dict | str:
    """The columns of a record as texts, "" for a missing optional one; or the record's problem."""
    record = {name.strip().casefold(): "" if value is None else value for name, value in record.items()}
    if problem := missing(list(record), columns.wanted):
        return problem
    texts = {}
    for name in (*columns.wanted, *columns.optional):
        value = record.get(name, "")
        if name in columns.as_json and value != "":
            value = json.dumps(value, ensure_ascii=False)
        if isinstance(value, bool | list | dict):
            chat = isinstance(value, list) and value and isinstance(value[-1], dict) and "content" in value[-1]
            fix = ": keep the content of its last message" if chat else ""
            return f"the column {name!r} has a {type(value).__name__} instead of text{fix}"
        texts[name] = str(value).strip()
    return texts
