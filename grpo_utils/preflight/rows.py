"""Check the rows: that there are enough, that each is fit, and that none is held out and trained on."""

import inspect
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data import check_rows, prompt_key
from ..errors import CourseError
from .planned import Planned
from .report import Finding

if TYPE_CHECKING:
    from datasets import Dataset

SPLITS = (("train", "train"), ("heldout", "held-out"))
LONGEST_SHOWN = 80


def column(rows: "Dataset | Sequence[dict]", name: str) -> list:
    """All values of a column, from a Dataset or a list of rows; None where a row lacks it."""
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        return [row.get(name) for row in rows]
    return list(rows[name]) if name in rows.column_names else [None] * len(rows)


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
            found += _bad_prompts(run, column(rows, "prompt"), columns_of(rows), said)
    return found


def _bad_prompts(run: Planned, values: list, there: list[str], said: str) -> list[Finding]:
    """The first fault of a split's prompts, and how many rows have it."""
    problems = [(i, _prompt_problem(run, value)) for i, value in enumerate(values)]
    problems = [(i, code) for i, code in problems if code]
    if not problems:
        return []
    index, code = problems[0]
    many = sum(other == code for _, other in problems)
    where = f"{said} row {index}" + (f" and {many - 1} more" if many > 1 else "")
    value = values[index]
    if code == "no_prompt":
        why = f"TRL reads the column 'prompt' and raises a KeyError; the columns are {', '.join(there)}."
        return [
            Finding(
                code,
                f"{where}: there is no prompt.",
                why,
                "Rename the column: rows.rename_column('question', 'prompt').",
            )
        ]
    if code == "string_prompt":
        why = "TRL applies no chat template to text: the model does not see that it is asked, and often never ends."
        mend = (
            f"Messages: chat_prompt({_shorten(value, 40)}). (For a base model without a chat template text is right.)"
        )
        return [Finding(code, f"{where}: a plain text prompt to a chat model.", why, mend)]
    why = "TRL renders messages (role, content), and the model answers the last one, which should be the user's."
    return [
        Finding(
            code,
            f"{where}: {_shorten(value)}.",
            why,
            'chat_prompt("the question"), or [{"role": "user", "content": "…"}].',
        )
    ]


def _prompt_problem(run: Planned, value: object) -> str:
    if value is None:
        return "no_prompt"
    if isinstance(value, str):
        if not value.strip():
            return "no_prompt"
        chats = run.tokenizer is not None and run.tokenizer.chat_template and not is_base(run.name)
        return "string_prompt" if chats else ""
    try:
        check_rows([{"prompt": value, "answer": "x"}])
    except CourseError:
        return "bad_prompt"
    return ""


def is_base(name: str) -> bool:
    """Whether a model's name says that it is a base model, to which plain text is right though it has a template.

    >>> is_base("Qwen/Qwen3-0.6B-Base"), is_base("google/gemma-3-1b-pt"), is_base("Qwen/Qwen3-0.6B")
    (True, True, False)
    """
    parts = name.lower().rpartition("/")[2].replace("_", "-").split("-")
    return "base" in parts or parts[-1] == "pt"


def answers(run: Planned) -> list[Finding]:
    """Gold answers with which no completion could be right; only where a reward reads the column."""
    if run.rewards is not None and not any(run.answer_column in names_of(reward) for reward in run.rewards):
        return []
    found = []
    for split, said in SPLITS:
        rows = vars(run)[split]
        if rows is not None and len(rows) and run.answer_column in columns_of(rows):
            found += _bad_answers(column(rows, run.answer_column), run.answer_column, said)
    return found


def names_of(reward: object) -> set[str]:
    """The parameters of a reward by name; none of what is no function."""
    return set(inspect.signature(reward).parameters) if callable(reward) else set()


def _bad_answers(values: list, name: str, said: str) -> list[Finding]:
    """Missing answers, and numbers where most rewards compare text; lists and dicts are left to their rewards."""
    found = []
    missing = [i for i, value in enumerate(values) if value is None or (isinstance(value, str) and not value.strip())]
    if missing:
        what = f"{_rows(said, missing, values)}: {name} is {_shorten(values[missing[0]])}."
        why = "no completion can be right there: the row teaches nothing, or pays what it should not."
        found.append(Finding("bad_answer", what, why, f"rows.filter(lambda row: row[{name!r}])."))
    numbers = [i for i, value in enumerate(values) if isinstance(value, int | float)]
    if numbers:
        what = f"{_rows(said, numbers, values)}: {name} is {_shorten(values[numbers[0]])}, which is no text."
        why = "most rewards compare text, to which 7 is not '7'; the lab has tried yours with it."
        mend = f"rows.map(lambda row: {{{name!r}: str(row[{name!r}])}})."
        found.append(Finding("answer_not_text", what, why, mend))
    return found


def _rows(said: str, indices: list[int], values: list) -> str:
    more = f" and {len(indices) - 1} more" if len(indices) > 1 else ""
    return f"{said} row {indices[0]}{more} of {len(values)}"


def duplicates(run: Planned) -> list[Finding]:
    """The same prompt twice in training, and held-out prompts that are trained on."""
    if run.train is None or not len(run.train):
        return []
    seen, found = Counter(map(prompt_key, column(run.train, "prompt"))), []
    twice = [prompt for prompt, number in seen.items() if number > 1 and prompt not in ("", "none")]
    if twice:
        extra = sum(seen[prompt] - 1 for prompt in twice)
        what = f"{extra} of {len(run.train)} training rows repeat another's prompt, such as {_shorten(twice[0])}."
        why = "they count more than the others; with different answers one of them is wrong."
        found.append(Finding("duplicates", what, why, "Drop them, unless they are meant."))
    if run.heldout is not None:
        leaked = [
            prompt for prompt in map(prompt_key, column(run.heldout, "prompt")) if prompt in seen and prompt != "none"
        ]
        if leaked:
            what = (
                f"{len(leaked)} of {len(run.heldout)} held-out prompts are trained on, such as {_shorten(leaked[0])}."
            )
            why = "the evaluation would measure memory there (case and spaces were ignored)."
            mend = (
                "from grpo_utils import prompt_key; seen = {prompt_key(p) for p in heldout['prompt']}; "
                "train = train.filter(lambda row: prompt_key(row['prompt']) not in seen)."
            )
            found.append(Finding("leak", what, why, mend))
    return found


def _shorten(value: object, longest: int = LONGEST_SHOWN) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
