"""Load a reward from a user's file, notebook or module.

    >>> with imports_from(*folders_of("math.gcd")):
    ...     find_reward("math.gcd")(12, 18)
    6

A file that only defines things is imported as a whole. From a training script or a notebook, which would load a model,
only the reward and what it uses are run (`parts`, `costs`).

A user's file can have any name. It never replaces a module: its folder comes last on `sys.path`, and the file itself
is registered under a unique name. Its prints are discarded, its stdin is empty, and `sys.argv` contains only its own
path. Afterwards the modules from the user's folder are forgotten; installed packages that it imported stay, because
most of them cannot be imported twice. If a reward imports a neighboring file only when it is called, wrap the call in
`imports_from`.
"""

import ast
import importlib
import importlib.util
import io
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from grpo_core.errors import CourseError, did_you_mean

from .candidates import names_in, rewards_in
from .costs import check_part, leaves_out_packages, only_defines
from .kinds import as_reward
from .limits import OutOfTimeError, time_limit
from .parts import Part, part_of
from .sources import Source, read_source
from .syntax import FOR_A_MODULE, imports_in, missing_packages
from .targets import Target, file_of, parse_target

#: Seconds for the import of a file, which may load a judge model.
LONGEST_IMPORT = 60.0
COMMAND_LINE = (
    " During the import, sys.argv contains only the file's path, so move code that reads the command line "
    'under `if __name__ == "__main__":`.'
)
#: How many folders above a file may be the root of its project.
MOST_FOLDERS_ABOVE = 4


def folders_of(target: str) -> list[Path]:
    """The folder of the file that a target names, and the root of its package: the file may import from both.

    >>> folders_of("my_package.rewards.my_reward")
    []
    """
    path = file_of(target)
    return [] if path is None else list(dict.fromkeys([path.parent, *_roots(path)]))


def _roots(path: Path) -> Iterator[Path]:
    """The folders above a file from which its imports can be found: its package's, and those of other modules."""
    path = path.resolve()
    source = _read_or_none(path)
    if source is None:
        return
    if package := _package_of(path, source.body):
        yield path.parents[len(package)]
    for name in [name for one in imports_in(source.body) for name in missing_packages(one)]:
        if not _has_module(path.parent, name):
            above = path.parents[1 : MOST_FOLDERS_ABOVE + 1]
            yield from [folder for folder in above if _has_module(folder, name)][:1]


def _has_module(folder: Path, name: str) -> bool:
    return (folder / f"{name}.py").is_file() or (folder / name).is_dir()


def _read_or_none(path: Path) -> Source | None:
    """The code of a file; None if there is none that Python can read, which its import explains."""
    try:
        return read_source(path)
    except (OSError, SyntaxError, ValueError):
        return None


def _package_of(path: Path, statements: Sequence[ast.stmt]) -> list[str]:
    """The names of the packages that a file with relative imports is in, from the outermost one.

    They are the folders above it that have an ``__init__.py``, and at least as many as its imports go up.
    """
    levels = [one.level for one in imports_in(statements) if isinstance(one, ast.ImportFrom) and one.level]
    folders = path.resolve().parents
    depth = next((i for i, folder in enumerate(folders) if not (folder / "__init__.py").is_file()), 0)
    return [folder.name for folder in folders[: max([depth, *levels])]][::-1] if levels else []


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
        for name in [name for name in set(sys.modules) - modules if _is_from(folders, name)]:
            del sys.modules[name]


def _is_from(folders: tuple[Path, ...], name: str) -> bool:
    """Whether a module lies in a folder of the user, and not in an environment there."""
    known = getattr(sys.modules[name], "__dict__", {})  # getattr may import more
    places = [known.get("__file__") or "", *known.get("__path__", ())]  # a folder may be a package
    paths = [Path(place) for place in places if place]
    return any(
        "site-packages" not in path.parts and any(folder in path.parents for folder in folders) for path in paths
    )


