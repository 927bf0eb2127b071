"""The course's lists of requirements, and what the pinned Unsloth asks for."""

import re
import tomllib
from importlib import metadata

from course import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from grpo_utils.install import UNSLOTH

#: A row of the table in requirements-gpu.txt: a package, and why it is left out.
LEFT_OUT = re.compile(r"^#   ([\w-]+): (\S.+)$", re.MULTILINE)


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def requirements(text: str) -> list[Requirement]:
    """The lines of a requirements file, without a wheel that lies in the project."""
    lines = [line.split(" #")[0].strip() for line in text.splitlines() if not line.startswith(("#", "./"))]
    return [Requirement(line) for line in lines if line]


def extras() -> dict[str, list[Requirement]]:
    lists = tomllib.loads(read("pyproject.toml"))["project"]["optional-dependencies"]
    return {extra: [Requirement(line) for line in lines] for extra, lines in lists.items()}


def pinned(those: list[Requirement]) -> dict[str, str]:
    """``name: version`` of the exact ones."""
    exact = {canonicalize_name(r.name): re.fullmatch(r"==([\w.]+)", str(r.specifier)) for r in those}
    return {name: match[1] for name, match in exact.items() if match}


def needs() -> list[Requirement]:
    """What the pinned Unsloth asks for on any system, without its extras."""
    lines = [line for package in UNSLOTH for line in metadata.requires(package)]
    return [r for r in map(Requirement, lines) if not (r.marker and "extra" in str(r.marker))]


def left_out() -> dict[str, str]:
    return {canonicalize_name(name): reason for name, reason in LEFT_OUT.findall(read("requirements-gpu.txt"))}
