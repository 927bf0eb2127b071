"""CSV, TSV, JSON and JSONL files as records. Every error names the file, the line and the mend.

Nothing is guessed and nothing left out: a file is read whole or refused. Empty lines are no records.
"""

import codecs
import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path

from ..errors import CourseError, did_you_mean

ENDINGS = (".jsonl", ".json", ".csv", ".tsv")
#: What a file starts with that is not UTF-8, and its name in Python.
OTHER_MARKS = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
#: What else than a comma is found between fields.
DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table(
    path: str | Path, encoding: str = "utf-8", delimiter: str = "", header: Sequence[str] | None = None
) -> list[dict]:
    """The records of a ``.csv``, ``.tsv``, ``.json`` (a list of objects) or ``.jsonl`` file, in their order.

    Args:
        path: the file.
        encoding: how its characters are written; "cp1252" is what Windows writes in western Europe and America.
        delimiter: between the fields of a CSV; left out, a comma (in a ``.tsv`` a tab).
        header: the names of the columns of a CSV that has none.

    Raises:
        CourseError: no such file, another ending, other characters than ``encoding``, a CSV whose header repeats a
            name or whose rows have more or fewer fields than it, a quote that never closes, a line that is no JSON,
            an object with a key twice, no record at all.
    """
    path = Path(path)
    text, ending = read_text(path, encoding), path.suffix.lower()
    if ending == ".jsonl":
        records = _read_jsonl(text, path)
    elif ending == ".json":
        records = _read_json(text, path)
    else:
        records = _read_csv(text, path, delimiter, header)
    if not records:
        raise CourseError(f"{path} holds no records. Was it written to its end?")
    return records


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """The text of a file of records; a byte order mark at its start goes."""
    if path.suffix.lower() not in ENDINGS:
        raise CourseError(f"{str(path)!r} ends in {path.suffix!r}; rows are read from {', '.join(ENDINGS)}.")
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    data, name = path.read_bytes(), _encoding_name(encoding)
    mark = next((name for mark, name in OTHER_MARKS.items() if data.startswith(mark)), None)
    if mark and name == "utf-8":
        raise CourseError(f"{path} is UTF-16, as Excel's 'Unicode text' is: read_table(path, encoding='utf-16').")
    try:
        text = data.decode(name).removeprefix("\ufeff").removeprefix("ï»¿")  # the mark, and as cp1252 shows it
    except UnicodeDecodeError as error:
        raise CourseError(_not_decoded(path, data, error, name)) from error
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise CourseError(f"{path}, line {line} holds a zero byte: it is UTF-16 (try encoding='utf-16-le') or no text.")
    return text


def _encoding_name(encoding: str) -> str:
    """One name for the many ways to write it; a mark at the start of UTF-8 is taken off later."""
    try:
        "".encode(encoding)  # refuses "base64" and the like, which are no encodings of text
        return codecs.lookup(encoding).name.removesuffix("-sig")
    except LookupError as error:
        raise CourseError(f"encoding={encoding!r} is unknown to Python. Common ones: utf-8, cp1252, utf-16.") from error


def _not_decoded(path: Path, data: bytes, error: UnicodeDecodeError, name: str) -> str:
    """Which byte is not of the encoding, where, and what it would be in the one that is likeliest."""
    line, start = data[: error.start].count(b"\n") + 1, data.rfind(b"\n", 0, error.start) + 1
    likely = "cp1252" if name == "utf-8" else "utf-8"
    seen = data[start : error.start + 1].decode(likely, errors="ignore")[-20:]
    return (
        f"{path}, line {line}: byte {error.start} (0x{data[error.start]:02x}) is no {name.upper()}. If "
        f"{seen!r} is what the line says up to there, read it so: read_table(path, encoding={likely!r})."
    )


def _read_jsonl(text: str, path: Path) -> list[dict]:
    """One object a line; ``str.splitlines`` would also cut at characters that JSON allows in a text."""
    if text.lstrip().startswith("["):
        line = text[: text.index("[")].count("\n") + 1
        mend = "One list of objects is .json: rename the file."
        raise CourseError(f"{path}, line {line} is a list; a row is an object with 'prompt' and 'answer'. {mend}")
    lines = [(f"{path}, line {number}", line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    return [_object(_parse(line, where), where) for where, line in lines]


def _read_json(text: str, path: Path) -> list[dict]:
    rows = _parse(text, str(path)) if text.strip() else []
    if not isinstance(rows, list):
        raise CourseError(f"{path} holds a {type(rows).__name__}; write a list of rows, [{{…}}, {{…}}], or .jsonl.")
    return [_object(row, f"{path}, row {index}") for index, row in enumerate(rows)]


def _parse(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_keys_once)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if "\n" in text else f"column {error.colno}"
        lines = error.msg == "Extra data" and text.lstrip().startswith("{")
        mend = " One object a line is .jsonl; rename the file." if lines else ""
        raise CourseError(f"{where} is no JSON: {error.msg}, {place}.{mend}") from error
    except (ValueError, RecursionError) as error:  # a key twice; a number of thousands of digits; lists in lists in …
        raise CourseError(f"{where} cannot be read: {error}. Mend the file.") from error


def _keys_once(pairs: list[tuple[str, object]]) -> dict:
    """An object; of a key that stands there twice Python would keep the last and say nothing."""
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"an object has the key {twice!r} twice, and only one could be kept")
    return dict(pairs)


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
            raise CourseError(_ragged(f"{path}, line {number}", len(fields), len(header)))
    return [dict(zip(header, fields, strict=True)) for _, fields in lines]


def _csv_lines(text: str, path: Path, delimiter: str) -> list[tuple[int, list[str]]]:
    """Each row's fields, with the line it starts on; ``strict`` so that an open quote swallows nothing."""
    if len(delimiter) != 1:
        raise CourseError(f"delimiter={delimiter!r} should be one character, such as ';' or '\\t'.")
    reader, lines, start = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), [], 1
    try:
        for fields in reader:
            if fields:
                lines.append((start, fields))
            start = reader.line_num + 1
    except csv.Error as error:
        mend = "A quote that opens a field has to close; one inside a field is written twice."
        if "field limit" in str(error):
            mend += " If the field is that long: import csv; csv.field_size_limit(10**7)."
        raise CourseError(f"{path}: the row that starts on line {start} is no CSV ({error}). {mend}") from error
    return lines


def _check_header(header: Sequence[str], path: Path, delimiter: str) -> None:
    twice = [name for place, name in enumerate(header) if name in header[:place]]
    if twice:
        raise CourseError(f"{path}: its header has {twice[0]!r} twice; only one could be kept. Rename one.")
    inside = [(mark, name) for mark, name in DELIMITERS.items() if len(header) == 1 and mark in header[0]]
    if inside and inside[0][0] != delimiter:
        mark, name = inside[0]
        raise CourseError(f"{path}: its header is one field with {name} in it: read_table(path, delimiter={mark!r}).")


def _ragged(where: str, there: int, wanted: int) -> str:
    more = "more" if there > wanted else "fewer"
    mend = "put quotes around commas" if there > wanted else "an empty field still needs its comma"
    return f"{where} has {more} fields than the header ({there}, not {wanted}); {mend}."
