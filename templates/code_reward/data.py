"""The training and held-out rows. Change this file for your data: a row has a prompt and tests.

Each row has a prompt, the name of the function, ``calls`` (JSON: a list of argument lists) and ``expected`` (JSON: a
list of results). They are JSON text because a dataset column has one type.
"""

import json
import random

from datasets import Dataset
from lib.rows import is_held_out, read_jsonl
from sandbox import SandboxError, check

TASKS = {
    "adds {n} to x": lambda x, n: x + n,
    "subtracts {n} from x": lambda x, n: x - n,
    "multiplies x by {n}": lambda x, n: x * n,
    "returns the larger of x and {n}": max,
    "returns the smaller of x and {n}": min,
}
INPUTS = [
    -3,
    0,
    1,
    10,
    57,
    1000,
]  # several inputs below and above each n; one input cannot distinguish x + 2 from x * 2


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test").

    ``name`` is "lambdas" (generated here, without a network), or a JSONL file of your own with the fields question,
    function, calls and expected. A tenth of your questions is held out.
    """
    try:
        check()
    except SandboxError as error:
        raise SystemExit(f"Error: {error}") from error
    rows = lambdas(split) if name == "lambdas" else own_rows(name, split)
    if not rows:
        raise SystemExit(f"Error: dataset_name={name!r} has no rows of the split {split!r}.")
    return Dataset.from_list(random.Random(seed).sample(rows, min(count, len(rows))))


def chat(question: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "user", "content": question}]


def row_of(question: str, function: str, calls: list, expected: list) -> dict:
    tests = {"calls": json.dumps(calls), "expected": json.dumps(expected)}
    return {"prompt": chat(question), "function": function, **tests}


def lambdas(split: str) -> list[dict]:
    """Small functions of one number, described in words."""
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


def own_rows(name: str, split: str) -> list[dict]:
    """Questions and tests from a JSONL file; a tenth of the questions is held out."""
    wanted = '{"question": …, "function": …, "calls": [[…], …], "expected": […, …]}'
    rows = read_jsonl(name, own_row, wanted, "'lambdas'")
    return [row for row in rows if is_held_out(row["prompt"][0]["content"]) == (split == "test")]


def own_row(line: dict) -> dict:
    """A row, if its tests are complete."""
    if len(line["calls"]) != len(line["expected"]) or not all(isinstance(c, list) for c in line["calls"] or [None]):
        raise ValueError("calls must be a list of at least one argument list, and expected must have a result for each")
    return row_of(line["question"], line["function"], line["calls"], line["expected"])
