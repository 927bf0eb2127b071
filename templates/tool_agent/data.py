"""The training and held-out rows. Change this file for your data: a row has a prompt and what the rewards need."""

import random
import re

from datasets import Dataset, load_dataset
from grpo_core.training.answers import NOTATIONS, parse_number
from grpo_run.rows import is_held_out, of_split, read_rows
from grpo_run.table import Columns

#: For real models. The tiny model has never seen a system prompt together with tools, and gets none.
SYSTEM_PROMPT = (
    "Calculate with the calculator, not in your head. Then end with the result alone: <answer>result</answer>"
)


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer.

    ``name`` is "arithmetic" (generated here, without a network), "openai/gsm8k", or a file of your own, CSV or JSONL,
    with the columns question and answer, and split if you like. Of the rows without a split, about the share
    ``held_out`` is for testing.
    """
    if name == "arithmetic":
        pairs = arithmetic(split)
    elif name == "openai/gsm8k":
        pairs = [(row["question"], gsm8k_answer(row["answer"])) for row in load_dataset(name, "main", split=split)]
    else:
        rows = read_rows(name, Columns(("question", "answer")), problem, "'arithmetic' or 'openai/gsm8k'")
        pairs = [(row["question"], row["answer"]) for row in of_split(rows, split, held_out)]
    chosen, system = random.Random(seed).sample(pairs, min(count, len(pairs))), name != "arithmetic"
    return Dataset.from_list([{"prompt": chat(question, system), "answer": answer} for question, answer in chosen])


def chat(question: str, system: bool) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string, and tools need it."""
    first = [{"role": "system", "content": SYSTEM_PROMPT}] if system else []
    return [*first, {"role": "user", "content": question}]


def arithmetic(split: str) -> list[tuple[str, str]]:
    """A fixed sample of sums and differences of 10 to 999; 15 + 27 and 27 + 15 are in the same split."""
    draw = random.Random(0)
    drawn = {(draw.randint(10, 999), draw.choice("+-"), draw.randint(10, 999)): None for _ in range(30_000)}
    keys = {(a, sign, b): f"{min(a, b)} + {max(a, b)}" if sign == "+" else f"{a} - {b}" for a, sign, b in drawn}
    kept = {key: triple for triple, key in keys.items() if is_held_out(key) == (split == "test")}  # each sum once
    return [(f"What is {a} {sign} {b}?", str(a + b if sign == "+" else a - b)) for a, sign, b in kept.values()]


def gsm8k_answer(solution: str) -> str:
    """The gold answer of a GSM8K solution: the text after ####, without thousands separators."""
    return re.sub(r"(?<=\d),(?=\d{3})", "", solution.rpartition("####")[2].strip())


def problem(row: dict) -> str:
    """What is wrong with the answer in a row of your file, and how to fix it; "" for a valid row."""
    if parse_number(row["answer"]) is None:
        why = "is not a number, so no completion could be correct"
        return f"the answer {row['answer']!r} {why}: write it like {NOTATIONS}"
    return ""
