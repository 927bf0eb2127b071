"""Measure what docs/results.md tells, and write that page.

    python scripts/bench.py

Runs lesson 03 three times on the CPU profile (Qwen, Qwen again, Gemma) and every other lesson with both
families, each in a folder of its own, and times rewards and imports on one core. About 25 minutes; take
your hands off the machine meanwhile.
"""

import json
import platform
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

import psutil

from grpo_utils import FAMILIES, PROFILES, math_rewards

ROOT = Path(__file__).parent.parent
LESSON = ROOT / "notebooks" / "03_grpo_lora.ipynb"
PAGE = ROOT / "docs" / "results.md"
COMPLETIONS = 200_000
CLEAN = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"


def run_lesson(folder: Path, *pairs: str) -> tuple[dict, float]:
    """A lesson's report, and the largest memory of its process tree in GB."""
    flags = [part for pair in pairs for part in ("-p", *pair.split("="))]
    peak = peak_memory(folder, [sys.executable, "-m", "grpo_utils", "run", str(LESSON), *flags])
    return json.loads((folder / "outputs/run/report.json").read_text()), peak


def peak_memory(folder: Path, command: list[str]) -> float:
    """Run a command to its end; the largest memory of its process tree in GB."""
    process, peak = psutil.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), 0
    while process.poll() is None:
        peak = max(peak, tree_memory(process))
        time.sleep(0.5)
    if process.returncode:
        sys.exit(f"Error: the lesson failed; see it with: {' '.join(command)}")
    return peak / 1e9


def time_lesson(name: str, family: str) -> str:
    """A line of the table: seconds and memory of a lesson, run from its first cell to its last."""
    print(name, family, "...", flush=True)
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        lesson = ROOT / "notebooks" / f"{name}.ipynb"
        command = [
            sys.executable,
            "-m",
            "grpo_utils",
            "run",
            str(lesson),
            "-p",
            "PROFILE",
            "cpu",
            "-p",
            "FAMILY",
            family,
        ]
        peak = peak_memory(Path(folder), command)
    return f"| `{name}` | {family} | {time.perf_counter() - started:.0f} s | {peak:.1f} GB |"


def lesson_rows() -> str:
    names = sorted(path.stem for path in LESSON.parent.glob("*.ipynb") if path != LESSON)
    return "\n".join(time_lesson(name, family) for name in names for family in FAMILIES)


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
    return (
        f"| {name} | {summary['n']} | {summary['format_rate']:.3f} | {summary['accuracy']:.3f} "
        f"({low:.3f} to {high:.3f}) | {summary['greedy_accuracy']:.3f} |"
    )


def family_table(report: dict, peak: float) -> str:
    lines = [
        f"### `{report['model']}`, {report['steps']} steps",
        "",
        "| | n | format | strict accuracy, sampled (95 % interval) | strict accuracy, greedy |",
        "|---|---|---|---|---|",
        row("before", report["before"]),
        row("after: the 4-bit policy", report["after"]),
        row("after: merged into the unquantized base", report["merged"]),
        "",
        f"Paired test of the sampled accuracy: p = {report['p_value']:.0e}. Training {report['train_seconds']:.0f} s, "
        f"kernel start to report {report['wall_seconds']:.0f} s, peak memory {peak:.1f} GB (kernel and runner). "
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


def page(qwen: tuple, again: dict, gemma: tuple) -> str:
    report = qwen[0]
    step = report["train_seconds"] / report["steps"]
    rate, completions = rewards_per_second(), PROFILES["cpu"].completions_per_step
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    return f"""# Results

Written by `make bench`; do not edit. *Measured* on {date.today():%Y-%m-%d}, {processor()}, {psutil.cpu_count()} cores
(training uses one), Python {platform.python_version()}, {versions}.

## Lesson 03 on the cpu profile

Unsloth, 4-bit base, LoRA of rank {report["config"]["lora"]["r"]}, held-out two-digit additions,
seed {report["seed"]}. Strict: form and answer both right.

{family_table(*qwen)}

{family_table(*gemma)}

Two runs with the same seed gave {"the same report" if same(report, again) else "DIFFERENT reports"} (but for times).

## The other lessons

Run All from a terminal, from the first cell to the last; memory of kernel and runner.

| lesson | family | time | memory |
|---|---|---|---|
{lesson_rows()}

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
    results = []
    for pairs in (["PROFILE=cpu"], ["PROFILE=cpu"], ["PROFILE=cpu", "FAMILY=gemma"]):
        with tempfile.TemporaryDirectory() as folder:
            print("lesson 03", *pairs, "...", flush=True)
            results.append(run_lesson(Path(folder), *pairs))
    PAGE.write_text(page(results[0], results[1][0], results[2]), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}")
    if not same(results[0][0], results[1][0]):
        sys.exit("Error: two runs with the same seed gave different reports")


if __name__ == "__main__":
    main()
