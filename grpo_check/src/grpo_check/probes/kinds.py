"""Make a reward of what a target names: a function of completions, or something else that leads to one.

| the target names | the reward |
|---|---|
| a function | itself |
| a function or a class, with arguments in parentheses | what the call returns |
| a class that needs no arguments, such as an ORM of ms-swift | an instance |
| a function that makes a reward, and has a default for each parameter | what it makes |

Anything else is a `CourseError` that says what to write instead.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType

from grpo_core.errors import CourseError

from .candidates import makes_reward
from .targets import Target

#: The parameters by which a reward of verl is known.
_OF_VERL = {"solution_str", "ground_truth"}


def as_reward(found: object, target: Target) -> tuple[Callable, str]:
    """The reward that an object is or makes, and how it was made, or an empty text.

    Raises:
        CourseError: it is not a reward, and nothing makes one of it without further arguments.
    """
    name = target.name or getattr(found, "__name__", target.where)
    if target.arguments is not None:
        return _called(found, target, name)
    if inspect.isclass(found):
        return _instance(found, target, name), f"an instance of {name}"
    if isinstance(found, ModuleType | dict):
        _refuse_collection(found, target, name)
    if not callable(found):
        raise CourseError(f"{name!r} in {target.where} is a {type(found).__name__}, not a function.")
    if next(iter(_parameters(found)), "") == "self":
        owner, _, method = name.rpartition(".")
        raise CourseError(
            f"{name} in {target.where} is a method and needs an object, for TRL as well. Write my_reward = "
            f"{owner or 'ITS_CLASS'}(…).{method} in a file, and name that."
        )
    if _makes_reward(found):
        return _made(found, target, name), f"made by {name}()"
    _refuse_verl(found, target, name)
    _refuse_other(found, target, name)
    return found, ""


def _refuse_other(found: Callable, target: Target, name: str) -> None:
    """Raise a `CourseError` for a function that takes no completions, and perhaps makes rewards from its arguments."""
    with suppress(ValueError):  # some functions in C have no signature
        parameters = inspect.signature(found).parameters
        takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
        if not takes_any and not {"completions", "completion_ids"} & {*parameters}:
            raise CourseError(
                f"{name}({', '.join(parameters)}) has no parameter `completions`. If it makes a reward, name it with "
                f"the values of its call: {target.where}:{name}(…). If it is one, write def {name}(completions, "
                "**kwargs), because TRL passes keyword arguments, and return one score per completion."
            )


def _called(found: object, target: Target, name: str) -> tuple[Callable, str]:
    """What a function or a class returns for the arguments of the target."""
    if not callable(found):
        raise CourseError(f"{name!r} in {target.where} is a {type(found).__name__}, which cannot be called.")
    given, named = target.arguments
    reward = _one_of(found(*given, **named), target)
    if not callable(reward):
        raise CourseError(f"{target} returns a {type(reward).__name__}, not a function.")
    return reward, f"made by {name}{target.call}"


def _one_of(made: object, target: Target) -> object:
    """The reward that a call returns, also of several in a list, a tuple or a dictionary."""
    several = list(made.values()) if isinstance(made, dict) else made
    if not isinstance(several, list | tuple) or not several or not all(map(callable, several)):
        if target.place is not None:
            raise CourseError(f"{target}: the call returns a {type(made).__name__}, of which no place can be named.")
        return made
    if target.place is None and len(several) > 1:
        named = (f"{target}[{place}] ({getattr(one, '__name__', '?')})" for place, one in enumerate(several[:10]))
        raise CourseError(f"{target} returns {len(several)} rewards. Name one of them: {', '.join(named)}.")
    if (target.place or 0) >= len(several):
        raise CourseError(f"{target}: the call returns {len(several)} rewards, numbered from 0.")
    return several[target.place or 0]


def _instance(found: type, target: Target, name: str) -> Callable:
    """An object of a class whose objects are rewards."""
    if "__call__" not in dir(found) or not _reads_completions(found.__call__):
        raise CourseError(
            f"{name!r} in {target.where} is a class, and its objects are not rewards: it needs "
            "def __call__(self, completions, **kwargs), which returns one score per completion."
        )
    if needed := _required(found):
        raise CourseError(
            f"{name!r} in {target.where} is a class that needs {_listed(needed)}. Name the values, as in "
            f"{_with_values(target, needed)}, or write my_reward = {name}(…) in the file and name that."
        )
    return found()


def _made(found: Callable, target: Target, name: str) -> Callable:
    """What a function that makes a reward returns with its defaults."""
    if needed := _required(found):
        raise CourseError(
            f"{name} in {target.where} makes a reward, and needs {_listed(needed)}. Name the values, as in "
            f"{_with_values(target, needed)}, or write my_reward = {name}(…) in the file and name that."
        )
    return found()


def _with_values(target: Target, needed: list[str]) -> str:
    return f"'{target}({', '.join(f'{one}=…' for one in needed)})'"


def _listed(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def _parameters(found: Callable) -> dict[str, inspect.Parameter]:
    """The parameters of a function or a class; none where Python does not know them."""
    try:
        return dict(inspect.signature(found).parameters)
    except (ValueError, TypeError):  # some functions in C, such as max
        return {}


def _required(found: Callable) -> list[str]:
    """The parameters that a call must fill."""
    parameters = _parameters(found)
    flexible = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in parameters.items() if one.default is one.empty and one.kind not in flexible]


def _reads_completions(found: Callable) -> bool:
    parameters = _parameters(found)
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    return takes_any or _takes_completions(found)


def _definition(found: Callable) -> ast.stmt | None:
    """The source of a function; None if Python cannot find it."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]
    except (OSError, TypeError, SyntaxError, IndexError):
        return None


