"""What other pages say of the tasks with a check: rates in percent, and minutes."""

from collections.abc import Sequence
from statistics import fmean

from benches import NOT_YET


def on_task(rows: Sequence[dict], task: str, arm: str, eight: bool = False) -> str:
    """The greedy accuracy, or pass@8, of an arm on a task that has no answers to imitate."""
    found = row_of(rows, task, arm)
    if not found:
        return NOT_YET
    right = [count > 0 for count in found["sampled"]] if eight else [digit == "1" for digit in found["greedy"]]
    return percent(fmean(right))


def minutes_on_task(rows: Sequence[dict], task: str, arm: str) -> str:
    """The minutes of training, and of sampling for it, by the clock."""
    found = row_of(rows, task, arm)
    return f"{found['minutes']:.0f}" if found else NOT_YET


def right_samples(rows: Sequence[dict], task: str) -> str:
    """How many samples of self-training were correct."""
    found = row_of(rows, task, "self-training")
    return str(found["right"]) if found else NOT_YET


def row_of(rows: Sequence[dict], task: str, arm: str) -> dict | None:
    """What an arm made of a task, if it has been run."""
    return next((row for row in rows if (row["task"], row.get("arm")) == (task, arm)), None)


def percent(rate: float) -> str:
    """A rate in percent, with a decimal if it needs one.

    >>> percent(0.975), percent(0.81)
    ('97.5%', '81%')
    """
    return f"{100 * rate:.1f}".removesuffix(".0") + "%"
