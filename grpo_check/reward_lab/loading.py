"""Load a reward from a user's file (``my_rewards.py:my_reward``) or module (``my_package.rewards.my_reward``).

A user's file can have any name and do anything while it is imported. It replaces no module: its folder comes
last on `sys.path`, and the file itself is registered under a name that nothing else has. What it prints goes
to stderr, it finds an empty stdin and only its own path in `sys.argv`, and no ``__pycache__`` appears next to it.

Afterwards `sys.path`, `sys.argv`, the standard streams and every module that was there are as before; the modules
from the user's folder are gone. Installed packages that the file imported stay, because most of them cannot be
imported twice. A reward that imports a neighbor only when it is called needs `imports_from` around the call.
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

from grpo_utils.errors import CourseError, did_you_mean

from .calling import OutOfTimeError, time_limit

#: Seconds that the import of a user's file may take; a file that loads a judge model needs some.
LONGEST_IMPORT = 60
COMMAND_LINE = (
    " While it is imported, sys.argv holds only the file's path: move code that reads the command line "
    'under `if __name__ == "__main__":`.'
)


def load_reward(target: str, *folders: Path) -> Callable:
    """The function that ``FILE.py:function`` or ``package.module.function`` names.

    Args:
        target: the file or module, and the name in it.
        folders: where modules are looked for, after everything that Python finds itself.

    Raises:
        CourseError: no such file, a file whose import fails, no such function in it, or a name
            that is not a function.
    """
    with imports_from(*folders_of(target), *folders):
        return find_reward(target)


def load_attribute(target: str, *folders: Path) -> object:
    """Whatever ``FILE.py:name`` or ``package.module.name`` names; arguments and errors as for `load_reward`.

    >>> load_attribute("math.pi")
    3.141592653589793
    """
    with imports_from(*folders_of(target), *folders):
        return find_attribute(target)


def folders_of(target: str) -> list[Path]:
    """The folder of the file that a target names, whose neighbors it may import.

    >>> folders_of("my_package.rewards.my_reward")
    []
    """
    path, colon, _ = target.rpartition(":")
    return [Path(path).parent] if colon else []


@contextmanager
def imports_from(*folders: Path) -> Iterator[None]:
    """Let modules be imported from a user's folders in the block; afterwards nothing of it is left.

    The folders come last on `sys.path`, so that no file of the user replaces a module of Python or of a package.
    """
    folders = tuple(dict.fromkeys(folder.resolve() for folder in folders))
    path, paths, modules, writes_no_bytecode = sys.path, list(sys.path), dict(sys.modules), sys.dont_write_bytecode
    here = [entry for entry in paths if entry in ("", str(Path.cwd()))]  # the user's as well: after the file's own
    sys.path[:] = [*(entry for entry in paths if entry not in here), *map(str, folders), *here]
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path, path[:], sys.dont_write_bytecode = path, paths, writes_no_bytecode
        for name in [name for name in list(sys.modules) if name not in modules and _is_from(folders, name, modules)]:
            del sys.modules[name]
        sys.modules.update(modules)


def _is_from(folders: tuple[Path, ...], name: str, before: dict[str, ModuleType]) -> bool:
    """Whether a module, or the package that it is in, was imported from a folder and was not there before."""
    top = name.partition(".")[0]
    spec = getattr(sys.modules.get(top), "__spec__", None)
    if top in before or spec is None:
        return False
    places = [Path(place) for place in spec.submodule_search_locations or [spec.origin or ""]]
    inside = [(place.resolve(), folder) for place in places for folder in folders if folder in place.resolve().parents]
    return any(not {"site-packages", "dist-packages"} & {*place.relative_to(folder).parts} for place, folder in inside)


def find_reward(target: str) -> Callable:
    """As `load_reward`, inside `imports_from`."""
    reward = find_attribute(target)
    where, _, name = _split(target)
    if inspect.isclass(reward):
        raise CourseError(
            f"{name!r} in {where} is a class. Make a reward of it in that file (my_reward = {name}(…)) and name that."
        )
    if not callable(reward):
        raise CourseError(f"{name!r} in {where} is a {type(reward).__name__}, not a function.")
    return reward


def find_attribute(target: str) -> object:
    """As `load_attribute`, inside `imports_from`."""
    where, sign, name = _split(target)
    module = _import_file(Path(where)) if sign == ":" else _import_module(where)
    if name not in dir(module):  # not vars: a package may load its names when they are used
        loaded = vars(module)
        own = [n for n in dir(module) if not n.startswith("_") and (n not in loaded or callable(loaded[n]))]
        place = f"{where} ({module.__file__})" if sign == "." and getattr(module, "__file__", None) else where
        hint = f"{did_you_mean(name, own)} Functions there: {', '.join(own[:20]) or 'none'}."
        raise CourseError(f"There is no {name!r} in {place}.{hint}")
    return getattr(module, name)


def _split(target: str) -> tuple[str, str, str]:
    """File or module, the sign between, and the name."""
    sign = "." if ":" not in target and not target.endswith(".py") else ":"
    where, found, name = target.rpartition(sign)
    if not found or not where or not name:
        raise CourseError(f"{target!r} names no function; write FILE.py:function, such as my_rewards.py:my_reward.")
    return where, sign, name


def _import_file(path: Path) -> ModuleType:
    """Run a file as a module of a name that no other module has."""
    if path.is_dir():
        raise CourseError(f"{str(path)!r} is a folder; name a file in it: {path / 'FILE.py'}:function.")
    if not path.is_file():
        near = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    name = re.sub(r"\W", "_", str(path.resolve()))
    if name in sys.modules:
        return sys.modules[name]  # another reward of the same file
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    if spec is None or path.suffix != ".py":
        raise CourseError(f"{str(path)!r} is no Python file; its name should end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look for it there
    with as_users_code(str(path), path.resolve()):
        spec.loader.exec_module(module)
    return module


def _import_module(name: str) -> ModuleType:
    with as_users_code(name, None):
        return importlib.import_module(name)


@contextmanager
def as_users_code(shown: str, path: Path | None) -> Iterator[None]:
    """Run somebody's module in the block: bounded in time, what it raises as one sentence."""
    argv, arguments, stdin = sys.argv, list(sys.argv), sys.stdin
    sys.argv, sys.stdin = [str(path or shown)], io.StringIO()
    try:
        with redirect_stdout(sys.stderr), time_limit(LONGEST_IMPORT):
            yield
    except KeyboardInterrupt:
        raise
    except OutOfTimeError as error:
        raise CourseError(f"{shown} cannot be imported: no end within {LONGEST_IMPORT} seconds.") from error
    except BaseException as error:  # somebody's own file runs here
        raise CourseError(f"{shown} cannot be imported: {_where(error, path)}") from error
    finally:
        sys.argv, argv[:], sys.stdin = argv, arguments, stdin


def _where(error: BaseException, path: Path | None) -> str:
    """An exception as one sentence, with the line of the file that it comes from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if path and Path(f.filename) == path]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    place = f" (line {line})" if line else ""
    return f"{type(error).__name__}: {error}{place}.{_hint(error, frames)}"


def _hint(error: BaseException, frames: list[traceback.FrameSummary]) -> str:
    if isinstance(error, ImportError):
        return " Install that package, or run this from the environment that has it."
    reads_argv = any("argv" in (frame.line or "") or "parse_args" in (frame.line or "") for frame in frames)
    return COMMAND_LINE if reads_argv or isinstance(error, SystemExit) else ""
