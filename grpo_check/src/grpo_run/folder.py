"""The output folder: one run at a time, finished runs are kept, and a run resumes only with the same settings."""

import hashlib
import json
import os
import platform
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from grpo_core import training
from grpo_core.training.checkpoints import CHECKPOINT, checkpoint_step, newest_checkpoint

if TYPE_CHECKING:
    from .start import Settings

MAY_CHANGE = ("max_steps", "num_train_epochs")  # to train longer: recorded, but not rejected
NEVER = ("model_name_or_path", "use_peft")  # an old checkpoint would replace the weights of the new model
#: Settings for files and logs, which do not change what is learned.
FREE = ("output_dir", "eval_batch", "max_minutes", "accept_changes", "report_to", "run_name", "disable_tqdm")
FREE += ("push_to_hub", "check")
FREE_STARTS = ("save_", "log", "hub_", "vllm_server_", "vllm_group_", "dataloader_num_")
#: The packages that a run trains with, besides its project and what that installs from an index.
PACKAGES = (Path(__file__).parent, Path(training.__file__).parent)
#: Modules of these packages, and a file of a project, that training does not use.
NOT_TRAINED_WITH = ("generating", "evaluating", "measuring", "report", "held_out", "finishing", "cards", "trained")
NOT_TRAINED_WITH += ("merge", "merging", "push", "publishing", "asking", "evaluate")
HELD = {}  # the open lock files of this process, by path


def check_writable(folder: Path) -> None:
    """Stop if the folder cannot be created, or nothing can be written into it."""
    place = next(path for path in (folder, *folder.resolve().parents) if os.path.exists(path))
    if not place.is_dir():
        raise SystemExit(f"Error: output_dir is {folder}, and {place} is a file; choose another output_dir.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise SystemExit(
            f"Error: output_dir is {folder}, and {place} is read-only; make it writable, or choose another output_dir."
        )


def hold(folder: Path) -> None:
    """Lock the folder until this process ends for any reason, so that a second run in it is rejected."""
    path = folder.resolve().with_name(f"{folder.resolve().name}.lock")
    if path in HELD:  # a notebook that runs train.py again is the same process
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+", encoding="utf-8")
    except OSError as error:  # for example, the folder is a mounted disk in a read-only parent
        print(f"Note: {path} cannot be written ({error.strerror}); do not start two runs in {folder}.")
        return
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kernel releases it, also after kill -9
    except BlockingIOError:
        owner = path.read_text(encoding="utf-8") or "another process"
        raise SystemExit(f"Error: {folder} is in use by {owner}. Wait for it, or choose another output_dir.") from None
    except (ImportError, OSError) as error:  # Windows; some network drives
        print(f"Note: this system or disk has no file locks ({error}); do not start two runs in {folder}.")
    started = f"process {os.getpid()} on {platform.node()}, started {time.strftime('%Y-%m-%d %H:%M:%S')}"
    path.write_text(started, encoding="utf-8")
    HELD[path] = file


def identity(values: dict) -> dict:
    """What identifies a run: the settings that matter, and checksums of its data and of the code that it imported.

    The project is the folder of the script that runs, which Python puts first on its path.
    """
    kept = {name: value for name, value in values.items() if name not in FREE and not name.startswith(FREE_STARTS)}
    project = Path(sys.path[0]).resolve()
    found = [*imported_from(project), *project.glob("*.json")]
    files = {path.relative_to(project).as_posix(): path for path in found if path.parent not in PACKAGES}
    files |= {f"{folder.name}/{path.name}": path for folder in PACKAGES for path in folder.glob("*.py")}
    files |= {path.name: path for path in [Path(values["dataset_name"])] if path.is_file()}
    sums = {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sorted(files)}
    kept["files"] = {name: checksum for name, checksum in sums.items() if files[name].stem not in NOT_TRAINED_WITH}
    return json.loads(json.dumps(kept, default=str))  # as it is read from run.json again


#: Folders below a project whose code is none of its own: an environment, and what Unsloth writes while it runs.
GENERATED = {"site-packages", "unsloth_compiled_cache", "unsloth_training_checkpoints"}


