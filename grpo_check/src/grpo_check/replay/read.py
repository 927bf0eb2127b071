"""Read the folder of a run: the completions that TRL logged, and the log of the trainer."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

from grpo_core.errors import CourseError

from ..logs.files import LOGS, has_samples, logs_none, open_log, samples_in, several_runs
from ..logs.log import Log, read_history
from ..logs.names import in_words_of_trl
from ..packages import OF_TABLES, require
from .records import EXTRA_LENGTH, Completion, Group, Recording, Step, number_of
from .samples import read_samples

FILE = re.compile(r"completions_(\d+)\.parquet")
#: Longer and larger runs are read at fewer of their steps, so that neither time nor memory grows without a bound.
MOST_STEPS, MOST_BYTES = 1000, 200_000_000
#: Columns that are neither rewards nor the user's own.
KNOWN = {"step", "prompt", "completion", "advantage"}
#: The user's own columns that are shown.
_MOST_EXTRAS = 6
#: Where a template of the course writes the weights of the rewards: at the end of a run, and of a stage.
_REPORTS = ("report.json", "finished.json")
_SWITCH = "GRPOConfig(log_completions=True)"
#: A file this much older than that of the step before is of another run; copying a folder reorders files, too.
_OLDER = 60  # seconds
#: A log this much newer than all completions is of another run; saving a large model can take many minutes.
_LATER = 3600  # seconds
#: The values of each column.
Table = dict[str, list]


def read_run(folder: str | Path, log: str | Path | None = None, correctness: Sequence[str] = ()) -> Recording:
    """A run from its folder.

    Args:
        folder: the ``output_dir`` of the run.
        log: the file with its log; None: the trainer_state.json of the newest step in the folder.
        correctness: names of the rewards that measure whether an answer is correct; see `grpo_check.health.diagnose`.

    Raises:
        CourseError: the folder does not exist, or has no completions that can be read; or ``log`` is none.
    """
    folder = Path(folder)
    if not folder.is_dir():
        kind = "is a file, not the folder of a run" if folder.exists() else "does not exist"
        raise CourseError(f"{str(folder)!r} {kind}. Pass the output_dir of a run.")
    require("replay", OF_TABLES)
    try:
        return _recording_of(folder, Path(log) if log else None, correctness)
    except OSError as error:
        raise CourseError(f"{str(error.filename or folder)!r} cannot be read: {error.strerror}.") from error


def _recording_of(folder: Path, log_file: Path | None, correctness: Sequence[str]) -> Recording:
    """A run from a folder that exists."""
    files = _completions_in(folder)
    home = next(iter(files.values())).parent.parent if files else run_folder(folder)
    history, log, trouble = _history_in(home, log_file, correctness)
    if files and not logs_none(log):
        recording = _from_files(home, *_without_evaluations(files, history), log)
    elif samples := samples_in(home):
        recording = read_samples(home, samples, log)
    else:
        raise CourseError(_nothing_in(folder, log))
    return replace(recording, weights=_weights_in(home)).noting(trouble, _still_going_on(recording))


def _weights_in(home: Path) -> dict[str, float]:
    """The weights of the rewards by name, from the report of a run; {} if none has them."""
    for name in _REPORTS:
        try:
            weights = json.loads((home / name).read_text(encoding="utf-8"))["rewards"]
            return {reward: float(weight) for reward, weight in weights.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):  # a file of another program
            continue
    return {}


def _history_in(home: Path, file: Path | None, correctness: Sequence[str]) -> tuple[list[dict], Log | None, str]:
    """The entries of a run's log, the same as a `Log`, and what is wrong where the folder has none."""
    try:
        history = [in_words_of_trl(entry) for entry in open_log(file or home, LOGS).entries()]
        return history, read_history(history, correctness), ""
    except CourseError as error:
        if file:
            raise
        return [], None, f"There are no health verdicts, because no log could be read: {error}"


def _without_evaluations(files: dict[int, Path], history: list[dict]) -> tuple[dict[int, Path], str]:
    """The files with completions of the training, and a note on the others.

    At a step with an evaluation, TRL writes the file again, with the completions of the evaluation.
    """
    evaluated = {int(e["step"]) for e in history if "eval_reward" in e and isinstance(e.get("step"), int | float)}
    over = [step for step in files if step in evaluated]
    if not over:
        return files, ""
    kept = {step: file for step, file in files.items() if step not in over}
    what = "so these steps are left out" if kept else "so these are what the page shows"
    note = f"At {len(over)} step(s), TRL wrote the completions of an evaluation over those of the training, {what}."
    return kept or files, note


