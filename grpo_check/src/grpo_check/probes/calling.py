"""Call a reward as TRL does, and handle every failure."""

import asyncio
import inspect
import io
import math
import operator
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import SimpleNamespace

from grpo_core.errors import CourseError
from grpo_core.rewards import is_async, reward_name, weighted_sum

from .matrix import Case, token_ids

#: What TRL hands to every reward in addition to the dataset's columns: the completions, and help for logging.
OF_COMPLETIONS = ("prompts", "completions", "completion_ids")
PROVIDED = (*OF_COMPLETIONS, "trainer_state", "log_extra", "log_metric")
#: Seconds after which a user's code is cut off: one call, one call on a hostile text, the import of a file (which may
#: load a judge model).
LONGEST_CALL, CUT_OFF, LONGEST_IMPORT = 20.0, 1.5, 60.0

#: When the innermost `time_limit` ends.
DEADLINE: ContextVar[float] = ContextVar("deadline", default=math.inf)


class OutOfTimeError(BaseException):
    """The user's code took too long; its own ``except Exception`` must not catch this."""


@dataclass
class Outcome:
    """The result of one call: the scores, or the error."""

    scores: list[float | None] | None = None
    error: str = ""
    code: str = "raises"
    seconds: float = 0.0
    cpu: float = 0.0
    changed: str = ""  # the argument that the reward changed


def parameters_of(reward: Callable) -> dict[str, inspect.Parameter]:
    """The parameters of a reward by name.

    Raises:
        CourseError: it cannot be called with ``completions=…``, or Python does not know its parameters.
    """
    if not callable(reward):
        raise CourseError(f"a reward must be a function, got {type(reward).__name__}: {reward!r}.")
    name = reward_name(reward)
    fix = f"TRL passes keyword arguments: write def {name}(completions, **kwargs) and return one score per completion."
    try:
        found = dict(inspect.signature(reward).parameters)
    except ValueError as error:  # some functions in C, such as max
        raise CourseError(f"{name} has no signature that Python can read. {fix}") from error
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in found.values())
    if not ({"completions", "completion_ids"} & set(found) or takes_any):
        raise CourseError(f"{name}({', '.join(found) or 'nothing'}) has no parameter `completions`. {fix}")
    return found


def signatures(rewards: Sequence[Callable]) -> Iterator[tuple[str, dict[str, inspect.Parameter]]]:
    """The name and the parameters of each reward that TRL can call."""
    for reward in rewards:
        with suppress(CourseError):
            yield reward_name(reward), parameters_of(reward)


def missing_columns(parameters: dict[str, inspect.Parameter], columns: Sequence[str]) -> list[str]:
    """The parameters without a default that neither TRL nor the given columns fill."""
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    needed = [name for name, p in parameters.items() if p.kind in plain and p.default is p.empty]
    return [name for name in needed if name not in {*PROVIDED, *columns}]


def call(reward: Callable, cases: Sequence[Case], chat: bool, longest: float | None = None) -> Outcome:
    """Score ``cases`` in one batch, as chat messages or as strings.

    The reward's prints are discarded, because it is called hundreds of times.
    """
    if time.monotonic() > DEADLINE.get():  # of a limit around several calls
        raise OutOfTimeError
    longest = min(LONGEST_CALL, longest or LONGEST_CALL)
    arguments = arguments_of(cases, chat)
    started, cpu = time.perf_counter(), time.process_time()
    try:
        with time_limit(longest), redirect_stdout(io.StringIO()):
            outcome = _checked(_run(reward, arguments), len(cases))
    except OutOfTimeError:
        outcome = Outcome(error=f"not finished after {longest:g} seconds", code="slow")
    except (Exception, SystemExit) as error:  # this runs a user's reward
        outcome = Outcome(error=f"{type(error).__name__}: {error}")
    outcome.seconds, outcome.cpu = time.perf_counter() - started, time.process_time() - cpu
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


def parts_of(reward: Callable) -> list[Callable]:
    """The rewards that a weighted sum adds, or the reward itself."""
    return reward.rewards if isinstance(reward, WeightedSum) else [reward]


def reads_group(reward: Callable) -> bool:
    """Whether a reward declares that it compares the completions of a group."""
    return getattr(reward, "reads_group", False)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in the block after the limit; in other threads and on Windows only at the next `call`.

    Limits nest: a block ends when the first of them is over.
    """
    outer = DEADLINE.get()
    interrupts = sys.platform != "win32" and threading.current_thread() is threading.main_thread()
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
