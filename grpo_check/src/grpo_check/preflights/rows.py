"""Check the rows: enough of them, all usable, and no held-out row in training."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from grpo_core.rewards import same_answer
from grpo_core.training.texts import message_text

from ..findings import Finding
from ..probes.signatures import read_by_any, signatures
from ..probes.trying.discovery import texts_in_code
from ..prompts import has_word, lacks_template
from ..rule import Rule, adding_to, found
from .arguments import UNCOUNTED
from .columns import ANSWERS, CHATS, CHOICES, meant_by
from .planned import PlannedRun, once

if TYPE_CHECKING:
    from .planned import Rows

#: Rows that are looked at one by one, evenly spread, and rows from the start that are compared with each other.
MOST_ROWS, MOST_COMPARED = 3_000, 20_000
#: Rows whose gold answers are searched for in their prompts, at most and at least, and the share that is worth a word.
MOST_ANSWERS, FEWEST_ANSWERS, NEARLY_ALL = 300, 8, 0.9
#: What programs write where a value is missing, and the share of rows up to which it is no label of its own.
_FAILURES, _RARE = {"error", "nan", "null", "#n/a", "undefined"}, 0.2
#: Columns whose gold answers a model is asked to write; a ``target`` may be a number that its answer has to reach.
_TEXTS = ("answer", "solution", "final_answer", "gold_answer", "gold", "ground_truth")
#: Characters from which on a text with a box is a solution.
_WORKED = 80
#: So many different values of a column are labels.
_MOST_LABELS = 12
#: Columns that TRL takes pictures from; equal questions about them need not be the same.
IMAGES = {"image", "images"}
#: Rows of the examples; in those of `NAMED`, each prompt names its own gold answer.
ASKED = [{"prompt": [{"role": "user", "content": f"What is {n} + 1?"}], "answer": str(n + 1)} for n in range(8)]
SOME = [{"prompt": [{"role": "user", "content": f"And {n}?"}], "answer": f"{n}.5"} for n in range(16)]
NAMED = [row | {"prompt": [{"role": "user", "content": f"Say {row['answer']}."}]} for row in ASKED]

RULES: list[Rule] = []
rule = adding_to(RULES, needs=("rows",))


def columns_of(rows: "Rows | None") -> list[str]:
    """The names of the columns; for a list of rows, those of any of the first `MOST_ROWS`."""
    if isinstance(rows, list) or rows is None:
        return list(dict.fromkeys(name for row in (rows or [])[:MOST_ROWS] for name in row))
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


def _splits(run: PlannedRun) -> list[tuple[str, "Rows"]]:
    return [(said, rows) for said, rows in (("train", run.train), ("held-out", run.heldout)) if rows is not None]


def notes(run: PlannedRun) -> Iterator[str]:
    """Notes on rows that are not checked one by one."""
    for said, rows in _splits(run):
        if len(rows) > MOST_ROWS:
            yield f"checked {len(spread(rows))} of {len(rows)} {said} rows, evenly spread"
    if IMAGES & {*columns_of(run.train)}:
        yield "did not search for duplicates and leaks, because images are not compared"
    elif run.train and len(run.train) > MOST_COMPARED:
        yield f"searched for duplicates and leaks in the first {MOST_COMPARED} of {len(run.train)} train rows"
    if run.train and run.rewards is None:
        yield from _notes_for_a_reward(run.train)


def _notes_for_a_reward(rows: "Rows") -> Iterator[str]:
    """What the author of a reward for these rows should know, because no reward says yet which columns it reads."""
    indices, names = spread(rows), columns_of(rows)
    if not {*ANSWERS} & {*names} and "messages" not in names:
        yield f"no column has the name of a gold answer, with which a reward compares: {', '.join(names)}"
    for name in [name for name in _plain_columns(rows) if name not in ("answer", "solution")]:
        blank = sum(map(_is_blank, values := column(rows, name, indices)))
        if 0 < blank < len(values):
            yield f"{name!r} is empty in {blank} of {len(values)} rows"
        worked = sum(isinstance(one, str) and "\\boxed{" in one and len(one) > _WORKED for one in values)
        if name in ANSWERS and worked > len(values) / 2:
            what = f"{name!r} has a whole solution with \\boxed{{}} in {worked} of {len(values)} rows"
            yield f"{what}: math_verify reads the box, and a comparison of whole texts pays nothing"


@rule(
    "error",
    "a file of rows that cannot be read",
    why="the run has no rows to train on, or none to evaluate on.",
    fixes=("correct the file, or pass another one: --train FILE, --heldout FILE.",),
    needs=(),
    example={"keys": {"dataset_name": "config.yaml"}},
)
def unreadable_rows(run: PlannedRun) -> Iterator[Finding]:
    """It looks at the files that a config file or an option names. The other checks go on without these rows."""
    for what in run.bad_rows:
        yield found(what)


@rule(
    "error",
    "a dataset without rows",
    why="training ends at step 0 without an error, or there is nothing to evaluate.",
    fixes=("check the filter or split that produced it; a length filter may have dropped every row.",),
    example={"train": []},
)
def no_rows(run: PlannedRun) -> Iterator[Finding]:
    """It looks at the training rows and at the held-out rows."""
    for said, rows in _splits(run):
        if not len(rows):
            yield found(f"the {said} dataset has no rows.")


@rule(
    "error",
    "fewer rows than one step needs, so the run ends at step 0",
    why="TRL drops an incomplete batch, so the run ends at step 0 without an error.",
    fixes=("use more rows, or sample fewer completions at once: lower per_device_train_batch_size.",),
    unless=(*UNCOUNTED, "batch", "refused"),
    example={"train": ASKED[:1]},
)
def too_few_rows(run: PlannedRun) -> Iterator[Finding]:
    """Each row gets num_generations completions, and a step needs per_device_train_batch_size of them or more."""
    size, completions = run["num_generations"], run.known_processes() * run.completions_at_once
    if run.train and len(run.train) < completions // size:
        needed = completions // size
        what = f"{len(run.train)} training rows; a step needs {needed} ({completions} completions in groups of {size})."
        fix = f"use at least {needed} rows, or sample at most {len(run.train) * size} completions at once in total."
        yield found(what, fix)


@rule(
    "error",
    "a row without a prompt",
    why="TRL has nothing to sample from, and the run stops at that row.",
    fixes=(
        "drop the rows with an empty prompt.",
        "if the question is in a column of another name, rename that to 'prompt'.",
    ),
    example={"row": {"prompt": None}},
)
def no_prompt(run: PlannedRun) -> Iterator[Finding]:
    """The prompt is empty, or there is no column ``prompt``, whose name TRL expects."""
    for where, rows, _ in _faulty(run, "no_prompt"):
        if "prompt" in columns_of(rows):
            drop = in_words(run, "drop the rows with an empty prompt", "rows.filter(lambda row: row['prompt'])")
            yield found(f"{where}: the prompt is empty.", drop)
        else:
            there = ", ".join(columns_of(rows))
            why = f"TRL reads the column 'prompt' and raises a KeyError; the columns are {there}."
            yield found(f"{where}: there is no prompt.", _prompt_from(run, columns_of(rows)), why=why)


def _prompt_from(run: PlannedRun, there: list[str]) -> str:
    """How to make the column ``prompt`` of what there is."""
    question, chat = meant_by("prompt", there), next((name for name in CHATS if name in there), "")
    if {"instruction", "input"} <= {*there}:
        return "make 'prompt' of 'instruction' and 'input', because the model has to see both."
    if question and (choices := next((name for name in CHOICES if name in there), "")):
        return f"make 'prompt' of {question!r} and {choices!r}, because the model has to see both."
    if question:
        return renaming(run, question, "prompt")
    if chat:
        what = f"make 'prompt' of the messages in {chat!r} before the reply"
        return in_words(run, what, f"rows.map(lambda row: {{'prompt': row[{chat!r}][:-1]}})")
    return "add a column 'prompt' with messages, [{'role': 'user', 'content': the question}]."


def renaming(run: PlannedRun, old: str, new: str) -> str:
    """The advice to rename a column."""
    return in_words(run, f"rename the column {old!r} to {new!r}", f"rows.rename_column({old!r}, {new!r})")


def in_words(run: PlannedRun, what: str, code: str) -> str:
    """What to do about rows, for a reader who has files, or with the code for one who has them in Python."""
    return f"{what}{'' if run.in_terminal else f': {code}'}."


@rule(
    "warning",
    "plain text prompts for a chat model",
    why="TRL applies no chat template to plain text, so a chat model sees no question and often never stops.",
    fixes=("use messages: [{'role': 'user', 'content': question}]. Plain text is correct for a base model.",),
    needs=("rows", "tokenizer"),
    example={"row": {"prompt": "What is 2 + 2?"}},
)
def string_prompt(run: PlannedRun) -> Iterator[Finding]:
    """It goes by the tokenizer, and leaves out models whose name marks a base model."""
    for where, rows, index in _faulty(run, "string_prompt"):
        asked = _shorten(rows[index]["prompt"], 40)
        fix = f"use messages: [{{'role': 'user', 'content': {asked}}}]. Plain text is correct for a base model."
        what = f"{where}: a plain text prompt, but the tokenizer has a chat template."
        yield found(what, fix)


@rule(
    "error",
    "a prompt that is neither text nor a list of messages",
    why="TRL accepts text or a list of messages, each with a role and content, and raises an error otherwise.",
    fixes=('use [{"role": "user", "content": "the question"}].',),
    example={"row": {"prompt": [{"role": "user"}]}},
)
def bad_prompt(run: PlannedRun) -> Iterator[Finding]:
    """Content may be missing only in a message with tool calls. The last role does not matter."""
    for where, rows, index in _faulty(run, "bad_prompt"):
        yield found(f"{where}: the prompt is {_shorten(rows[index].get('prompt'))}.")


def _faulty(run: PlannedRun, code: str) -> Iterator[tuple[str, "Rows", int]]:
    """For each split with such prompts: the first and how many there are in words, the rows, and the first's number."""
    for said, rows, codes in _codes(run):
        indices = [index for index, one in codes.items() if one == code]
        if indices:
            yield _counted(said, indices[0], len(indices)), rows, indices[0]


