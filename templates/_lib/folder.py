"""The output folder: one run at a time, finished runs are kept, and a run resumes only with the same settings."""

import atexit
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from .checkpoints import CHECKPOINT, checkpoint_step, newest_checkpoint

MAY_CHANGE = ("max_steps", "num_train_epochs")  # to train longer: recorded, but not rejected
#: Settings for files and logs, which do not change what is learned.
FREE = ("config", "env", "output_dir", "eval_batch", "accept_changes", "report_to", "run_name", "disable_tqdm")
FREE += ("push_to_hub", "no_use_unsloth")
FREE_STARTS = ("save_", "log", "hub_", "vllm_server_", "vllm_group_", "dataloader_num_")
NOT_TRAINED_WITH = ("lib/measuring.py", "evaluate.py")  # training does not depend on this code (nor on tests)
HELD = {}  # the open lock files of this process, by path


def hold(folder: Path) -> None:
    """Lock the folder until this process ends for any reason, so that a second run in it is rejected."""
    path = folder.resolve().with_name(f"{folder.resolve().name}.lock")
    if path in HELD:  # a notebook that runs train.py again is the same process
        return
    created = not path.parent.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:  # for example, the folder is a mounted disk in a read-only parent
        print(f"Note: {path} cannot be written ({error.strerror}); do not start two runs in {folder}.")
        return
    lock(file, folder)
    HELD[path] = file
    atexit.register(tidy, path, folder.resolve(), created)


def tidy(path: Path, folder: Path, created: bool) -> None:
    """If the run was rejected before it began, delete the lock file, and its parent folder if `hold` created it."""
    if not folder.exists():
        with suppress(OSError):
            path.unlink()
            if created:
                path.parent.rmdir()


def lock(file: IO[str], folder: Path) -> None:
    """Lock an open file and write this process into it; stop if another process has locked it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel releases it, also after kill -9
    except BlockingIOError:
        file.seek(0)
        owner = file.read() or "another process"
        raise SystemExit(f"Error: {folder} is in use by {owner}. Wait for it, or choose another output_dir.") from None
    except (ImportError, OSError) as error:  # Windows; some network drives
        print(f"Note: this system or disk has no file locks ({error}); do not start two runs in {folder}.")
    file.truncate(0)
    file.write(f"process {os.getpid()} on {platform.node()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}")
    file.flush()


def identity(settings: dict) -> dict:
    """What identifies a run: the given settings that matter, and checksums of its code and data."""
    kept = {k: plain(v) for k, v in settings.items() if k not in FREE and not k.startswith(FREE_STARTS)}
    project = Path(__file__).resolve().parent.parent
    found = [*project.glob("*.py"), *project.glob("lib/*.py"), *project.glob("*.json")]
    files = {path.relative_to(project).as_posix(): path for path in found if not path.name.startswith("test_")}
    files |= {path.name: path for path in [Path(str(settings.get("dataset_name", "")))] if path.is_file()}
    sums = {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}
    return kept | {"files": {name: checksum for name, checksum in sums.items() if name not in NOT_TRAINED_WITH}}


def plain(value: object) -> object:
    """A setting in comparable form: 2.0e-3, "0.002" and 0.002 are equal, and so are true, True and "true"."""
    if isinstance(value, list):
        return [plain(each) for each in value] if len(value) > 1 else plain(value[0]) if value else []
    if isinstance(value, bool) or str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    try:
        return float(value)
    except (TypeError, ValueError):
        return str(value)


def settings_changed(was: dict, now: dict, names: Iterable[str]) -> list[str]:
    """Which of these settings changed, with the old and the new value."""
    changed = [name for name in names if was.get(name) != now.get(name)]
    return [f"{name} was {was.get(name)!r} and is now {now.get(name)!r}" for name in changed]


def differences(was: dict, now: dict) -> list[str]:
    """What changed since a run began: edited files and changed settings."""
    before, files = was.get("files", {}), now.get("files", {})
    edited = [f"{name} was edited" for name in files if name in before and before[name] != files[name]]
    names = [name for name in {**was, **now} if name not in ("files", "changes", *MAY_CHANGE)]
    return edited + settings_changed(was, now, names)


def check_same(folder: Path, now: dict, accept: bool = False) -> list[str]:
    """What changed since the folder's run began; stop if anything did, unless ``accept`` is true."""
    mark, trained = folder / "run.json", trained_to(folder)
    if not trained:
        return []
    if not mark.exists():
        raise SystemExit(f"Error: {folder} has checkpoints that are not from this template; choose another output_dir.")
    changed = differences(read_mark(mark), now)
    if changed and not accept:
        more = f"; and {len(changed) - 6} more" if len(changed) > 6 else ""
        raise SystemExit(
            f"Error: the run in {folder} trained to {trained} with other settings: {'; '.join(changed[:6])}{more}. "
            "Choose another output_dir, delete this one to start over, or continue with the changes: "
            "--accept_changes true."
        )
    return changed


