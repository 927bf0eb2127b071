"""Rows to train on and rows to measure with. Change this for your own data: a prompt, and what the rewards need."""

import json
import random
import re
import zlib
from pathlib import Path

from datasets import Dataset, load_dataset
from rewards import number

#: For real models. The tiny one has never seen a system prompt beside tools, and gets none.
SYSTEM_PROMPT = (
    "Calculate with the calculator, not in your head. Then end with the result alone: <answer>result</answer>"
)


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer.

    ``name``: "arithmetic" (made here, needs no network), "openai/gsm8k", or a JSONL file of your own with the fields
    question and answer, of which every tenth question is held out.
    """
    if name == "arithmetic":
        pairs = arithmetic(split)
    elif name == "openai/gsm8k":
        pairs = [(row["question"], gsm8k_answer(row["answer"])) for row in load_dataset(name, "main", split=split)]
    else:
        pairs = own_rows(Path(name), split)
    if not pairs:
        raise SystemExit(f"Error: dataset_name={name!r} has no rows of the split {split!r}.")
    chosen, system = random.Random(seed).sample(pairs, min(count, len(pairs))), name != "arithmetic"
    return Dataset.from_list([{"prompt": chat(question, system), "answer": answer} for question, answer in chosen])


def chat(question: str, system: bool) -> list[dict]:
    """A prompt as messages: a plain string would get no chat template, and tools need one."""
    first = [{"role": "system", "content": SYSTEM_PROMPT}] if system else []
    return [*first, {"role": "user", "content": question}]


def is_held_out(question: str) -> bool:
    """A tenth of all questions, chosen by a checksum: a question never changes sides when others are added."""
    return zlib.crc32(" ".join(question.casefold().split()).encode()) % 10 == 0


def arithmetic(split: str) -> list[tuple[str, str]]:
    """Sums and differences of 10 to 999; 15 + 27 and 27 + 15 are on one side. A slice of them, the same each time."""
    draw = random.Random(0)
    drawn = {(draw.randint(10, 999), draw.choice("+-"), draw.randint(10, 999)): None for _ in range(30_000)}
    keys = {(a, sign, b): f"{min(a, b)} + {max(a, b)}" if sign == "+" else f"{a} - {b}" for a, sign, b in drawn}
    kept = {key: triple for triple, key in keys.items() if is_held_out(key) == (split == "test")}  # each sum once
    return [(f"What is {a} {sign} {b}?", str(a + b if sign == "+" else a - b)) for a, sign, b in kept.values()]


def gsm8k_answer(solution: str) -> str:
    """The gold answer of a GSM8K solution: what follows ####, without thousands commas."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", solution.rpartition("####")[2].strip())


def own_rows(path: Path, split: str) -> list[tuple[str, str]]:
    """Questions and answers of a JSONL file; a line that is none is named."""
    if not path.is_file():
        raise SystemExit(f"Error: dataset_name={str(path)!r} is no file here, nor 'arithmetic' nor 'openai/gsm8k'.")
    rows = []
    for place, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            rows.append((str(row["question"]), str(row["answer"])))
            if number(rows[-1][1]) is None:
                raise ValueError(f"the answer {rows[-1][1]!r} is no number, so nothing could ever be right")
        except (ValueError, KeyError, TypeError) as error:
            wanted = '{"question": …, "answer": …}'
            raise SystemExit(f"Error: {path}, line {place}: {error!r}. Each line: {wanted}") from error
    return [row for row in rows if is_held_out(row[0]) == (split == "test")]