def imported_from(project: Path) -> list[Path]:
    """The files of the modules that this process has imported from a folder, except for those of its environment."""
    modules = [vars(module) for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    files = [Path(names["__file__"]).resolve() for names in modules if names.get("__file__")]
    inside = [path for path in files if path.is_relative_to(project) and path.is_file()]
    return [path for path in inside if not {*path.parts} & GENERATED]


def differences(was: dict, now: dict) -> list[str]:
    """What changed since a run began: settings, then edited files. What only one of the two has is not compared.

    So a new release of a library may add or remove settings.

    >>> differences({"seed": 0, "files": {"data.py": "a1"}}, {"seed": 1, "files": {"data.py": "b2"}, "new": 5})
    ['seed was 0 and is now 1', 'data.py was edited']
    """
    before, files = was.get("files", {}), now.get("files", {})
    names = [name for name in now if name in was and name != "files" and was[name] != now[name]]
    edited = [f"{name} was edited" for name in files if name in before and before[name] != files[name]]
    return [f"{name} was {was[name]!r} and is now {now[name]!r}" for name in names] + edited


def check_same(folder: Path, now: dict, accept: bool = False) -> list[str]:
    """What changed since the folder's run began; stop if anything did, unless ``accept`` is true.

    Another model is never accepted.
    """
    mark, trained = folder / "run.json", trained_to(folder)
    if not trained:
        return []
    if not mark.exists():
        raise SystemExit(f"Error: {folder} has checkpoints that are not from this template; choose another output_dir.")
    changed = differences(json.loads(mark.read_text(encoding="utf-8")), now)
    if other := [change for change in changed if change.startswith(NEVER)]:
        raise SystemExit(
            f"Error: the run in {folder} trained to {trained} with another model: {'; '.join(other)}. "
            "Choose another output_dir, or delete this one to start over."
        )
    refused = [change for change in changed if not change.startswith(MAY_CHANGE)]
    if refused and not accept:
        more = f"; and {len(refused) - 6} more" if len(refused) > 6 else ""
        raise SystemExit(
            f"Error: the run in {folder} trained to {trained} with other settings: {'; '.join(refused[:6])}{more}. "
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


def begin(settings: "Settings", **more: object) -> Path | None:
    """The checkpoint to resume from, or None. The output folder is locked, and a finished run in it is renamed.

    ``more`` has what must stay the same for a run to resume, in addition to its settings, code and data.
    """
    folder = Path(settings.training.output_dir)
    check_writable(folder)
    hold(folder)
    if (folder / "report.json").exists():
        keep_finished(folder, Path(settings.model.model_name_or_path))
    return resume_point(settings, **more)


def resume_point(settings: "Settings", **more: object) -> Path | None:
    """The newest complete checkpoint of the same run in the output folder, or None.

    With ``accept_changes``, a changed run continues and its changes are recorded.
    """
    folder, now = Path(settings.training.output_dir), identity(settings.values | more)
    changed, trained = check_same(folder, now, settings.run.accept_changes), trained_to(folder)
    earlier = changes(folder) if trained else []
    if changed:
        earlier.append(f"after {trained}: {'; '.join(changed)}")
        print(f"Note: continuing {earlier[-1]}.")
    if changed or not trained:
        write_mark(folder / "run.json", now | {"changes": earlier})
    checkpoint = newest_checkpoint(folder) if trained else None
    if checkpoint:
        print(f"Resuming from {checkpoint}.")
    return checkpoint


def keep_finished(folder: Path, model: Path) -> None:
    """Rename the folder of a finished run, so that the next run does not overwrite it."""
    if model.resolve().is_relative_to(folder.resolve()):
        raise SystemExit(
            f"Error: model_name_or_path is in {folder}, which would be renamed; choose another output_dir."
        )
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


def changes(folder: Path) -> list[str]:
    """What was changed during the folder's run."""
    return json.loads((folder / "run.json").read_text(encoding="utf-8")).get("changes", [])
