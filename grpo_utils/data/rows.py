"""Records to GRPO rows, with a report of every record that was refused or changed."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import NamedTuple

from ..errors import CourseError, did_you_mean
from ..rewards import same_answer
from .damage import undamaged
from .prompts import SYSTEM_PROMPT, chat_prompt
from .splits import prompt_key

#: Notes of one kind that are written out; of more, their number.
SHOWN = 10
#: How programs write an answer that is missing, in lower case. ("NA" is not here: sodium.)
MISSING = {"nan", "null", "none", "n/a", "#n/a", "<na>"}


class Note(NamedTuple):
    """One record, counted from 0, and what was wrong with it or done to it."""

    row: int
    said: str

    def __str__(self) -> str:
        """As a sentence."""
        return f"row {self.row}: {self.said}"


@dataclass(frozen=True)
class RowsReport:
    """What became of ``total`` records.

    Attributes:
        rows: those that are fit, in their order.
        refused: the others, each with its reason; no record is left out without a note.
        changed: those that are fit after a small change (spaces, a number made text).
        total: how many records there were.
    """

    rows: list[dict]
    refused: list[Note]
    changed: list[Note]
    total: int

    def all_rows(self) -> list[dict]:
        """The rows, if none was refused.

        Raises:
            CourseError: records were refused; it names them.
        """
        if self.refused:
            mend = "Mend the records, or go on without them, knowingly, with report.rows."
            raise CourseError(f"{len(self.refused)} of {self.total} records were refused.\n{self}\n{mend}")
        return self.rows

    def __str__(self) -> str:
        """The counts, then the first ten notes of each kind, and how many more there are."""
        counts = f"{len(self.rows)} of {self.total} records are fit, {len(self.changed)} of them changed; "
        notes = [*_shown("refused", self.refused), *_shown("changed", self.changed)]
        return "\n".join([counts + f"{len(self.refused)} refused", *notes])


def _shown(kind: str, notes: Sequence[Note]) -> list[str]:
    more = [f"{kind}: {len(notes) - SHOWN} more; all {len(notes)} are in report.{kind}"] if len(notes) > SHOWN else []
    return [f"{kind}: {note}" for note in notes[:SHOWN]] + more


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
    """GRPO rows from records of any kind, and a report of those that are refused or changed.

    Refused are records whose question or answer is missing, empty, or no text; answers such as "nan" or "N/A", which
    programs write for a missing one; texts that a wrong encoding has damaged (what is surely damage, not all of it);
    questions that repeat an earlier one or an example; and all those that ask the same but disagree in the answer.
    Compared is as `grpo_utils.prompt_key` does: case and spaces do not matter, so of "5 Mb" and "5 MB", with
    different answers, both are refused.

    Args:
        records: dictionaries, such as those of `read_table` or a `Dataset`.
        question, answer: the names of their columns.
        system_prompt, examples: as in `chat_prompt`.
        read_answer: gives the gold answer from the answer column's text, such as `gsm8k_answer`; None, or an error,
            refuses the record. ``str`` takes every text as it is, "N/A" too.
        prompt: `chat_prompt`, or `plain_prompt` for a base model.

    >>> report = rows_from([{"q": "What is 2 + 2?", "a": 4}, {"q": " ", "a": "5"}], question="q", answer="a")
    >>> print(report)
    1 of 2 records are fit, 1 of them changed; 1 refused
    refused: row 1: its 'q' is empty.
    changed: row 0: 'a' was the number 4 and is text now.

    Raises:
        CourseError: there are no records, or none has the columns.
    """
    records = list(records)
    _check_columns(records, (question, answer))
    read = [_read(record, question, answer, read_answer) for record in records]
    refused = {row: item for row, item in enumerate(read) if isinstance(item, str)}
    pairs = {row: item[:2] for row, item in enumerate(read) if row not in refused}
    refused |= _repeats(pairs, examples)
    rows = [
        {"prompt": prompt(asked, system_prompt, examples), "answer": gold}
        for row, (asked, gold) in pairs.items()
        if row not in refused
    ]
    changed = [Note(row, item[2]) for row, item in enumerate(read) if row not in refused and item[2]]
    return RowsReport(rows, [Note(row, refused[row]) for row in sorted(refused)], changed, len(records))


def _check_columns(records: list[Mapping], wanted: Sequence[str]) -> None:
    if not records:
        raise CourseError("There are no records to make rows from.")
    there = list(dict.fromkeys(name for record in records for name in record))
    for name in wanted:
        if name not in there:
            raise CourseError(
                f"No record has the column {name!r}; there are: {', '.join(map(repr, there))}."
                f"{did_you_mean(name, map(str, there))} Name yours with question= and answer=; if these are no names "
                "but a row, the file has no header: read_table(path, header=[…])."
            )


def _read(record: Mapping, question: str, answer: str, read_answer: Callable | None) -> tuple[str, str, str] | str:
    """Question, answer and what was changed; or why the record is refused."""
    values, changes = [], []
    for name in (question, answer):
        text, problem = _text(record.get(name), name)
        if problem:
            return problem
        changes += _changes(record[name], text, name)
        values.append(text)
    if read_answer:
        values[1], problem = _gold(values[1], answer, read_answer)
    elif values[1].casefold() in MISSING:
        problem = f"its {answer!r} is {values[1]!r}, which stands for a missing one; if it is meant: read_answer=str."
    return problem or (values[0], values[1], " ".join(changes))


def _gold(text: str, name: str, read_answer: Callable) -> tuple[str, str]:
    """The gold answer that ``read_answer`` finds in a text, or why there is none."""
    try:
        gold = read_answer(text)
    except CourseError as error:
        return "", f"no gold answer: {error}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:  # re.search(…)[1], and nothing was found
        return "", f"no gold answer: read_answer raises {type(error).__name__} ({error}) for {text!r:.60}."
    if gold is None or (isinstance(gold, str) and _is_blank(gold)):
        return "", f"no gold answer is found in its {name!r}: {text!r:.60}."
    gold, problem = _text(gold, name)
    return gold, problem and f"no gold answer; of what read_answer makes, {problem}"


def _text(value: object, name: str) -> tuple[str, str]:
    """A value as text without spaces around it, or what is wrong with it."""
    if isinstance(value, Real) and not isinstance(value, bool):  # numpy's numbers, too
        if value != value:  # NaN, which pandas reads from an empty field
            return "", f"it has no {name!r}."
        if abs(value) == float("inf"):
            return "", f"its {name!r} is {value}, no number that can be said."
        return str(value), ""
    if value is None:
        return "", f"it has no {name!r}."
    if not isinstance(value, str):
        return "", f"its {name!r} is {_a(type(value).__name__)}, no text: {value!r:.60}."
    return value.strip(), _damage(value.strip(), name)


def _is_blank(text: str) -> bool:
    """Whether nothing of it can be seen: ``str.strip`` knows spaces, but not the zero-width one."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def _damage(text: str, name: str) -> str:
    """Why a text cannot be used: nothing in it, or characters that a wrong encoding has left."""
    if _is_blank(text):
        return f"its {name!r} is empty."
    if "\ufffd" in text:
        return f"its {name!r} has the character U+FFFD: a letter was lost when the text was converted: {text!r:.60}."
    meant = undamaged(text)
    if meant is None:
        return ""
    return f"its {name!r} is UTF-8 that was read as cp1252 or latin-1; it should be {meant!r:.60}, not {text!r:.60}."