@once
def _codes(run: PlannedRun) -> list[tuple[str, "Rows", dict[int, str]]]:
    """The rows of each split, and the code of what is wrong with the prompt of each, "" if nothing is."""
    splits = [(said, rows, spread(rows)) for said, rows in _splits(run)]
    return [
        (said, rows, dict(zip(indices, [_code(run, one) for one in column(rows, "prompt", indices)], strict=True)))
        for said, rows, indices in splits
    ]


def _counted(said: str, index: int, count: int) -> str:
    """The first of some rows, and how many more there are."""
    return f"{said} row {index}" + (f" and {count - 1} more" if count > 1 else "")


def _code(run: PlannedRun, value: object) -> str:
    """The code of what is wrong with one prompt, "" if nothing is."""
    if isinstance(value, str) and value.strip():
        return (
            "string_prompt"
            if run.tokenizer is not None and lacks_template(value, run.tokenizer, run.model.name)
            else ""
        )
    if not value or isinstance(value, str):
        return "no_prompt"
    return "" if isinstance(value, list) and all(map(_is_message, value)) else "bad_prompt"


def _is_message(turn: object) -> bool:
    """Whether TRL can render it. The last role does not matter, because TRL can continue the model's turn."""
    if not isinstance(turn, dict) or not isinstance(turn.get("role"), str):
        return False
    return isinstance(turn.get("content"), str | list) or bool(turn.get("tool_calls"))


