"""Serve a model on this machine over OpenAI's protocol.

    with served("outputs/export/merged") as address:
        httpx.post(f"{address}/v1/chat/completions", json={"messages": messages, "temperature": 0})

The server is ``transformers serve``, which also runs on a CPU and without a network. It is meant for trying out:
use vLLM, which speaks the same protocol, for many users at once.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from grpo_core.errors import CourseError

SERVE = (sys.executable, "-m", "transformers.cli.transformers", "serve")
#: No proxy: the server is on this machine.
_OPENER = build_opener(ProxyHandler({}))


@contextmanager
def served(folder: str | Path, *, seconds: float = 180) -> Iterator[str]:
    """Serve the model in ``folder`` inside a ``with`` block, on a free port of this machine only; yields its address.

    The server has ``seconds`` to start, and is always stopped at the end of the block.

    Raises:
        CourseError: the folder holds no model, or the server ended or did not start in time. The message has the last
            lines that the server printed, which name a missing package.
    """
    if not (Path(folder) / "config.json").is_file():
        raise CourseError(f"There is no model in {str(folder)!r}: it has no config.json.")
    port = _free_port()
    command = [*SERVE, str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        offline = os.environ | {"HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=offline)
        try:
            _wait(process, log, f"http://127.0.0.1:{port}", seconds)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait(process: subprocess.Popen, log: tempfile.TemporaryFile, address: str, seconds: float) -> None:
    """Return when the server is ready; raise a CourseError when it ends or is late."""
    late = time.monotonic() + seconds
    while not _is_ready(address):
        ended = process.poll()
        if ended is not None or time.monotonic() > late:
            why = f"was not ready after {seconds:g} s" if ended is None else f"ended ({ended})"
            log.seek(0)
            lines = [line for line in log.read().splitlines() if line.strip()]
            raise CourseError(f"The server {why}. Its last lines: {' / '.join(lines[-5:]) or 'none'}")
        time.sleep(0.2)


def _is_ready(address: str) -> bool:
    try:
        with _OPENER.open(f"{address}/health", timeout=5):
            return True
    except OSError:  # nothing listens yet
        return False
