"""CSV, TSV, JSON and JSONL files as records. Every error names the file, the line and the fix.

Nothing is guessed or left out: a file is read as a whole or rejected. Empty lines are skipped.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from .errors import CourseError, did_you_mean
from .rewards.structured import unique_keys

ENDINGS = (".jsonl", ".json", ".csv", ".tsv")
#: Separators of fields other than a comma.
DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table(
    path: str | Path, encoding: str = "utf-8", delimiter: str = "", header: Sequence[str] | None = None
) -> list[dict]:
    """The records of a ``.csv``, ``.tsv``, ``.json`` (a list of objects) or ``.jsonl`` file, in their order.

    Args:
        path: the file.
        encoding: the file's encoding; Windows writes "cp1252" in western Europe and America.
        delimiter: between the fields of a CSV; a comma by default (a tab in a ``.tsv``).
        header: the column names of a CSV without a header.

    Raises:
        CourseError: no such file, another ending, another encoding, a CSV whose header repeats a name or whose rows
            have more or fewer fields than the header, a quote that never closes, a line that is not valid JSON, an
            object that repeats a key, or no records.
    """
    path = Path(path)
    text, readers = _read_text(path, encoding), {".jsonl": _read_jsonl, ".json": _read_json}
    read = readers.get(path.suffix.lower(), partial(_read_csv, delimiter=delimiter, header=header))
    records = read(text, path)
    if not records:
        raise CourseError(f"{path} has no records. Is the file complete?")
    return records


def _read_text(path: Path, encoding: str) -> str:
    """The text of a file of records, without a byte order mark."""
    if path.suffix.lower() not in ENDINGS:
        raise CourseError(f"{str(path)!r} ends in {path.suffix!r}; rows are read from {', '.join(ENDINGS)}.")
    if not path.is_file():
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*")])
        raise CourseError(f"There is no file {str(path)!r}.{near}")
    try:
        text = path.read_bytes().decode(encoding)
    except LookupError as error:
        raise CourseError(f"encoding: {error}. Common ones: utf-8, cp1252, utf-16.") from error
    except UnicodeDecodeError as error:
        raise CourseError(f"{path}, {_not_decoded(error, encoding)}") from error
    if "\0" in text:
        line = text.partition("\0")[0].count("\n") + 1
        raise CourseError(f"{path}, line {line} has a zero byte: try encoding='utf-16-le'. Or the file is not text.")
    return text.removeprefix("\ufeff").removeprefix("ï»¿")  # the byte order mark, also as cp1252 shows it


def _not_decoded(error: UnicodeDecodeError, encoding: str) -> str:
    """The byte that is not valid, its place, and its character in the most likely encoding."""
    before, byte = error.object[: error.start], error.object[error.start]
    line, likely = before.count(b"\n") + 1, "cp1252" if error.encoding == "utf-8" else "utf-8"
    if error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return (
            "line 1: this is UTF-16, such as Excel's 'Unicode text'. Save it as UTF-8 (in Python: read_table(path, "
            "encoding='utf-16'))."
        )
    seen = (before.rpartition(b"\n")[2] + bytes([byte])).decode(likely, errors="ignore")[-20:]
    fix = f"If the line should contain {seen!r}, save it as UTF-8 (in Python: read_table(path, encoding={likely!r}))."
    return f"line {line}: byte {error.start} (0x{byte:02x}) is not valid {encoding}. {fix}"


def _read_jsonl(text: str, path: Path) -> list[dict]:
    """One object per line; ``str.splitlines`` would also split at characters that JSON allows in a text."""
    if text.lstrip().startswith("["):
        raise CourseError(f"{path} is a list, but each line of .jsonl must be an object. Rename the file to .json.")
    lines = [(f"{path}, line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [_object(_parse(line, where), where) for where, line in lines]


def _read_json(text: str, path: Path) -> list[dict]:
    rows = _parse(text, str(path)) if text.strip() else []
    if not isinstance(rows, list):
        raise CourseError(f"{path} contains a {type(rows).__name__}; write a list of rows, [{{…}}, {{…}}], or .jsonl.")
    return [_object(row, f"{path}, row {index}") for index, row in enumerate(rows)]


def _parse(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except json.JSONDecodeError as error:
        fix = " If each line is an object, rename the file to .jsonl." if error.msg == "Extra data" else ""
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        raise CourseError(f"{where} is not valid JSON: {error.msg}, {place}.{fix}") from error
    except (ValueError, RecursionError) as error:  # a repeated key, a number with thousands of digits, nested lists
        raise CourseError(f"{where} cannot be read: {error}. Fix the file.") from error


def _object(row: object, where: str) -> dict:
    if not isinstance(row, dict):
        raise CourseError(f"{where} is a {type(row).__name__}; a row is an object with 'prompt' and 'answer'.")
    return row


def _read_csv(text: str, path: Path, delimiter: str, header: Sequence[str] | None) -> list[dict]:
    excel = re.match(r'"?sep=(.)"?(?=\r?\n)', text, re.IGNORECASE)  # a first line for Excel, with the delimiter
    if excel:
        text, delimiter = text[excel.end() :], delimiter or excel[1]
    delimiter = delimiter or ("\t" if path.suffix.lower() == ".tsv" else ",")
    lines = _csv_lines(text, path, delimiter)
    if header is None:
        if not lines:
            raise CourseError(f"{path} is empty: it has neither a header nor rows.")
        header = [name.strip() for name in lines.pop(0)[1]]
    _check_header(header, path, delimiter)
    for number, fields in lines:
        if len(fields) != len(header):
            more = len(fields) > len(header)
            found = f"{'more' if more else 'fewer'} fields than the header ({len(fields)}, not {len(header)})"
            fix = "put quotes around commas" if more else "an empty field still needs its comma"
            raise CourseError(f"{path}, line {number} has {found}; {fix}.")
    return [dict(zip(header, fields, strict=True)) for _, fields in lines]


def _csv_lines(text: str, path: Path, delimiter: str) -> list[tuple[int, list[str]]]:
    """Each row's fields, with the line it starts on; ``strict`` so that an open quote is an error."""
    reader, lines, start = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [], 1
    try:
        for fields in reader:
            lines.append((start, fields))
            start = reader.line_num + 1
    except csv.Error as error:
        fix = "Close the quote that opens a field, and write a quote inside a field twice."
        if "field limit" in str(error):
            fix = "If the field is that long: import csv; csv.field_size_limit(10**7)."
        raise CourseError(f"{path}: the row that starts on line {start} is not valid CSV ({error}). {fix}") from error
    return [(start, fields) for start, fields in lines if fields]


def _check_header(header: Sequence[str], path: Path, delimiter: str) -> None:
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    if twice:
        raise CourseError(f"{path}: the header has {twice[0]!r} twice, and only one could be kept. Rename one.")
    for mark, name in DELIMITERS.items():
        if len(header) == 1 and mark in header[0] and mark != delimiter:
            raise CourseError(
                f"{path}: the header is one field with {name}. Save it with commas (in Python: read_table(path, "
                f"delimiter={mark!r}))."
            )
