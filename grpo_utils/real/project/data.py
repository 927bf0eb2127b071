"""The training and held-out rows: sentences, and the flat JSON object that each should become."""

from datasets import Dataset

from grpo_utils.data.extraction import extraction_rows


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of ``split`` with the columns prompt, answer (JSON as text) and kind.

    ``name`` is the task: "orders" or "older". The held-out rows are the same for every seed, whatever ``held_out`` is.
    """
    return Dataset.from_list(extraction_rows(name, count, split, seed if split == "train" else 0))
