"""Start a project of your own: a copy of a template with its lib/, and a tiny model that trains on a CPU.

A lib/ is how a run works: the modules of `grpo_core.training` and of templates/_lib that the template uses, directly or
through another one. They are copied, so that a project needs nothing else of the course and no later version of it can
break the project.
"""

import ast
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grpo_core import training
from grpo_core.errors import CourseError, check_choice

from . import __version__
from .models import TINY_MODELS

HERE = Path(__file__).parent
#: In a clone, the folder next to this package; a wheel has it inside the package.
TEMPLATES = HERE / "templates" if (HERE / "templates").is_dir() else HERE.parent / "templates"
#: What lessons, templates and checks share of a run.
_TRAINING = Path(training.__file__).parent
#: The modules of a lib/ by name: those that lessons use too, and those that only templates need.
SOURCES = {path.stem: path for folder in (_TRAINING, TEMPLATES / "_lib") for path in sorted(folder.glob("*.py"))}
#: The modules that users run, as in ``python -m lib.report``; no module has to import them.
COMMANDS = {"report", "merge", "push"}
#: What is not copied: lib/ is written anew, and lib.py only stands in for a lib/ that is missing.
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".pytest_cache", "outputs", "tiny-model", ".env", "lib", "lib.py")


def template_names() -> list[str]:
    """The templates of the course.

    >>> "basic_grpo" in template_names()
    True
    """
    return sorted(path.name for path in TEMPLATES.glob("*") if path.is_dir() and not path.name.startswith((".", "_")))


def new_project(template: str, folder: str | Path) -> Path:
    """Copy a template and a tiny model into a new or empty folder, and return the folder.

    Raises:
        CourseError: the template is unknown, or the folder is not empty or cannot be written.
    """
    folder = Path(folder)
    check_choice("TEMPLATE", template, template_names())
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise CourseError(f"{str(folder)!r} is not an empty folder; nothing was written. Choose a new folder.")
        with _whole_or_nothing(folder):
            copy_template(template, folder)
            shutil.copytree(TINY_MODELS / "tiny-qwen3", folder / "tiny-model")
    except OSError as error:
        # copytree reports each file that it could not copy, and why.
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise CourseError(f"{str(folder)!r} cannot be written ({why}). Choose another folder.") from error
    return folder


@contextmanager
def _whole_or_nothing(folder: Path) -> Iterator[None]:
    """Remove what was written to a new or empty folder if not all of it was, so that the next try finds it empty."""
    existed = folder.is_dir()
    try:
        yield
    except BaseException:
        for path in folder.iterdir() if folder.is_dir() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        if folder.is_dir() and not existed:
            folder.rmdir()
        raise


def copy_template(template: str, folder: Path) -> None:
    """Copy a template's own files into a folder, and write its lib/ there."""
    shutil.copytree(TEMPLATES / template, folder, ignore=LEFT_OUT, dirs_exist_ok=True)
    write_lib(template, folder)


def write_libs() -> None:
    """Write the lib/ of each template where the template itself is, for work on it in a clone."""
    for name in template_names():
        write_lib(name, TEMPLATES / name)


def write_lib(template: str, folder: Path) -> None:
    """Write a template's lib/ into a folder; what is in place already is left alone, as another process may read it."""
    lib, wanted = folder / "lib", {name: _in_lib(path) for name, path in lib_of(template).items()}
    for path in lib.glob("*.py"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        lib.mkdir(exist_ok=True)
        path = lib / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def lib_of(template: str) -> dict[str, Path]:
    """The sources of a template's lib/: the modules that its own files import, what those import, and `COMMANDS`.

    {} for a template that has no lib/.
    """
    new = set().union(*map(imported, (TEMPLATES / template).glob("*.py")))
    if not new:
        return {}
    names, new = {"__init__"}, new | COMMANDS
    while new:
        names |= new
        new = set().union(*(imported(SOURCES[name]) for name in new)) - names
    return {SOURCES[name].name: SOURCES[name] for name in sorted(names)}


def imported(path: Path) -> set[str]:
    """The modules of lib/ that a file imports: ``from lib.rows``, ``from lib import start`` or ``from .rows``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or re.match(r"lib\b", node.module)):
            found |= {(node.module or "").rpartition(".")[2], *(alias.name for alias in node.names)}
    return found & set(SOURCES)


def _in_lib(path: Path) -> str:
    """The text of a source in a template's lib/, where the first line names the source."""
    source = "/".join(path.parts[-3:])  # grpo_core/training/policy.py or templates/_lib/start.py
    head = f"# Generated from grpo_utils {__version__}, {source}; the same in every template.\n"
    return head + path.read_text(encoding="utf-8")
