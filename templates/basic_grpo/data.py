"""The training and held-out rows. Change this file for your data: a row has a prompt and what the rewards need."""

import random
import re

from datasets import Dataset, load_dataset
from grpo_core.training.answers import NOTATIONS, same_text
from grpo_run.rows import is_held_out, of_split, read_rows
from grpo_run.scoring import counts
from grpo_run.table import Columns
from rewards import FORM, LABELS, gold_text, is_right

SYSTEM_PROMPT = "Think first, then answer, in exactly this form: "
SYSTEM_PROMPT += FORM.format(thinking="your thinking", result=" or ".join(LABELS) or "the result alone")


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt and answer.

    ``name`` is "addition" (generated here, without a network), "openai/gsm8k", or a file of your own, CSV or JSONL,
    with the columns question and answer, and split if you like. Of the rows without a split, about the share
    ``held_out`` is for testing.
    """
    if name == "addition":
        pairs = additions(split)
    elif name == "openai/gsm8k":
        pairs = [(row["question"], gsm8k_answer(row["answer"])) for row in load_dataset(name, "main", split=split)]
    else:
        check_labels()
        rows = read_rows(name, Columns(("question", "answer")), problem, "'addition' or 'openai/gsm8k'")
        unused = [label for label in LABELS if not any(same_text(row["answer"], label) for row in rows)]
        if unused and split == "train":
            print(f"Note: no row has the label {', '.join(unused)}, so the model can only learn not to use it.")
        pairs = [(row["question"], row["answer"]) for row in of_split(rows, split, held_out)]
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


def check_labels() -> None:
    """Stop if LABELS is not a tuple of different labels."""
    if isinstance(LABELS, str) or len({label.casefold() for label in LABELS}) < len(LABELS):
        raise SystemExit(
            f"Error: LABELS in rewards.py is {LABELS!r}; write each label once, and a comma also after a single one: "
            '("billing", "delivery") or ("billing",).'
        )


def problem(row: dict) -> str:
    """What is wrong with the answer in a row of your file, and how to fix it; "" for a valid row."""
    if LABELS and not any(same_text(row["answer"], label) for label in LABELS):
        return f"the answer {row['answer']!r} is not in LABELS in rewards.py: {', '.join(LABELS)}"
    if counts(is_right, gold_text(row), row):
        return ""
    fix = f"write it like {NOTATIONS}; or, if your answers are words, see LABELS and same_answer in rewards.py"
    return f"no completion could be correct for the answer {row['answer']!r}: {fix}"
