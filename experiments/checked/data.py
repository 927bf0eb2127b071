"""In place of the data.py of `make real`: prompts of a task with a check, and what the check needs to know."""

import json

from datasets import Dataset

from checked import tasks


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of the task ``name``; no training prompt is held out."""
    rows = tasks.training_rows(name, count, seed) if split == "train" else tasks.held_out(name)[:count]
    return Dataset.from_list([dict(prompt=row["prompt"], task=name, drawn=json.dumps(row["drawn"])) for row in rows])
