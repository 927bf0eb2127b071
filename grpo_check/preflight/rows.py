"""Check the rows: that there are enough, that each is fit, and that none is held out and trained on."""

import inspect
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grpo_utils.models import is_base_model

from .planned import Planned
from .report import Finding

if TYPE_CHECKING:
    from datasets import Dataset

SPLITS = (("train", "train"), ("heldout", "held-out"))
LONGEST_SHOWN = 80
#: Rows that are looked at one by one, evenly spread, and rows from the start that are compared with each other.
MOST_ROWS, MOST_COMPARED = 3_000, 20_000
#: Columns that TRL takes pictures from; equal questions about them need not be the same.
IMAGES = ("image", "images")
#: Parts of a name that say that a model was trained to chat.
CHAT_NAMES = {"instruct", "chat", "it", "tiny"}


def column(rows: "Dataset | Sequence[dict]", name: str) -> list:
    """All values of a column, from a Dataset or a list of rows; None where a row lacks it."""
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        return [row.get(name) for row in rows]
    return rows.select_columns([name])[:][name] if name in rows.column_names else [None] * len(rows)


def first_rows(rows: "Dataset | Sequence[dict]", most: int) -> "Dataset | Sequence[dict]":
    """So many rows from the start."""
    return rows[:most] if isinstance(rows, Sequence) else rows.select(range(min(most, len(rows))))


