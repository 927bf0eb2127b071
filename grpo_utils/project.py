"""Start a project of your own: a copy of a template, a wheel with what it runs on, and a tiny model for a CPU.

The wheel in ``vendor/`` is grpo-check as it is here: the checks, and `grpo_run`, which trains, stops, resumes and
evaluates. So a project needs nothing else of the course, and no later version of it can break the project.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import wheel.wheelfile
from grpo_core.errors import CourseError, check_choice

from .models import TINY_MODELS

HERE = Path(__file__).parent
#: In a clone, the folder next to this package; a wheel has it inside the package.
TEMPLATES = HERE / "templates" if (HERE / "templates").is_dir() else HERE.parent / "templates"
#: The packages in the distribution of grpo-check.
PACKAGES = ("grpo_check", "grpo_core", "grpo_run")
#: What is not copied.
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".pytest_cache", "outputs", "tiny-model", ".env", "vendor")
_KIND = "Wheel-Version: 1.0\nGenerator: grpo_utils\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def template_names() -> list[str]:
    """The templates of the course.

    >>> "basic_grpo" in template_names()
    True
    """
    return sorted(path.name for path in TEMPLATES.glob("*") if path.is_dir() and not path.name.startswith((".", "_")))


def new_project(template: str, folder: str | Path) -> Path:
    """Copy a template, the wheel and a tiny model into a new or empty folder, and return the folder.

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
            # Without one, pytest would take the settings of a folder above, such as a clone of the course.
            (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
            write_wheel(folder / "vendor")
    except OSError as error:
        # copytree reports each file that it could not copy, and why.
        why = error.args[0][0][2] if isinstance(error, shutil.Error) else error.strerror
        raise CourseError(f"{str(folder)!r} cannot be written ({why}). Choose another folder.") from error
    return folder


def upgrade(folder: Path) -> list[str]:
    """Replace the wheel of a project, and return the files in it that changed.

    Raises:
        CourseError: the folder has no such wheel.
    """
    older = next((folder / "vendor").glob("grpo_check-*.whl"), None)
    if older is None:
        raise CourseError(f"{str(folder)!r} has no vendor/grpo_check-….whl, which `python -m grpo_utils new` writes.")
    before = _checksums(older)
    after = _checksums(write_wheel(folder / "vendor"))
    return sorted(name for name in before | after if before.get(name) != after.get(name) and ".dist-info/" not in name)


def _checksums(path: Path) -> dict[str, int]:
    """The checksum of each file in a wheel."""
    with ZipFile(path) as archive:
        return {one.filename: one.CRC for one in archive.infolist()}


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
    """Copy a template's own files into a folder."""
    shutil.copytree(TEMPLATES / template, folder, ignore=LEFT_OUT, dirs_exist_ok=True)


def write_wheel(folder: Path) -> Path:
    """Write the wheel of the installed grpo-check into a folder, in place of an older one, and return its path.

    The same modules always give the same bytes.

    Raises:
        OSError: the folder cannot be written.
    """
    of = distribution("grpo-check")
    name = f"{of.name.replace('-', '_')}-{of.version}"
    about = of.read_text("METADATA") or of.read_text("PKG-INFO")  # which a build leaves next to the sources
    files = {"METADATA": about, "entry_points.txt": of.read_text("entry_points.txt")}
    files = {f"{name}.dist-info/{part}": text.encode() for part, text in files.items()}
    files[f"{name}.dist-info/WHEEL"] = _KIND.encode()
    for package in PACKAGES:
        here = Path(import_module(package).__file__).parent
        found = [path for path in sorted(here.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
        files |= {f"{package}/{path.relative_to(here).as_posix()}": path.read_bytes() for path in found}
    packed = import_module("grpo_check.sections")  # by its name, as a part of what is packed
    files |= {f"grpo_check/pages/{page}": (packed.root_of_pages() / page).read_bytes() for page in packed.PAGES}
    folder.mkdir(parents=True, exist_ok=True)
    for older in folder.glob("grpo_check-*.whl"):
        older.unlink()
    path = folder / f"{name}-py3-none-any.whl"
    with _no_date(), wheel.wheelfile.WheelFile(path, "w", ZIP_DEFLATED) as archive:
        for inside in sorted(files):
            archive.writestr(ZipInfo(inside), files[inside], ZIP_DEFLATED)
    return path


@contextmanager
def _no_date() -> Iterator[None]:
    """Let `wheel` write no date of today, which it asks the environment for."""
    before = os.environ.get("SOURCE_DATE_EPOCH")
    os.environ["SOURCE_DATE_EPOCH"] = "315532800"  # 1980, where the dates of zip files begin
    try:
        yield
    finally:
        del os.environ["SOURCE_DATE_EPOCH"]
        os.environ |= {} if before is None else {"SOURCE_DATE_EPOCH": before}
