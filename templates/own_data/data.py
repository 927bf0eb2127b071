"""The training and held-out rows: questions and expert answers from a file of your own.

    python data.py expert_answers.csv       checks a file, lists its bad rows, and summarizes the good ones

Columns: question and answer. Optional: key (what a correct answer must say; "30 days; receipt|bill" requires "30 days"
and either "receipt" or "bill") and split (train or test; without it, about every fifth question is held out). Other
columns are ignored.
"""

import random
import re
import sys
import unicodedata
from statistics import median

from datasets import Dataset
from grpo_run.rows import of_split, read_rows
from grpo_run.scoring import counts
from grpo_run.table import Columns
from rewards import is_right

#: The system prompt. Describe here how your experts answer.
SYSTEM_PROMPT = "Answer in one short sentence."
LONGEST = {"question": 4000, "answer": 2000, "key": 200}  # characters
#: What people and programs write for a missing answer, without case, spaces, dots and brackets.
PLACEHOLDERS = {
    "n/a", "na", "nan", "nil", "none", "null", "tba", "tbd", "todo", "tobedone", "tobedetermined", "tofollow",
    "missing", "noanswer", "notanswered", "notapplicable", "notavailable", "pending", "unknown", "xxx",
}  # fmt: skip


def load_rows(name: str, split: str, count: int, seed: int, held_out: float = 0.2) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt, question, answer and key."""
    rows = of_split(own_rows(name), split, held_out)
    chosen = random.Random(seed).sample(rows, min(count, len(rows)))
    return Dataset.from_list([{"prompt": chat(r["question"])} | {c: r[c] for c in LONGEST} for r in chosen])


def own_rows(name: str) -> list[dict]:
    """All rows of a file; bad rows end the program with a list."""
    return read_rows(name, Columns(("question", "answer"), ("key",)), problem)


def chat(question: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]


def problem(row: dict) -> str:
    """What is wrong with a row, and how to fix it; "" for a valid row."""
    for column, most in LONGEST.items():
        if len(row[column]) > most:
            return f"the {column} has {len(row[column])} characters: the limit is {most} (LONGEST in data.py)"
    if is_placeholder(row["answer"]) and not row["key"]:
        return (
            f"the answer is {row['answer']!r}, which counts as missing: answer it, delete the row, or add it as the key"
        )
    if "####" in row["answer"] and not row["key"]:
        return (
            "the answer has a worked solution before '####', as in GSM8K, so a correct answer would have to repeat it: "
            "keep only what follows '####'"
        )
    if not counts(is_right, row["answer"], row):
        why = f"does it contain the key {row['key']!r}?" if row["key"] else "does it contain a word?"
        return f"the expert's answer {row['answer'][:60]!r} would not count as correct: {why}"
    return ""


def is_placeholder(answer: str) -> bool:
    """Whether an answer is only a placeholder, such as n/a, TBD or (none)."""
    return re.sub(r"[\s.()<>\[\]{}_-]", "", unicodedata.normalize("NFKC", answer)).casefold() in PLACEHOLDERS


def summary(name: str) -> str:
    """A file's rows in a few lines, and how three answers would be counted."""
    rows = own_rows(name)
    held_out = of_split(rows, "test", 0.2)
    n, keys = len(held_out), sum(bool(row["key"]) for row in rows)
    lengths = {c: sorted(len(row[c]) for row in rows) for c in ("question", "answer")}
    near = f"accuracy near 0.50 would have a 95% interval of about ±{0.98 / max(n, 1) ** 0.5:.2f} ({n} held-out rows)"
    return "\n".join([
        f"{name}: {len(rows)} valid rows ({len(rows) - n} for training, {n} held out, with held_out: 0.2)",
        near,
        f"rows with a key: {keys}; the other {len(rows) - keys} count answers with enough overlap as correct",
        *(f"characters per {c}: median {median(found):.0f}, maximum {found[-1]}" for c, found in lengths.items()),
        *verdicts((held_out or rows)[0], rows),
    ])  # fmt: skip


def verdicts(row: dict, rows: list[dict]) -> list[str]:
    """How three answers to a row are counted: it in a sentence with the question's words, half of it, another row's.

    Does a verdict surprise you? Then read "What counts as correct" in README.md, and LANGUAGE in rewards.py.
    """
    words = row["answer"].split()
    another = next((other["answer"] for other in rows if other["answer"] != row["answer"]), "")
    tried = [f"{row['question'].rstrip('?!. ')}: {row['answer']}", " ".join(words[: len(words) // 2]), another]
    counted = {text: "correct" if is_right(text, row) else "wrong" for text in tried}
    asked = f"three answers to {row['question']!r}, of which the expert says {row['answer']!r}, would count as:"
    return [asked, *(f"    {verdict + ':':9}{text!r}" for text, verdict in counted.items())]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Error: name a file: python data.py expert_answers.csv")
    print(summary(sys.argv[1]))
