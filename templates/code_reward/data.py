"""The training and held-out rows. Change this file for your data: a row has a prompt and tests.

Each row has a prompt, the name of the function, ``calls`` (JSON: a list of argument lists), ``expected`` (JSON: a list
of results), and ``solution``, a program that passes ("" for none). They are JSON text because a dataset column has one
type.
"""

import json
import random
import re

from datasets import Dataset
from grpo_run.rows import is_held_out, of_split, read_rows
from grpo_run.table import Columns
from rewards import outcomes, passed
from sandbox import SandboxError, Value, check

TASKS = {
    "adds {n} to x": lambda x, n: x + n,
    "subtracts {n} from x": lambda x, n: x - n,
    "multiplies x by {n}": lambda x, n: x * n,
    "returns the larger of x and {n}": max,
    "returns the smaller of x and {n}": min,
}
#: Values of Python that JSON writes in another way, as somebody may have written them in quotes.
PYTHON_TEXTS = {"True": "true", "False": "false", "None": "null"}
INPUTS = [
    -3,
    0,
    1,
    10,
    57,
    1000,
]  # several inputs below and above each n; one input cannot distinguish x + 2 from x * 2


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test").

    ``name`` is "lambdas" (generated here, without a network), or a file of your own, JSONL or CSV, with the columns
    question, function, calls and expected; if you like, solution (a program, which is run against the tests) and split.
    Of the rows without a split, about the share ``held_out`` is for testing.
    """
    try:
        check()
    except SandboxError as error:
        raise SystemExit(f"Error: {error}") from error
    rows = lambdas(split) if name == "lambdas" else own_rows(name, split, held_out)
    return Dataset.from_list(random.Random(seed).sample(rows, min(count, len(rows))))


def chat(question: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "user", "content": question}]


def row_of(question: str, function: str, calls: str, expected: str, solution: str = "") -> dict:
    tests = {"calls": calls, "expected": expected, "solution": solution}
    return {"prompt": chat(question), "function": function, **tests}


def lambdas(split: str) -> list[dict]:
    """Small functions of one number, described in words."""
    chosen = [(p, n) for p in TASKS for n in range(2, 100) if is_held_out(f"{p} {n}") == (split == "test")]
    return [
        row_of(
            f"Write a Python lambda that {pattern.format(n=n)}.",
            "answer",
            json.dumps([[x] for x in INPUTS]),
            json.dumps([TASKS[pattern](x, n) for x in INPUTS]),
        )
        for pattern, n in chosen
    ]


def own_rows(name: str, split: str, held_out: float) -> list[dict]:
    """Questions and tests from a file, if each solution in it passes the tests of its row."""
    columns = Columns(("question", "function", "calls", "expected"), ("solution",), as_json=("calls", "expected"))
    rows = of_split(read_rows(name, columns, problem, "'lambdas'"), split, held_out)
    solved = [row for row in rows if row["solution"]]
    tried = outcomes(*([row[column] for row in solved] for column in ("solution", "function", "calls")))
    for row, values in zip(solved, tried, strict=True):
        if not passed(values, json.loads(row["expected"])):  # again alone: among others, it may have run out of time
            [values] = outcomes([row["solution"]], [row["function"]], [row["calls"]])
        if not passed(values, json.loads(row["expected"])):
            found = [value.value if isinstance(value, Value) else f"no value: {value.why}" for value in values]
            raise SystemExit(
                f"Error: {name}: the solution of {row['question']!r} does not pass its own tests. For the calls "
                f"{row['calls']} it returns {found}, and expected is {row['expected']}. Correct one of them."
            )
    return [row_of(**{column: row[column] for column in columns.wanted}, solution=row["solution"]) for row in rows]


def problem(row: dict) -> str:
    """What is wrong with the tests in a row of your file, and how to fix it; "" for a valid row."""
    calls, expected = json.loads(row["calls"]), json.loads(row["expected"])
    if not (isinstance(calls, list) and calls and all(isinstance(call, list) for call in calls)):
        return f"calls is {row['calls'][:60]}: write a list with the arguments of each call, such as [[1, 2], [3, 4]]"
    if not isinstance(expected, list) or len(expected) != len(calls):
        return f"expected is {row['expected'][:60]}: write a list with a result for each of the {len(calls)} calls"
    if not row["solution"] and (texts := [result for result in expected if result in PYTHON_TEXTS]):
        meant = f"write {PYTHON_TEXTS[texts[0]]}, or add a solution that returns the text"
        return f"expected has the text {texts[0]!r}, which is not the value: {meant}"
    if not re.search(rf"\b{re.escape(row['function'])}\b", row["question"]):
        return f"the question does not name the function {row['function']!r}, which the model has to write: name it"
    return ""
