"""Check the rows: enough of them, all usable, and no held-out row in training."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..findings import Finding
from ..prompts import lacks_template
from .report import finding
from .run import Run

if TYPE_CHECKING:
    from datasets import Dataset

    Rows = Dataset | list[dict]

LONGEST_SHOWN = 80
#: Rows that are looked at one by one, evenly spread, and rows from the start that are compared with each other.
MOST_ROWS, MOST_COMPARED = 3_000, 20_000
#: Rows whose gold answers are searched for in their prompts, at most and at least, and the share that is worth a word.
MOST_ANSWERS, FEWEST_ANSWERS, NEARLY_ALL = 300, 8, 0.9
#: Columns that TRL takes pictures from; equal questions about them need not be the same.
IMAGES = {"image", "images"}
#: Parts of a model's name that say that it was trained to chat.
CHAT_NAMES = {"instruct", "chat", "it", "tiny"}


def columns_of(rows: "Rows | None") -> list[str]:
    """The names of the columns; for a list of rows, those of the first row."""
    if isinstance(rows, list) or rows is None:
        return list(rows[0]) if rows else []
    return rows.column_names


def column(rows: "Rows", name: str, indices: range) -> list:
    """The values of a column in some rows, without reading the other columns; None where a row lacks it."""
    if isinstance(rows, list):
        return [rows[index].get(name) for index in indices]
    return rows.select_columns([name])[indices][name] if name in rows.column_names else [None] * len(indices)


def first(rows: "Rows", most: int) -> range:
    """The numbers of at most so many rows from the start."""
    return range(min(most, len(rows)))


def spread(rows: "Rows", most: int = MOST_ROWS) -> range:
    """The numbers of at most so many rows, evenly spread."""
    return range(0, len(rows), max(1, -(-len(rows) // most)))


def _splits(run: Run) -> list[tuple[str, "Rows"]]:
    return [(said, rows) for said, rows in (("train", run.train), ("held-out", run.heldout)) if rows is not None]


def left_out(run: Run) -> Iterator[str]:
    """Notes on rows that are not checked one by one."""
    for said, rows in _splits(run):
        if len(rows) > MOST_ROWS:
            yield f"checked {len(spread(rows))} of {len(rows)} {said} rows, evenly spread"
    if run.train and len(run.train) > MOST_COMPARED:
        yield f"searched for duplicates and leaks in the first {MOST_COMPARED} of {len(run.train)} train rows"
    if IMAGES & {*columns_of(run.train)}:
        yield "did not search for duplicates and leaks, because images are not compared"


def counts(run: Run) -> Iterator[Finding]:
    """Empty datasets, and fewer rows than one step needs."""
    for said, rows in _splits(run):
        if not len(rows):
            why = "training ends at step 0 without an error, or there is nothing to evaluate."
            fix = "check the filter or split that produced it; a length filter may have dropped every row."
            yield finding("no_rows", f"the {said} dataset has no rows.", why, fix)
    size, completions = run["num_generations"], run.processes * run.completions_at_once
    if run.train and len(run.train) < completions // size:
        needed = completions // size
        what = f"{len(run.train)} training rows; a step needs {needed} ({completions} completions in groups of {size})."
        why = "TRL drops an incomplete batch, so the run ends at step 0 without an error."
        fix = f"use at least {needed} rows, or sample at most {len(run.train) * size} completions at once in total."
        yield finding("too_few_rows", what, why, fix)


def prompts(run: Run) -> Iterator[Finding]:
    """Prompts that are missing, plain text or not messages: the first in each split, and how many more."""
    for said, rows in _splits(run):
        indices = spread(rows)
        codes = [_code(run, value) for value in column(rows, "prompt", indices)]
        faulty = [(index, code) for index, code in zip(indices, codes, strict=True) if code]
        if faulty:
            index, code = faulty[0]
            what, why, fix = _words(code, rows[index].get("prompt"), columns_of(rows))
            severity = "warning" if code == "string_prompt" and not _is_chat_model(run.name) else ""
            where = _counted(said, index, codes.count(code))
            yield finding(code, f"{where}: {what}", why, fix, severity=severity)


def _counted(said: str, index: int, count: int) -> str:
    """The first of some rows, and how many more there are."""
    return f"{said} row {index}" + (f" and {count - 1} more" if count > 1 else "")


def _code(run: Run, value: object) -> str:
    """The code of what is wrong with one prompt, "" if nothing is."""
    if isinstance(value, str) and value.strip():
        return "string_prompt" if run.tokenizer is not None and lacks_template(value, run.tokenizer, run.name) else ""
    if not value or isinstance(value, str):
        return "no_prompt"
    return "" if isinstance(value, list) and all(map(_is_message, value)) else "bad_prompt"


def _is_chat_model(name: str) -> bool:
    """Whether the name marks a chat model; a model without a name counts as one."""
    return not name or bool(CHAT_NAMES & {*re.split(r"[-_./]", name.lower().rpartition("/")[2])})


def _is_message(turn: object) -> bool:
    """Whether TRL can render it. The last role does not matter, because TRL can continue the model's turn."""
    if not isinstance(turn, dict) or not isinstance(turn.get("role"), str):
        return False
    return isinstance(turn.get("content"), str | list) or bool(turn.get("tool_calls"))