def run_folder(folder: Path) -> Path:
    """The folder of the run: the parent of a checkpoint or of ``completions``. A run may be called checkpoint, too."""
    inside = (folder.name.startswith("checkpoint-") or folder.name == "completions") and not has_samples(folder)
    return folder.resolve().parent if inside else folder


def _completions_in(folder: Path) -> dict[int, Path]:
    """The files with completions, by their step.

    Raises:
        CourseError: there are several runs in the folder.
    """
    found = [path for path in run_folder(folder).rglob("completions_*.parquet") if FILE.fullmatch(path.name)]
    places = sorted({path.parent for path in found})
    if samples_in(run_folder(folder)) and (run_folder(folder) / "completions") not in places:
        return {}  # the completions below are those of other runs
    nearest = [place for place in places if place in (folder / "completions", run_folder(folder) / "completions")]
    if len(places) > 1 and not nearest:
        raise several_runs(folder, [place.parent for place in places])
    kept = [path for path in found if path.parent in (nearest or places)]
    return dict(sorted((int(FILE.fullmatch(path.name)[1]), path) for path in kept))


def _nothing_in(folder: Path, log: Log | None) -> str:
    """Why there is nothing to replay."""
    found = "a log of a GRPO run, but no completions of it" if log else "no completions and no log of a GRPO run"
    return (
        f"{str(folder)!r} has {found}. GRPOTrainer writes them to output_dir/completions with {_SWITCH}; "
        "HealthCallback with held-out rows writes samples of its own. Another trainer (SFTTrainer) writes neither."
    )


def _from_files(home: Path, files: dict[int, Path], evaluations: str, log: Log | None) -> Recording:
    """A recording from the files that TRL wrote.

    Raises:
        CourseError: none of them can be read, or they have no completions.
    """
    chosen = _affordable(files)
    read = {step: _table_in(files[step]) for step in chosen}
    tables = {step: table for step, table in read.items() if table is not None and any(table.values())}
    if not tables:
        place = str(home / "completions")
        raise CourseError(f"none of the {len(chosen)} files in {place!r} can be read as Parquet, or they are empty.")
    columns = list(dict.fromkeys(name for table in tables.values() for name in table))
    if "completion" not in columns:
        raise CourseError(
            f"the files in {str(home / 'completions')!r} have no column 'completion', only {', '.join(columns)}; "
            "another program wrote them."
        )
    rewards = _reward_columns(tables, columns, log)
    extras = tuple(name for name in columns if name not in KNOWN and name not in rewards)[:_MOST_EXTRAS]
    steps = _steps_of(tables, rewards, extras)
    once = _without_repeats(steps)
    return Recording(home.resolve().name, rewards, extras, once, log).noting(
        unread([step for step, table in read.items() if table is None], files),
        missing(columns, rewards),
        evaluations,
        _of_two_runs(files),
        _of_earlier_run(home, files),
        f"{len(steps) - len(once)} step(s) logged the completions of the step before again, because TRL reuses them "
        "(num_iterations, steps_per_generation). They are shown once." * (len(once) < len(steps)),
        f"The run logged {len(files):,} steps; {len(chosen):,} of them are in this page." * (len(files) > len(chosen)),
    )


def _affordable(files: dict[int, Path]) -> list[int]:
    """The steps to read: all of them, or so many that time and memory stay bounded."""
    each = sum(file.stat().st_size for file in files.values()) / len(files)
    return spread(list(files), min(MOST_STEPS, max(2, int(MOST_BYTES / max(each, 1)))))


def spread(values: list, most: int) -> list:
    """At most so many of some values, evenly spread, with the first and the last.

    >>> spread([1, 2, 3, 4, 5, 6, 7], 3)
    [1, 4, 7]
    """
    if len(values) <= most:
        return values
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)] if most > 1 else values[:1]


def _table_in(file: Path) -> Table | None:
    """A file of completions, None where it cannot be read, as while it is being written."""
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(file) as opened:
            table = opened.read()
            return dict(zip(table.column_names, (column.to_pylist() for column in table.columns), strict=True))
    except (ArrowException, OSError, ValueError, OverflowError):  # the last two from values of a damaged file
        return None


