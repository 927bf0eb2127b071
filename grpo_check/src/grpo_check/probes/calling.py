"""Call a reward as TRL does, and handle every failure."""

import asyncio
import io
import logging
import math
import operator
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from types import SimpleNamespace

from grpo_core.rewards import is_async, reward_name, weighted_sum

from .limits import DEADLINE, OutOfCPUTimeError, OutOfTimeError, cpu_limit, idle_limit
from .matrix import Case, token_ids
from .reaching import noting_what_is_reached
from .signatures import OF_COMPLETIONS, PROVIDED

#: Seconds of processor time, and seconds of waiting, after which one call is cut off.
LONGEST_CALL = 20.0
#: Names of exceptions that tell of something outside of the reward, such as a judge's server; and `OSError`.
_OUTSIDE = re.compile("Connect|Timeout|RateLimit|Authentication|API|ModuleNotFound")


@dataclass
class Outcome:
    """The result of one call: the scores, or the error.

    Attributes:
        scores: one per completion; None if the call failed.
        error: what failed, and ``code`` what kind of failure it is: ``raises``, ``wrong_length``, ``slow`` (too much
            processor time) or ``stuck`` (no answer in time, while the processor was free).
        outside: whether the failure is about something outside of the reward, such as a server or a package.
        seconds: on the clock, and ``cpu`` of the processor.
        changed: the argument that the reward changed.
    """

    scores: list[float | None] | None = None
    error: str = ""
    code: str = "raises"
    outside: bool = False
    seconds: float = 0.0
    cpu: float = 0.0
    changed: str = ""