def _words(code: str, value: object, there: list[str]) -> tuple[str, str, str]:
    """What is wrong with a prompt, why, and what to do."""
    if code == "string_prompt":
        why = "TRL applies no chat template to plain text, so a chat model sees no question and often never stops."
        fix = f"use messages: chat_prompt({_shorten(value, 40)}). Plain text is correct for a base model."
        return "a plain text prompt, but the tokenizer has a chat template.", why, fix
    if code == "bad_prompt":
        why = "TRL accepts text or a list of messages, each with a role and content, and raises an error otherwise."
        fix = 'use chat_prompt("the question") or [{"role": "user", "content": "…"}].'
        return f"the prompt is {_shorten(value)}.", why, fix
    if "prompt" in there:
        why = "TRL has nothing to sample from, and the run stops at that row."
        return "the prompt is empty.", why, "rows.filter(lambda row: row['prompt'])"
    why = f"TRL reads the column 'prompt' and raises a KeyError; the columns are {', '.join(there)}."
    return "there is no prompt.", why, "rename the column: rows.rename_column('question', 'prompt')"


def answers(run: Run, is_read: bool) -> Iterator[Finding]:
    """Gold answers with which no completion could be correct, if a reward reads the column."""
    name = run.answer_column
    for said, rows in _splits(run) if is_read else []:
        if name not in columns_of(rows):
            continue
        golds = dict(zip(spread(rows), column(rows, name, spread(rows)), strict=True))
        missing = {index: gold for index, gold in golds.items() if gold is None or not str(gold).strip()}
        numbers = {index: gold for index, gold in golds.items() if isinstance(gold, int | float)}
        if missing:
            why = "no completion can be correct, so the row has no gradient or rewards something else."
            fix = f"rows.filter(lambda row: row[{name!r}] is not None and str(row[{name!r}]).strip() != '')."
            yield finding("bad_answer", _which(said, missing, golds, name), why, fix)
        if numbers:
            why = "most rewards compare text, and 7 is not equal to '7'. The reward lab tested yours with a number."
            fix = f"rows.map(lambda row: {{{name!r}: str(row[{name!r}])}})."
            yield finding("answer_not_text", _which(said, numbers, golds, name), why, fix)


def golds_in_prompts(run: Run) -> Iterator[Finding]:
    """Prompts that contain their own gold answer as a word, and not the one of another row, as options would be."""
    name, indices = run.answer_column, spread(run.train or [], MOST_ANSWERS)
    if len(indices) < FEWEST_ANSWERS or name not in columns_of(run.train):
        return
    prompts, golds = column(run.train, "prompt", indices), [*map(_gold, column(run.train, name, indices))]
    if len(set(golds)) < 2:
        return
    others = [next((one for one in golds[at + 1 :] + golds[:at] if one != gold), "") for at, gold in enumerate(golds)]
    own, other = (_share_named(prompts, some) for some in (golds, others))
    if own < NEARLY_ALL or other > 0.5:
        return
    at = next(at for at, gold in enumerate(golds) if gold and _has_word(_text(prompts[at]), gold))
    example = f"{_shorten(golds[at])} in train row {indices[at]}"
    what = f"{own:.0%} of {len(indices)} prompts contain their gold answer, such as {example}."
    why = "the policy can copy the answer, so a rising reward would not show that it solves the task."
    fix = f"check what is in row['prompt']: is {name!r} there by mistake? If the task is to extract it, ignore this."
    yield finding("gold_in_prompt", what, why, fix)


