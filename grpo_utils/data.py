"""Raw rows to GRPO rows: a ``prompt`` of messages and an ``answer`` to check against.

One real row (GSM8K, shortened):

    {"prompt": [{"role": "system", "content": "Think first, …"},
                {"role": "user", "content": "A robe takes 2 bolts of blue fiber …"}],
     "answer": "3"}

A row holds no worked solution: GRPO samples its own and only asks a reward whether the
result is right. Left out for now: CSV and JSONL files of your own.
"""

import json
import random
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import CourseError

if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import BatchEncoding, PreTrainedTokenizerBase

SYSTEM_PROMPT = (
    "Think first, then answer, in exactly this form: "
    "<reasoning>your thinking</reasoning><answer>the result alone</answer>"
)

GSM8K = "openai/gsm8k"
SPLITS = ("train", "test")


def chat_prompt(question: str, system_prompt: str | None = SYSTEM_PROMPT) -> list[dict]:
    """A question as the messages that TRL renders with the model's chat template.

    >>> chat_prompt("What is 2 + 2?", system_prompt=None)
    [{'role': 'user', 'content': 'What is 2 + 2?'}]
    """
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return [*system, {"role": "user", "content": question}]


def is_held_out(key: str) -> bool:
    """Whether a question belongs to the held-out tenth, by a checksum of its text.

    The tiny base models never saw a held-out question either: their builder asks here too.

    >>> is_held_out("15 + 27"), is_held_out("19 + 13")
    (False, False)
    """
    return zlib.crc32(key.encode()) % 10 == 0


def addition_key(a: int, b: int) -> str:
    """What `is_held_out` is asked of an addition: 15 + 27 and 27 + 15 are one question.

    >>> addition_key(27, 15)
    '15 + 27'
    """
    return f"{min(a, b)} + {max(a, b)}"


def addition_rows(count: int, split: str = "train", seed: int = 0) -> list[dict]:
    """``count`` different two-digit additions; no pair of ``train``, either way round, is in ``test``.

    >>> row = addition_rows(1, seed=0)[0]
    >>> row["prompt"][-1]["content"], row["answer"]
    ('What is 95 + 13?', '108')

    Raises:
        CourseError: an unknown split, or more rows than there are pairs (about 7,290 and 810).
    """
    _check_split(split)
    numbers = range(10, 100)
    pairs = [(a, b) for a in numbers for b in numbers if is_held_out(addition_key(a, b)) == (split == "test")]
    if count > len(pairs):
        raise CourseError(f"{count} additions were asked for; {split} has {len(pairs)} different ones.")
    chosen = random.Random(seed).sample(pairs, count)
    return [{"prompt": chat_prompt(f"What is {a} + {b}?"), "answer": str(a + b)} for a, b in chosen]


def gsm8k_answer(solution: str) -> str:
    """The gold answer of a GSM8K solution: what follows ``####``, without thousands commas.

    >>> gsm8k_answer("He saves 500 + 734 = <<500+734=1234>>1234.\\n#### 1,234")
    '1234'

    Raises:
        CourseError: there is no ``####`` line.
    """
    _, marker, answer = solution.rpartition("####")
    if not marker or not answer.strip():
        raise CourseError(f"no answer after '####' in the solution {solution[-80:]!r}")
    return answer.strip().replace(",", "")


def gsm8k_rows(records: Iterable[dict]) -> list[dict]:
    """GSM8K records (``question``, ``answer`` with its worked solution) as GRPO rows."""
    return [{"prompt": chat_prompt(record["question"]), "answer": gsm8k_answer(record["answer"])} for record in records]


def read_gsm8k(split: str, path: str | None = None) -> list[dict]:
    """GSM8K's own records: from the JSONL file ``path`` where given, else from the Hub.

    Raises:
        CourseError: the file does not exist, or the Hub cannot be reached.
    """
    _check_split(split)
    if path:
        return _read_jsonl(Path(path))
    from datasets import load_dataset

    try:
        return list(load_dataset(GSM8K, "main", split=split))
    except (ConnectionError, OSError, ValueError) as error:
        raise CourseError(
            f"The dataset {GSM8K!r} could not be downloaded ({type(error).__name__}). Check the network; "
            "or fetch it once with one and set HF_HUB_OFFLINE=1; or set PROFILE='cpu', which downloads nothing."
        ) from error


def _read_jsonl(path: Path) -> list[dict]:
    if not path.is_file():
        raise CourseError(f"There is no file {str(path)!r} to read GSM8K from.")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _check_split(split: str) -> None:
    if split not in SPLITS:
        raise CourseError(f"split={split!r} is unknown. Valid: {', '.join(SPLITS)}.")