class Printed(io.TextIOBase):
    """A stream that counts the lines which are written to it. Lines that differ only in their numbers are equal.

    >>> printed = Printed()
    >>> print("judge error 1", "judge error 2", sep="\\n", file=printed)
    >>> list(printed)
    ['judge error 1 (2 times)']
    """

    def __init__(self) -> None:
        self._counts, self._first, self._rest = Counter(), {}, ""

    def writable(self) -> bool:
        """Always, as a stream's users may ask."""
        return True

    def write(self, text: str) -> int:
        """Count the lines that end in this text; the rest is the start of a line that goes on."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            kind = re.sub(r"\d+", "0", line)
            self._first.setdefault(kind, line.strip())
            self._counts[kind] += 1
        return len(text)

    def __len__(self) -> int:
        """How many lines were written."""
        return self._counts.total()

    def __iter__(self):
        """The different lines, the most frequent ones first, with their counts."""
        for kind, count in self._counts.most_common():
            yield f"{self._first[kind][:200]}{f' ({count:,} times)' if count > 1 else ''}"


class _Stderr:
    """What `sys.stderr` is when something is written, and not when a handler was made."""

    def write(self, text: str) -> None:
        sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


@contextmanager
def log_handlers_follow_stderr() -> Iterator[None]:
    """Let loggers write to the stderr of the moment, where the lines of a reward are counted instead of shown."""
    stderr, follower = sys.stderr, _Stderr()
    for handler in _handlers():
        if handler.stream in (stderr, sys.__stderr__):
            handler.setStream(follower)
    try:
        yield
    finally:
        for handler in _handlers():  # also those that were made meanwhile
            if handler.stream is follower or isinstance(handler.stream, Printed):
                handler.setStream(stderr)


def _handlers() -> list[logging.StreamHandler]:
    """The handlers of all loggers that write to a stream of their own, and not to a file."""
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    found = [handler for logger in loggers for handler in getattr(logger, "handlers", [])]
    others = (logging.FileHandler, type(logging.lastResort))  # the last resort follows stderr by itself
    return [one for one in found if isinstance(one, logging.StreamHandler) and not isinstance(one, others)]


def call(
    reward: Callable,
    cases: Sequence[Case],
    chat: bool,
    *,
    cpu: float | None = None,
    idle: float | None = None,
    prints: Printed | None = None,
    logs: Printed | None = None,
    reached: dict[str, bool] | None = None,
) -> Outcome:
    """Score ``cases`` in one batch, as chat messages or as strings.

    Args:
        reward: a reward, async or not.
        cases: the completions, with the columns of their rows.
        chat: whether they are messages.
        cpu: seconds of processor time, and ``idle`` seconds of waiting, after which the call is cut off.
        prints: where its prints go, and ``logs`` what it writes to stderr. By default prints are discarded, because a
            reward is called hundreds of times.
        reached: where it is noted what the reward reaches for outside of this process.
    """
    if time.monotonic() > DEADLINE.get():  # of a limit around several calls
        raise OutOfTimeError
    cpu, idle = cpu or LONGEST_CALL, idle or LONGEST_CALL
    arguments = arguments_of(cases, chat)
    started, used = time.perf_counter(), time.process_time()
    try:
        printing = redirect_stdout(io.StringIO() if prints is None else prints)
        errors = nullcontext() if logs is None else redirect_stderr(logs)
        reaching = noting_what_is_reached({} if reached is None else reached)
        with idle_limit(idle), cpu_limit(cpu), printing, errors, reaching:
            outcome = _checked(_run(reward, arguments), len(cases))
    except OutOfCPUTimeError:
        outcome = Outcome(error=f"not finished after {cpu:g} seconds of processor time", code="slow")
    except OutOfTimeError:
        if time.monotonic() > DEADLINE.get():
            raise
        outcome = Outcome(error=f"not finished after {idle:g} seconds", code="stuck")
    except (Exception, SystemExit) as error:  # this runs a user's reward
        outside = isinstance(error, OSError) or bool(_OUTSIDE.search(type(error).__name__))
        outcome = Outcome(error=f"{type(error).__name__}: {error}", outside=outside)
    outcome.seconds, outcome.cpu = time.perf_counter() - started, time.process_time() - used
    outcome.changed = _changed(arguments, arguments_of(cases, chat))
    return outcome


def arguments_of(cases: Sequence[Case], chat: bool) -> dict:
    """The keyword arguments with which TRL would call a reward."""
    texts = [case.text for case in cases]
    questions = [question_of(case.number) for case in cases]
    columns = {name: [case.columns[name] for case in cases] for name in (cases[0].columns if cases else ())}
    prompts = columns.pop("prompt", [[{"role": "user", "content": q}] for q in questions] if chat else questions)
    ids = columns.pop("completion_ids", None) or [list(token_ids(text)) for text in texts]
    return {
        **columns,
        "prompts": prompts,
        "completions": [[{"role": "assistant", "content": t}] for t in texts] if chat else [t or "" for t in texts],
        "completion_ids": ids,
        "trainer_state": SimpleNamespace(global_step=0, max_steps=100, epoch=0.0, log_history=[]),
        "log_extra": lambda column, values: None,
        "log_metric": lambda name, value: None,
    }


def question_of(number: int) -> str:
    """The prompt of a dataset row if there is no column of prompts. It contains no digits, which could be an answer.

    >>> question_of(1)
    'This is question b. What do we get in the end?'
    """
    return f"This is question {chr(ord('a') + number % 26)}. What do we get in the end?"


def _changed(after: dict, before: dict) -> str:
    """The first argument that changed; in a dataset column, only the identity of its values is compared."""
    for name in [name for name in before if name in OF_COMPLETIONS or name not in PROVIDED]:
        found, values = after.get(name), before[name]
        is_list = isinstance(found, list) and len(found) == len(values)
        same = found == values if name in OF_COMPLETIONS else is_list and all(map(operator.is_, found, values))
        if not same:
            return name
    return ""


def _run(reward: Callable, arguments: dict) -> object:
    """Call a reward. An async one gets its own event loop in this thread, where the time limit applies.

    A notebook's loop is already running, and is set aside meanwhile.
    """
    if not is_async(reward):
        return reward(**arguments)
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return asyncio.run(_in_time(reward(**arguments)))
    finally:
        asyncio._set_running_loop(loop)


async def _in_time(scores: Awaitable) -> object:
    """What an async reward returns; its own `TimeoutError`, such as one of a socket, is not ours."""
    try:
        async with asyncio.timeout(LONGEST_CALL) as limit:
            return await scores
    except TimeoutError as error:
        if limit.expired():
            raise OutOfTimeError from error
        raise


def _checked(scores: object, wanted: int) -> Outcome:
    """Scores as floats and ``None``, or what is wrong with them."""
    try:
        values = list(scores)
    except TypeError:
        return Outcome(error=f"the reward returned {type(scores).__name__}, not a list of scores", code="wrong_length")
    if len(values) != wanted:
        return Outcome(error=f"the reward returned {len(values)} scores for {wanted} completions", code="wrong_length")
    return Outcome([None if value is None else _number(value) for value in values])


def _number(value: object) -> float:
    """A score as a float; NaN for what is not a number (a text, a list)."""
    try:
        return math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        return math.nan


class WeightedSum:
    """Several rewards as one weighted sum, as TRL computes it."""

    def __init__(self, rewards: Sequence[Callable], weights: Sequence[float]) -> None:
        self.rewards, self.weights = list(rewards), list(weights)
        self.__name__ = "sum of " + ", ".join(map(reward_name, rewards))
        self.reads_group = any(map(reads_group, rewards))

    def __call__(self, **arguments: object) -> list[float | None]:
        """The sum for each completion; None where no reward scored it."""
        return weighted_sum([list(_run(reward, arguments)) for reward in self.rewards], self.weights)

    def of(self, wanted: Sequence[Callable]) -> "WeightedSum":
        """The sum of some of the rewards."""
        pairs = [pair for pair in zip(self.rewards, self.weights, strict=True) if pair[0] in wanted]
        return WeightedSum(*zip(*pairs, strict=True))


def parts_of(reward: Callable) -> list[Callable]:
    """The rewards that a weighted sum adds, or the reward itself."""
    return reward.rewards if isinstance(reward, WeightedSum) else [reward]


def reads_group(reward: Callable) -> bool:
    """Whether a reward declares that it compares the completions of a group."""
    return getattr(reward, "reads_group", False)
