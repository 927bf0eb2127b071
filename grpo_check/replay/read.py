"""Read the folder of a run: the completions that TRL logged, and the log of the trainer."""

import json
import re
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_utils.errors import CourseError

from ..health.log import Log, find_file, read_history, read_log
from .records import Completion, Group, Recording, Step, number_of
from .samples import read_samples, samples_in

if TYPE_CHECKING:
    from pyarrow import Table

FILE = re.compile(r"completions_(\d+)\.parquet")
#: Longer runs are read at so many of their steps, so that hours of logs need neither much time nor much memory.
MOST_STEPS = 1000
#: Columns that are neither rewards nor the user's own.
KNOWN = {"step", "prompt", "completion", "advantage"}
#: The user's own columns that are shown, and the characters of each value.
MOST_EXTRAS, EXTRA_LENGTH = 6, 300
SWITCH = "GRPOConfig(log_completions=True)"


def read_run(folder: str | Path) -> Recording:
    """A run from its folder.

    Raises:
        CourseError: the folder does not exist, or has no completions that can be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        kind = "is a file, not the folder of a run" if folder.exists() else "does not exist"
        raise CourseError(f"{str(folder)!r} {kind}. Pass the output_dir of a run.")
    log, trouble = log_of(folder)
    files = completions_in(folder)
    if files:
        recording = from_files(folder, files, log)
    elif samples := samples_in(folder):
        recording = read_samples(folder, samples, log)
    else:
        raise CourseError(nothing_in(folder, log))
    return recording.noting(trouble, still_going_on(recording))


def has_samples(folder: str | Path) -> bool:
    """Whether a run left anything to replay."""
    return bool(completions_in(Path(folder)) or samples_in(Path(folder)))


def log_of(folder: Path) -> tuple[Log | None, str]:
    """The log of the newest step in a folder, and what is wrong where there is none."""
    try:
        return read_history(read_log(find_file(run_of(folder)))), ""
    except CourseError as error:
        return None, f"There are no health verdicts, because no log could be read: {error}"


def run_of(folder: Path) -> Path:
    """The folder of the run: the parent of a checkpoint or of ``completions``."""
    inside = folder.name.startswith("checkpoint-") or folder.name == "completions"
    return folder.resolve().parent if inside else folder


def completions_in(folder: Path) -> dict[int, Path]:
    """The files with completions, by their step.

    Raises:
        CourseError: there are several runs in the folder.
    """
    found = [path for path in run_of(folder).rglob("completions_*.parquet") if FILE.fullmatch(path.name)]
    places = sorted({path.parent for path in found})
    nearest = [place for place in places if place in (folder / "completions", run_of(folder) / "completions")]
    if len(places) > 1 and not nearest:
        listed = ", ".join(repr(str(place.parent)) for place in places[:4])
        raise CourseError(f"{str(folder)!r} holds {len(places)} runs ({listed}…). Pass the folder of one of them.")
    kept = [path for path in found if path.parent in (nearest or places)]
    return dict(sorted((int(FILE.fullmatch(path.name)[1]), path) for path in kept))


def nothing_in(folder: Path, log: Log | None) -> str:
    """Why there is nothing to replay."""
    found = "a log of a GRPO run, but no completions" if log else "no completions and no log of a GRPO run"
    return (
        f"{str(folder)!r} has {found}. GRPOTrainer writes them to output_dir/completions with {SWITCH}; HealthCallback "
        "with held-out rows writes samples of its own. Another trainer, such as SFTTrainer, writes neither."
    )


def from_files(folder: Path, files: dict[int, Path], log: Log | None) -> Recording:
    """A recording from the files that TRL wrote.

    Raises:
        CourseError: none of them can be read, or they have no completions.
    """
    chosen = spread(list(files), MOST_STEPS)
    read = {step: read_table(files[step]) for step in chosen}
    tables = {step: table for step, table in read.items() if table is not None and table.num_rows}
    if not tables:
        place = str(files[chosen[0]].parent)
        raise CourseError(f"none of the {len(chosen)} files in {place!r} can be read as Parquet, or they are empty.")
    columns = list(dict.fromkeys(name for table in tables.values() for name in table.column_names))
    if "completion" not in columns:
        raise CourseError(
            f"the files in {str(files[chosen[0]].parent)!r} have no column 'completion', only {', '.join(columns)}; "
            "another program wrote them."
        )
    rewards = reward_columns(tables, columns, log)
    extras = tuple(name for name in columns if name not in KNOWN and name not in rewards)[:MOST_EXTRAS]
    steps = steps_of(tables, rewards, extras)
    recording = Recording(run_of(folder).resolve().name, rewards, extras, steps, log)
    return recording.noting(
        unread([step for step, table in read.items() if table is None], files),
        missing(columns, rewards),
        f"The run logged {len(files):,} steps; {len(chosen):,} of them are in this page." * (len(files) > len(chosen)),
    )


def spread(values: list, most: int) -> list:
    """At most so many of some values, evenly spread, with the first and the last.

    >>> spread([1, 2, 3, 4, 5, 6, 7], 3)
    [1, 4, 7]
    """
    if len(values) <= most:
        return values
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)] if most > 1 else values[:1]


def read_table(file: Path) -> "Table | None":
    """A file of completions, None where it cannot be read, as while it is being written."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file) as opened:
            return opened.read()
    except (ArrowException, OSError):
        return None


