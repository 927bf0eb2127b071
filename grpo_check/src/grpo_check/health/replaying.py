"""Write the page that replays a run when training ends, in a process of its own.

The run is worth more than its page. Whatever a damaged file, a full disk or a large log does to the page, the process
of the training goes on, and saves the policy.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

#: The other processes of a distributed run wait for as long.
SECONDS = 60


def leave_page(run: str | Path, log: Path, page: Path, correctness: Sequence[str] = ()) -> str:
    """Write the page of a run that has ended; returns why it could not be written, or "".

    Args:
        run: the ``output_dir``.
        log: the log of this run; the folder may also hold that of an earlier and longer one.
        page: the file to write.
        correctness: names of the rewards that measure whether an answer is correct.
    """
    try:
        done = subprocess.run(command_of(run, log, page, correctness), **options())
    except subprocess.TimeoutExpired:
        return f"it took more than {SECONDS} seconds. Write it yourself: grpo-check replay {run}"
    except (OSError, ValueError, TypeError, subprocess.SubprocessError) as error:  # such as a Python without a file
        return str(error)
    if not done.returncode:
        return ""
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return said[-1].removeprefix("Error: ") if done.returncode > 0 else f"it was stopped by signal {-done.returncode}"


def command_of(run: str | Path, log: Path, page: Path, correctness: Sequence[str]) -> list[str]:
    """The command that writes the page; whole paths, because a name may begin with a dash."""
    run, log, page = map(os.path.abspath, (run, log, page))
    command = [sys.executable, "-m", "grpo_check", "replay", run, "--log", log, "--output", page]
    return command + [f"--correctness={name}" for name in correctness]


def options() -> dict:
    """How the command runs: with the modules that this process finds, as a notebook may through ``sys.path``."""
    places = os.pathsep.join(place for place in sys.path if place and isinstance(place, str))  # Python skips others
    environment = os.environ | {"PYTHONPATH": places, "PYTHONIOENCODING": "utf-8"}
    how = {"capture_output": True, "stdin": subprocess.DEVNULL, "encoding": "utf-8", "errors": "replace"}
    return how | {"timeout": SECONDS, "env": environment}