def reads_answers(run: PlannedRun, rewards: Sequence[Callable]) -> bool:
    """Whether any of these rewards reads the gold answers."""
    return any(run.answer_column in parameters for _, parameters in signatures(rewards))


def _golds(run: PlannedRun) -> Iterator[tuple[str, dict[int, object]]]:
    """The gold answers of each split by the number of their row, if a reward reads them or may do so."""
    is_read = run.rewards is None or run.unread_rewards or reads_answers(run, run.functions)
    for said, rows in _splits(run) if is_read else []:
        if run.answer_column in columns_of(rows):
            yield said, dict(zip(spread(rows), column(rows, run.answer_column, spread(rows)), strict=True))


@rule(
    "error",
    "a missing or empty gold answer that a reward reads",
    why="no completion can be correct, so the row has no gradient or rewards something else.",
    fixes=("drop the rows without a gold answer, or fill in the answers.",),
    example={"row": {"answer": None}},
)
def bad_answer(run: PlannedRun) -> Iterator[Finding]:
    """It looks at all gold answers if no rewards are given, and at none if no reward reads them."""
    name = run.answer_column
    for said, golds in _golds(run):
        missing = {index: gold for index, gold in golds.items() if not answer_text(gold)}
        if missing:
            code = f"rows.filter(lambda row: row[{name!r}] is not None and str(row[{name!r}]).strip() != '')"
            yield found(_which(said, missing, golds, name), in_words(run, "drop these rows", code))