def part_of(rows: "Dataset | Sequence[dict]") -> tuple["Dataset | Sequence[dict]", int]:
    """At most `MOST_ROWS` rows, evenly spread, and how many rows lie between two of them."""
    step = max(1, -(-len(rows) // MOST_ROWS))
    part = rows[::step] if isinstance(rows, Sequence) else rows.select(range(0, len(rows), step))
    return part, step


def left_out(run: Planned) -> list[str]:
    """What is not looked at row by row, in sentences."""
    notes = []
    for split, said in SPLITS:
        rows = vars(run)[split]
        if rows is not None and len(rows) > MOST_ROWS:
            notes.append(f"{len(part_of(rows)[0])} of {len(rows)} {said} rows, evenly spread, were looked at.")
    if run.train is not None and len(run.train) > MOST_COMPARED:
        notes.append(f"repeats and leaks were looked for in the first {MOST_COMPARED} of {len(run.train)} train rows.")
    if any(name in columns_of(run.train or []) for name in IMAGES):
        notes.append("repeats and leaks were not looked for: the rows have images, which are not compared.")
    return notes


def columns_of(rows: "Dataset | Sequence[dict]") -> list[str]:
    """The names of the columns; of a list of rows those of the first."""
    if isinstance(rows, Sequence):
        return list(rows[0]) if rows else []
    return list(rows.column_names)


def counts(run: Planned) -> list[Finding]:
    """Empty datasets, and fewer rows than one step needs."""
    found = []
    for split, said in SPLITS:
        rows = vars(run)[split]
        if rows is not None and not len(rows):
            why = "the run ends at step 0 without an error." if split == "train" else "nothing can be evaluated."
            mend = "Look at the filter or the split that made it: a filter by length may have dropped all."
            found.append(Finding("no_rows", f"the {said} dataset has no row.", why, mend))
    return found or _too_few(run)


def _too_few(run: Planned) -> list[Finding]:
    size, wanted = run["num_generations"], run.processes * run.completions_at_once
    if run.train is None or not size or size < 2 or wanted % size or len(run.train) >= wanted // size:
        return []
    what = f"{len(run.train)} training rows; a step needs {wanted // size} ({wanted} completions in groups of {size})."
    why = "TRL drops the batch that is not full, so the run ends at step 0 without an error."
    mend = f"{wanted // size} rows or more, or at most {len(run.train) * size} completions on all devices at once."
    return [Finding("too_few_rows", what, why, mend)]


def prompts(run: Planned) -> list[Finding]:
    """Prompts that are missing, plain text, or no messages."""
    found = []
    for split, said in SPLITS:
        rows = vars(run)[split]
        if rows is not None and len(rows):
            part, step = part_of(rows)
            found += _bad_prompts(run, column(part, "prompt"), columns_of(rows), said, step)
    return found


def _bad_prompts(run: Planned, values: list, there: list[str], said: str, step: int) -> list[Finding]:
    """The first fault of a split's prompts, and how many rows have it."""
    problems = [(i, _prompt_problem(run, value)) for i, value in enumerate(values)]
    problems = [(i, code) for i, code in problems if code]
    if not problems:
        return []
    index, code = problems[0]
    many = sum(other == code for _, other in problems)
    where = f"{said} row {index * step}" + (f" and {many - 1} more" if many > 1 else "")
    value = values[index]
    what, why, mend = WORDS[code](value, there)
    return [Finding(code, f"{where}: {what}", why, mend)]


def _no_prompt(value: object, there: list[str]) -> tuple[str, str, str]:
    if "prompt" in there:
        why = "TRL has nothing to render or to sample from, and the run stops at that row."
        return "its prompt is empty.", why, "rows.filter(lambda row: row['prompt'])."
    why = f"TRL reads the column 'prompt' and raises a KeyError; the columns are {', '.join(there)}."
    return "there is no prompt.", why, "Rename the column: rows.rename_column('question', 'prompt')."


def _string_prompt(value: object, there: list[str]) -> tuple[str, str, str]:
    why = "TRL applies no chat template to text: the model does not see that it is asked, and often never ends."
    mend = f"Messages: chat_prompt({_shorten(value, 40)}). (For a base model text is right.)"
    return "a plain text prompt to a chat model.", why, mend


def _maybe_string_prompt(value: object, there: list[str]) -> tuple[str, str, str]:
    _, why, mend = _string_prompt(value, there)
    return "a plain text prompt, and the tokenizer has a chat template.", f"if it is a chat model: {why}", mend


def _bad_prompt(value: object, there: list[str]) -> tuple[str, str, str]:
    why = "TRL renders a list of messages, each with a role and a content, and raises on anything else."
    return f"{_shorten(value)}.", why, 'chat_prompt("the question"), or [{"role": "user", "content": "…"}].'


#: What is said of each fault of a prompt: what, why, what to do.
WORDS = {
    "no_prompt": _no_prompt,
    "string_prompt": _string_prompt,
    "maybe_string_prompt": _maybe_string_prompt,
    "bad_prompt": _bad_prompt,
}


def _prompt_problem(run: Planned, value: object) -> str:
    """The code of what is wrong with one prompt, or ""."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return "no_prompt"
    if isinstance(value, str):
        return _text_problem(run, value)
    return "" if _are_messages(value) else "bad_prompt"


def _text_problem(run: Planned, text: str) -> str:
    """Whether a text should have been messages: not if somebody has written the chat template into it already."""
    if run.tokenizer is None or not run.tokenizer.chat_template or is_base_model(run.name):
        return ""
    if any(token in text for token in run.tokenizer.all_special_tokens):
        return ""
    parts = set(re.split(r"[-_./]", run.name.lower().rpartition("/")[2]))
    return "string_prompt" if not run.name or parts & CHAT_NAMES else "maybe_string_prompt"


def _are_messages(value: object) -> bool:
    """Whether TRL can render a prompt: who speaks last does not matter, since it goes on from a model's turn."""
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(turn, dict)
        and isinstance(turn.get("role"), str)
        and (isinstance(turn.get("content"), str | list) or bool(turn.get("tool_calls")))
        for turn in value
    )


def answers(run: Planned) -> list[Finding]:
    """Gold answers with which no completion could be right; only where a reward reads the column."""
    if run.rewards is not None and not any(run.answer_column in names_of(reward) for reward in run.rewards):
        return []
    found = []
    for split, said in SPLITS:
        rows = vars(run)[split]
        if rows is not None and len(rows) and run.answer_column in columns_of(rows):
            part, step = part_of(rows)
            found += _bad_answers(column(part, run.answer_column), run.answer_column, said, step)
    return found


def names_of(reward: object) -> set[str]:
    """The parameters of a reward by name; none of what is no function."""
    return set(inspect.signature(reward).parameters) if callable(reward) else set()


def _bad_answers(values: list, name: str, said: str, step: int) -> list[Finding]:
    """Missing answers, and numbers where most rewards compare text; lists and dicts are left to their rewards."""
    found = []
    missing = [i for i, value in enumerate(values) if value is None or (isinstance(value, str) and not value.strip())]
    if missing:
        what = f"{_rows(said, missing, values, step)}: {name} is {_shorten(values[missing[0]])}."
        why = "no completion can be right there: the row teaches nothing, or pays what it should not."
        mend = f"rows.filter(lambda row: row[{name!r}] is not None and str(row[{name!r}]).strip() != '')."
        found.append(Finding("bad_answer", what, why, mend))
    numbers = [i for i, value in enumerate(values) if isinstance(value, int | float)]
    if numbers:
        what = f"{_rows(said, numbers, values, step)}: {name} is {_shorten(values[numbers[0]])}, which is no text."
        why = "most rewards compare text, to which 7 is not '7'; the lab has tried yours with it."
        mend = f"rows.map(lambda row: {{{name!r}: str(row[{name!r}])}})."
        found.append(Finding("answer_not_text", what, why, mend))
    return found


def _rows(said: str, indices: list[int], values: list, step: int) -> str:
    more = f" and {len(indices) - 1} more" if len(indices) > 1 else ""
    return f"{said} row {indices[0] * step}{more} of {len(values)}"


def key(prompt: object, answer: object = "") -> str:
    """What makes two rows the same: all that is said, and the answer, in lower case, with single spaces.

    >>> key([{"role": "user", "content": "What is  2 + 2? "}]) == key("what is 2 + 2?")
    True
    >>> key("Go on.", "4") == key("Go on.", "5")
    False
    """
    if isinstance(prompt, list):
        prompt = "\n".join(str(turn.get("content") if isinstance(turn, dict) else turn) for turn in prompt)
    words = " ".join(str(prompt).casefold().split())
    return f"{words} → {' '.join(str(answer).casefold().split())}" if answer != "" else words


def _keys(rows: "Dataset | Sequence[dict]", with_answers: str) -> list[str]:
    """The keys of rows that have a prompt; of the answers too where a column is named."""
    golds = column(rows, with_answers) if with_answers else [""] * len(rows)
    return [key(prompt, gold) for prompt, gold in zip(column(rows, "prompt"), golds, strict=True) if prompt]


def duplicates(run: Planned) -> list[Finding]:
    """The same row twice in training, and held-out rows that are trained on; not where images tell them apart."""
    if run.train is None or not len(run.train) or any(name in columns_of(run.train) for name in IMAGES):
        return []
    train = first_rows(run.train, MOST_COMPARED)
    answered = run.answer_column in columns_of(train)
    seen, found = Counter(_keys(train, run.answer_column if answered else "")), []
    twice = [one for one, number in seen.items() if number > 1]
    if twice:
        extra = sum(seen[one] - 1 for one in twice)
        what = (
            f"{extra} of {len(train)} training rows repeat another's prompt and answer, such as {_shorten(twice[0])}."
        )
        found.append(
            Finding("duplicates", what, "they count more than the others.", "Drop them, unless they are meant.")
        )
    if run.heldout is not None and len(run.heldout):
        both = run.answer_column if answered and run.answer_column in columns_of(run.heldout) else ""
        found += _leaked(run, set(seen) if bool(both) == answered else set(_keys(train, both)), both)
    return found


def _leaked(run: Planned, seen: set[str], with_answers: str) -> list[Finding]:
    """Held-out rows that are among the training rows."""
    heldout = first_rows(run.heldout, MOST_COMPARED)
    leaked = [one for one in _keys(heldout, with_answers) if one in seen]
    if not leaked:
        return []
    of = f"row['prompt'], row[{with_answers!r}]" if with_answers else "row['prompt']"
    what = f"{len(leaked)} of {len(heldout)} held-out prompts are trained on, such as {_shorten(leaked[0])}."
    why = "the evaluation would measure memory there (case and spaces were ignored)."
    mend = (
        f"from grpo_check.preflight.rows import key; seen = {{key({of}) for row in heldout}}; "
        f"train = train.filter(lambda row: key({of}) not in seen)."
    )
    return [Finding("leak", what, why, mend)]


def _shorten(value: object, longest: int = LONGEST_SHOWN) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
