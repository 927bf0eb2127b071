"""Measure what docs/results.md tells, and write that page.

    python scripts/bench.py

Runs every lesson on the CPU profile with both families, lesson 03 once more with the same seed, each in a folder
of its own, and times rewards and imports on one core. About 45 minutes; take your hands off the machine meanwhile.
"""

import json
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

import psutil

sys.path.insert(0, str(Path(__file__).parent))
import minutes

from grpo_utils import FAMILIES, PROFILES, math_rewards

ROOT = Path(__file__).parent.parent
LESSON = ROOT / "notebooks" / "03_grpo_lora.ipynb"
PAGE = ROOT / "docs" / "results.md"
COMPLETIONS = 200_000
KINDS = ("carry", "no carry")  # of additions, in the order of the table
CLEAN = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"


class Run(NamedTuple):
    """A lesson run from its first cell to its last, in a folder of its own."""

    name: str
    family: str
    seconds: float
    peak: float  # GB, of kernel and runner together
    report: dict  # lesson 03's; empty for the others


def run_lesson(lesson: Path, family: str) -> Run:
    print(lesson.stem, family, "...", flush=True)
    flags = ["-p", "PROFILE", "cpu", "-p", "FAMILY", family]
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_memory(Path(folder), [sys.executable, "-m", "grpo_utils", "run", str(lesson), *flags])
        seconds = time.perf_counter() - started
        report = json.loads((Path(folder) / "outputs/run/report.json").read_text()) if lesson == LESSON else {}
    return Run(lesson.stem, family, seconds, peak, report)


def peak_memory(folder: Path, command: list[str]) -> float:
    """Run a command to its end; the largest memory of its process tree in GB."""
    process, peak = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while process.poll() is None:
        peak = max(peak, tree_memory(process))
        time.sleep(0.5)
    if process.returncode:
        sys.exit(f"Error: the lesson failed; see it with: {' '.join(command)}")
    return peak / 1e9


def lesson_rows(runs: list[Run]) -> str:
    return "\n".join(f"| `{r.name}` | {r.family} | {r.seconds:.0f} s | {r.peak:.1f} GB |" for r in sorted(runs))


def tree_memory(process: psutil.Process) -> int:
    """Resident bytes of a process and all below it; those that have just ended count nothing."""
    total = 0
    for member in [process, *process.children(recursive=True)]:
        try:
            total += member.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def same(one: dict, two: dict) -> bool:
    """Whether two reports are equal but for their times."""
    times = {"train_seconds", "wall_seconds"}
    return {k: v for k, v in one.items() if k not in times} == {k: v for k, v in two.items() if k not in times}


def rewards_per_second() -> float:
    """Completions a second through all rewards of the lesson together, on one core."""
    mixture = [CLEAN, "15 + 27 is 42.", "<reasoning>15 + 27 = 42 <answer>42", "<answer>$1,042.0</answer>"]
    texts, gold = mixture * (COMPLETIONS // 4), ["42"] * COMPLETIONS
    chat = [[{"role": "assistant", "content": text}] for text in texts]
    started = time.perf_counter()
    for reward in math_rewards().rewards:
        reward(chat, answer=gold)
    return COMPLETIONS / (time.perf_counter() - started)


def import_seconds() -> float:
    """The fastest of five imports of grpo_utils, without Python's own start."""
    code = "import time; s = time.perf_counter(); import grpo_utils; print(time.perf_counter() - s)"
    run = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(answer.stdout) for answer in run)


def row(name: str, summary: dict) -> str:
    low, high = summary["accuracy_ci95"]
    given = [given_format(counts) for counts in (summary, *(summary["by_kind"][kind] for kind in KINDS))]
    return (
        f"| {name} | {summary['n']} | {summary['format_rate']:.3f} | {summary['accuracy']:.3f} "
        f"({low:.3f} to {high:.3f}) | {summary['greedy_accuracy']:.3f} | {' | '.join(given)} |"
    )


def given_format(counts: dict) -> str:
    """How many of the answers in form are right, and of how many; "-" where none is in form."""
    if not counts["formed"]:
        return "-"
    low, high = counts["accuracy_given_format_ci95"]
    return f"{counts['accuracy_given_format']:.3f} ({low:.3f} to {high:.3f}) of {counts['formed']}"


def family_table(run: Run) -> str:
    report = run.report
    lines = [
        f"### `{report['model']}`, {report['steps']} steps",
        "",
        "| | n | format | strict accuracy, sampled (95 % interval) | strict accuracy, greedy "
        "| right among answers in form | with carry | without carry |",
        "|---|---|---|---|---|---|---|---|",
        row("before", report["before"]),
        row("after: the 4-bit policy", report["after"]),
        row("after: merged into the unquantized base", report["merged"]),
        "",
        f"Paired test of the sampled accuracy: p = {report['p_value']:.0e}. Training {report['train_seconds']:.0f} s, "
        f"kernel start to report {report['wall_seconds']:.0f} s, peak memory {run.peak:.1f} GB (kernel and runner). "
        f"Largest logit difference of the fp32 merge: {report['merge_difference']:.0e}.",
    ]
    return "\n".join(lines)


def processor() -> str:
    """The processor's name where the system tells it."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.machine()
    names = [line.split(":")[1].strip() for line in path.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def page(runs: list[Run], again: Run) -> str:
    qwen, gemma = (run for run in runs if run.report)
    report = qwen.report
    step = report["train_seconds"] / report["steps"]
    rate, completions = rewards_per_second(), PROFILES["cpu"].completions_per_step
    repeated = "the same report" if same(report, again.report) else "DIFFERENT reports"
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return f"""# Results

Written by `make bench`; do not edit. *Measured* on {date.today():%Y-%m-%d}, {processor()}, {psutil.cpu_count()} cores
(training uses one), Python {platform.python_version()}, {versions}.

## Lesson 03 on the cpu profile

Unsloth, 4-bit base, LoRA of rank {report["config"]["lora"]["r"]}, held-out two-digit additions,
seed {report["seed"]}. Strict: form and answer both right. The last three columns leave the form aside: they are shares
of the sampled answers in form, of all of them and of those to sums whose units do and do not carry.

{family_table(qwen)}

{family_table(gemma)}

Two runs with the same seed gave {repeated}, but for times.

## Minutes and memory of all lessons

Run from a terminal, from the first cell to the last, one at a time; the largest memory of kernel and runner together.

| lesson | family | time | memory |
|---|---|---|---|
{lesson_rows(runs)}

## Costs

| | measured |
|---|---|
| all three rewards together, one core | {rate:,.0f} completions a second |
| their share of a training step ({completions} completions, {step:.2f} s) | {completions / rate / step:.3%} |
| `import grpo_utils` | {import_seconds():.2f} s |

## On GPUs

| profile | hardware | state |
|---|---|---|
{gpu_rows()}

What a CPU run proves and what not: [compatibility](compatibility.md).
"""


def gpu_rows() -> str:
    return "\n".join(f"| `{p.name}` | {p.hardware} | {p.evidence} |" for p in PROFILES.values() if p.name != "cpu")


def main() -> None:
    lessons = sorted(LESSON.parent.glob("*.ipynb"))
    runs = [run_lesson(lesson, family) for lesson in lessons for family in FAMILIES]
    again = run_lesson(LESSON, "qwen")
    PAGE.write_text(page(runs, again), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
    minutes.main()
    if not same(next(run.report for run in runs if run.report), again.report):
        sys.exit("Error: two runs with the same seed gave different reports")


if __name__ == "__main__":
    main()
