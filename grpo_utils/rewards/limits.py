"""A limit on CPU time that works in every thread; limits by signals work only in the main thread."""

import _thread
import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable

#: Seconds between attempts to stop a task that is out of time, because a bare ``except`` may catch the first one.
AGAIN = 0.01
#: Seconds of excess CPU time after which a task is abandoned.
PATIENCE = 1.0


def within(seconds: float, task: Callable[[], object], otherwise: object) -> object:
    """The result of a task, or ``otherwise`` if it takes too long or raises.

    The task runs in its own thread, which is stopped between two Python instructions. A long call into C is not
    interrupted, so limit the size of the task's input.

    Args:
        seconds: CPU time on Linux, wall time elsewhere.

    >>> within(1.0, lambda: 6 * 7, None)
    42
    """
    clocks, results, ended, released = [], [], _thread.allocate_lock(), _thread.allocate_lock()
    ended.acquire()
    released.acquire()

    def run() -> None:
        try:
            clocks.append(_clock())
            results.append(task())
        finally:
            ended.release()  # one call into C: an Event that is stopped inside set() keeps its lock forever
            released.acquire()  # so that no other thread gets this one's number while this one can still be stopped

    worker = _thread.start_new_thread(run, ())  # a threading.Thread prints if it is stopped late
    left, over = seconds, False
    try:
        while not (over := ended.acquire(timeout=max(left, AGAIN))) and left > -PATIENCE:
            try:
                left = seconds - clocks[0]() if clocks else seconds
            except OSError:  # the thread has ended, and another one may have its number
                over = True
                break
            if left <= 0:
                _stop(worker)
    finally:
        if not over:  # the caller was interrupted
            _stop(worker)
        released.release()
    return results[0] if results else otherwise


def _clock() -> Callable[[], float]:
    """A clock of this thread, from 0, that other threads can read."""
    if sys.platform == "linux":
        now = functools.partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))
    else:
        now = time.monotonic
    started = now()
    return lambda: now() - started


def _stop(worker: int) -> None:
    """Raise SystemExit in a thread, which ends it silently."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker), ctypes.py_object(SystemExit))
