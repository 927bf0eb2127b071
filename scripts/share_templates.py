"""Write the lib/ of each template, and the files that it shares with basic_grpo: `make templates`."""

import ast
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "templates"
#: The modules of a lib/: those that lessons use too, and those that only templates need.
SOURCES = {path.stem: path for folder in ("grpo_utils/run", "templates/_lib") for path in (ROOT / folder).glob("*.py")}
TASK = ("rewards.py", "data.py", "test_rewards.py")
COMMON = (".gitignore", ".env.example", "requirements-unsloth.txt")

#: Each template, and the files that it shares with basic_grpo.
SHARED = {
    "basic_grpo": (),
    "minimal": (".gitignore", "requirements-unsloth.txt"),
    "multi_stage": (*COMMON, *TASK, "requirements.txt"),
    "structured_output": (*COMMON, "train.py"),
    "code_reward": (*COMMON, "train.py", "requirements.txt"),
    "own_data": (".gitignore", "requirements-unsloth.txt"),
    "tool_agent": (*COMMON, "requirements.txt"),
    "scale_out": (*TASK, ".gitignore", ".env.example"),
}


def imported(path: Path) -> set[str]:
    """The modules of lib/ that a file imports: ``from lib.rows``, ``from lib import start`` or ``from .rows``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or re.match(r"lib\b", node.module)):
            found |= {(node.module or "").rpartition(".")[2], *(alias.name for alias in node.names)}
    return found & set(SOURCES)


def lib_of(template: str) -> dict[str, Path]:
    """The sources of a template's lib/: the modules that its own files import, and what those import; {} for none.

    Nothing imports ``report``, which is a command.
    """
    new = set().union(*map(imported, (TEMPLATES / template).glob("*.py")))
    if not new:
        return {}
    names, new = {"__init__"}, new | {"report"}
    while new:
        names |= new
        new = set().union(*(imported(SOURCES[name]) for name in new)) - names
    return {SOURCES[name].name: SOURCES[name] for name in names}


def in_lib(path: Path) -> str:
    """The text of a source in a template's lib/, where the first line names the source."""
    [version] = re.findall(r'^__version__ = "(.*)"$', (ROOT / "grpo_utils" / "__init__.py").read_text(), re.MULTILINE)
    head = f"# Generated from grpo_utils {version}, {path.relative_to(ROOT).as_posix()}; the same in every template.\n"
    return head + path.read_text(encoding="utf-8")


def main() -> None:
    """Write all copies."""
    for name, files in SHARED.items():
        for file in files:
            shutil.copy(TEMPLATES / "basic_grpo" / file, TEMPLATES / name / file)
        lib = TEMPLATES / name / "lib"
        shutil.rmtree(lib, ignore_errors=True)
        for file, path in lib_of(name).items():
            lib.mkdir(exist_ok=True)
            (lib / file).write_text(in_lib(path), encoding="utf-8")


if __name__ == "__main__":
    main()
