"""Copy the minutes and memory of each lesson to README, instructor guide, lessons and learning path.

    python scripts/minutes.py

They are measured in docs/results.md. A lesson that is too long for `make bench` prints the minutes of its stored run.
`make bench` calls this script; a test compares all of these pages with what was measured.
"""

import re
import sys
from pathlib import Path

from build_notebooks import ROOT, SOURCES, rewrite

RESULTS, README, GUIDE = ROOT / "docs" / "results.md", ROOT / "README.md", ROOT / "docs" / "instructor-guide.md"
#: The learning path's diagram; its files then need `make figures`.
LEARNING_PATH = ROOT / "scripts" / "drawings" / "guides.py"


#: The stored run shared its machine. An idle one took 57 minutes, without the cell of examples in the prompt. Delete
#: this when a run on an idle machine is stored.
ON_AN_IDLE_MACHINE = {"14_real_model": 57}


def printed_minutes(name: str) -> int | None:
    """The minutes that a lesson's stored run says it took; None if `make bench` measures them."""
    if name in ON_AN_IDLE_MACHINE:
        return ON_AN_IDLE_MACHINE[name]
    path = SOURCES.parent / f"{name}.ipynb"
    if not path.is_file():
        sys.exit(f"Error: {name} is not built. Run: make notebooks ARGS={name}")
    text = path.read_text(encoding="utf-8")
    found = re.search(r"This lesson took (\d+) minutes", text)
    return int(found[1]) if found else None


def measured(name: str) -> tuple[str, str]:
    """Rounded minutes of the slower family, and memory of the family that needs more.

    A lesson that prints its minutes has no measured memory: ``("59 minutes", "")``.
    """
    if (printed := printed_minutes(name)) is not None:
        return f"{printed} minutes", ""
    page = RESULTS.read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{name}` \| \w+ \| (\d+) s \| ([\d.]+) GB \|", page, flags=re.MULTILINE)
    if len(rows) != 2:
        sys.exit(f"Error: docs/results.md does not have both families of {name}; run make bench")
    minutes = max(1, round(max(int(seconds) for seconds, _ in rows) / 60))
    return f"{minutes} minute{'s' * (minutes > 1)}", f"{max(float(peak) for _, peak in rows):.1f} GB"


def put(path: Path, row: str, cell: int, text: str) -> None:
    """Put ``text`` into a cell of the one row of a table that matches ``row``; cell 0 is what is before the table."""
    page = path.read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if re.search(row, line)]
    cells = line.split("|")
    cells[cell] = f" {text} "
    path.write_text(page.replace(line, "|".join(cells)), encoding="utf-8")


def main() -> None:
    found = {source: measured(source.stem) for source in sorted(SOURCES.glob("*.py"))}  # before anything is written
    for source, (minutes, memory) in found.items():
        lesson = rf'^(    "{source.stem[:2]} .+": )\d+,$'
        page = LEARNING_PATH.read_text(encoding="utf-8")
        page = re.sub(lesson, rf"\g<1>{minutes.split()[0]},", page, flags=re.MULTILINE)
        LEARNING_PATH.write_text(page, encoding="utf-8")
        put(README, rf"^\| \[\d\d .*{source.stem}\.ipynb", 3, minutes.split()[0])
        put(GUIDE, rf"^\| \[\d\d .*{source.stem}\.ipynb", 2, f"{minutes} (measured)")
        page = "([measured](../docs/results.md))" if memory else "(measured)"
        put(source, r"^# \| time for Run All \|", 2, f"about {minutes} {page}")
        if memory:
            put(source, r"^# \| memory \|", 2, f"{memory} {page}")
        rewrite(source)


if __name__ == "__main__":
    main()
