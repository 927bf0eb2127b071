"""The rewards. CHANGE THIS FILE FIRST: the model learns what you reward.

A program is scored by what its function returns for the inputs of the tests. It runs in `sandbox.py`, never in this
process; the expected results stay here, where the program cannot read them.
"""

import json
import math
import re
from collections.abc import Sequence
from functools import lru_cache

from grpo_core.training.texts import completion_text
from sandbox import Limits, Value, run_many

LIMITS = Limits(seconds=2.0, cpu_seconds=2, memory_mb=256, output_kb=64)
FENCE = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
LONGEST = 4000  # characters; a longer program is not run


def program_in(text: str) -> str:
    """The code of a completion: the text in its only code fence, else the whole text; a bare lambda gets a name."""
    fenced = FENCE.findall(text)
    code = fenced[0] if len(fenced) == 1 else text
    return f"answer = {code}" if code.lstrip().startswith("lambda") else code


def outcomes(completions: Sequence, function: Sequence[str], calls: Sequence[str]) -> list[list]:
    """The outcome of each program's calls; ``calls`` has a JSON list of argument lists for each row."""
    return run_batch(
        tuple((program_in(completion_text(c)), f, k) for c, f, k in zip(completions, function, calls, strict=True))
    )


@lru_cache(maxsize=1)
def run_batch(jobs: tuple) -> list[list]:
    """The outcomes of one batch; each program runs once for all rewards. The next batch runs again, because a program
    may have timed out only because the machine was busy.
    """
    new = [job for job in dict.fromkeys(jobs) if len(job[0]) <= LONGEST]
    found = dict(zip(new, run_many([(p, f, json.loads(k)) for p, f, k in new], LIMITS), strict=True))
    return [found.get(job, []) for job in jobs]


def all_pass(
    completions: Sequence, function: Sequence[str], calls: Sequence[str], expected: Sequence[str]
) -> list[bool]:
    """Whether each program passes all of its tests; true is not equal to 1, but 2.0 is equal to 2."""
    found = outcomes(completions, function, calls)
    return [passed(values, json.loads(wanted)) for values, wanted in zip(found, expected, strict=True)]


def passed(values: list, wanted: list) -> bool:
    """Whether every call returned what was wanted; a row without tests passes nothing."""
    return len(values) == len(wanted) > 0 and all(
        isinstance(value, Value) and same(value.value, result) for value, result in zip(values, wanted, strict=True)
    )


def same(one: object, other: object) -> bool:
    """Whether two values are equal, also in lists and objects; true is not 1, but 0.1 * 3 is 0.3."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other or (float in (type(one), type(other)) and near(one, other))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other


def near(one: float, other: float) -> bool:
    """Whether two numbers are equal except for rounding; an integer too large for a float is not close to any float."""
    try:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:
        return False


def correctness_reward(completions: list, function: list, calls: list, expected: list, **kwargs) -> list[float]:
    """1.0 if all tests pass."""
    return [float(right) for right in all_pass(completions, function, calls, expected)]


def runs_reward(completions: list, function: list, calls: list, **kwargs) -> list[float]:
    """1.0 if there is a value for each call, correct or not, as partial credit for programs that run.

    Known exploit: a program that ignores its input earns this, and so does one that writes the values itself.
    """
    counts = [len(json.loads(k)) for k in calls]
    found = outcomes(completions, function, calls)
    return [
        float(n > 0 and sum(isinstance(v, Value) for v in values) == n) for values, n in zip(found, counts, strict=True)
    ]


#: The rewards that `train.py` uses, with their weights. Correctness outweighs all others together. (The share of passed
#: tests is not a reward, because a program that returns a constant passes some of them.)
REWARDS = {correctness_reward: 2.0, runs_reward: 0.5}


def is_right(text: str, row: dict) -> bool:
    """Whether the report counts a program as accurate: all tests pass."""
    [right] = all_pass([text], [row["function"]], [row["calls"]], [row["expected"]])
    return right


def is_in_form(text: str) -> bool:
    """Whether the report counts a text as correctly formatted: it has a function or a lambda."""
    return bool(re.search(r"\bdef \w+\(|^\s*lambda\b", program_in(text).removeprefix("answer = ")))


def gold_text(row: dict) -> str | None:
    """The row's solution, for the checks before training: it must count as correct. None if the row has none."""
    return row["solution"] or None