def find_reward(text: str) -> Callable:
    """The function that a target names; to be called in `imports_from`.

    A target is ``FILE.py:function``, ``NOTEBOOK.ipynb:function``, ``package.module.function``, or a file with one
    reward. A class without arguments and a function that makes a reward count too, as `kinds` says. If only a part of
    the file was run, or the reward was made from what the target names, `how_loaded` of the function says so.

    Raises:
        CourseError: the file does not exist, what is needed of it cannot be run, or the name in it does not exist or
            is not a reward.
    """
    target = parse_target(text)
    if not target.where or not (target.name or text.endswith(target.where)):
        raise CourseError(f"{text!r} names no function; write FILE.py:function, such as my_rewards.py:my_reward.")
    target.arguments  # noqa: B018 (says what is wrong with them before anything is run)
    found, how = _from_file(target) if target.is_file else (_from_module(target), "")
    with as_users_code(str(target), None, verb="called"):
        reward, made = as_reward(found, target)
    if how or made:
        _note(reward, ", ".join(filter(None, [made, how])))
    return reward


def how_loaded(reward: Callable) -> str:
    """How a reward was found, in half a sentence: ``taken from train.py without running the rest of it``, or ''."""
    return getattr(reward, "how_loaded", "")


def _note(reward: Callable, how: str) -> None:
    with suppress(AttributeError):  # of a method, or of an object with slots
        reward.how_loaded = how


def _from_module(target: Target) -> object:
    """What a dotted path names."""
    with as_users_code(target.where, None):
        module = importlib.import_module(target.where)
    if target.name in dir(module):  # not vars: a package may load its names when they are used
        return getattr(module, target.name)
    loaded = vars(module)
    own = [n for n in dir(module) if not n.startswith("_") and (n not in loaded or callable(loaded[n]))]
    place = f"{target.where} ({module.__file__})" if getattr(module, "__file__", None) else target.where
    raise _no_such_name(target.name, place, own)


def _no_such_name(name: str, place: str, names: list[str], unread: Sequence[str] = ()) -> CourseError:
    shown = ", ".join(names[:20]) or "none"
    more = "".join(f" Note that {one}." for one in unread)
    return CourseError(f"There is no {name!r} in {place}.{did_you_mean(name, names)} Functions there: {shown}.{more}")


def _from_file(target: Target) -> tuple[object, str]:
    """What a target names in a file, and how it was found."""
    path = Path(target.where)
    _check_file(path)
    source = _read_or_none(path)
    if source is None and path.suffix == ".ipynb":
        source = read_source(path)  # says what is wrong with it
    if source is None:
        _import_file(path, [])  # which raises, and says why
        raise CourseError(f"{target.where} cannot be read.")
    name = target.name or _only_reward(target, source)
    part = part_of(source, name)
    if not part:
        raise _no_such_name(name, target.where, names_in(source), source.unread)
    check_part(source, part)
    defines = only_defines(source)
    if defines and part.whole and not leaves_out_packages(source, part):
        module = _import_file(path, _package_of(path, source.body))
    else:
        module = _run_part(source, part)
    found = _attribute(module, part.name)
    if found is None:
        raise _no_such_name(name, target.where, names_in(source), source.unread)
    return found, "" if defines else f"taken from {path.name} without running the rest of it"


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise CourseError(f"{str(path)!r} is a folder; name a file in it: {path / 'FILE.py'}:function.")
    if not path.is_file():
        near = [other.name for pattern in ("*.py", "*.ipynb") for other in path.parent.glob(pattern)]
        raise CourseError(f"There is no file {str(path)!r}.{did_you_mean(path.name, near)}")
    if path.suffix not in (".py", ".ipynb"):
        raise CourseError(f"{str(path)!r} is not a Python file; its name should end in .py or .ipynb.")


def _only_reward(target: Target, source: Source) -> str:
    """The reward of a file that has one."""
    found = rewards_in(source)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CourseError(
            f"{target.where} has no function with a parameter `completions`, which a reward of TRL needs; name the "
            f"function: {target.where}:my_reward."
        )
    raise CourseError(
        f"{target.where} has {len(found)} rewards: {', '.join(found)}. Name one or more of them, such as "
        f"{target.where}:{found[0]}."
    )


