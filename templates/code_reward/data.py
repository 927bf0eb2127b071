"""Rows to train on and rows to measure with. Change this for your own data: a prompt, and tests.

Each row has a prompt, the name of the function, ``calls`` (JSON: a list of argument lists) and ``expected`` (JSON: a
list of results). JSON as text, because a column of a dataset has one type.
"""

import json
import random
import zlib
from pathlib import Path

from datasets import Dataset
from sandbox import SandboxError, check

TASKS = {
    "adds {n} to x": lambda x, n: x + n,
    "subtracts {n} from x": lambda x, n: x - n,
    "multiplies x by {n}": lambda x, n: x * n,
    "returns the larger of x and {n}": max,
    "returns the smaller of x and {n}": min,
}
INPUTS = [-3, 0, 1, 10, 57, 1000]  # several, on both sides of every n: one alone cannot tell x + 2 from x * 2


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test").

    ``name``: "lambdas" (made here, needs no network), or a JSONL file of your own with the fields question, function,
    calls and expected, of which every tenth question is held out.
    """
    try:
        check()
    except SandboxError as error:
        raise SystemExit(f"Error: {error}") from error
    rows = lambdas(split) if name == "lambdas" else own_rows(Path(name), split)
    if not rows:
        raise SystemExit(f"Error: dataset_name={name!r} has no rows of the split {split!r}.")
    return Dataset.from_list(random.Random(seed).sample(rows, min(count, len(rows))))


def row_of(question: str, function: str, calls: list, expected: list) -> dict:
    prompt = [{"role": "user", "content": question}]
    return {"prompt": prompt, "function": function, "calls": json.dumps(calls), "expected": json.dumps(expected)}


def is_held_out(key: str) -> bool:
    """A tenth of all rows, chosen by a checksum: a row never changes sides when others are added."""
    return zlib.crc32(key.encode()) % 10 == 0


def lambdas(split: str) -> list[dict]:
    """Small functions of one number, asked for in words."""
    chosen = [(p, n) for p in TASKS for n in range(2, 100) if is_held_out(f"{p} {n}") == (split == "test")]
    return [
        row_of(
            f"Write a Python lambda that {pattern.format(n=n)}.",
            "answer",
            [[x] for x in INPUTS],
            [TASKS[pattern](x, n) for x in INPUTS],
        )
        for pattern, n in chosen
    ]


def own_rows(path: Path, split: str) -> list[dict]:
    """Questions and tests of a JSONL file; a line that is none is named."""
    if not path.is_file():
        raise SystemExit(f"Error: dataset_name={str(path)!r} is no file here, nor 'lambdas'.")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            made = row_of(row["question"], row["function"], row["calls"], row["expected"])
            fits = len(row["calls"]) == len(row["expected"]) > 0 and all(isinstance(c, list) for c in row["calls"])
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            wanted = '{"question": …, "function": …, "calls": [[…], …], "expected": […, …]}'
            raise SystemExit(f"Error: {path}, line {number}: {error!r}. Each line: {wanted}") from error
        if not fits:
            wanted = "calls should be a list of argument lists, and expected have a result for each; at least one"
            raise SystemExit(f"Error: {path}, line {number}: {wanted}.")
        rows += [made] if is_held_out(row["question"]) == (split == "test") else []
    return rows
