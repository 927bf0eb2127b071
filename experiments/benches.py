"""What the benches share: the machine and its versions, rows that are stored as measured, and the pages of docs."""

import argparse
import json
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import psutil
from grpo_core.training.measuring import installed_version

from grpo_utils.evaluation.statistics import Estimate
from grpo_utils.profiles import CPU, prepare_machine

ROOT = Path(__file__).parent.parent
RESULTS, PAGES = ROOT / "docs" / "results.md", Path(__file__).parent / "pages"
#: What to try before GRPO, with the tables of two benches.
FIRST = ROOT / "docs" / "what-to-try-first.md"
#: The checks, with a sentence on each measurement.
CHECKS = ROOT / "grpo_check" / "docs" / "checks.md"
PACKAGES = ("trl", "transformers", "peft", "torch")
NOT_YET = "not yet run"
#: What is kept of each step of a run, and its key in the log.
KEPT = dict(
    correct="rewards/correctness_reward/mean",
    fields="rewards/fields_reward/mean",
    entropy="entropy",
    seconds="step_time",
)
#: A value in the text of a page: its name, and how to format it.
VALUE = re.compile(r"\{\{(\w+)(?::(.+?))?\}\}")

# The benches draw and copy minutes as the scripts do, and train on the tiny models' prompts. No script imports a bench.
sys.path += [str(ROOT / "scripts"), str(ROOT / "scripts" / "tiny")]


def only_write(doc: str) -> bool:
    """Whether the command line has `--write`. Any other argument is an error, because training takes long."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="only write the page, from what is stored")
    return parser.parse_args().write


def refuse_arguments(doc: str) -> None:
    """Stop at any argument, such as `--write`: a bench that stores nothing cannot write without measuring."""
    _, unknown = argparse.ArgumentParser(description=doc.splitlines()[0]).parse_known_args()
    if unknown:
        sys.exit(f"Error: unknown argument {unknown[0]!r}: this bench stores nothing, so run it without arguments.")


def processor() -> str:
    """The processor's name, if the system reports it."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.machine()
    names = [line.split(":")[1].strip() for line in path.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def measured_on(packages: Sequence[str] = PACKAGES) -> dict:
    """The date, the machine and the versions of a measurement."""
    versions = {name: installed_version(name) for name in packages}
    machine = dict(date=f"{date.today():%Y-%m-%d}", processor=processor(), python=platform.python_version())
    return machine | dict(versions=versions)


def provenance(stored: dict, cores: str = "one core") -> str:
    """When, where and with which packages something was measured."""
    machine = f"{stored['date']}, {stored['processor']}, {cores}"
    return f"{machine},\nPython {stored['python']}, {versions_text(stored['versions'])}."


def versions_text(versions: dict[str, str]) -> str:
    """Packages with their versions.

    >>> versions_text({"trl": "1.14.0", "peft": "0.21.2"})
    'trl 1.14.0, peft 0.21.2'
    """
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def peak_memory(folder: Path, command: list[str]) -> float:
    """Run a command to its end; return the peak memory of its process tree in GB."""
    process, peak = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while process.poll() is None:
        peak = max(peak, tree_memory(process))
        time.sleep(0.5)
    if process.returncode:
        sys.exit(f"Error: the lesson failed. To see the error, run: {' '.join(command)}")
    return peak / 1e9


def tree_memory(process: psutil.Process) -> int:
    """Resident bytes of a process and its descendants; those that have just ended count as 0."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def train_missing(path: Path, runs: Sequence[dict], train: Callable[..., dict], **about: object) -> dict:
    """Train the ``runs`` that the file does not have yet, and store each as soon as it is complete."""
    stored = read_stored(path) if path.exists() else dict(rows=[])
    for run in runs:
        if any(run.items() <= row.items() for row in stored["rows"]):
            continue
        print(", ".join(f"{name} {value}" for name, value in run.items()), flush=True)
        stored = measured_on() | about | dict(rows=[*stored["rows"], run | train(**run)])
        path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return stored


def read_stored(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def curves(checkpoint: Path, keys: dict[str, str] = KEPT) -> dict:
    """Some metrics, step by step up to a checkpoint."""
    log = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    return {name: [round(entry[key], 3) for entry in log if key in entry] for name, key in keys.items()}


def difference_text(difference: Estimate | Sequence[float]) -> str:
    """A difference with its interval, and whether it shows anything.

    >>> difference_text((0.1, 0.05, 0.15))
    '+0.100 (+0.050 to +0.150)'
    >>> difference_text((0.1, -0.05, 0.25))
    'no difference shown: +0.100 (-0.050 to +0.250)'
    """
    value, low, high = difference
    verdict = "" if low > 0 or high < 0 else "no difference shown: "
    return f"{verdict}{value:+.3f} ({low:+.3f} to {high:+.3f})"


def filled(page: str, **values: object) -> str:
    """A text of ``pages/`` with a value in place of each ``{{name}}`` or ``{{name:.2f}}``.

    Raises:
        ValueError: the text names a value that is not given, or does not name one that is.
    """
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    if others := {name for name, _ in VALUE.findall(text)} ^ values.keys():
        raise ValueError(f"pages/{page}.md and its bench do not have the same values: {', '.join(sorted(others))}")
    return VALUE.sub(lambda found: format(values[found[1]], found[2] or ""), text)


def put(title: str, text: str, file: Path | None = None) -> None:
    """Replace the text of one section of a page (docs/results.md by default); all other sections stay as they are."""
    file = file or RESULTS
    page = file.read_text(encoding="utf-8")
    section = re.compile(rf"(?<=^## {re.escape(title)}\n).*?(?=\n## |\Z)", re.MULTILINE | re.DOTALL)
    if not section.search(page):
        sys.exit(f"Error: {file.name} has no section {title!r}")
    file.write_text(section.sub(lambda _: text, page, count=1), encoding="utf-8")


def put_in_short(name: str, text: str) -> None:
    """Replace what the page of the checks says of a measurement, between the marks with its name."""
    begin, end = f"<!-- {name}: written by `make bench-{name}` -->\n", f"<!-- end of {name} -->"
    write_between(CHECKS, begin, end, f"{begin}\n{text}\n\n{end}")


def write_section(doc: str, stored: Path, title: str, section: Callable[[dict], str], measure: Callable) -> None:
    """Measure what is missing, unless the command line has `--write`; then write the bench's section of the results."""
    if not only_write(doc):
        prepare_machine(CPU)
        measure()
    put(title, section(read_stored(stored)))


def write_below(page: Path, mark: str, text: str) -> None:
    """Replace a page from ``mark`` to its end; the text begins with the mark."""
    above, _ = split_at(mark, page.read_text(encoding="utf-8"), page)
    page.write_text(above + text, encoding="utf-8")


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace a page from ``begin`` to ``end``; the text begins and ends with these marks."""
    above, rest = split_at(begin, page.read_text(encoding="utf-8"), page)
    _, below = split_at(end, rest, page)
    page.write_text(above + text + below, encoding="utf-8")


def split_at(mark: str, text: str, page: Path) -> tuple[str, str]:
    """The text of a page before and after a mark. Without it, stop: nobody can tell what of the page to keep."""
    above, found, below = text.partition(mark)
    if not found:
        sys.exit(f"Error: {page.name} does not have the mark {mark.strip()!r} where it belongs; nothing was written.")
    return above, below