@rule(
    "warning",
    "a gold answer that is a number instead of text",
    why="most rewards compare text, and 7 is not equal to '7'.",
    fixes=("write it as text.",),
    example={"row": {"answer": 7}},
)
def answer_not_text(run: PlannedRun) -> Iterator[Finding]:
    """If your reward reads numbers, you can ignore this."""
    name = run.answer_column
    for said, golds in _golds(run) if name in _TEXTS else ():
        numbers = {index: gold for index, gold in golds.items() if isinstance(gold, int | float)}
        if numbers:
            code = f"rows.map(lambda row: {{{name!r}: str(row[{name!r}])}})"
            yield found(_which(said, numbers, golds, name), in_words(run, "write it as text, with quotes", code))


@rule(
    "warning",
    "a value that looks like the trace of a failure, such as 'ERROR' or 'nan'",
    why="if it is a gold answer, no completion should be paid for it.",
    fixes=("drop these rows, or fill in the values.",),
    example={"train": [*SOME, {"prompt": ASKED[0]["prompt"], "answer": "ERROR"}]},
)
def failed_answer(run: PlannedRun) -> Iterator[Finding]:
    """It looks for words that programs leave where a value is missing; a word that is common in a column is a label."""
    for said, rows in _splits(run):
        indices = spread(rows)
        for name in _plain_columns(rows):
            values = dict(zip(indices, column(rows, name, indices), strict=True))
            if len({str(value) for value in values.values()}) <= max(_MOST_LABELS, len(values) // 20):
                continue  # labels, of which one may be "error"
            failed = {index: value for index, value in values.items() if _is_failure(value)}
            if failed and len(failed) <= _RARE * len(values):
                yield found(_which(said, failed, values, name))


def _plain_columns(rows: "Rows | None") -> list[str]:
    """The columns besides the prompt that hold texts, numbers or lists of them; reading an image takes long."""
    names = [name for name in columns_of(rows) if name not in ("prompt", *CHATS, *IMAGES)]
    kinds = {} if isinstance(rows, list) or rows is None else rows.features
    inner = {name: getattr(kind, "feature", kind) for name, kind in kinds.items()}  # of a list
    return [name for name in names if type(inner.get(name)).__name__ in ("NoneType", "Value")]


def _is_failure(value: object) -> bool:
    text = value[0] if isinstance(value, list) and len(value) == 1 else value
    return isinstance(text, str) and text.strip("[]'\" ").lower() in _FAILURES


@rule(
    "warning",
    "gold answers that are worked solutions with the answer at their end, after ####",
    why="a reward that compares whole texts pays no completion, because none repeats the solution word for word.",
    fixes=("keep what follows ####, or let the reward split the gold answer there.",),
    example={"train": [row | {"answer": f"One more than {n} is {n + 1}. #### {n + 1}"} for n, row in enumerate(ASKED)]},
)
def worked_solution(run: PlannedRun) -> Iterator[Finding]:
    """As in GSM8K. A reward that has these signs in its code, or reads no gold answer, is not meant."""
    if any("####" in text for reward in run.functions for text in texts_in_code(reward)):
        return
    for said, golds in _golds(run):
        solved = {n: gold for n, gold in golds.items() if isinstance(gold, str) and re.search(r"\S\s*#### ?\S", gold)}
        if golds and len(solved) > len(golds) / 2:
            name = run.answer_column
            code = f"rows.map(lambda row: {{{name!r}: row[{name!r}].rpartition('####')[2].strip()}})"
            yield found(_which(said, solved, golds, name), in_words(run, "keep what follows ####", code))


@rule(
    "warning",
    "a column without a value in any row, or that some rows lack",
    why="a reward that reads it has nothing to compare with.",
    fixes=("fill it in, or drop it.",),
    example={
        "train": [row | {"label": ""} for row in ASKED],
        "rewards": [lambda completions, label, **kwargs: [0.0 for _ in completions]],
    },
)
def empty_column(run: PlannedRun) -> Iterator[Finding]:
    """It looks at the columns that a reward reads, or where that is not known, at those with the name of an answer.

    A gold answer that is missing in some rows is `bad_answer`.
    """
    indices, read = spread(run.train or []), _read_by_rewards(run)
    for name in [name for name in _plain_columns(run.train) if name != run.answer_column]:
        wanted = name in ANSWERS if read is None else name in read
        if wanted and indices and all(map(_is_blank, column(run.train, name, indices))):
            yield found(f"{name!r} has no value in any of {len(indices)} rows.")
        elif lacking := [index for index in indices if isinstance(run.train, list) and name not in run.train[index]]:
            which = f"{_counted('train', lacking[0], len(lacking))} of {len(indices)}"
            yield found(f"{which}: there is no {name!r}, which other rows have, so a reward gets None.")


def _read_by_rewards(run: PlannedRun) -> set[str] | None:
    """The columns that the rewards read; None if not all rewards are known."""
    if run.rewards is None or run.unread_rewards or len(run.functions) < len(run.rewards):
        return None
    return read_by_any(run.functions)


def _is_blank(value: object) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)


