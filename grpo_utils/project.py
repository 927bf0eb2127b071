"""Start a project of your own: a copy of a template, with a tiny model that trains on a CPU."""

import shutil
from pathlib import Path

from grpo_core.errors import CourseError, check_choice

from .models import TINY_MODELS

TEMPLATES = Path(__file__).parent.parent / "templates"
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".pytest_cache", "outputs", "tiny-model", ".env")


def template_names() -> list[str]:
    """The templates of the course.

    >>> "basic_grpo" in template_names()
    True
    """
    return sorted(path.name for path in TEMPLATES.glob("*") if path.is_dir() and not path.name.startswith((".", "_")))


def new_project(template: str, folder: str | Path) -> Path:
    """Copy a template and a tiny model into a new or empty folder, and return the folder.

    Raises:
        CourseError: the template is unknown or not installed, or the folder is not empty.
    """
    folder = Path(folder)
    if not TEMPLATES.is_dir():
        raise CourseError("The templates are not installed. Clone the course, and run the command there.")
    check_choice("TEMPLATE", template, template_names())
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CourseError(f"{str(folder)!r} is not an empty folder; nothing was written. Choose a new folder.")
    shutil.copytree(TEMPLATES / template, folder, ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.copytree(TINY_MODELS / "tiny-qwen3", folder / "tiny-model")
    return folder