def _reward_columns(tables: dict[int, Table], columns: list[str], log: Log | None) -> tuple[str, ...]:
    """The columns with rewards: those that the log names, otherwise all with numbers, or with nothing but None."""
    logged = [*log.rewards, *log.unscored] if log else []
    if known := tuple(name for name in columns if name in logged):
        return known
    return tuple(name for name in columns if name not in KNOWN and all(map(_is_score, values_of(tables, name))))


def values_of(tables: dict[int, Table], name: str) -> list:
    """The values of a column in all tables that have it."""
    return [value for table in tables.values() for value in table.get(name, ())]


def _is_score(value: object) -> bool:
    """Whether a value can be that of a reward, which is None where a function did not score a completion."""
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _steps_of(tables: dict[int, Table], rewards: tuple[str, ...], extras: tuple[str, ...]) -> tuple[Step, ...]:
    """The steps with their groups."""
    rows = {step: rows_of(table, rewards, extras) for step, table in sorted(tables.items())}
    size = _group_size(rows)
    return tuple(Step(step, tuple(_groups_of(found, size))) for step, found in rows.items())


def _without_repeats(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps without those whose completions are the ones of the step before."""
    return (*steps[:1], *(step for before, step in pairwise(steps) if step.groups != before.groups))


def rows_of(table: Table, rewards: tuple[str, ...], extras: tuple[str, ...]) -> list[tuple[str, Completion]]:
    """The prompt and the completion of each row."""
    size = len(next(iter(table.values())))

    def column(name: str) -> list:
        return table.get(name, [None] * size)

    scores = list(zip(*map(column, rewards), strict=True)) or [()] * size
    others = list(zip(*map(column, extras), strict=True)) or [()] * size
    each = zip(column("prompt"), column("completion"), scores, column("advantage"), others, strict=True)
    return [
        (
            _text_of(prompt),
            Completion(
                _said_in(completion),
                tuple(map(number_of, paid)),
                number_of(advantage),
                tuple(_text_of(value)[:EXTRA_LENGTH] for value in further),
            ),
        )
        for prompt, completion, paid, advantage, further in each
    ]


def _said_in(completion: object) -> str:
    """A completion as text: since TRL 1.15, it is logged as messages, of which there is one unless tools were called.

    >>> _said_in("4"), _said_in([{"role": "assistant", "content": "4"}])
    ('4', '4')
    """
    one = isinstance(completion, list) and len(completion) == 1 and isinstance(completion[0], dict)
    alone = one and completion[0].keys() == {"role", "content"}
    return _text_of(completion[0]["content"] if alone else completion)


def _text_of(value: object) -> str:
    """A cell as text; messages as their contents.

    >>> _text_of([{"role": "assistant", "content": "4"}]), _text_of(None), _text_of({"a": 1})
    ('assistant: 4', '', '{"a": 1}')
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, list) and value and all(isinstance(part, dict) and "role" in part for part in value):
        return "\n".join(f"{part['role']}: {_text_of(part.get('content'))}" for part in value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _group_size(rows: dict[int, list[tuple[str, Completion]]]) -> int:
    """The completions of one prompt: the most frequent number of rows with the same prompt in a row."""
    runs = Counter(len(list(run)) for found in rows.values() for _, run in groupby(found, key=lambda row: row[0]))
    return runs.most_common(1)[0][0]


def _groups_of(rows: list[tuple[str, Completion]], size: int) -> list[Group]:
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


def _of_two_runs(files: dict[int, Path]) -> str:
    """That an earlier and longer run wrote into the same folder."""
    times = {step: file.stat().st_mtime for step, file in files.items()}
    old = next((after for before, after in pairwise(times) if times[after] < times[before] - _OLDER), None)
    return "" if old is None else f"From step {old} on, the files are older: an earlier run may have written them."


def _of_earlier_run(home: Path, files: dict[int, Path]) -> str:
    """That the newest run in a folder may have logged no completions."""
    newest = max((log.stat().st_mtime for place in LOGS for log in home.glob(place)), default=0)
    is_later = newest > max(file.stat().st_mtime for file in files.values()) + _LATER
    return "A log in this folder is much newer than the completions: an earlier run may have written these." * is_later


def _still_going_on(recording: Recording) -> str:
    """That the log ends before the completions do."""
    log, last = recording.log, recording.steps[-1].number
    if log is None or log.step >= last:
        return ""
    return (
        f"The newest log ends at step {log.step}, the completions at step {last}: the run is still going on, it was "
        "stopped between checkpoints, or an earlier run wrote into the same folder. The verdicts cover the log alone."
    )
