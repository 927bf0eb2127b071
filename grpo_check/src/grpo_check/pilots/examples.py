"""Rows as examples in the prompt: what the model does with a few of them is what a run has to beat."""

import random
from collections.abc import Sequence

from grpo_core.errors import CourseError
from grpo_core.rewards import TAGS

from ..preflights.planned import PlannedRun
from ..preflights.rows import answer_text
from ..prompts import asks_for_tags


def draw(run: PlannedRun, prompts: int, examples: int, seed: int) -> list[dict]:
    """Some training rows, each with the same other rows as examples in its prompt.

    Args:
        run: with its rows.
        prompts: how many rows are drawn, and ``examples`` how many others are shown with their gold answers.
        seed: of the draw.

    Raises:
        CourseError: the prompts are plain text, the rows are too few, or an example has no gold answer.
    """
    if len(run.train) <= examples:
        raise CourseError(f"examples={examples} leaves none of the {len(run.train)} rows to sample from.")
    count = min(prompts + examples, len(run.train))
    drawn = [run.train[n] for n in random.Random(seed).sample(range(len(run.train)), count)]
    chosen, shown = drawn[: count - examples], drawn[count - examples :]
    turns = [turn for row in shown for turn in _turns(run, row)]
    return [_before_question(row, turns) for row in chosen] if turns else chosen


def _turns(run: PlannedRun, row: dict) -> list[dict]:
    """A row as a question and its answer, in the format that the prompt asks for."""
    gold = answer_text(row.get(run.answer_column))
    if not isinstance(row["prompt"], list) or not gold:
        raise CourseError(
            f"examples need chat prompts and a gold answer in the column {run.answer_column!r}; a row has the prompt "
            f"{row['prompt']!r:.60} and the answer {gold!r:.60}."
        )
    written = f"{''.join(TAGS[:3])}{gold}{TAGS[3]}" if asks_for_tags([row["prompt"]]) else gold
    return [row["prompt"][-1], {"role": "assistant", "content": written}]


def _before_question(row: dict, turns: Sequence[dict]) -> dict:
    """The row with further turns after its system message."""
    if not isinstance(row["prompt"], list):
        raise CourseError(f"examples need chat prompts, and a row has the prompt {row['prompt']!r:.60}.")
    first = 1 if row["prompt"][0]["role"] == "system" else 0
    return row | {"prompt": [*row["prompt"][:first], *turns, *row["prompt"][first:]]}