def trained_to(folder: Path) -> str:
    """The newest checkpoint in the folder, or the last finished stage; "" if there is neither."""
    found = [path for path in folder.glob("**/checkpoint-*") if CHECKPOINT.fullmatch(path.name)]
    newest = max(found, key=lambda path: (path.parent.name, checkpoint_step(path)), default=None)
    done = sorted(path.parent for path in folder.glob("*/finished.json"))
    reached = newest or (done[-1] if done else None)
    return str(reached.relative_to(folder)) if reached else ""


def begin(folder: Path, belongs_to: dict, accept: bool = False) -> Path | None:
    """The checkpoint to resume from, or None; a finished run in the folder is renamed and kept.

    ``belongs_to`` is the run's `identity`. With ``accept``, a changed run continues and its changes are recorded.
    """
    if (folder / "report.json").exists():
        keep_finished(folder)
    mark, changed, trained = folder / "run.json", check_same(folder, belongs_to, accept), trained_to(folder)
    was = read_mark(mark) if trained else {}
    changed += settings_changed(was, belongs_to, MAY_CHANGE) if trained else []
    earlier = was.get("changes", [])
    if changed:
        earlier.append(f"after {trained}: {'; '.join(changed)}")
        print(f"Note: continuing {earlier[-1]}.")
    if changed or not trained:
        write_mark(mark, belongs_to | {"changes": earlier})
    checkpoint = newest_checkpoint(folder) if trained else None
    if checkpoint:
        print(f"Resuming from {checkpoint}.")
    return checkpoint


def keep_finished(folder: Path) -> None:
    """Rename the folder of a finished run, so that the next run does not overwrite it."""
    kept = folder.with_name(f"{folder.name}-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        folder.rename(kept)
    except OSError as error:  # a mounted disk cannot be renamed
        problem = f"{folder} has a finished run and cannot be renamed ({error.strerror})"
        raise SystemExit(f"Error: {problem}; choose another output_dir.") from None
    print(f"{folder} had a finished run, which is now {kept}.")


def write_mark(mark: Path, content: dict) -> None:
    """Write a JSON file atomically, so that a killed process leaves no partial file."""
    mark.parent.mkdir(parents=True, exist_ok=True)
    new = mark.with_name(f"{mark.name}.new")
    new.write_text(json.dumps(content, indent=2), encoding="utf-8")
    new.replace(mark)


def read_mark(mark: Path) -> dict:
    """The identity that a run began with."""
    try:
        return json.loads(mark.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SystemExit(
            f"Error: {mark} is not valid JSON ({error}), so the settings of these checkpoints are unknown. "
            "Choose another output_dir, or write {} into the file and continue with --accept_changes true."
        ) from None


def changes(folder: Path) -> list[str]:
    """What was changed during the folder's run."""
    return read_mark(folder / "run.json").get("changes", [])
