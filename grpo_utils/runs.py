"""The folder of a run and its report.

    outputs/run/
        adapter/       the LoRA adapter
        merged/        the merged model, which needs no adapter
        checkpoints/   the trainer's checkpoints, on GPU profiles
        report.json    results, versions and every setting

Nothing is ever overwritten: a folder that holds another run is renamed first.
"""

import json
import os
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import psutil
from grpo_core.errors import CourseError
from grpo_core.rewards import reward_name
from grpo_core.training.checkpoints import newest_checkpoint

#: Written when a run starts, so that an unfinished run can be distinguished from other files.
_STARTED = "started.txt"


def start_run(folder: str | Path, model: str = "") -> tuple[Path, str]:
    """A new, empty folder for a run, and one sentence about what was there before.

    A finished run (with a `report.json`) and an unfinished one are both kept under a name with
    their time, so a run always starts in an empty folder.

    Raises:
        CourseError: the folder contains other files, a run that is still active, or the
            ``model`` to train; nothing is changed.
    """
    folder = Path(folder)
    if model and Path(model).resolve().is_relative_to(folder.resolve()):
        raise CourseError(
            f"MODEL={model!r} is inside OUTPUT_DIR={str(folder)!r}, which is renamed when a run starts. "
            "Choose another OUTPUT_DIR."
        )
    if not folder.exists() or not any(folder.iterdir()):
        note = f"New run in {folder}."
    else:
        _refuse_live_run(folder)
        kept, state = _set_aside(folder)
        note = f"{folder} held {state} run: it is kept as {kept}. This run starts clean."
    folder.mkdir(parents=True, exist_ok=True)
    _mark_started(folder)
    return folder, note


def _mark_started(folder: Path) -> None:
    """Record which process writes to the folder."""
    me = psutil.Process()
    (folder / _STARTED).write_text(json.dumps({"pid": me.pid, "process_started": me.create_time()}) + "\n")


def resume_run(folder: str | Path) -> tuple[Path, Path]:
    """The folder of an unfinished run that will be continued, and its newest complete checkpoint.

    A run that its time limit ended can be continued too. Its report and merged model then get new names.

    Raises:
        CourseError: the folder has no complete checkpoint, its run is finished, or another process writes to it.
    """
    folder = Path(folder)
    if (folder / "report.json").exists() and not read_report(folder).get("stopped"):
        raise CourseError(f"RESUME=True, and the run in {str(folder)!r} is finished. Set RESUME=False for a new run.")
    _refuse_live_run(folder)
    checkpoint = newest_checkpoint(folder / "checkpoints")
    if checkpoint is None:
        raise CourseError(
            f"RESUME=True, and {str(folder / 'checkpoints')!r} has no complete checkpoint. Set OUTPUT_DIR to the "
            "folder of the run to continue (one that was set aside has its time in its name), or RESUME=False."
        )
    for name in ("report.json", "merged"):  # what the run will write again
        if (folder / name).exists():
            (folder / name).rename(_free_name(folder / name, f"{checkpoint.name}-{name}"))
    _mark_started(folder)
    return folder, checkpoint


def _refuse_live_run(folder: Path) -> None:
    """Raise a CourseError if another process is still writing to this folder."""
    if (folder / "report.json").exists() or not (folder / _STARTED).exists():
        return
    run = json.loads((folder / _STARTED).read_text())
    if run["pid"] == os.getpid() or not psutil.pid_exists(run["pid"]):
        return
    if psutil.Process(run["pid"]).create_time() == run["process_started"]:
        raise CourseError(
            f"OUTPUT_DIR={str(folder)!r} is in use by another run (process {run['pid']}). Wait for it, stop it, or "
            "choose another folder: -p OUTPUT_DIR outputs/second."
        )


def _set_aside(folder: Path) -> tuple[Path, str]:
    """Rename a folder that holds a run; its new name, and whether the run was finished."""
    report, started = folder / "report.json", folder / _STARTED
    if not report.exists() and not started.exists():
        raise CourseError(
            f"OUTPUT_DIR={str(folder)!r} is not empty, and its files are not from a run of this course. Choose another "
            "folder, or move the files."
        )
    state = "a finished" if report.exists() else "an unfinished"
    when = datetime.fromtimestamp((report if report.exists() else started).stat().st_mtime)
    kept = _free_name(folder, f"{folder.name}-{state.split()[1]}-{when:%Y%m%d-%H%M%S}")
    folder.rename(kept)
    return kept, state


def _free_name(folder: Path, name: str) -> Path:
    kept, number = folder.with_name(name), 2
    while kept.exists():
        kept, number = folder.with_name(f"{name}-{number}"), number + 1
    return kept


def seconds_since_start() -> float:
    """Seconds since this process (in a notebook: its kernel) was started."""
    return time.time() - psutil.Process().create_time()


def processor_seconds() -> float:
    """CPU seconds of this process (in a notebook: its kernel) and of all finished child processes.

    Unlike wall time, it does not include other programs on the machine.

    >>> processor_seconds() > 0
    True
    """
    used = psutil.Process().cpu_times()
    return used.user + used.system + used.children_user + used.children_system


def reward_settings(functions: list, weights: list[float] | None) -> list[dict]:
    """Names and weights of reward functions, for the report.

    >>> from grpo_utils.rewards import strict_format_reward
    >>> reward_settings([strict_format_reward], None)
    [{'name': 'strict_format_reward', 'weight': 1.0}]
    """
    names = [reward_name(function) for function in functions]
    pairs = zip(names, weights or [1.0] * len(names), strict=True)
    return [{"name": name, "weight": weight} for name, weight in pairs]


def read_report(folder: str | Path) -> dict:
    """The report of the run in ``folder``.

    Raises:
        CourseError: the folder has no report.
    """
    path = Path(folder) / "report.json"
    if not path.is_file():
        raise CourseError(f"There is no report.json in {str(folder)!r}: no run has finished there.")
    return json.loads(path.read_text(encoding="utf-8"))


def show_replay(folder: Path) -> None:
    """Write the replay of a run whose completions were logged, and print where it is; the run goes on without one."""
    if any(folder.rglob("completions_*.parquet")):
        print("\nWatch it learn, step by step:", flush=True)
        subprocess.run([sys.executable, "-m", "grpo_check", "replay", str(folder)], check=False)
