"""Records to GRPO rows, with a report of every record that was rejected or changed."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

from grpo_core.errors import CourseError, did_you_mean
from grpo_core.rewards import same_answer

from .damage import undamaged
from .prompts import SYSTEM_PROMPT, chat_prompt
from .splits import prompt_key

#: The number of notes of one kind to print; the rest are counted.
SHOWN = 10
#: How programs write a missing answer, in lower case. ("NA" is not in the list, because it is also sodium.)
MISSING = {"nan", "null", "none", "n/a", "#n/a", "<na>"}


@dataclass(frozen=True)
class RowsReport:
    """The rows that `rows_from` made of ``total`` records, and what it did with the others.

    Attributes:
        rows: the accepted records as rows, in their order.
        rejected: the index of each other record, counted from 0, with the reason. No record disappears silently.
        changed: the index of each accepted record with a small change (spaces, a number made text), and the change.
        total: the number of records.
    """

    rows: list[dict]
    rejected: dict[int, str]
    changed: dict[int, str]
    total: int

    def all_rows(self) -> list[dict]:
        """The rows, if every record was accepted.

        Raises:
            CourseError: records were rejected; it names them.
        """
        if self.rejected:
            fix = "Fix the records, or use report.rows to continue without them."
            raise CourseError(f"{len(self.rejected)} of {self.total} records were rejected.\n{self}\n{fix}")
        return self.rows

    def __str__(self) -> str:
        """The counts, then the first ten notes of each kind, and how many more there are."""
        counts = f"{len(self.rows)} of {self.total} records accepted ({len(self.changed)} changed)"
        notes = [*_shown("rejected", self.rejected), *_shown("changed", self.changed)]
        return "\n".join([f"{counts}, {len(self.rejected)} rejected", *notes])


def _shown(kind: str, notes: Mapping[int, str]) -> list[str]:
    shown = [f"{kind}: row {row}: {note}" for row, note in notes.items()]
    more = [f"{kind}: {len(notes) - SHOWN} more; all {len(notes)} are in report.{kind}"] if len(notes) > SHOWN else []
    return shown[:SHOWN] + more


def rows_from(
    records: Iterable[Mapping],
    *,
    question: str = "question",
    answer: str = "answer",
    system_prompt: str | None = SYSTEM_PROMPT,
    examples: Sequence[tuple[str, str]] = (),
    read_answer: Callable[[str], str | None] | None = None,
    prompt: Callable = chat_prompt,
) -> RowsReport:
    """GRPO rows from records of any kind, and a report of those that are rejected or changed.

    It rejects records whose question or answer is missing, empty, or not text; answers such as "nan" or "N/A", which
    programs write for a missing one; texts that a wrong encoding has surely damaged; questions that repeat an earlier
    one or an example; and all records that ask the same question with different answers. `prompt_key` compares the
    questions. It ignores case and spaces, so "5 Mb" and "5 MB" with different answers are both rejected.

    Args:
        records: dictionaries, such as those of `read_table` or a `Dataset`.
        question, answer: the names of their columns.
        system_prompt, examples: as in `chat_prompt`.
        read_answer: extracts the gold answer from the answer column's text, such as `gsm8k_answer`; None or an error
            rejects the record. ``str`` accepts every text, even "N/A".
        prompt: `chat_prompt`, or a function that takes the same arguments: a base model needs text.

    >>> report = rows_from([{"q": "What is 2 + 2?", "a": 4}, {"q": " ", "a": "5"}], question="q", answer="a")
    >>> print(report)
    1 of 2 records accepted (1 changed), 1 rejected
    rejected: row 1: its 'q' is empty.
    changed: row 0: 'a' was the number 4 and is text now.

    Raises:
        CourseError: there are no records, or none has the columns.
    """
    records = list(records)
    _check_columns(records, (question, answer))
    pairs, rejected, changed = {}, {}, {}
    for row, record in enumerate(records):
        try:
            asked, answered = (_text(record.get(name), name) for name in (question, answer))
            pairs[row] = asked, _gold(answered, answer, read_answer)
            changed[row] = _changes(record, {question: asked, answer: answered})
        except CourseError as error:
            rejected[row] = str(error)
    rejected |= _repeats(pairs, examples)
    kept = {row: pair for row, pair in pairs.items() if row not in rejected}
    rows = [{"prompt": prompt(asked, system_prompt, examples), "answer": gold} for asked, gold in kept.values()]
    changed = {row: changed[row] for row in kept if changed[row]}
    return RowsReport(rows, dict(sorted(rejected.items())), changed, len(records))


def _check_columns(records: list[Mapping], wanted: Sequence[str]) -> None:
    if not records:
        raise CourseError("There are no records to make rows from.")
    there = list(dict.fromkeys(name for record in records for name in record))
    for name in wanted:
        if name not in there:
            found = f"the columns are {', '.join(map(repr, there))}.{did_you_mean(name, map(str, there))}"
            fix = "Name yours with question= and answer=. If these are a row, the file has no header"
            raise CourseError(f"No record has the column {name!r}; {found} {fix}: read_table(path, header=[…]).")


def _gold(text: str, name: str, read_answer: Callable | None) -> str:
    """The gold answer in a text, by itself or as ``read_answer`` finds it."""
    if read_answer is None:
        if text.casefold() in MISSING:
            raise CourseError(f"its {name!r} is {text!r}, which counts as missing; to accept it, use read_answer=str.")
        return text
    try:
        return _text(read_answer(text), f"read_answer({name})")
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # such as re.search(…)[1] without a match
        raised = "" if isinstance(error, CourseError) else f"read_answer raises {type(error).__name__}: "
        raise CourseError(f"no gold answer in {text!r:.60}: {raised}{error}") from error


def _text(value: object, name: str) -> str:
    """A value as text without spaces around it."""
    if problem := _problem(value):
        raise CourseError(f"its {name!r} {problem}.")
    return str(value).strip()


def _problem(value: object) -> str | None:
    """Why a value cannot be used, for example because it is empty or damaged by a wrong encoding."""
    number = isinstance(value, Real) and not isinstance(value, bool)  # also numpy's numbers
    if value is None or (number and value != value):  # pandas reads NaN from an empty field
        return "is missing"
    if number:
        return f"is {value}, not a finite number" if abs(value) == math.inf else None
    if not isinstance(value, str):
        return f"is of type {type(value).__name__}, not text: {value!r:.60}"
    if _is_blank(value):
        return "is empty"
    if "\ufffd" in value:
        return f"has the character U+FFFD, so a letter was lost when the text was converted: {value!r:.60}"
    meant, wrong = undamaged(value.strip()), "is UTF-8 that was read as cp1252 or latin-1"
    return f"{wrong}; it should be {meant!r:.60}, not {value.strip()!r:.60}" if meant else None


def _is_blank(text: str) -> bool:
    """Whether a text has no visible character; ``str.strip`` does not remove zero-width spaces."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def _changes(record: Mapping, texts: Mapping[str, str]) -> str:
    """How a record's values were changed into these texts."""
    numbers = [name for name in texts if not isinstance(record[name], str)]
    spaced = [name for name, text in texts.items() if name not in numbers and record[name] != text]
    notes = [f"{name!r} had spaces around it." for name in spaced]
    return " ".join([*notes, *(f"{name!r} was the number {texts[name]} and is text now." for name in numbers)])


