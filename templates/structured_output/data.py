"""Rows to train on and rows to measure with. Change this for your own data: a prompt, and what the rewards need."""

import json
import random
import zlib
from pathlib import Path

from datasets import Dataset

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
    pairs = people(split) if name == "people" else own_rows(Path(name), split)
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


def own_rows(path: Path, split: str) -> list[tuple[str, dict]]:
    """Texts and answers of a JSONL file; a line that is none, or whose answer breaks the schema, is named."""
    from rewards import VALIDATOR

    if not path.is_file():
        raise SystemExit(f"Error: dataset_name={str(path)!r} is no file here, nor 'people'.")
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            rows.append((str(row["text"]), row["answer"]))
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            wanted = '{"text": …, "answer": {…}}'
            raise SystemExit(f"Error: {path}, line {number}: {error!r}. Each line: {wanted}") from error
        for problem in VALIDATOR.iter_errors(row["answer"]):
            raise SystemExit(f"Error: {path}, line {number}: its answer breaks schema.json: {problem.message}.")
    return [row for row in rows if is_held_out(row[0]) == (split == "test")]
