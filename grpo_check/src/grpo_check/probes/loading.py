"""Load a reward from a user's file (``my_rewards.py:my_reward``) or module (``my_package.rewards.my_reward``).

    >>> with imports_from(*folders_of("math.gcd")):
    ...     find_reward("math.gcd")(12, 18)
    6

A user's file can have any name. It never replaces a module: its folder comes last on `sys.path`, and the file itself
is registered under a unique name. Its prints go to stderr, its stdin is empty, and `sys.argv` contains only its own
path. Afterwards the modules from the user's folder are forgotten; installed packages that it imported stay, because
most of them cannot be imported twice. If a reward imports a neighboring file only when it is called, wrap the call in
`imports_from`.
"""

import importlib
import importlib.util
import inspect
import io
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import ModuleType

from grpo_core.errors import CourseError, did_you_mean

from .limits import OutOfTimeError, time_limit

#: Seconds for the import of a file, which may load a judge model.
LONGEST_IMPORT = 60.0
COMMAND_LINE = (
    " During the import, sys.argv contains only the file's path, so move code that reads the command line "
    'under `if __name__ == "__main__":`.'
)


def folders_of(target: str) -> list[Path]:
    """The folder of the file that a target names, whose neighbors it may import.

    >>> folders_of("my_package.rewards.my_reward")
    []
    """
    path, colon, _ = target.rpartition(":")
    return [Path(path).parent] if colon else []


@contextmanager
def imports_from(*folders: Path) -> Iterator[None]:
    """Allow imports from a user's folders in the block, and forget the modules of these folders afterwards.

    The folders come last on `sys.path`, so that a user's file never replaces a module of Python or of a package.
    """
    folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
    paths, modules = list(sys.path), set(sys.modules)
    here = [entry for entry in paths if entry in ("", str(Path.cwd()))]  # the user's as well: after the file's own
    sys.path[:] = [*(entry for entry in paths if entry not in here), *map(str, folders), *here]
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = paths
        for name in [name for name in sys.modules if name not in modules and _is_from(folders, name)]:
            del sys.modules[name]


def _is_from(folders: tuple[Path, ...], name: str) -> bool:
    """Whether a module lies in a folder of the user, and not in an environment there."""
    path = Path(getattr(sys.modules[name], "__file__", None) or "")
    return "site-packages" not in path.parts and any(folder in path.parents for folder in folders)


def find_reward(target: str) -> Callable:
    """The function that ``FILE.py:function`` or ``package.module.function`` names; to be called in `imports_from`.

    Raises:
        CourseError: the file does not exist, its import fails, or the name in it does not
            exist or is not a function.
    """
    sign = "." if ":" not in target and not target.endswith(".py") else ":"
    where, _, name = target.rpartition(sign)
    if not where or not name:
        raise CourseError(f"{target!r} names no function; write FILE.py:function, such as my_rewards.py:my_reward.")
    if sign == ":":
        module = _import_file(Path(where))
    else:
        with as_users_code(where, None):
            module = importlib.import_module(where)
    if name not in dir(module):  # not vars: a package may load its names when they are used
        loaded = vars(module)
        own = [n for n in dir(module) if not n.startswith("_") and (n not in loaded or callable(loaded[n]))]
        place = f"{where} ({module.__file__})" if sign == "." and getattr(module, "__file__", None) else where
        hint = f"{did_you_mean(name, own)} Functions there: {', '.join(own[:20]) or 'none'}."
        raise CourseError(f"There is no {name!r} in {place}.{hint}")
    reward = getattr(module, name)
    if inspect.isclass(reward):
        fix = f"Create a reward from it in that file (my_reward = {name}(…)) and pass its name."
        raise CourseError(f"{name!r} in {where} is a class. {fix}")
    if not callable(reward):
        raise CourseError(f"{name!r} in {where} is a {type(reward).__name__}, not a function.")
    return reward


def _import_file(path: Path) -> ModuleType:
    """Run a file as a module with a unique name."""
    if path.is_dir():
        raise CourseError(f"{str(path)!r} is a folder; name a file in it: {path / 'FILE.py'}:function.")
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*.py")]
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    if path.suffix != ".py":
        raise CourseError(f"{str(path)!r} is not a Python file; its name should end in .py.")
    name = re.sub(r"\W", "_", str(path.resolve()))
    if name not in sys.modules:  # it is there if this is another reward of the same file
        spec = importlib.util.spec_from_file_location(name, path.resolve())
        sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses and pickle look for it there
        with as_users_code(str(path), path.resolve()):
            spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@contextmanager
def as_users_code(shown: str, path: Path | None) -> Iterator[None]:
    """Import a user's module in the block, with a time limit; an exception becomes one sentence."""
    argv, stdin = sys.argv, sys.stdin
    sys.argv, sys.stdin = [str(path or shown)], io.StringIO()
    try:
        with redirect_stdout(sys.stderr), time_limit(LONGEST_IMPORT):
            yield
    except KeyboardInterrupt:
        raise
    except OutOfTimeError as error:
        raise CourseError(f"{shown} cannot be imported: not finished after {LONGEST_IMPORT:g} seconds.") from error
    except BaseException as error:  # this runs a user's file
        raise CourseError(f"{shown} cannot be imported: {_sentence(error, path)}") from error
    finally:
        sys.argv, sys.stdin = argv, stdin


def _sentence(error: BaseException, path: Path | None) -> str:
    """An exception as one sentence, with the line of the file that it comes from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if path and Path(f.filename) == path]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    hint = ""
    if isinstance(error, ImportError):
        hint = " Install that package, or use the environment that has it."
    elif isinstance(error, SystemExit) or any(re.search("argv|parse_args", frame.line or "") for frame in frames):
        hint = COMMAND_LINE
    return f"{type(error).__name__}: {error}{f' (line {line})' if line else ''}.{hint}"
