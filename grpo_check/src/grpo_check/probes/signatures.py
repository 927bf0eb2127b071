"""What a reward takes: its parameters, and the dataset columns that it reads."""

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from tokenize import TokenError

from grpo_core.errors import CourseError
from grpo_core.rewards import is_async, reward_name

#: What TRL hands to every reward in addition to the dataset's columns: the completions, and help for logging.
OF_COMPLETIONS = ("prompts", "completions", "completion_ids")
PROVIDED = (*OF_COMPLETIONS, "trainer_state", "log_extra", "log_metric")


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


def not_taken(reward: Callable) -> list[str]:
    """What TRL hands to every reward and this one does not take; nothing if it has ``**kwargs``.

    >>> not_taken(lambda completions, prompts, completion_ids, answer: [])
    ['trainer_state', 'log_extra', 'log_metric']
    """
    parameters = parameters_of(reward)
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return [] if takes_any else [name for name in PROVIDED if name not in parameters]


def only_what_it_takes(reward: Callable) -> Callable:
    """A reward that is called without the arguments for which it has no parameter; itself if it takes all."""
    if not not_taken(reward):
        return reward
    names = {*parameters_of(reward)}

    def taken(arguments: dict) -> dict:
        return {name: value for name, value in arguments.items() if name in names}

    async def called_later(**arguments: object) -> object:
        return await reward(**taken(arguments))

    def called(**arguments: object) -> object:
        return reward(**taken(arguments))

    wrapped = functools.update_wrapper(called_later if is_async(reward) else called, reward)
    wrapped.__name__ = reward_name(reward)
    return wrapped


def columns_read(reward: Callable) -> dict[str, bool]:
    """The dataset columns that a reward reads, and whether it can do without: parameters, and keys of its ``kwargs``.

    >>> def reward(completions, answer, level=None, **kwargs):
    ...     return [float(word in c) for c, word in zip(completions, kwargs["keyword"])]
    >>> columns_read(reward)
    {'answer': False, 'level': True, 'keyword': False}

    Raises:
        CourseError: TRL cannot call it.
    """
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = parameters_of(reward).values()
    found = {one.name: one.default is not one.empty for one in parameters if one.kind in plain}
    for rest in [one.name for one in parameters if one.kind is one.VAR_KEYWORD]:
        found |= _keys_of(reward, rest)
    return {name: optional for name, optional in found.items() if name not in PROVIDED}


def read_by_any(rewards: Sequence[Callable]) -> set[str]:
    """The dataset columns that any of some rewards reads; one that TRL cannot call reads none."""
    read: set[str] = set()
    for reward in rewards:
        with suppress(CourseError):
            read |= {*columns_read(reward)}
    return read


def makes_use_of(reward: Callable, name: str) -> bool:
    """Whether a reward's source uses one of its parameters, rather than only taking it; True if there is no source.

    >>> def reward(prompts, completions, answer, **kwargs):
    ...     return [float(prompt in text) for prompt, text in zip(prompts, completions)]
    >>> makes_use_of(reward, "prompts"), makes_use_of(reward, "answer")
    (True, False)
    """
    nodes = [*ast.walk(_source_of(reward))]
    used = any(isinstance(node, ast.Name) and node.id == name for node in nodes)
    return used or (len(nodes) == 1 and name in parameters_of(reward)) or name in _keys_of(reward, "kwargs")


def _source_of(reward: Callable) -> ast.Module:
    """A reward's source; empty if there is none."""
    function = reward.func if isinstance(reward, functools.partial) else inspect.unwrap(reward)
    function = function if inspect.isroutine(function) else type(function).__call__
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, TokenError):  # a lambda inside an expression has no source of its own
        return ast.Module([], [])


def _keys_of(reward: Callable, rest: str) -> dict[str, bool]:
    """The keys that a reward's source reads from its ``**rest``; none if there is no source.

    A key that is looked for first, such as ``if "x" in kwargs``, is one that the reward can do without.
    """
    found: dict[str, bool] = {}
    for node in ast.walk(_source_of(reward)):
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str() as key)) if name == rest:
                found.setdefault(key, False)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr="get" | "pop"),
                args=[ast.Constant(value=str() as key), *_],
            ) if name == rest:
                found[key] = True
            case ast.Compare(
                left=ast.Constant(value=str() as key), ops=[ast.In() | ast.NotIn()], comparators=[ast.Name(id=name)]
            ) if name == rest:
                found[key] = True
    return found


def missing_columns(reward: Callable, columns: Sequence[str], optional: bool = False) -> list[str]:
    """The columns that a reward reads, or those that it can do without, which are not among the given ones."""
    return [name for name, spare in columns_read(reward).items() if spare is optional and name not in columns]
