"""The course's datasets by name: two-digit additions, orders as JSON, and GSM8K, from a file or the Hub."""

import random
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from grpo_core.errors import CourseError, check_choice
from grpo_core.tables import read_table

from .extraction import extraction_rows
from .prompts import chat_prompt
from .rows import check_rows
from .splits import is_held_out

if TYPE_CHECKING:
    from datasets import Dataset

GSM8K = "openai/gsm8k"
_SPLITS = ("train", "test")


def addition_key(a: int, b: int) -> str:
    """The key of an addition problem for `is_held_out`: 15 + 27 and 27 + 15 have the same key.

    >>> addition_key(27, 15)
    '15 + 27'
    """
    return f"{min(a, b)} + {max(a, b)}"


def addition_kind(a: int, b: int) -> str:
    """Whether an addition problem has a carry; a report counts the two kinds separately.

    >>> addition_kind(27, 15), addition_kind(95, 13)
    ('carry', 'no carry')
    """
    return "carry" if a % 10 + b % 10 >= 10 else "no carry"


def addition_rows(count: int, split: str = "train", seed: int = 0) -> list[dict]:
    """``count`` different two-digit addition problems; no pair of ``train`` is in ``test``, in either order.

    For training, 15 + 27 and 27 + 15 are two questions. For evaluation, ``test`` has only one of them, because a
    question that counts twice makes the result look more certain than it is.

    >>> row = addition_rows(1, seed=0)[0]
    >>> row["prompt"][-1]["content"], row["answer"], row["kind"]
    ('What is 95 + 13?', '108', 'no carry')

    Raises:
        CourseError: an unknown split, or more rows than there are pairs (7,332 and 390).
    """
    check_choice("split", split, _SPLITS)
    numbers = range(10, 100)
    pairs = [(a, b) for a in numbers for b in numbers if is_held_out(addition_key(a, b)) == (split == "test")]
    if split == "test":
        pairs = _one_way_round(pairs)
    if count > len(pairs):
        raise CourseError(f"count={count} is too large: {split} has {len(pairs)} different addition problems.")
    chosen = random.Random(seed).sample(pairs, count)
    return [_addition_row(a, b) for a, b in chosen]


def _addition_row(a: int, b: int) -> dict:
    return {"prompt": chat_prompt(f"What is {a} + {b}?"), "answer": str(a + b), "kind": addition_kind(a, b)}


def _one_way_round(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Keep either a + b or b + a at random, so that the first number is not always the smaller one."""
    shuffled = random.Random(0).sample(pairs, len(pairs))
    return list({addition_key(*pair): pair for pair in shuffled}.values())


def gsm8k_answer(solution: str) -> str:
    """The gold answer of a GSM8K solution: the text after ``####``, without thousands separators.

    >>> gsm8k_answer("He saves 500 + 734 = <<500+734=1234>>1234.\\n#### 1,234")
    '1234'

    Raises:
        CourseError: there is no ``####``, nothing or more than one line follows it, or the solution is not text.
    """
    if not isinstance(solution, str):
        raise CourseError(f"a solution is text with the answer after '####', not {solution!r:.60}")
    _, marker, answer = solution.rpartition("####")
    if not marker or not answer.strip():
        raise CourseError(f"no answer after '####' in the solution {solution[-80:]!r}")
    if len(answer.strip().splitlines()) > 1:
        raise CourseError(f"more than one line after '####': {answer.strip()!r:.80}")
    return re.sub(r"(?<=\d),(?=\d{3}\b)", "", answer.strip())


def gsm8k_rows(records: Iterable[dict]) -> list[dict]:
    """GSM8K's records (``question``, ``answer`` with its solution) as GRPO rows; for other records, see `rows_from`.

    >>> gsm8k_rows([{"question": "What is 2 + 2?", "answer": "2 + 2 = 4\\n#### 4"}])[0]["answer"]
    '4'
    """
    return [{"prompt": chat_prompt(row["question"]), "answer": gsm8k_answer(row["answer"])} for row in records]


def read_gsm8k(split: str, path: str | None = None) -> list[dict]:
    """GSM8K's records: from the JSONL file ``path`` if given (then ``split`` is ignored), else from the Hub.

    Raises:
        CourseError: the file does not exist or has no records, or the Hub cannot be reached.
    """
    check_choice("split", split, _SPLITS)
    if path:
        return read_table(path)
    from datasets import load_dataset

    try:
        return list(load_dataset(GSM8K, "main", split=split))
    except (ConnectionError, OSError, ValueError) as error:
        raise CourseError(
            f"The dataset {GSM8K!r} could not be downloaded ({type(error).__name__}). Check the network, or set "
            "PROFILE='cpu', which downloads nothing. After one download, HF_HUB_OFFLINE=1 uses the cache."
        ) from error


def load_rows(name: str, split: str, count: int, seed: int = 0) -> "Dataset":
    """``count`` checked rows of a dataset (``addition``, ``orders``, ``older`` or ``gsm8k``), shuffled by ``seed``."""
    from datasets import Dataset

    check_choice("dataset", name, ("addition", "orders", "older", "gsm8k"))
    if name == "addition":
        rows = addition_rows(count, split, seed)
    elif name in ("orders", "older"):
        rows = extraction_rows(name, count, split, seed)
    else:
        rows = gsm8k_rows(read_gsm8k(split))
        rows = random.Random(seed).sample(rows, min(count, len(rows)))
    return Dataset.from_list(check_rows(rows))
