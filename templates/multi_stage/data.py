"""The training and held-out rows. Change this file for your data: a row has a prompt and what the rewards need."""

import random
import re

from datasets import Dataset, load_dataset
from lib.answers import NOTATIONS, parse_number
from lib.rows import is_held_out, read_jsonl
from rewards import FORM

SYSTEM_PROMPT = "Think first, then answer, in exactly this form: "
SYSTEM_PROMPT += FORM.format(thinking="your thinking", result="the result alone")


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer.

    ``name`` is "addition" (generated here, without a network), "openai/gsm8k", or a JSONL file of your own with the
    fields question and answer. A tenth of your questions is held out.
    """
    if name == "addition":
        pairs = additions(split)
    elif name == "openai/gsm8k":
        pairs = [(row["question"], gsm8k_answer(row["answer"])) for row in load_dataset(name, "main", split=split)]
    else:
        pairs = own_rows(name, split)
    if not pairs:
        raise SystemExit(f"Error: dataset_name={name!r} has no rows of the split {split!r}.")
    chosen = random.Random(seed).sample(pairs, min(count, len(pairs)))
    return Dataset.from_list([{"prompt": chat(question), "answer": answer} for question, answer in chosen])


def chat(question: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]


def additions(split: str) -> list[tuple[str, str]]:
    """Two-digit addition problems; 15 + 27 and 27 + 15 are in the same split, and the test split has only one."""
    numbers = range(10, 100)
    pairs = [(a, b) for a in numbers for b in numbers if is_held_out(f"{min(a, b)} + {max(a, b)}") == (split == "test")]
    if split == "test":
        pairs = [(a, b) if a % 2 else (b, a) for a, b in pairs if a <= b]
    return [(f"What is {a} + {b}?", str(a + b)) for a, b in pairs]


def gsm8k_answer(solution: str) -> str:
    """The gold answer of a GSM8K solution: the text after ####, without thousands separators."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", solution.rpartition("####")[2].strip())


def own_rows(name: str, split: str) -> list[tuple[str, str]]:
    """Questions and answers from a JSONL file; a tenth of the questions is held out."""
    rows = read_jsonl(name, own_row, '{"question": …, "answer": …}', "'addition' or 'openai/gsm8k'")
    return [row for row in rows if is_held_out(row[0]) == (split == "test")]


def own_row(line: dict) -> tuple[str, str]:
    """The question and answer in one line of the file."""
    if parse_number(str(line["answer"])) is None:
        why = "is not a number, so no completion could be correct"
        raise ValueError(f"the answer {line['answer']!r} {why}: write it like {NOTATIONS}")
    return str(line["question"]), str(line["answer"])
