"""Evaluate the same held-out prompts before and after through TRL's sampling, which works with every engine."""

import json
from pathlib import Path

from accelerate.utils import gather_object
from grpo_core.training.texts import completion_text
from rewards import is_in_form, is_right
from transformers import TrainerCallback


def numbered(rows: object, held_out: bool) -> object:
    """The rows with a column ``place``: the number of a held-out row, or -1 for a training row."""
    return rows.add_column("place", list(range(len(rows))) if held_out else [-1] * len(rows))


class Accuracy:
    """A reward with weight 0, which does not affect training; it records the answers to held-out rows."""

    __name__ = "accuracy"

    def __init__(self):
        self.found = {}

    def __call__(self, completions: list, place: list[int], **columns: object) -> list[float]:
        texts = [completion_text(completion) for completion in completions]
        rows = [{k: v[i] for k, v in columns.items() if isinstance(v, list)} for i in range(len(texts))]
        right = [is_right(text, row) for text, row in zip(texts, rows, strict=True)]
        formed = [is_in_form(text) for text in texts]
        self.found |= {p: record for p, *record in zip(place, right, formed, texts, strict=True) if p >= 0}
        return [float(each) for each in right]

    def gathered(self) -> dict:
        """The records of all processes, each row once and in order; then clear them. Every process must call this."""
        found = {place: record for part in gather_object([self.found]) for place, record in part.items()}
        self.found, names = {}, ("right", "formed", "sampled")
        return {name: [found[place][i] for place in sorted(found)] for i, name in enumerate(names)}


class KeepBefore(TrainerCallback):
    """Save the evaluation before the first step, because a resumed run cannot repeat it."""

    def __init__(self, accuracy: Accuracy, folder: Path):
        self.accuracy, self.path = accuracy, folder / "before.json"

    def on_evaluate(self, args, state, control, **kwargs):
        if state.global_step == 0:
            found = self.accuracy.gathered()
            if state.is_world_process_zero:
                self.path.write_text(json.dumps(found), encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> dict:
        """The saved evaluation."""
        return json.loads((folder / "before.json").read_text(encoding="utf-8"))
