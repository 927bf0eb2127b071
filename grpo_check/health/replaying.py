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


def leave_page(run: Path, log: Path, page: Path, correctness: Sequence[str] = ()) -> str:
    """Write the page of a run that has ended; returns why it could not be written, or "".

    Args:
        run: the ``output_dir``.
        log: the log of this run; the folder may also hold that of an earlier and longer one.
        page: the file to write.
        correctness: names of the rewards that measure whether an answer is correct.
    """
    command = [sys.executable, "-m", "grpo_check", "replay", str(run), "--log", str(log), "--output", str(page)]
    command += [f"--correctness={name}" for name in correctness]
    # A notebook may have found this package through sys.path. The GPU, whose memory may be full, is not needed.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "CUDA_VISIBLE_DEVICES": ""}
    options = {"capture_output": True, "text": True, "errors": "replace", "timeout": SECONDS, "env": environment}
    try:
        done = subprocess.run(command, **options)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1] if done.returncode else ""