def reward_columns(tables: dict[int, "Table"], columns: list[str], log: Log | None) -> tuple[str, ...]:
    """The columns with rewards: those that the log names, otherwise all with numbers, or with nothing but None."""
    logged = [*log.rewards, *log.unscored] if log else []
    if known := tuple(name for name in columns if name in logged):
        return known
    return tuple(name for name in columns if name not in KNOWN and all(map(is_numeric, kinds_of(tables, name))))


def kinds_of(tables: dict[int, "Table"], name: str) -> list:
    """The types of a column in all files that have it."""
    return [table.schema.field(name).type for table in tables.values() if name in table.column_names]


def is_numeric(kind: object) -> bool:
    """Whether a column's type can be that of a reward; a reward that never scored a completion has the type null."""
    from pyarrow import types

    return types.is_floating(kind) or types.is_integer(kind) or types.is_null(kind)


def steps_of(tables: dict[int, "Table"], rewards: tuple[str, ...], extras: tuple[str, ...]) -> tuple[Step, ...]:
    """The steps with their groups."""
    rows = {step: rows_of(table, rewards, extras) for step, table in sorted(tables.items())}
    size = group_size(rows)
    return tuple(Step(step, tuple(groups_of(found, size))) for step, found in rows.items())


def rows_of(table: "Table", rewards: tuple[str, ...], extras: tuple[str, ...]) -> list[tuple[str, Completion]]:
    """The prompt and the completion of each row."""
    columns = {name: table[name].to_pylist() for name in table.column_names}

    def column(name: str) -> list:
        return columns.get(name, [None] * table.num_rows)

    scores = list(zip(*map(column, rewards), strict=True)) or [()] * table.num_rows
    others = list(zip(*map(column, extras), strict=True)) or [()] * table.num_rows
    each = zip(column("prompt"), column("completion"), scores, column("advantage"), others, strict=True)
    return [
        (
            text_of(prompt),
            Completion(
                text_of(completion),
                tuple(map(number_of, paid)),
                number_of(advantage),
                tuple(text_of(value)[:EXTRA_LENGTH] for value in further),
            ),
        )
        for prompt, completion, paid, advantage, further in each
    ]


def text_of(value: object) -> str:
    """A cell as text; messages as their contents.

    >>> text_of([{"role": "assistant", "content": "4"}]), text_of(None), text_of({"a": 1})
    ('assistant: 4', '', '{"a": 1}')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(part, dict) and "role" in part for part in value):
        return "\n".join(f"{part['role']}: {text_of(part.get('content'))}" for part in value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def group_size(rows: dict[int, list[tuple[str, Completion]]]) -> int:
    """The completions of one prompt: the most frequent number of rows with the same prompt in a row."""
    runs = Counter(len(list(run)) for found in rows.values() for _, run in groupby(found, key=lambda row: row[0]))
    return runs.most_common(1)[0][0]


def groups_of(rows: list[tuple[str, Completion]], size: int) -> list[Group]:
    """The groups of one step. A prompt that was drawn twice in a row has two groups."""
    groups = []
    for prompt, run in groupby(rows, key=lambda row: row[0]):
        found = [completion for _, completion in run]
        each = size if len(found) % size == 0 else len(found)
        groups += [Group(prompt, tuple(found[start : start + each])) for start in range(0, len(found), each)]
    return groups


def unread(steps: list[int], files: dict[int, Path]) -> str:
    """Which files could not be read."""
    if not steps:
        return ""
    names = ", ".join(files[step].name for step in steps[:3]) + (", …" if len(steps) > 3 else "")
    return f"{len(steps)} file(s) could not be read and are left out: {names}. A run may be writing them just now."


def missing(columns: list[str], rewards: tuple[str, ...]) -> str:
    """Which columns are missing, and what that means."""
    lost = [name for name in ("prompt", "advantage") if name not in columns] + ["rewards"] * (not rewards)
    return f"The files have no {' and no '.join(lost)}; older versions of TRL wrote fewer columns." if lost else ""


def still_going_on(recording: Recording) -> str:
    """That the log ends before the completions do."""
    log, last = recording.log, recording.steps[-1].number
    if log is None or log.step >= last:
        return ""
    return (
        f"The newest log ends at step {log.step}, the completions at step {last}: the run is still going on, it was "
        "stopped between checkpoints, or an earlier run wrote into the same folder. The verdicts cover the log alone."
    )
