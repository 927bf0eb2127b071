"""Run an untrusted program in its own process, with limits that the kernel enforces.

    run("def double(x): return 2 * x", "double", [[21]])        -> [Value(42)]

`cell.py` has the limits. They do **not** protect against a kernel bug, or against a program that learns about the
machine: the size, owner and time of any file (it cannot read them), the path of the interpreter, and from timing what
else is running. To run programs from people who mean harm, and not from a model that you train, add a separate machine:
replace `run` with a call to a container service or a micro-VM with the same arguments and results.
"""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

TIME_OVER = "it ran out of time"
SHORT = 0.15  # seconds; an honest program takes 25 to 40 ms
CELL = Path(__file__).with_name("cell.py")


class SandboxError(RuntimeError):
    """A limit that this machine cannot enforce, so that no program is run."""


@dataclass(frozen=True)
class Limits:
    """The limits of one program."""

    seconds: float = 2.0  # wall time, from its start
    cpu_seconds: int = 2  # CPU time
    memory_mb: int = 256  # address space
    output_kb: int = 64  # all results together


@dataclass(frozen=True)
class Value:
    """What a call returned, as JSON."""

    value: object


@dataclass(frozen=True)
class Failure:
    """Why a call returned nothing."""

    why: str


def run(
    program: str,
    function: str,
    calls: Sequence[Sequence],
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
) -> list[Value | Failure]:
    """Call ``function`` of ``program`` with each list of arguments; return one `Value` or `Failure` for each.

    A `Value` is what the program's process wrote. No one outside can see whether a function returned it.

    Raises:
        SandboxError: this machine cannot enforce a limit.
    """
    if not sys.platform.startswith("linux"):
        raise SandboxError(f"The sandbox needs Linux, and this is {sys.platform}; use a Linux machine or container.")
    job = {"program": program, "function": function, "calls": list(calls), "limits": asdict(limits)}
    lines, why = talk(json.dumps(job).encode(), limits)
    output = [read(line) for line in lines]
    if output and "lock" in output[0]:
        raise SandboxError(f"The sandbox does not work on this machine: {output[0]['lock']}.")
    values = [Value(line["value"]) if "value" in line else Failure("it wrote nonsense") for line in output[1:]]
    return (values + [Failure(why)] * len(calls))[: len(calls)]


def read(line: bytes) -> dict:
    """A line of output as an object; the program may have written anything."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):  # brackets nested a thousand deep
        return {}
    return value if isinstance(value, dict) else {}


def talk(job: bytes, limits: Limits) -> tuple[list[bytes], str]:
    """Start the cell, send it the job, and read its lines until it ends or reaches a limit; return why, too."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", str(CELL)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",  # it may read and write nothing there
        env={},
        process_group=0,  # keeps Ctrl-C away; in a new session, Linux would ignore its nice(10)
    )
    try:
        process.stdin.write(job)
        process.stdin.close()
        data, why = collect(process.stdout.fileno(), time.monotonic() + limits.seconds, limits.output_kb * 1024)
    except BrokenPipeError:
        data, why = b"", "it did not start"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    return data.split(b"\n")[:-1], why


def collect(pipe: int, deadline: float, most: int) -> tuple[bytes, str]:
    """The output of a pipe until it closes or reaches the time or size limit; also why reading ended."""
    data, ready = b"", select.poll()  # not select.select, which fails at the 1024th open file
    ready.register(pipe, select.POLLIN | select.POLLHUP)
    while len(data) <= most:
        left = deadline - time.monotonic()
        if left <= 0 or not ready.poll(left * 1000):
            return data, TIME_OVER
        piece = os.read(pipe, 65536)
        if not piece:
            return data, "it ended without an answer"
        data += piece
    return data, "it wrote too much"


@cache
def check() -> None:
    """Before training, stop if this machine cannot enforce a limit."""
    answers = run("def answer(): return 42", "answer", [[]], Limits(seconds=20))
    if answers != [Value(42)]:
        raise SandboxError(f"A test program that should return 42 failed: {answers[0]}.")


def run_many(
    jobs: Sequence[tuple[str, str, Sequence]],
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    batch_seconds: float = 8.0,
) -> list[list[Value | Failure]]:
    """Call `run` for many programs, one per core at a time, so that endless programs do not hold up the others.

    Each program first gets a short time. Programs that need more start again with the full ``limits``, as long as the
    batch has taken less than ``batch_seconds``; the remaining ones count as out of time.
    """
    if len(jobs) < 2:
        return [run(*job, limits) for job in jobs]
    started, short = time.monotonic(), replace(limits, seconds=min(limits.seconds, short_time()))

    def again(place: int) -> list[Value | Failure]:
        return run(*jobs[place], limits) if time.monotonic() - started < batch_seconds else found[place]

    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(lambda job: run(*job, short), jobs))
        slow = [place for place, values in enumerate(found) if Failure(TIME_OVER) in values]
        for place, values in zip(slow, pool.map(again, slow), strict=True):
            found[place] = values
    return found


def short_time() -> float:
    """Seconds in which nearly every program ends: several times what a trivial program takes right now."""
    started = time.monotonic()
    run("def answer(): return 42", "answer", [[]])
    return max(SHORT, 4 * (time.monotonic() - started))
