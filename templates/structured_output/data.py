"""The training and held-out rows. Change this file for your data: a row has a prompt and what the rewards need."""

import json
import random
import zlib

from datasets import Dataset
from grpo_run.rows import of_split, read_rows
from grpo_run.table import Columns
from rewards import VALIDATOR, read

NAMES = [
    *("Ana", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Karin", "Leo"),
    *("Mara", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tara", "Uwe", "Vera", "Willem", "Yara", "Zoe"),
]
LINES = ("{name} is {age} years old.", "Meet {name}, aged {age}.")


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer (JSON as text).

    ``name`` is "people" (generated here, without a network), or a file of your own, JSONL or CSV, with the columns text
    and answer, and split if you like. Of the rows without a split, about the share ``held_out`` is for testing.
    """
    if name == "people":
        pairs = people(split)
    else:
        rows = read_rows(name, Columns(("text", "answer"), as_json=("answer",)), problem, "'people'")
        pairs = [(row["text"], row["answer"]) for row in of_split(rows, split, held_out)]
    chosen = random.Random(seed).sample(pairs, min(count, len(pairs)))
    return Dataset.from_list([{"prompt": chat(text), "answer": answer} for text, answer in chosen])


def chat(text: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "user", "content": f"Write name and age as JSON: {text}"}]


def is_new_to_the_tiny_model(name: str, age: int) -> bool:
    """Whether the tiny model never saw this person: its training rows left out a tenth, by exactly this checksum.

    So it cannot be the library's `is_held_out`, which ignores case and would hold out people that the model has seen.
    """
    return zlib.crc32(f"{name} {age}".encode()) % 10 == 0


def people(split: str) -> list[tuple[str, str]]:
    """Lines about 2,160 people with their content; each held-out person has only one line."""
    pairs = [(n, a) for n in NAMES for a in range(10, 100) if is_new_to_the_tiny_model(n, a) == (split == "test")]
    lines = LINES if split == "train" else LINES[:1]
    return [(line.format(name=n, age=a), json.dumps({"name": n, "age": a})) for n, a in pairs for line in lines]


def problem(row: dict) -> str:
    """What is wrong with the answer in a row of your file; "" for one that satisfies the schema."""
    value = read(row["answer"])
    if value is None:
        return f"the answer {row['answer'][:60]} is null or too long, so no completion could be correct"
    wrong = next(VALIDATOR.iter_errors(value), None)
    return f"the answer does not satisfy schema.json: {wrong.message}" if wrong else ""
