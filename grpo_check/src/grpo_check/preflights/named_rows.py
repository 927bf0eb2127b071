"""Read the rows that a config file or an option names. A file that cannot be read is a finding and stops no check."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from grpo_core.errors import CourseError
from grpo_core.tables import read_table

if TYPE_CHECKING:
    from datasets import Dataset

    from .planned import Rows


class NamedRows(NamedTuple):
    """The rows of a run, why there are none to look at, and what is wrong with files of rows."""

    train: "Rows | None" = None
    heldout: "Rows | None" = None
    unread: str = ""
    bad: tuple[str, ...] = ()


def named_rows(keys: dict, train: str, heldout: str, folder: Path) -> NamedRows:
    """Training and held-out rows, from files or from a folder.

    Args:
        keys: of the config file.
        train, heldout: files or folders in place of what the config file names.
        folder: where the config file is.
    """
    name = train or keys.get("dataset_name") or ""
    there = bool(train or _find(name, folder))
    if there and not heldout and keys.get("eval_strategy", "no") != "no" and _is_folder(name, folder):
        heldout = name  # as trl grpo does
    found, bad = {}, []
    for split, file in (("train", name if there else ""), ("test", heldout)):
        try:
            found[split] = read_rows(file, folder, keys.get(f"dataset_{split}_split") or split) if file else None
        except CourseError as error:
            bad.append(str(error))
    if not there:
        missing = f"{name!r} is not here, and nothing is downloaded" if name else "no rows are named"
        unread = f"{missing}; pass --train FILE"
    else:
        unread = "" if "train" in found else "they cannot be read"
    return NamedRows(found.get("train"), found.get("test"), unread, tuple(bad))


def holds_rows(path: Path) -> bool:
    """Whether a file is one of rows and not a config, by its ending, or by its first character if that is JSON."""
    if path.suffix in (".jsonl", ".csv", ".tsv", ".parquet"):
        return True
    if path.suffix != ".json" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1_000).lstrip("\ufeff \t\r\n").startswith("[")


def _find(name: str, folder: Path) -> Path | None:
    """A file or a folder by its name, from where you are or from next to the config file."""
    return next((path for path in (Path(name), folder / name) if name and path.exists()), None)


def _is_folder(name: str, folder: Path) -> bool:
    path = _find(name, folder)
    return path is not None and path.is_dir()


def read_rows(name: str, folder: Path, split: str) -> "Rows":
    """Rows from a file, or a split of a folder of files.

    Files end in ``.jsonl``, ``.json``, ``.csv``, ``.tsv`` or ``.parquet``. A folder is read with
    `datasets.load_dataset`, as ``trl grpo`` reads it.

    Raises:
        CourseError: no such file, or one that `read_table` or `load_dataset` rejects.
    """
    path = _find(name, folder)
    if path is None:
        raise CourseError(
            f"There is no file {name!r}. Pass a .jsonl, .json, .csv or .parquet file, or a folder of them."
        )
    if path.is_dir():
        return _rows_in(path, split)
    return _of_parquet(path) if path.suffix == ".parquet" else read_table(path)


def _of_parquet(path: Path) -> "Dataset":
    from datasets import Dataset
    from datasets.exceptions import DatasetGenerationError

    try:
        return Dataset.from_parquet(str(path))
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise CourseError(f"{path} cannot be read as Parquet: {error.__cause__ or error}") from error


def _rows_in(folder: Path, split: str) -> "Dataset":
    """A split of a folder of files."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetGenerationError

    saved = [name for name in ("dataset_dict.json", "state.json") if (folder / name).is_file()]
    if saved:
        raise CourseError(
            f"{str(folder)!r} was written by save_to_disk ({saved[0]}), and trl grpo cannot read that. Write one file "
            "per split instead: dataset['train'].to_json('rows/train.jsonl'), and dataset_name: rows."
        )
    try:
        splits = load_dataset(str(folder))
    except (OSError, ValueError, DatasetGenerationError) as error:
        raise CourseError(f"datasets.load_dataset cannot read {str(folder)!r}: {error}") from error
    if split not in splits:
        raise CourseError(
            f"{str(folder)!r} has no split {split!r}; it has {', '.join(splits)}. Name the file {split}.jsonl, or set "
            "dataset_train_split (or dataset_test_split) in the config."
        )
    return splits[split]
