# Generated from grpo_utils 0.1.0, templates/_lib/rows.py; the same in every template.
"""Read a JSONL file of your own, and decide which rows are held out."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path


def is_held_out(key: str) -> bool:
    """Whether a row is in the held-out tenth, by a checksum of its key, so adding rows never moves it.

    >>> is_held_out("What is 15 + 27?") == is_held_out(" what is  15 + 27?")
    True
    """
    return zlib.crc32(" ".join(key.casefold().split()).encode()) % 10 == 0


def read_jsonl(name: str, row_of: Callable[[dict], object], wanted: str, others: str) -> list:
    """Apply ``row_of`` to the object in each line of a JSONL file.

    It raises `SystemExit` at the first line that is not JSON or for which ``row_of`` raises. ``wanted`` is an example
    of a valid line; ``others`` lists the datasets that are not files.
    """
    path, rows = Path(name), []
    if not path.is_file():
        raise SystemExit(f"Error: dataset_name={name!r} is neither a file here nor {others}.")
    for place, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(row_of(json.loads(line)))
        except (ValueError, KeyError, TypeError) as error:
            raise SystemExit(f"Error: {path}, line {place}: {error!r}. A valid line: {wanted}") from error
    return rows