def _changes(value: object, text: str, name: str) -> list[str]:
    if not isinstance(value, str):
        return [f"{name!r} was the number {text} and is text now."]
    return [f"{name!r} had spaces around it."] if value != text else []


def _repeats(pairs: Mapping[int, tuple[str, str]], examples: Sequence[tuple[str, str]]) -> dict[int, str]:
    """Rows that ask what another or an example asks, each with its reason."""
    shown = {prompt_key(asked) for asked, _ in examples}
    same, refused = defaultdict(list), {}
    for row, (asked, _) in pairs.items():
        same[prompt_key(asked)].append(row)
    for key, rows in same.items():
        if key in shown:
            refused |= dict.fromkeys(rows, "it asks what an example of the prompt answers.")
            continue
        refused |= _same_question({row: pairs[row] for row in rows})
    return refused


def _same_question(pairs: Mapping[int, tuple[str, str]]) -> dict[int, str]:
    """Why rows with one key are refused: all but the first, or all where their answers differ."""
    first, *later = pairs
    asked, golds = {asked for asked, _ in pairs.values()}, [gold for _, gold in pairs.values()]
    if all(gold == golds[0] or same_answer(gold, golds[0]) for gold in golds):
        alike = "" if len(asked) == 1 else " (but for case, spaces or letter forms)"
        return dict.fromkeys(later, f"it asks what row {first} asks{alike}, with the same answer.")
    told = ", ".join(f"row {row} {gold!r}" for row, (_, gold) in list(pairs.items())[:4])
    if len(asked) == 1:
        return dict.fromkeys(pairs, f"the same question has different answers: {told}; one is wrong.")
    alike = "questions that are equal but for case, spaces or letter forms have different answers"
    return dict.fromkeys(pairs, f"{alike}: {told}; mend the wrong one, or word them further apart.")


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
    if _is_blank(row["answer"]):
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
