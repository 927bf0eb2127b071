"""In place of the rewards.py of `make real`: what a task's check says."""

import json
from statistics import fmean

from grpo_core.training.texts import completion_text

from checked.tasks import TASKS


def parts(text: str, task: str, drawn: str) -> list[bool]:
    return list(TASKS[task].parts(text, json.loads(drawn)).values())


def correctness_reward(completions: list, task: list[str], drawn: list[str], **kwargs) -> list[float]:
    """1.0 if the check finds every part right."""
    rows = zip(completions, task, drawn, strict=True)
    return [float(all(parts(completion_text(said), *about))) for said, *about in rows]


def parts_reward(completions: list, task: list[str], drawn: list[str], **kwargs) -> list[float]:
    """The share of parts that are right, because correct answers are rare at first."""
    rows = zip(completions, task, drawn, strict=True)
    return [fmean(parts(completion_text(said), *about)) for said, *about in rows]


REWARDS = {correctness_reward: 1.0, parts_reward: 1.0}


def is_right(text: str, row: dict) -> bool:
    return all(parts(text, row["task"], row["drawn"]))


def is_in_form(text: str) -> bool:
    """The tasks' forms differ, so the report says only whether the answer is one line."""
    return bool(text.strip()) and "\n" not in text.strip()


def gold_text(row: dict) -> None:
    """There is no answer to imitate, so none is tried before training."""