def _repeats(pairs: Mapping[int, tuple[str, str]], examples: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Rows that duplicate another one or an example, each with its reason."""
    shown = {prompt_key(asked) for asked, _ in examples}
    same, rejected = defaultdict(dict), {}
    for row, pair in pairs.items():
        same[prompt_key(pair[0])][row] = pair
    for key, alike in same.items():
        if key in shown:
            rejected |= dict.fromkeys(alike, "it duplicates an example of the prompt.")
        else:
            rejected |= _same_question(alike)
    return rejected


def _same_question(pairs: Mapping[int, tuple[str, str]]) -> dict[int, str]:
    """Why rows with one key are rejected: all but the first, or all of them if their answers differ."""
    first, *later = pairs
    golds = [gold for _, gold in pairs.values()]
    alike = "" if len({asked for asked, _ in pairs.values()}) == 1 else " (ignoring case, spacing and Unicode form)"
    if all(gold == golds[0] or same_answer(gold, golds[0]) for gold in golds):
        return dict.fromkeys(later, f"it duplicates row {first}{alike}.")
    answers = ", ".join(f"row {row} {gold!r}" for row, (_, gold) in list(pairs.items())[:4])
    fix = "Fix the wrong answer, or reword one question."
    return dict.fromkeys(pairs, f"the same question{alike} has different answers: {answers}. {fix}")


def check_rows(rows: Sequence[dict]) -> Sequence[dict]:
    """Return the rows if each is valid for GRPO with a chat model.

    >>> check_rows([{"prompt": "What is 2 + 2?", "answer": "4"}])
    Traceback (most recent call last):
    ...
    grpo_core.errors.CourseError: row 0: its prompt is a plain string. TRL applies the chat template only to messages. Use: chat_prompt('What is 2 + 2?').

    Raises:
        CourseError: there are no rows, or a row has no valid prompt or answer.
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
    prompt, answer = row["prompt"], row["answer"]
    if isinstance(prompt, str):
        return (
            "its prompt is a plain string. TRL applies the chat template only to messages. "
            f"Use: chat_prompt({prompt[:40]!r})."
        )
    if not _are_messages(prompt):
        return f"its prompt is not a list of messages (role, content) that ends with a user message: {prompt!r}."
    if not isinstance(answer, str):
        return f"its answer {answer!r} is of type {type(answer).__name__}; rewards compare text. Use: str(answer)."
    return "its answer is empty, so no completion could be correct. Drop the row." if _is_blank(answer) else None


def _are_messages(prompt: object) -> bool:
    """Whether a prompt is a list of messages that ends with a user or tool message."""
    if not isinstance(prompt, list) or not prompt:
        return False
    last, whole = prompt[-1], all(isinstance(turn, dict) and {"role", "content"} <= turn.keys() for turn in prompt)
    return whole and last["role"] in ("user", "tool") and bool(str(last["content"] or "").strip())