@rule(
    "warning",
    "nearly all prompts contain their own gold answer as a word",
    why="the policy can copy the answer, so a rising reward would not show that it solves the task.",
    fixes=(
        "check what is in row['prompt']: is the answer there by mistake? If the task is to extract it, ignore this.",
    ),
    example={"train": NAMED},
)
def gold_in_prompt(run: PlannedRun) -> Iterator[Finding]:
    """Prompts that also contain the answer of another row, such as a choice between options, are not reported."""
    name, indices = run.answer_column, spread(run.train or [], MOST_ANSWERS)
    if len(indices) < FEWEST_ANSWERS or name not in columns_of(run.train) or name not in _TEXTS:
        return
    prompts, golds = column(run.train, "prompt", indices), [*map(answer_text, column(run.train, name, indices))]
    if len(set(golds)) < 2:
        return
    others = [next((one for one in golds[at + 1 :] + golds[:at] if one != gold), "") for at, gold in enumerate(golds)]
    own, other = (_share_named(prompts, some) for some in (golds, others))
    if own < NEARLY_ALL or other > 0.5:
        return
    at = next(at for at, gold in enumerate(golds) if gold and has_word(_text(prompts[at]), gold))
    example = f"{_shorten(golds[at])} in train row {indices[at]}"
    what = f"{own:.0%} of {len(indices)} prompts contain their gold answer, such as {example}."
    fix = f"check what is in row['prompt']: is {name!r} there by mistake? If the task is to extract it, ignore this."
    yield found(what, fix)


def answer_text(value: object) -> str:
    """A gold answer without the space around it; "" if it is missing or empty."""
    return "" if value is None else str(value).strip()


def _share_named(prompts: list, answers: list[str]) -> float:
    """The share of prompts in which an answer occurs as a word."""
    pairs = [(_text(prompt), answer) for prompt, answer in zip(prompts, answers, strict=True) if answer]
    return sum(has_word(text, answer) for text, answer in pairs) / len(prompts)


def _text(prompt: object) -> str:
    """All that a prompt says."""
    turns = prompt if isinstance(prompt, list) else [prompt]
    return "\n".join(message_text(turn) if isinstance(turn, dict) else str(turn) for turn in turns)


