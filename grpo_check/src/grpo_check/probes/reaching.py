"""What a reward reaches for outside of its process: an address, a program or a file that is not here.

A judge that is down, or a table that is missing, may leave all scores equal, which is no fault of the reward.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

#: Where the block that watches collects what is reached for; a reward may do so in threads of its own.
_watched: list[dict[str, bool]] = []


@contextmanager
def noting_what_is_reached(found: dict[str, bool]) -> Iterator[None]:
    """Collect in a block each thing that is reached for, in words, and whether it is an address.

    >>> with noting_what_is_reached(found := {}):
    ...     try:
    ...         open("no/such/file.json")
    ...     except OSError:
    ...         pass
    >>> found
    {'reads no/such/file.json, which is not here': False}
    """
    _start()
    _watched.append(found)
    try:
        yield
    finally:
        _watched.remove(found)


@cache
def _start() -> None:
    """Add the hook, once: Python has no way to take one away."""
    sys.addaudithook(_note)


def _note(event: str, arguments: tuple) -> None:
    if _watched and (said := _in_words(event, arguments)):
        for found in _watched:
            found[said] = event.startswith("socket")


def _in_words(event: str, arguments: tuple) -> str:
    """What an event of Python says about the outside; "" if nothing that could be missing."""
    match event, arguments:
        case "socket.connect", (_, (str() as host, int() as port, *_)):
            return f"connects to {host}:{port}"
        case "socket.getaddrinfo", (str() as host, *_):
            return f"looks up the address of {host}"
        case "subprocess.Popen", (str() as program, *_) if shutil.which(program) is None:
            return f"runs {program}, which is not here"
        case "open", (str() as path, "r" | "rb" | None, *_) if not os.path.exists(path):
            return f"reads {path}, which is not here"
    return ""