def _attribute(module: ModuleType, name: str) -> object:
    """What a name in a module, such as ``reward`` or ``Class.method``, refers to; None if there is none."""
    found: object = module
    for one in name.split("."):
        if one not in dir(found):
            return None
        found = getattr(found, one)
    return found


def _import_file(path: Path, package: list[str]) -> ModuleType:
    """Run a whole file as a module: under its own name in a package if it has relative imports, else a unique one."""
    shown, path = str(path), path.resolve()
    name = ".".join([*package, path.stem]) if package else _unique_name(path)
    if name not in sys.modules:  # it is there if this is another reward of the same file
        with as_users_code(shown, path):
            _check_package(package, path)
            spec = importlib.util.spec_from_file_location(name, path)
            sys.modules[name] = importlib.util.module_from_spec(spec)  # dataclasses and pickle look for it there
            spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def _unique_name(path: Path) -> str:
    return re.sub(r"\W", "_", str(path.resolve()))


def _check_package(package: list[str], path: Path) -> None:
    """Import the package of a file, and raise a `CourseError` if another one of its name comes first."""
    if not package:
        return
    name = ".".join(package)
    places = [Path(one).resolve() for one in importlib.import_module(name).__path__]
    if path.parent not in places:
        raise CourseError(
            f"{path} imports its neighbors as a part of the package {name}, but Python finds another {name} in "
            f"{places[0]}. Use an environment that has only yours, and name it {name}.{path.stem}.FUNCTION."
        )


def _run_part(source: Source, part: Part) -> ModuleType:
    """Run the part of a file that a reward needs, as a module with a unique name."""
    package = _package_of(source.path, part.statements)
    name = ".".join([*package, _unique_name(source.path / part.name)])
    if name not in sys.modules:
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None, origin=source.filename)
        module.__package__ = ".".join(package)
        module.__file__ = source.filename
        if source.text:  # so that inspect.getsource works
            lines = [f"{line}\n" for line in source.text.split("\n")]
            linecache.cache[source.filename] = (len(source.text), None, lines, source.filename)
        sys.modules[name] = module
        with as_users_code(f"what {part.name} uses in {source.path}", Path(source.filename), source.place):
            _check_package(package, source.path.resolve())
            exec(compile(ast.Module(part.statements, []), source.filename, "exec"), vars(module))
    return sys.modules[name]


@contextmanager
def as_users_code(
    shown: str, path: Path | None, place: Callable[[int], str] = "line {}".format, verb: str = "imported"
) -> Iterator[None]:
    """Run code of a user in the block, with a time limit; an exception becomes one sentence.

    Args:
        shown: what is run, as the message names it.
        path: the file in the code objects, whose lines the message names.
        place: a line of it, in words.
        verb: what is done with the code.
    """
    argv, stdin = sys.argv, sys.stdin
    sys.argv, sys.stdin = [str(path or shown)], io.StringIO()
    try:
        with redirect_stdout(io.StringIO()), time_limit(LONGEST_IMPORT):
            yield
    except (KeyboardInterrupt, CourseError):
        raise
    except OutOfTimeError as error:
        raise CourseError(
            f"{shown} cannot be {verb}: not finished after {LONGEST_IMPORT:g} seconds. Move the reward and what it "
            "uses into a file that does nothing else."
        ) from error
    except BaseException as error:  # this runs a user's file
        raise CourseError(f"{shown} cannot be {verb}: {_sentence(error, path, place)}") from error
    finally:
        sys.argv, sys.stdin = argv, stdin


def _sentence(error: BaseException, path: Path | None, place: Callable[[int], str]) -> str:
    """An exception as one sentence, with the line of the file that it comes from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if path and Path(f.filename) == path]
    line = error.lineno if isinstance(error, SyntaxError) else frames[-1].lineno if frames else None
    hint = ""
    if isinstance(error, ImportError):
        hint = f" {FOR_A_MODULE}"
    elif isinstance(error, SystemExit) or any(re.search("argv|parse_args", frame.line or "") for frame in frames):
        hint = COMMAND_LINE
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}{f' ({place(line)})' if line else ''}.{hint}"
