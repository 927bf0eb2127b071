"""The time of a piece of work: seconds, processor seconds, and whether other work ran next to it.

A piece of work may be stopped and continued, so its times are kept in a file as they grow.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

import psutil

#: Other processes may use this share of the processor, or the piece of work did not run alone.
OTHERS = 0.05
EVERY = 15  # seconds between two looks


@contextmanager
def timed(path: Path) -> Iterator[None]:
    """Add the time of what is done here to the times in a file; also if it ends with an error or is killed."""
    begun, before = threading.Event(), read(path)
    start, own, busy = perf_counter(), own_seconds(), busy_seconds()

    def look() -> None:
        now = dict(wall=perf_counter() - start, own=own_seconds() - own, busy=busy_seconds() - busy)
        added = {name: round(before[name] + value, 1) for name, value in now.items()}
        write(path, added | dict(starts=before["starts"] + 1))

    def keep_looking() -> None:
        while not begun.wait(EVERY):
            look()

    thread = threading.Thread(target=keep_looking, daemon=True)
    thread.start()
    try:
        yield
    finally:
        begun.set()
        thread.join()
        look()


def read(path: Path) -> dict:
    """The times in a file; zeros if there is none."""
    return (
        json.loads(path.read_text(encoding="utf-8")) if path.exists() else dict(wall=0.0, own=0.0, busy=0.0, starts=0)
    )


def write(path: Path, value: object) -> None:
    """Write JSON so that the file has the old or the new value, whenever the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    fresh.replace(path)


def summary(path: Path) -> dict:
    """What a cell stores: the seconds, the processor seconds, how often it was started, and whether it ran alone.

    Work that was lost when the process was killed counts too, so the times of a cell with several starts are upper
    bounds.
    """
    times = read(path)
    cores = os.cpu_count() or 1
    others = (times["busy"] - times["own"]) / max(times["wall"] * cores, 1e-9)
    found = dict(wall=times["wall"], processor=times["own"], starts=times["starts"], others=round(others, 3))
    return found | dict(alone=others < OTHERS)


def own_seconds() -> float:
    """The processor seconds of this process and of its children, those that have ended included."""
    process = psutil.Process()
    times = process.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for child in process.children(recursive=True):
        try:
            spent = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system
    return total


def busy_seconds() -> float:
    """The processor seconds of all processes of the machine since it was started."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system


def free_cores(seconds: float = 1.0) -> int:
    """How many cores other processes leave free while this one waits a moment; at least one."""
    cores = os.cpu_count() or 1
    return max(1, round(cores * (1 - psutil.cpu_percent(interval=seconds) / 100)))