def _gold(value: object) -> str:
    return "" if value is None else str(value).strip()


def _share_named(prompts: list, answers: list[str]) -> float:
    """The share of prompts in which an answer occurs as a word."""
    pairs = [(_text(prompt), answer) for prompt, answer in zip(prompts, answers, strict=True) if answer]
    return sum(_has_word(text, answer) for text, answer in pairs) / len(prompts)


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _text(prompt: object) -> str:
    """All that a prompt says."""
    turns = prompt if isinstance(prompt, list) else [prompt]
    return "\n".join(str(turn.get("content") if isinstance(turn, dict) else turn) for turn in turns)


def _which(said: str, found: dict, golds: dict, name: str) -> str:
    index, gold = next(iter(found.items()))
    return f"{_counted(said, index, len(found))} of {len(golds)}: {name} is {_shorten(gold)}."


def key(prompt: object, answer: object = "") -> str:
    """The key that makes two rows equal: prompt and answer in lower case with single spaces.

    >>> key([{"role": "user", "content": "What is  2 + 2? "}]) == key("what is 2 + 2?")
    True
    >>> key("Go on.", "4") == key("Go on.", "5")
    False
    """
    words = " ".join(_text(prompt).casefold().split())
    return f"{words} → {' '.join(str(answer).casefold().split())}" if answer != "" else words


def _keys(rows: "Rows", with_answers: str) -> list[str]:
    """The keys of the first rows that have a prompt; of the answers too where a column is named."""
    indices = first(rows, MOST_COMPARED)
    golds = column(rows, with_answers, indices) if with_answers else [""] * len(indices)
    return [key(prompt, gold) for prompt, gold in zip(column(rows, "prompt", indices), golds, strict=True) if prompt]


def duplicates(run: Run) -> Iterator[Finding]:
    """Duplicate training rows; rows with images are not compared."""
    if not run.train or IMAGES & {*columns_of(run.train)}:
        return
    seen = Counter(_keys(run.train, run.answer_column if run.answer_column in columns_of(run.train) else ""))
    twice = {one: number - 1 for one, number in seen.items() if number > 1}
    if twice:
        of = f"{sum(twice.values())} of {len(first(run.train, MOST_COMPARED))} training rows"
        what = f"{of} repeat the prompt and answer of another row, such as {_shorten(next(iter(twice)))}."
        why = "repeated rows count more than others."
        yield finding("duplicates", what, why, "drop them unless they are intended.")


def leaks(run: Run) -> Iterator[Finding]:
    """Held-out rows that are also training rows; rows with images are not compared."""
    if not run.train or not run.heldout or IMAGES & {*columns_of(run.train)}:
        return
    answer = run.answer_column if run.answer_column in {*columns_of(run.train)} & {*columns_of(run.heldout)} else ""
    seen = {*_keys(run.train, answer)}
    leaked = [one for one in _keys(run.heldout, answer) if one in seen]
    if leaked:
        of = f"row['prompt'], row[{answer!r}]" if answer else "row['prompt']"
        share = f"{len(leaked)} of {len(first(run.heldout, MOST_COMPARED))} held-out prompts"
        what = f"{share} are also in the training rows, such as {_shorten(leaked[0])}."
        why = "there the evaluation would measure memorization. The comparison ignores case and spaces."
        fix = (
            f"from grpo_check.preflight.rows import key; seen = {{key({of}) for row in heldout}}; "
            f"train = train.filter(lambda row: key({of}) not in seen)."
        )
        yield finding("leak", what, why, fix)


def _shorten(value: object, longest: int = LONGEST_SHOWN) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