def load_rows(name: str, split: str, count: int, seed: int = 0) -> "Dataset":
    """``count`` checked rows of the dataset ``name`` (``addition`` or ``gsm8k``), shuffled by ``seed``."""
    from datasets import Dataset

    if name == "addition":
        rows = addition_rows(count, split, seed)
    elif name == "gsm8k":
        rows = gsm8k_rows(read_gsm8k(split))
        rows = random.Random(seed).sample(rows, min(count, len(rows)))
    else:
        raise CourseError(f"dataset={name!r} is unknown. Valid: addition, gsm8k.")
    return Dataset.from_list(check_rows(rows))


def check_rows(rows: Sequence[dict]) -> Sequence[dict]:
    """The rows themselves, if each is fit for GRPO with a chat model.

    >>> check_rows([{"prompt": "What is 2 + 2?", "answer": "4"}])
    Traceback (most recent call last):
    ...
    grpo_utils.errors.CourseError: row 0: its prompt is a plain string, to which TRL applies no chat template, so a chat model does not see that it is asked. Wrap it: chat_prompt('What is 2 + 2?').

    Raises:
        CourseError: there is no row, or one lacks a prompt or an answer; it names the row.
    """  # noqa: E501
    if not rows:
        raise CourseError("There are no rows to train on.")
    for index, row in enumerate(rows):
        problem = _row_problem(row)
        if problem:
            raise CourseError(f"row {index}: {problem}")
    return rows


def _row_problem(row: dict) -> str | None:
    """What is wrong with one row, or None."""
    missing = [column for column in ("prompt", "answer") if row.get(column) is None]
    if missing:
        return f"it has no {missing[0]!r}; its columns are {', '.join(sorted(row))}."
    if isinstance(row["prompt"], str):
        return (
            "its prompt is a plain string, to which TRL applies no chat template, so a chat model "
            f"does not see that it is asked. Wrap it: chat_prompt({row['prompt'][:40]!r})."
        )
    if not _are_messages(row["prompt"]):
        return (
            f"its prompt is not a list of messages (role, content) that ends with what a user says: {row['prompt']!r}."
        )
    if not isinstance(row["answer"], str):
        return f"its answer {row['answer']!r} is {_a(type(row['answer']).__name__)}; rewards compare text: str(answer)."
    if not row["answer"].strip():
        return "its answer is empty; no completion could ever be right. Drop the row."
    return None


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _are_messages(prompt: object) -> bool:
    return (
        isinstance(prompt, list)
        and len(prompt) > 0
        and all(isinstance(turn, dict) and {"role", "content"} <= turn.keys() for turn in prompt)
        and prompt[-1]["role"] in ("user", "tool")
        and bool(str(prompt[-1]["content"] or "").strip())
    )


def encode_prompts(
    tokenizer: "PreTrainedTokenizerBase", prompts: Sequence[list[dict]], tools: Sequence[list | None] | None = None
) -> "BatchEncoding":
    """Prompts in the chat template, as left-padded tensors of shape (prompts, longest), ready to generate from."""
    texts = [
        tokenizer.apply_chat_template(prompt, tools=offered, add_generation_prompt=True, tokenize=False)
        for prompt, offered in zip(prompts, tools or [None] * len(prompts), strict=True)
    ]
    return tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=False)


def prompt_lengths(rows: "Dataset", tokenizer: "PreTrainedTokenizerBase") -> list[int]:
    """Tokens of each prompt, as the model will see it (chat template included)."""
    rendered = [
        tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False) for prompt in rows["prompt"]
    ]
    return [len(ids) for ids in tokenizer(rendered, add_special_tokens=False)["input_ids"]]


def drop_long_prompts(rows: "Dataset", tokenizer: "PreTrainedTokenizerBase", max_tokens: int) -> "Dataset":
    """The rows whose prompt has at most ``max_tokens`` tokens.

    TRL 1.x has no ``max_prompt_length`` and never truncates a prompt: filter beforehand.

    Raises:
        CourseError: no row is left.
    """
    lengths = prompt_lengths(rows, tokenizer)
    kept = [index for index, length in enumerate(lengths) if length <= max_tokens]
    if not kept:
        raise CourseError(
            f"No prompt has at most {max_tokens} tokens; the shortest has {min(lengths)}. "
            "Raise max_prompt_length, or shorten the system prompt."
        )
    return rows.select(kept)
