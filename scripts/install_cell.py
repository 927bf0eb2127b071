"""The install cell of the lessons, from one template.

In a source, this cell has only the line `# {{install}}`, or `# {{install NAME}}` if the lesson also needs the packages
of `requirements-NAME.txt`, which are installed without their dependencies.

    python scripts/install_cell.py    write the template into the built lessons; nothing is executed

The built lessons keep their addresses, and the cell has no output: it does nothing outside Colab and Kaggle.
This module needs no installed package.
"""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
HOST = "https://github.com/"
ALONE = ("unsloth", "reasoning-gym")
MARKS = {"# {{install}}": "", **{f"# {{{{install {name}}}}}": name for name in ALONE}}
FIRST_LINE = re.compile(r'^REPO = ".*"(?=  # "owner/name")')

#: An uploaded wheel takes precedence. IPython and Colab set `_exit_code` after each %pip. An error of this class stops
#: Run All and shows only its sentence: SystemExit shows two warnings as well, and other errors a traceback.
CELL = f"""\
REPO = ""  # "owner/name" on GitHub
import os
from pathlib import Path
if {{"COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"}} & set(os.environ):
    class NotInstalled(Exception):
        _render_traceback_ = lambda self: [str(self)]
    files = [*Path.cwd().glob("grpo_*any.whl"), *Path("/kaggle/input").rglob("grpo_*any.whl")]
    wheels = {{file.name.partition("-")[0]: file.as_uri() for file in sorted(files)}}
    if not (REPO or len(wheels) == 2):
        raise NotInstalled(
            "To install the course, write the owner/name of its GitHub repository into REPO in the "
            "first line, or upload grpo_check*.whl and grpo_utils*.whl (`make wheel` builds them), then "
            "run this cell again; a lesson that you open with the badge on its GitHub page needs neither."
        )
    checks = wheels.get("grpo_check", f"git+{HOST}{{REPO}}#subdirectory=grpo_check")
    course = wheels.get("grpo_utils", f"git+{HOST}{{REPO}}")
    %pip install -q "grpo-check @ {{checks}}" "grpo_utils[colab] @ {{course}}"
    if _exit_code:
        raise NotInstalled("pip failed: see its error above, then run this cell again.")
"""
NO_DEPS = """\
    %pip install -q --no-deps {pins}
    if _exit_code:
        raise NotInstalled("pip failed: see its error above, then run this cell again.")
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


def refreshed(text: str, source: str) -> str:
    """A built lesson with the install cell of today's template, its own address and no other change."""
    [alone] = [MARKS[line] for line in source.splitlines() if line in MARKS]
    book = json.loads(text)
    for cell in book["cells"]:
        first = FIRST_LINE.match("".join(cell["source"]))
        if first:
            lines = FIRST_LINE.sub(first[0], install_cell("", alone))
            cell["source"] = lines.splitlines(keepends=True)
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"


def main() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        source = ROOT / "notebooks" / "source" / f"{path.stem}.py"
        old = path.read_text(encoding="utf-8")
        new = refreshed(old, source.read_text(encoding="utf-8"))
        path.write_bytes(new.encode())  # on Windows too, keep the line ends of git
        print(f"{path.name}: {'unchanged' if new == old else 'install cell written'}")


if __name__ == "__main__":
    main()
