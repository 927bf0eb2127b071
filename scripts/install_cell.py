"""The install cell of the lessons, from one template.

In a source, this cell has only the line `# {{install}}`, or `# {{install unsloth}}` if the lesson needs Unsloth.
This module needs no installed package.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOST = "https://github.com/"
MARKS = {"# {{install}}": False, "# {{install unsloth}}": True}
FIRST_LINE = re.compile(r'^REPO = ".*"(?=  # "owner/name")')

#: An uploaded wheel takes precedence. IPython and Colab set `_exit_code` after each %pip.
CELL = f"""\
REPO = ""  # "owner/name" on GitHub
import os
from pathlib import Path
if {{"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"}} & set(os.environ):
    files = sorted(Path.cwd().glob("grpo_utils-*any.whl"))
    files += Path("/kaggle/input").rglob("grpo_utils-*any.whl")
    assert files or REPO, "Set REPO above, or upload grpo_utils*.whl here."
    course = files[-1].as_uri() if files else f"git+{HOST}{{REPO}}"
    %pip install -q "grpo_utils[colab] @ {{course}}"
    assert not _exit_code, "pip failed: see its error, then rerun this cell."
"""
UNSLOTH = """\
    %pip install -q --no-deps {pins}
    assert not _exit_code, "pip failed: see its error, then rerun this cell."
"""


def install_cell(address: str, unsloth: bool) -> str:
    """The cell for a public address, or "" if none is set."""
    text = with_address(CELL, address)
    if unsloth:
        pins = re.findall(r"^\S+==\S+", (ROOT / "requirements-unsloth.txt").read_text(encoding="utf-8"), re.MULTILINE)
        text = text.replace("[colab]", "[colab,unsloth]") + UNSLOTH.format(pins=" ".join(pins))
    return text.rstrip()


def with_address(cell: str, address: str) -> str:
    """A built install cell with another address; any other cell is not changed."""
    return FIRST_LINE.sub(f'REPO = "{address.removeprefix(HOST)}"', cell)


def expand(cell: str, address: str) -> str:
    """The code of a cell, replaced by the install cell if the source asks for it."""
    return install_cell(address, MARKS[cell]) if cell in MARKS else cell
