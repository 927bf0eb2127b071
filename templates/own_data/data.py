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
import zlib
from pathlib import Path
from statistics import median

from datasets import Dataset
from rewards import is_right
from table import read_table

#: The system prompt. Describe here how your experts answer.
SYSTEM_PROMPT = "Answer in one short sentence."
LONGEST = {"question": 4000, "answer": 2000, "key": 200}  # characters
COLUMNS = (*LONGEST, "split")
EXCEL_ERRORS = {"#N/A", "#NAME?", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!"}
#: What people and programs write for a missing answer, without case, spaces, dots and brackets.
PLACEHOLDERS = {
    "n/a", "na", "nan", "nil", "none", "null", "tba", "tbd", "todo", "tobedone", "tobedetermined", "tofollow",
    "missing", "noanswer", "notanswered", "notapplicable", "notavailable", "pending", "unknown", "xxx",
}  # fmt: skip
LOST = re.compile("[\0\ufffd\ud800-\udfff]")  # characters lost when the file was written
FEWEST_ROWS = 10  # per split; fewer cannot show a change
SHOWN = 20  # problems to list; the rest are only counted


def load_rows(name: str, split: str, count: int, seed: int) -> Dataset:
    """``count`` rows of ``split`` ("train" or "test") with the columns prompt, question, answer and key."""
    rows = [row for row in own_rows(Path(name)) if side(row) == split]
    chosen = random.Random(seed).sample(rows, min(count, len(rows)))
    return Dataset.from_list([{"prompt": chat(r["question"])} | {c: r[c] for c in LONGEST} for r in chosen])


def chat(question: str) -> list[dict]:
    """A prompt as messages, because TRL does not apply the chat template to a plain string."""
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]


def side(row: dict) -> str:
    """The split of a row: its own, or one chosen by a checksum, so that adding rows never moves it."""
    return row["split"] or ("test" if zlib.crc32(same_question(row["question"]).encode()) % 5 == 0 else "train")


def same_question(question: str) -> str:
    """A question without case, extra spaces and final punctuation, to find duplicates."""
    return " ".join(unicodedata.normalize("NFKC", question).casefold().split()).rstrip("?!. ")


def own_rows(path: Path) -> list[dict]:
    """All rows of a file; bad rows end the program with a list."""
    rows, problems, seen = [], {}, {}
    for line, record in read_table(path, ("question", "answer"), COLUMNS):
        if isinstance(record, dict):
            row = {c: record.get(c, "").strip() for c in COLUMNS}
            row["split"] = row["split"].casefold()
            problem = problem_and_fix(row) or repeated(row, line, seen)
        else:
            problem = record
        if problem:
            problems.setdefault(problem, []).append(line)
        else:
            rows.append(row)
    if problems:
        raise SystemExit(f"Error: bad rows in {path}: {sum(map(len, problems.values()))}\n  {listed(problems)}")
    check_sides(path, rows)
    return rows


def listed(problems: dict[str, list[int]]) -> str:
    """Each problem once, with the lines that have it.

    >>> print(listed({"is empty": [2], "has no column 'answer'": [3, 4, 5, 6]}))
    line 2: is empty.
      lines 3, 4, 5 and 1 more: has no column 'answer'.
    """
    texts = []
    for problem, lines in list(problems.items())[:SHOWN]:
        more = f" and {len(lines) - 3} more" if len(lines) > 3 else ""
        where = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines[:3]))}{more}"
        texts.append(f"{where}: {problem}{'' if problem.endswith('?') else '.'}")
    rest = sum(map(len, list(problems.values())[SHOWN:]))
    return "\n  ".join([*texts, *([f"and {rest} more"] if rest else [])])


def problem_and_fix(row: dict) -> str:
    """What is wrong with a row, and how to fix it; "" for a valid row."""
    for column in LONGEST:
        if problem := text_problem(column, row[column]):
            return f"the {column} {problem}"
    if is_placeholder(row["answer"]) and not row["key"]:
        return (
            f"the answer is {row['answer']!r}, which counts as missing: answer it, delete the row, or add it as the key"
        )
    if "####" in row["answer"] and not row["key"]:
        return (
            "the answer has a worked solution before '####', as in GSM8K, so a correct answer would have to repeat it: "
            "keep only what follows '####'"
        )
    if row["split"] not in ("", "train", "test"):
        return f"the split is {row['split']!r}: use train, test, or leave it empty"
    if not is_right(row["answer"], row):
        why = f"does it contain the key {row['key']!r}?" if row["key"] else "does it contain a word?"
        return f"the expert's answer {row['answer'][:60]!r} would not count as correct: {why}"
    return ""


def is_placeholder(answer: str) -> bool:
    """Whether an answer is only a placeholder, such as n/a, TBD or (none)."""
    return re.sub(r"[\s.()<>\[\]{}_-]", "", unicodedata.normalize("NFKC", answer)).casefold() in PLACEHOLDERS


def text_problem(column: str, text: str) -> str:
    """What is wrong with one text of a row, and how to fix it; "" for a valid text."""
    if not text and column != "key":
        return "is empty: fill it in, or delete the row"
    if len(text) > LONGEST[column]:
        return f"has {len(text)} characters: the limit is {LONGEST[column]} (LONGEST in data.py)"
    if lost := LOST.search(text):
        return f"contains {lost[0]!a}, a character that was lost when the file was written"
    return f"is {text}, a spreadsheet error: enter the text itself" if text in EXCEL_ERRORS else ""


def repeated(row: dict, line: int, seen: dict) -> str:
    """The problem if an earlier row has the same question, else ""."""
    first, answer = seen.setdefault(same_question(row["question"]), (line, row["answer"]))
    if first == line:
        return ""
    if same_question(answer) == same_question(row["answer"]):
        return f"duplicates line {first}: delete one"
    return f"has the same question as line {first}, but another answer: keep one"


def check_sides(path: Path, rows: list[dict]) -> None:
    """Stop if there are too few rows for training or evaluation."""
    for split in ("train", "test"):
        count = sum(side(row) == split for row in rows)
        if count < FEWEST_ROWS:
            fix = "add rows, or assign them to train and test in a column named split"
            raise SystemExit(f"Error: {path} has {count} rows for {split!r}, and needs at least {FEWEST_ROWS}: {fix}.")


def note_cut_answers(rows: Dataset, tokenizer: object, most: int) -> None:
    """Print a note if expert answers are longer than the model may write."""
    cut = sum(len(tokenizer(answer)["input_ids"]) > most for answer in rows["answer"])
    if cut:
        print(f"Note: {cut} expert answers have more than {most} tokens; raise max_completion_length.")


def summary(path: Path) -> str:
    """A file's rows, in a few lines."""
    rows = own_rows(path)
    held_out = [row for row in rows if side(row) == "test"]
    n, keys = len(held_out), sum(bool(row["key"]) for row in rows)
    lengths = {c: sorted(len(row[c]) for row in rows) for c in ("question", "answer")}
    return "\n".join([
        f"{path}: {len(rows)} valid rows ({len(rows) - n} for training, {n} held out)",
        f"accuracy near 0.50 would have a 95% interval of about ±{0.98 / n**0.5:.2f} ({n} held-out rows)",
        f"rows with a key: {keys}; the other {len(rows) - keys} count answers with enough overlap as correct",
        *(f"characters per {c}: median {median(found):.0f}, maximum {found[-1]}" for c, found in lengths.items()),
        f"first held-out row: {held_out[0]['question']!r}, {held_out[0]['answer']!r}",
    ])  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Error: name a file: python data.py expert_answers.csv")
    print(summary(Path(sys.argv[1])))