def _which(said: str, faulty: dict, golds: dict, name: str) -> str:
    index, gold = next(iter(faulty.items()))
    return f"{_counted(said, index, len(faulty))} of {len(golds)}: {name} is {_shorten(gold)}."


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


@rule(
    "warning",
    "training rows with the same prompt and answer",
    why="repeated rows count more than others.",
    fixes=("drop them unless they are intended.",),
    example={"train": [*ASKED, ASKED[0]]},
)
def duplicates(run: PlannedRun) -> Iterator[Finding]:
    """The comparison ignores case and spaces. Rows with images are not compared."""
    if not run.train or IMAGES & {*columns_of(run.train)}:
        return
    counts = Counter(_keys(run.train, run.answer_column if run.answer_column in columns_of(run.train) else ""))
    twice = {one: count - 1 for one, count in counts.items() if count > 1}
    if twice:
        of = f"{sum(twice.values())} of {len(first(run.train, MOST_COMPARED))} training rows"
        yield found(f"{of} repeat the prompt and answer of another row, such as {_shorten(next(iter(twice)))}.")


@rule(
    "warning",
    "training rows with the same prompt and different gold answers",
    why="no completion satisfies both rows, so the policy is paid for one answer and then for another.",
    fixes=("correct or drop one of them; if both are right, make the gold answer a list of both.",),
    example={"train": [*ASKED, {**ASKED[0], "answer": "none"}]},
)
def conflicting_answers(run: PlannedRun) -> Iterator[Finding]:
    """The comparison ignores case and spaces. Rows with images are not compared, nor answers that no reward reads."""
    columns = columns_of(run.train)
    is_read = run.rewards is None or run.unread_rewards or reads_answers(run, run.functions)
    if not run.train or run.answer_column not in columns or IMAGES & {*columns} or not is_read:
        return
    indices, answers = first(run.train, MOST_COMPARED), {}
    golds = column(run.train, run.answer_column, indices)
    for prompt, gold in zip(column(run.train, "prompt", indices), golds, strict=True):
        if prompt and not _is_blank(gold) and not _is_failure(gold):
            answers.setdefault(key(prompt), {}).setdefault(key("", gold), gold)
    several = {prompt: golds for prompt, found in answers.items() if (golds := _different([*found.values()]))}
    if several:
        prompt, (one, other) = next(iter(several.items()))
        what = f"{len(several)} of {len(answers)} prompts have more than one gold answer"
        yield found(f"{what}: {_shorten(prompt)} has {_shorten(one, 30)} and {_shorten(other, 30)}.")


def _different(golds: list) -> list:
    """Two gold answers that differ also as values, such as 5 and 6, and not 5 and 5.0; none if all are the same."""
    other = next((gold for gold in golds[1:] if not same_answer(answer_text(gold), answer_text(golds[0]))), None)
    return [] if other is None else [golds[0], other]


@rule(
    "error",
    "held-out prompts that are also in the training rows",
    why="there the evaluation would measure memorization. The comparison ignores case and spaces.",
    fixes=("remove them from the training rows.",),
    needs=("rows", "both splits"),
    example={"train": ASKED, "heldout": ASKED[:1]},
)
def leak(run: PlannedRun) -> Iterator[Finding]:
    """Two rows with the same prompt but another answer differ. Rows with images are not compared."""
    if not run.train or not run.heldout or IMAGES & {*columns_of(run.train)}:
        return
    answer = run.answer_column if run.answer_column in {*columns_of(run.train)} & {*columns_of(run.heldout)} else ""
    trained_on = {*_keys(run.train, answer)}
    leaked = [one for one in _keys(run.heldout, answer) if one in trained_on]
    if leaked:
        of = f"row['prompt'], row[{answer!r}]" if answer else "row['prompt']"
        share = f"{len(leaked)} of {len(first(run.heldout, MOST_COMPARED))} held-out prompts"
        what = f"{share} are also in the training rows, such as {_shorten(leaked[0])}."
        code = (
            f"from grpo_check.preflights.rows import key; seen = {{key({of}) for row in heldout}}; "
            f"train = train.filter(lambda row: key({of}) not in seen)"
        )
        yield found(what, in_words(run, "remove them from the training rows", code))


def _shorten(value: object, longest: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"
