"""Limits for a user's code: of time on the clock, of processor time, and of time in which it waits.

Only processor time is evidence about a reward: on a busy machine, any code takes long on the clock.
"""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar

#: The share of the processor below which code only waits, also on a machine with twenty jobs per processor.
_WAITS = 0.02
#: When the innermost `time_limit` ends.
DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTimeError(BaseException):
    """The user's code took too long; its own ``except Exception`` must not catch this."""


class OutOfCPUTimeError(OutOfTimeError):
    """The user's code took too much processor time."""


def _interrupts() -> bool:
    """Whether a signal can interrupt the user's code: on the main thread, and not on Windows."""
    return sys.platform != "win32" and threading.current_thread() is threading.main_thread()


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in the block after the limit; in other threads and on Windows only at the next call.

    Limits nest: a block ends when the first of them is over.
    """
    outer, interrupts = DEADLINE.get(), _interrupts()
    before = signal.getsignal(signal.SIGALRM) if interrupts else None
    token = DEADLINE.set(min(outer, time.monotonic() + seconds))
    try:
        with _alarm(_stop) if interrupts else nullcontext():
            yield
    finally:
        DEADLINE.reset(token)
        if interrupts:
            _alarm_at(outer, before)


@contextmanager
def _alarm(handler: Callable) -> Iterator[None]:
    """Call a handler at the deadline; it may come at any line in here, and at none after it."""
    try:
        _alarm_at(DEADLINE.get(), handler)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _stop(number: int, frame: object) -> None:
    raise OutOfTimeError


def _alarm_at(deadline: float, handler: object) -> None:
    """Let a handler be called at a time; at none if it is infinite."""
    signal.setitimer(signal.ITIMER_REAL, 0)  # none may come while the handler changes
    signal.signal(signal.SIGALRM, handler)
    if deadline < math.inf:
        signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 1e-4))


@contextmanager
def idle_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in the block once it has only waited for so long, for a server or a lock, say.

    The time of processes that the code started counts as its own. It does nothing in other threads and on Windows. A
    `time_limit` around it holds; it does not nest in itself.
    """
    if not _interrupts():
        yield
        return
    outer, before, used = DEADLINE.get(), signal.getsignal(signal.SIGALRM), sum(os.times()[:4])

    def look(number: int, frame: object) -> None:
        nonlocal used
        now = sum(os.times()[:4])
        if time.monotonic() >= outer or now - used < _WAITS * seconds:
            raise OutOfTimeError
        used = now
        signal.setitimer(signal.ITIMER_REAL, min(seconds, max(outer - time.monotonic(), 1e-4)))

    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 0)  # none may come while the handler changes
            signal.signal(signal.SIGALRM, look)
            signal.setitimer(signal.ITIMER_REAL, min(seconds, max(outer - time.monotonic(), 1e-4)))
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        _alarm_at(outer, before)


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfCPUTimeError` in the block once this process has used that much processor time in it.

    It does nothing in other threads and on Windows. Limits of processor time do not nest.
    """
    if not (_interrupts() and seconds < math.inf):
        yield
        return
    before = signal.getsignal(signal.SIGPROF)
    try:
        try:
            signal.signal(signal.SIGPROF, _stop_cpu)
            signal.setitimer(signal.ITIMER_PROF, seconds)
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    finally:  # a signal may interrupt the line above, but comes only once
        signal.signal(signal.SIGPROF, before)


def _stop_cpu(number: int, frame: object) -> None:
    raise OutOfCPUTimeError
