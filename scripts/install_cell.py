"""The install cell of the lessons, from one template.

In a source, this cell has only the line `# {{install}}`, or `# {{install NAME}}` if the lesson also needs the packages
of `requirements-NAME.txt`, which are installed without their dependencies.
This module needs no installed package.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOST = "https://github.com/"
ALONE = ("unsloth", "reasoning-gym")
MARKS = {"# {{install}}": "", **{f"# {{{{install {name}}}}}": name for name in ALONE}}
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
NO_DEPS = """\
    %pip install -q --no-deps {pins}
    assert not _exit_code, "pip failed: see its error, then rerun this cell."
"""


def install_cell(address: str, alone: str = "") -> str:
    """The cell for a public address, or "" if none is set; ``alone`` names what is installed without dependencies."""
    text = with_address(CELL, address)
    if alone:
        lines = (ROOT / f"requirements-{alone}.txt").read_text(encoding="utf-8")
        text += NO_DEPS.format(pins=" ".join(re.findall(r"^\S+==\S+", lines, re.MULTILINE)))
    return (text.replace("[colab]", "[colab,unsloth]") if alone == "unsloth" else text).rstrip()


def with_address(cell: str, address: str) -> str:
    """A built install cell with another address; any other cell is not changed."""
    return FIRST_LINE.sub(f'REPO = "{address.removeprefix(HOST)}"', cell)


def expand(cell: str, address: str) -> str:
    """The code of a cell, replaced by the install cell if the source asks for it."""
    return install_cell(address, MARKS[cell]) if cell in MARKS else cell
