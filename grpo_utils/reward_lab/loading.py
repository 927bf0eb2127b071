"""A reward from a file that somebody brings: ``my_rewards.py:my_reward``."""

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ..errors import CourseError, did_you_mean


def load_reward(target: str) -> Callable:
    """The function that ``FILE.py:function`` names.

    Raises:
        CourseError: no such file, a file whose import fails, no such function in it, or a name
            that is no function.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not path or not name:
        raise CourseError(f"{target!r} names no function; write FILE.py:function, such as my_rewards.py:my_reward.")
    module = _import_file(Path(path))
    if name not in vars(module):
        own = [n for n, value in vars(module).items() if callable(value) and not n.startswith("_")]
        there = ", ".join(own) or "none"
        raise CourseError(f"There is no {name!r} in {path}.{did_you_mean(name, own)} Functions there: {there}.")
    reward = vars(module)[name]
    if inspect.isclass(reward):
        raise CourseError(
            f"{name!r} in {path} is a class. Make a reward of it in that file (my_reward = {name}(…)) and name that."
        )
    if not callable(reward):
        raise CourseError(f"{name!r} in {path} is a {type(reward).__name__}, not a function.")
    return reward


def _import_file(path: Path) -> ModuleType:
    """Run a file as a module; its neighbours can be imported from it."""
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None:
        raise CourseError(f"{str(path)!r} is no Python file; its name should end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module  # so that its classes can be pickled
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # somebody's own file runs here
        raise CourseError(f"{path} cannot be imported: {_where(error, path)}") from error
    return module


def _where(error: BaseException, path: Path) -> str:
    """An exception as one sentence, with the line of the file that it comes from."""
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename) == path.resolve()
    ]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    place = f" (line {line})" if line else ""
    hint = (
        " Install that package, or run this from the environment that has it." if isinstance(error, ImportError) else ""
    )
    return f"{type(error).__name__}: {error}{place}.{hint}"
