"""Rows to train on and rows to measure with: questions and expert answers from a file of your own.

    python data.py expert_answers.csv       checks a file, names its bad rows, and shows what would be trained on

Columns: question, answer; and if you like: key (what a right answer has to say: "30 days; receipt|bill" is both, the
second in either word), split (train or test; without it every fifth question is held out). Others are left alone.
"""

import random
import re
import sys
import unicodedata
import zlib
from pathlib import Path
from statistics import median

from datasets import Dataset
from rewards import is_right
from table import read_table

#: What the model is told first. Say here how your experts answer.
SYSTEM_PROMPT = "Answer in one short sentence."
LONGEST = {"question": 4000, "answer": 2000, "key": 200}  # characters
COLUMNS = (*LONGEST, "split")
EXCEL_ERRORS = {"#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!"}
#: What people and programs write where there is no answer, without case, spaces, dots and brackets.
PLACEHOLDERS = {
    "n/a",
    "na",
    "nan",
    "nil",
    "none",
    "null",
    "tba",
    "tbd",
    "todo",
    "tobedone",
    "tobedetermined",
    "tofollow",
}
PLACEHOLDERS |= {"missing", "noanswer", "notanswered", "notapplicable", "notavailable", "pending", "unknown", "xxx"}
LOST = re.compile("[\0\ufffd\ud800-\udfff]")  # what a letter becomes that was lost when the file was written
FEWEST = 10  # rows on either side: with fewer, nothing can be shown
SHOWN = 20  # bad rows that are named; the others are counted


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt, question, answer and key."""
    rows = [row for row in own_rows(Path(name)) if side(row) == split]
    chosen = random.Random(seed).sample(rows, min(count, len(rows)))
    return Dataset.from_list([{"prompt": chat(r["question"])} | {c: r[c] for c in LONGEST} for r in chosen])


def chat(question: str) -> list[dict]:
    """A prompt as messages: a plain string would get no chat template."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]


def side(row: dict) -> str:
    """Where a row belongs: as it says, or by a checksum, so that it never changes sides when others are added."""
    return row["split"] or ("test" if zlib.crc32(same_question(row["question"]).encode()) % 5 == 0 else "train")


def same_question(question: str) -> str:
    """A question without case, spaces and end marks: two writings of one question are one."""
    return " ".join(unicodedata.normalize("NFKC", question).casefold().split()).rstrip("?!. ")


def own_rows(path: Path) -> list[dict]:
    """All rows of a file; stops with the list of the bad ones, if there are any."""
    rows, problems, seen = [], [], {}
    for line, record in read_table(path, ("question", "answer"), COLUMNS):
        if isinstance(record, dict):
            row = {c: record.get(c, "").strip() for c in COLUMNS}
            row["split"] = row["split"].casefold()
            problem = wrong(row) or repeated(row, line, seen)
        else:
            problem = record
        problems += [f"line {line}: {problem}{'' if problem.endswith('?') else '.'}"] if problem else []
        rows += [] if problem else [row]
    if problems:
        rest = f"\n  and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        raise SystemExit(f"Error: bad rows in {path}: {len(problems)}\n  " + "\n  ".join(problems[:SHOWN]) + rest)
    check_sides(path, rows)
    return rows


def wrong(row: dict) -> str:
    """What is wrong with a row by itself, and its mend; nothing, if it is sound."""
    for column in LONGEST:
        if problem := wrong_text(column, row[column]):
            return f"the {column} {problem}"
    if is_placeholder(row["answer"]) and not row["key"]:
        return (
            f"the answer is {row['answer']!r}, which counts as missing: answer it, delete the row, or confirm it as key"
        )
    if row["split"] not in ("", "train", "test"):
        return f"its split is {row['split']!r}: write train, test, or nothing"
    if not is_right(row["answer"], row):
        why = f"does it say the key {row['key']!r}?" if row["key"] else "does it hold any word?"
        return f"the expert's own answer {row['answer'][:60]!r} would not count as right: {why}"
    return ""


def is_placeholder(answer: str) -> bool:
    """Whether an answer only marks the place where one should be: n/a, TBD, (none)."""
    return re.sub(r"[\s.()<>\[\]{}_-]", "", unicodedata.normalize("NFKC", answer)).casefold() in PLACEHOLDERS


def wrong_text(column: str, text: str) -> str:
    """What is wrong with one text of a row; nothing, if it is sound."""
    if not text and column != "key":
        return "is empty: fill it in, or delete the row"
    if len(text) > LONGEST[column]:
        return f"has {len(text)} characters: {LONGEST[column]} at most (LONGEST in data.py)"
    if lost := LOST.search(text):
        return f"holds {lost[0]!a}, a letter that was lost when the file was written"
    return f"is {text}, an error of a spreadsheet: write what it should be" if text in EXCEL_ERRORS else ""


def repeated(row: dict, line: int, seen: dict) -> str:
    """What is wrong with a row beside the earlier ones: a question may stand there once."""
    first, answer = seen.setdefault(same_question(row["question"]), (line, row["answer"]))
    if first == line:
        return ""
    if same_question(answer) == same_question(row["answer"]):
        return f"it repeats line {first}: delete one"
    return f"it asks what line {first} asks, with another answer: keep one"


def check_sides(path: Path, rows: list[dict]) -> None:
    """Stop if there is too little to train on, or to measure with."""
    for split in ("train", "test"):
        count = sum(side(row) == split for row in rows)
        if count < FEWEST:
            mend = "add rows, or say in a column split which to train on and which to hold out"
            raise SystemExit(f"Error: {path} has {count} rows for {split!r}, and needs {FEWEST} at least: {mend}.")


def note_cut_answers(rows: Dataset, tokenizer: object, most: int) -> None:
    """Say how many expert answers are longer than the model may answer."""
    cut = sum(len(tokenizer(answer)["input_ids"]) > most for answer in rows["answer"])
    if cut:
        print(f"Note: {cut} expert answers have more than {most} tokens; raise max_completion_length.")


def summary(path: Path) -> str:
    """What a file holds, in a few lines."""
    rows = own_rows(path)
    held_out = [row for row in rows if side(row) == "test"]
    n, keys = len(held_out), sum(bool(row["key"]) for row in rows)
    lengths = {c: sorted(len(row[c]) for row in rows) for c in ("question", "answer")}
    return "\n".join([
        f"{path}: {len(rows)} sound rows, {len(rows) - n} to train on, {n} held out.",
        f"With {n} held out, an accuracy of one half is known to about ±{0.98 / n**0.5:.2f}.",
        f"{keys} rows have a key; of {len(rows) - keys} enough overlap with the expert's answer counts as right.",
        *(f"Characters of {c}: {median(found):.0f} at half, {found[-1]} at most." for c, found in lengths.items()),
        f"First held out: {held_out[0]['question']!r}, {held_out[0]['answer']!r}",
    ])  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Error: give a file: python data.py expert_answers.csv")
    print(summary(Path(sys.argv[1])))
