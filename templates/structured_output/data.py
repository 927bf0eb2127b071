"""Rows to train on and rows to measure with. Change this for your own data: a prompt, and what the rewards need."""

import json
import random
import zlib

from datasets import Dataset
from lib.rows import read_jsonl
from rewards import VALIDATOR

NAMES = [
    *("Ana", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Karin", "Leo"),
    *("Mara", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tara", "Uwe", "Vera", "Willem", "Yara", "Zoe"),
]
LINES = ("{name} is {age} years old.", "Meet {name}, aged {age}.")


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer (JSON as text).

    ``name``: "people" (made here, needs no network), or a JSONL file of your own with the fields text and answer, of
    which every tenth text is held out.
    """
    pairs = people(split) if name == "people" else own_rows(name, split)
    if not pairs:
        raise SystemExit(f"Error: dataset_name={name!r} has no rows of the split {split!r}.")
    chosen = random.Random(seed).sample(pairs, min(count, len(pairs)))
    return Dataset.from_list([{"prompt": chat(text), "answer": json.dumps(answer)} for text, answer in chosen])


def chat(text: str) -> list[dict]:
    """A prompt as messages: a plain string would get no chat template."""
    return [{"role": "user", "content": f"Write name and age as JSON: {text}"}]


def is_held_out(key: str) -> bool:
    """A tenth of all rows, chosen by a checksum: a row never changes sides when others are added."""
    return zlib.crc32(key.encode()) % 10 == 0


def people(split: str) -> list[tuple[str, dict]]:
    """A line about each of 2,160 people, and what it says. One line for each held-out person."""
    pairs = [(n, a) for n in NAMES for a in range(10, 100) if is_held_out(f"{n} {a}") == (split == "test")]
    lines = LINES if split == "train" else LINES[:1]
    return [(line.format(name=n, age=a), {"name": n, "age": a}) for n, a in pairs for line in lines]


def own_rows(name: str, split: str) -> list[tuple[str, dict]]:
    """Texts and answers of a JSONL file, of which every tenth text is held out."""
    rows = read_jsonl(name, own_row, '{"text": …, "answer": {…}}', "'people'")
    return [row for row in rows if is_held_out(row[0]) == (split == "test")]


def own_row(line: dict) -> tuple[str, dict]:
    """A text and its answer, which the schema has to allow."""
    for problem in VALIDATOR.iter_errors(line["answer"]):
        raise ValueError(f"its answer breaks schema.json: {problem.message}")
    return str(line["text"]), line["answer"]
