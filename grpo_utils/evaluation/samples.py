"""Texts side by side: what the numbers are made of."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import CourseError
from ..rewards import as_chat, reward_name
from .comparing import check_same_prompts
from .judging import Evaluation

if TYPE_CHECKING:
    from datasets import Dataset
    from pandas import DataFrame


def side_by_side(
    rows: "Dataset", before: Evaluation, after: Evaluation, rewards: Sequence[Callable] = ()
) -> "DataFrame":
    """One row a prompt: the question, the gold answer, both texts, whether right, each reward before and after.

    Columns: ``prompt``, ``gold``, ``before``, ``after``, ``right before``, ``right after``, then for every
    reward ``NAME before`` and ``NAME after``. Rewards are called as TRL calls them, with chat messages and all
    columns of ``rows``. To see what got worse: ``table[table["right before"] & ~table["right after"]]``.

    Raises:
        CourseError: the evaluations are of different prompts, or there are not as many rows.
    """
    import pandas

    check_same_prompts(before, after)
    if len(rows) != before.n:
        raise CourseError(f"{len(rows)} rows, but {before.n} were evaluated. Give the rows of the evaluation.")
    table = {
        "prompt": [prompt[-1]["content"] for prompt in rows["prompt"]],
        "gold": list(rows["answer"]),
        "before": before.sampled,
        "after": after.sampled,
        "right before": before.right,
        "right after": after.right,
    }
    for reward in rewards:
        for side, result in (("before", before), ("after", after)):
            table[f"{reward_name(reward)} {side}"] = _scores(reward, rows, result.sampled)
    return pandas.DataFrame(table)


def _scores(reward: Callable, rows: "Dataset", texts: Sequence[str]) -> list[float | None]:
    """One score a text."""
    columns = {name: list(rows[name]) for name in rows.column_names if name != "prompt"}
    return reward(completions=[as_chat(text) for text in texts], prompts=list(rows["prompt"]), **columns)
