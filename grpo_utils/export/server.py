"""Serve a model on this machine over OpenAI's protocol, and ask it as its users will.

    with served("outputs/export/merged") as address:
        print(ask_server(address, chat_prompt("What is 15 + 27?"), max_tokens=32))

The server is ``transformers serve``, which also runs on a CPU and without a network. It is meant for trying out:
for many users at once, take vLLM, which speaks the same protocol.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from ..errors import CourseError

SERVE = (sys.executable, "-m", "transformers.cli.transformers", "serve")
#: No proxy: the server is on this machine.
OPENER = build_opener(ProxyHandler({}))


@contextmanager
def served(folder: str | Path, *, seconds: float = 180) -> Iterator[str]:
    """Serve the model in ``folder`` for as long as the ``with`` lasts; gives its address.

    It listens on a free port of this machine only. It has ``seconds`` to start, and always ends with the ``with``.

    Raises:
        CourseError: the folder holds no model, or the server ends or is late; with the last lines of what it said,
            which name a package that is missing.
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


def ask_server(
    address: str, messages: list[dict], *, model: str = "", max_tokens: int = 256, temperature: float = 0.0
) -> str:
    """The answer of a server that speaks OpenAI's protocol, as text.

    ``model`` is the name that vLLM serves it by; `served` has one model and needs none. ``temperature`` 0.0
    decodes greedily.

    Raises:
        CourseError: nothing answers at ``address``, or the server refuses.
    """
    body = {"messages": messages, "max_tokens": max_tokens, "temperature": temperature, "stream": False}
    body |= {"model": model} if model else {}
    request = Request(f"{address}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with OPENER.open(request, timeout=600) as answer:
            return json.load(answer)["choices"][0]["message"]["content"]
    except HTTPError as error:
        said = error.read().decode(errors="replace")[:300]
        raise CourseError(f"The server at {address} refused with {error.code}: {said}") from error
    except URLError as error:
        raise CourseError(f"No server answers at {address} ({error.reason}): is it still running?") from error


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
        with OPENER.open(f"{address}/health", timeout=5):
            return True
    except OSError:  # nothing listens yet
        return False
