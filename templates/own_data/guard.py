"""A reward that raises names the row and the completion on which it does."""

import functools
import traceback
from collections.abc import Callable


class RewardError(Exception):
    """A reward raised; the text says on which row."""


def guarded(reward: Callable) -> Callable:
    """The same reward; what it raises becomes a `RewardError`."""

    @functools.wraps(reward)
    def score(completions: list, **columns: object) -> list[float]:
        try:
            return reward(completions, **columns)
        except Exception as error:  # the one place where your own code runs
            where = traceback.format_exc(limit=-2)
            raise RewardError(f"{reward.__name__} raised.\n{blame(reward, completions, columns)}\n{where}") from error

    return score


def blame(reward: Callable, completions: list, columns: dict) -> str:
    """The first completion on which the reward raises by itself, and its row."""
    for place, completion in enumerate(completions):
        row = {k: v[place : place + 1] if isinstance(v, list) else v for k, v in columns.items()}
        try:
            reward([completion], **row)
        except Exception:
            shown = {k: v[0] for k, v in row.items() if isinstance(v, list) and v and k != "completion_ids"}
            return f"Row: {shown}\nCompletion: {completion!r}"
    return "Each completion by itself is scored; all of them together are not."
