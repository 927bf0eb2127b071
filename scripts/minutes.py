"""Copy the minutes and memory of each lesson to README, instructor guide, lessons and the slide that lists them.

    python scripts/minutes.py

What a person needs is the guide's estimate. What Run All takes by the clock is at least its processor time, which
docs/results.md has. On a busy machine it is longer: the bars of a stored run show by how much. `make bench` calls
this script; a test compares the pages with their sources.
"""

import json
import re
import sys
from math import ceil
from pathlib import Path

from build_notebooks import ROOT, SOURCES, rewrite

RESULTS, README, GUIDE = ROOT / "docs" / "results.md", ROOT / "README.md", ROOT / "docs" / "instructor-guide.md"
#: The lessons with their minutes, for a slide.
SLIDE = ROOT / "scripts" / "drawings" / "guides.py"
#: The time of a finished bar of `grpo_utils.progress`, in minutes and seconds, perhaps with hours.
BAR = re.compile(r"\| \d+/\d+ (?:(\d+):)?(\d+):(\d\d)<")
#: A stored run that was this much slower than an idle machine shows the reader a range.
LONGER = 1.5
#: The stored run shared its machine. An idle one took 57 minutes, without the cell of examples in the prompt. Delete
#: this when a run on an idle machine is stored.
ON_AN_IDLE_MACHINE = {"05_real_model": 57}


def outputs(name: str) -> str:
    """What a lesson's stored run printed."""
    path = SOURCES.parent / f"{name}.ipynb"
    if not path.is_file():
        sys.exit(f"Error: {name} is not built. Run: make notebooks ARGS={name}")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "".join("".join(output.get("text", ())) for cell in cells for output in cell.get("outputs", ()))


def printed_minutes(name: str) -> int | None:
    """The minutes that a lesson's stored run says it took; None if `make bench` measures them."""
    found = re.search(r"This lesson took (\d+) minutes", outputs(name))
    return int(found[1]) if found else None


def seconds_of_bars(name: str) -> int:
    """The seconds by the clock that training took in a lesson's stored run."""
    times = [(int(hours or 0), int(minutes), int(seconds)) for hours, minutes, seconds in BAR.findall(outputs(name))]
    return sum(3600 * hours + 60 * minutes + seconds for hours, minutes, seconds in times)


def measured(name: str) -> tuple[str, str]:
    """Minutes of Run All, such as "2 to 10 minutes", and the memory of the family that needs more.

    A lesson that prints its minutes has no measured memory: ``("57 to 117 minutes", "")``.
    """
    if (printed := printed_minutes(name)) is not None:
        return span(ON_AN_IDLE_MACHINE.get(name, printed), printed), ""
    seconds, memory = seconds_and_memory(name)
    return span(seconds / 60, seconds_of_bars(name) / 60), f"{memory:.1f} GB"


def seconds_and_memory(name: str) -> tuple[int, float]:
    """The processor time and the memory of a lesson, of the family that needs more."""
    page = RESULTS.read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `{name}` \| \w+ \| (\d+) s \| ([\d.]+) GB \|", page, flags=re.MULTILINE)
    if len(rows) != 2:
        sys.exit(f"Error: docs/results.md does not have both families of {name}; run make bench")
    return max(int(seconds) for seconds, _ in rows), max(float(peak) for _, peak in rows)


def with_seconds(guide: str) -> str:
    """The guide with the seconds of each run that a plan waits for, and those on a laptop of half the speed."""

    def row(found: re.Match) -> str:
        seconds, _ = seconds_and_memory(found[2])
        return f"{found[1]} | {seconds} | {2 * seconds};"

    return re.sub(r"^(\| `(\d\d_\w+)`, [^|]+\|[^|]+\|[^|]+) \| \d+ \| \d+;", row, guide, flags=re.MULTILINE)


def span(idle: float, stored: float) -> str:
    """The minutes on an idle machine, and those of the stored run if they are half as many again or more."""
    least = max(1, round(idle))
    if stored < LONGER * idle:
        return f"{least} minute{'s' * (least > 1)}"
    return f"{least} to {ceil(stored)} minutes"


def needed(name: str) -> str:
    """The minutes that a person needs for a lesson, as the guide estimates them: "55–65"."""
    [row] = re.findall(rf"^\| \[\d\d [^|]*{name}\.ipynb.*$", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.match(r"[\d–]+", row.split("|")[4].strip())[0]


def put(path: Path, row: str, cell: int, text: str) -> None:
    """Put ``text`` into a cell of the one row of a table that matches ``row``; cell 0 is what is before the table."""
    page = path.read_text(encoding="utf-8")
    [line] = [line for line in page.splitlines() if re.search(row, line)]
    cells = line.split("|")
    cells[cell] = f" {text} "
    path.write_text(page.replace(line, "|".join(cells)), encoding="utf-8")


def say_minutes(source: Path, minutes: str, memory: str) -> None:
    """Put a person's minutes, and those of Run All with its memory, into the line of a lesson that says them."""
    text = source.read_text(encoding="utf-8")
    run_all = f"*Run All* takes about {minutes} on a CPU" + (f", and {memory} of memory." if memory else ".")
    line = f"# Your time: {needed(source.stem)} minutes with exercises. {run_all}"
    text, times = re.subn(r"^# Your time: .*$", line, text, flags=re.MULTILINE)
    if times != 1:
        sys.exit(f"Error: {source.name} has {times} lines that start with '# Your time:', and needs one")
    source.write_text(text, encoding="utf-8")


def main() -> None:
    found = {source: measured(source.stem) for source in sorted(SOURCES.glob("*.py"))}  # before anything is written
    for source, (minutes, memory) in found.items():
        lesson = rf'^(    "{source.stem[:2]} .+": )".+",$'
        page = SLIDE.read_text(encoding="utf-8")
        page = re.sub(lesson, rf'\g<1>"{needed(source.stem)}",', page, flags=re.MULTILINE)
        SLIDE.write_text(page, encoding="utf-8")
        row = rf"^\| \[\d\d .*{source.stem}\.ipynb"
        put(README, row, 3, needed(source.stem))
        put(GUIDE, row, 2, f"{minutes} (measured)")
        say_minutes(source, minutes, memory)
        rewrite(source)
    GUIDE.write_text(with_seconds(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