def _makes_reward(found: Callable) -> bool:
    """Whether a function returns a reward, as its source says."""
    if not inspect.isfunction(found) or _takes_completions(found):
        return False
    definition = _definition(found)
    there = found.__globals__
    return definition is not None and makes_reward(
        definition, lambda name: inspect.isfunction(there.get(name)) and _takes_completions(there[name])
    )


def _refuse_collection(found: ModuleType | dict, target: Target, name: str) -> None:
    """Name the rewards of a module or a registry."""
    items = vars(found) if isinstance(found, ModuleType) else found
    rewards = [str(key) for key, one in items.items() if callable(one) and _takes_completions(_called_by(one))]
    what = "a module" if isinstance(found, ModuleType) else "a dictionary of rewards" if rewards else "a dict"
    sign = ":" if target.is_file else "."
    start = f"{target}." if isinstance(found, ModuleType) else f"{target.where}{sign}"
    hint = f" Name one of its rewards: {', '.join(start + one for one in rewards[:10])}." if rewards else ""
    raise CourseError(f"{name!r} in {target.where} is {what}, not a function.{hint}")


def _called_by(found: Callable) -> Callable:
    """What a call of a reward runs, where a class is the reward."""
    return found.__call__ if inspect.isclass(found) else found


def _takes_completions(found: Callable) -> bool:
    return bool({"completions", "completion_ids"} & {*_parameters(found)})


def _refuse_verl(found: Callable, target: Target, name: str) -> None:
    """Say how to wrap a reward of verl, which scores one completion at a time."""
    parameters = _parameters(found)
    if not {*parameters} >= _OF_VERL or _takes_completions(found):
        return
    values = {"solution_str": "text", "ground_truth": "gold", "data_source": '"DATA_SOURCE"', "extra_info": "info"}
    more = "extra_info" in parameters
    given = dict.fromkeys([*_required(found), *(["extra_info"] if more else [])])
    call = f"{name}({', '.join(f'{one}={values.get(one, one.upper())}' for one in given)})"
    infos = "extra_info or [None] * len(texts)"
    pairs = f"text, gold, info in zip(texts, answer, {infos})" if more else "text, gold in zip(texts, answer)"
    raise CourseError(
        f"{name} in {target.where} is a reward of verl: it scores one completion, and TRL passes a list. Put this next "
        'to it, with your own values for capitals, and name as_trl (if it returns a dictionary, add ["score"]):\n'
        f"    def as_trl(completions, answer{', extra_info=None' if more else ''}, **kwargs):\n"
        '        texts = [c if isinstance(c, str) else c[-1]["content"] or "" for c in completions]\n'
        f"        return [{call} for {pairs}]"
    )
