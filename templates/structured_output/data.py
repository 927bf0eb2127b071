"""The training and held-out rows. Change this file for your data: a row has a prompt and what the rewards need."""

import json
import random
import zlib

from datasets import Dataset
from lib.rows import is_held_out, read_jsonl
from rewards import VALIDATOR

NAMES = [
    *("Ana", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Karin", "Leo"),
    *("Mara", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tara", "Uwe", "Vera", "Willem", "Yara", "Zoe"),
]
LINES = ("{name} is {age} years old.", "Meet {name}, aged {age}.")


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer (JSON as text).

    ``name`` is "people" (generated here, without a network), or a JSONL file of your own with the fields text and
    answer. A tenth of your texts is held out.
    """
    pairs = people(split) if name == "people" else own_rows(name, split)
    if not pairs:
        raise SystemExit(f"Error: dataset_name={name!r} has no rows of the split {split!r}.")
    chosen = random.Random(seed).sample(pairs, min(count, len(pairs)))
    return Dataset.from_list([{"prompt": chat(text), "answer": json.dumps(answer)} for text, answer in chosen])


def chat(text: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "user", "content": f"Write name and age as JSON: {text}"}]


def is_new_to_the_tiny_model(name: str, age: int) -> bool:
    """Whether the tiny model never saw this person: its training rows left out a tenth, by exactly this checksum.

    So it cannot be lib's `is_held_out`, which ignores case and would hold out people that the model has seen.
    """
    return zlib.crc32(f"{name} {age}".encode()) % 10 == 0


def people(split: str) -> list[tuple[str, dict]]:
    """Lines about 2,160 people with their content; each held-out person has only one line."""
    pairs = [(n, a) for n in NAMES for a in range(10, 100) if is_new_to_the_tiny_model(n, a) == (split == "test")]
    lines = LINES if split == "train" else LINES[:1]
    return [(line.format(name=n, age=a), {"name": n, "age": a}) for n, a in pairs for line in lines]


def own_rows(name: str, split: str) -> list[tuple[str, dict]]:
    """Texts and answers from a JSONL file; a tenth of the texts is held out."""
    rows = read_jsonl(name, own_row, '{"text": …, "answer": {…}}', "'people'")
    return [row for row in rows if is_held_out(row[0]) == (split == "test")]


def own_row(line: dict) -> tuple[str, dict]:
    """A text and its answer, which must satisfy the schema."""
    for problem in VALIDATOR.iter_errors(line["answer"]):
        raise ValueError(f"the answer does not satisfy schema.json: {problem.message}")
    return str(line["text"]), line["answer"]
