"""Copy grpo_utils/run and templates/_lib to each lib/, and shared files from basic_grpo: `make templates`."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEMPLATES, KITCHEN = ROOT / "templates", ROOT / "grpo_utils" / "run"
#: What lessons share with the templates, and what only templates need.
SOURCES = sorted([*KITCHEN.glob("*.py"), *(TEMPLATES / "_lib").glob("*.py")], key=lambda path: path.name)
TASK = ("rewards.py", "data.py", "test_rewards.py", ".gitignore")

#: Each template with a lib/, and the files that it shares with basic_grpo.
SHARED = {
    "basic_grpo": (),
    "multi_stage": TASK,
    "structured_output": ("train.py", ".gitignore"),
    "code_reward": ("train.py", ".gitignore"),
    "own_data": (".gitignore",),
    "tool_agent": (".gitignore",),
    "scale_out": TASK,
}


def in_lib(path: Path) -> str:
    """The text of a source in a template's lib/, where the first line names the source."""
    [version] = re.findall(r'^__version__ = "(.*)"$', (ROOT / "grpo_utils" / "__init__.py").read_text(), re.MULTILINE)
    head = f"# Generated from grpo_utils {version}, {path.relative_to(ROOT).as_posix()}; the same in every template.\n"
    return head + path.read_text(encoding="utf-8")


def main() -> None:
    """Write all copies."""
    for name, files in SHARED.items():
        lib = TEMPLATES / name / "lib"
        shutil.rmtree(lib, ignore_errors=True)
        lib.mkdir()
        for path in SOURCES:
            (lib / path.name).write_text(in_lib(path), encoding="utf-8")
        for file in files:
            shutil.copy(TEMPLATES / "basic_grpo" / file, TEMPLATES / name / file)


if __name__ == "__main__":
    main()
