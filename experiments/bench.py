"""Measure the numbers in docs/results.md and write the sections of that page that they belong to.

    python experiments/bench.py              all of it
    python experiments/bench.py lesson03     lesson 03 with five seeds, four numbers of steps, and twice with one seed
    python experiments/bench.py minutes      every lesson once per family: processor time and memory
    python experiments/bench.py --resume     only the runs that outputs/bench does not have yet

Every run uses the CPU profile and has its own folder. Do not use the machine meanwhile, because it measures time.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil
from benches import RESULTS, ROOT, measured_on, peak_memory, provenance, put
from minutes import main as copy_minutes
from minutes import printed_minutes

from grpo_utils import math_rewards
from grpo_utils.evaluation.statistics import Rate
from grpo_utils.profiles import FAMILIES, PROFILES

LESSON = ROOT / "notebooks" / "03_grpo_lora.ipynb"
KEPT = ROOT / "outputs" / "bench"
SEEDS = range(5)
STEPS = (30, 60, 100, 150)
COMPLETIONS = 200_000
KINDS = ("carry", "no carry")  # of additions, in the order of the table
CLEAN = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"


class Run(NamedTuple):
    """A lesson run from its first cell to its last, in its own folder."""

    name: str
    family: str
    seconds: float  # CPU time
    peak: float  # GB, kernel and runner together
    report: dict  # of lesson 03, else empty


def run_lesson(lesson: Path, family: str, **parameters: object) -> Run:
    """Run a lesson, or read the result of an earlier call with the same arguments from `KEPT`."""
    key = "-".join([lesson.stem, family, *(f"{name}{value}" for name, value in parameters.items())])
    kept = KEPT / f"{key}.json"
    if not kept.exists():
        print(key, "...", flush=True)
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(measured_run(lesson, family, parameters)), encoding="utf-8")
    return Run(*json.loads(kept.read_text(encoding="utf-8")))


def seconds_of_a_step(runs: list[Run]) -> float:
    """CPU seconds per training step, from the difference between the longest and the shortest run."""
    first, last = runs[0].report, runs[-1].report
    return (last["processor_seconds"] - first["processor_seconds"]) / (last["steps"] - first["steps"])


def with_steps(family: str, steps: int) -> Run:
    """Lesson 03 with a number of steps; the profile default is the run with seed 0."""
    own = steps == PROFILES["cpu"].steps
    return run_lesson(LESSON, family, **({"SEED": SEEDS[0]} if own else {"STEPS": steps}))


def measured_run(lesson: Path, family: str, parameters: dict) -> Run:
    parameters = {"PROFILE": "cpu", "FAMILY": family} | parameters
    flags = [part for name, value in parameters.items() for part in ("-p", name, str(value))]
    used = children_seconds()
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_memory(
            Path(folder), [sys.executable, "-m", "grpo_utils", "run", str(lesson), "--solutions", *flags]
        )
        seconds = children_seconds() - used
        report = json.loads((Path(folder) / "outputs/run/report.json").read_text()) if lesson == LESSON else {}
    return Run(lesson.stem, family, seconds, peak, report)


def children_seconds() -> float:
    """CPU seconds of all ended child processes, which depend little on other programs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def lesson_rows(runs: list[Run]) -> str:
    return "\n".join(f"| `{r.name}` | {r.family} | {r.seconds:.0f} s | {r.peak:.1f} GB |" for r in sorted(runs))


def same(one: dict, two: dict) -> bool:
    """Whether two reports are equal except for times."""
    first, second = ({k: v for k, v in r.items() if not k.endswith("_seconds")} for r in (one, two))
    return first == second


def rewards_per_second() -> float:
    """Completions per second through all rewards of the lesson together, on one core."""
    mixture = [CLEAN, "15 + 27 is 42.", "<reasoning>15 + 27 = 42 <answer>42", "<answer>$1,042.0</answer>"]
    texts, gold = mixture * (COMPLETIONS // 4), ["42"] * COMPLETIONS
    chat = [[{"role": "assistant", "content": text}] for text in texts]
    started = time.perf_counter()
    for reward in math_rewards().rewards:
        reward(chat, answer=gold)
    return COMPLETIONS / (time.perf_counter() - started)


def import_seconds() -> float:
    """The fastest of five imports of grpo_utils, without Python's startup."""
    code = "import time; s = time.perf_counter(); import grpo_utils; print(time.perf_counter() - s)"
    run = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(answer.stdout) for answer in run)


def row(name: str, summary: dict) -> str:
    low, high = summary["accuracy_ci95"]
    given = [given_format(counts) for counts in (summary, *(summary["by_kind"][kind] for kind in KINDS))]
    return (
        f"| {name} | {summary['format_rate']:.3f} | {summary['accuracy']:.3f} ({low:.3f} to {high:.3f}) "
        f"| {summary['greedy_accuracy']:.3f} | {' | '.join(given)} |"
    )


def given_format(counts: dict) -> str:
    """How many of the correctly formatted answers are correct, or "-" if none is correctly formatted."""
    if not counts["formed"]:
        return "-"
    low, high = counts["accuracy_given_format_ci95"]
    return f"{counts['accuracy_given_format']:.3f} ({low:.3f} to {high:.3f}) of {counts['formed']}"


HEAD = """| | format | strict, sampled (95%) | strict, greedy | correct, if formatted | with carry | without carry |
|---|---|---|---|---|---|---|"""


def family_table(runs: list[Run]) -> str:
    """Before, after and merged, for every seed."""
    rows = [
        row(f"seed {r.report['seed']}, {key}", r.report[key]) for r in runs for key in ("before", "after", "merged")
    ]
    report, peak = runs[0].report, max(run.peak for run in runs)
    lines = [f"### `{report['model']}`, {report['steps']} steps", "", HEAD, *rows, "", pooled(runs), costs(runs)]
    return "\n".join([*lines, f"Peak memory {peak:.1f} GB (kernel and runner)."])


def pooled(runs: list[Run]) -> str:
    """How many of the correctly formatted answers were correct over all seeds, because one seed has few before."""
    shares = []
    for key in ("before", "after"):
        summaries = [run.report[key] for run in runs]
        right = sum(round(summary["accuracy"] * summary["n"]) for summary in summaries)
        shares.append(f"{Rate(right, sum(summary['formed'] for summary in summaries))} {key}")
    shown = ", and ".join(shares)
    return f"Over all seeds, as if all answers were independent, correct among the correctly formatted: {shown}."


def costs(runs: list[Run]) -> str:
    """Seconds, tests and merges of some runs: the least and the most."""
    reports = [run.report for run in runs]
    used = [report["processor_seconds"] for report in reports]
    return (
        f"From kernel start to report: {min(used):.0f} to {max(used):.0f} processor seconds. "
        f"Paired test of the sampled accuracy: p at most {max(report['p_value'] for report in reports):.0e}. "
        f"Largest logit difference of an fp32 merge: {max(report['merge_difference'] for report in reports):.0e}."
    )


def steps_table(runs: list[Run]) -> str:
    """The same run with increasing numbers of steps; the first row is the base model."""
    reports = [run.report for run in runs]
    after = [row(f"{r['steps']} steps, {r['processor_seconds']:.0f} s", r["after"]) for r in reports]
    return "\n".join([f"### `{reports[0]['model']}`", "", HEAD, row("before", reports[0]["before"]), *after])


def where_measured(report: dict) -> str:
    """When, where and with which packages a section was measured."""
    cores = f"{psutil.cpu_count()} cores (training uses one)"
    return f"*Measured* on {provenance(measured_on() | dict(versions=report['versions']), cores)}"


def seeds_section(seeds: list[list[Run]], again: Run) -> str:
    report = seeds[0][0].report
    repeated = "the same report" if same(report, again.report) else "DIFFERENT reports"
    tables = "\n\n".join(map(family_table, seeds))
    return f"""
{where_measured(report)}

Unsloth, 4-bit base, LoRA of rank {report["config"]["lora"]["r"]}, {report["before"]["n"]} held-out two-digit addition
problems for each row. *Strict*: correct and correctly formatted. *Correct, if formatted*: of the correctly formatted
answers, the share that is correct, for all sums, for sums with a carry and for sums without, with 95% intervals.
*Merged*: the adapter merged into the unquantized base.

{tables}

Two runs with seed 0 gave {repeated}, except for times.
"""


def steps_section(steps: list[list[Run]]) -> str:
    tables = "\n\n".join(map(steps_table, steps))
    return f"""
{where_measured(steps[0][0].report)}

The same lesson with other numbers of steps, seed 0. The learning rate falls linearly to zero in each. Seconds are
processor seconds from kernel start to report. The profile's number of steps was chosen from this table, on the
held-out prompts that lesson 03 reports on.

{tables}
"""


def costs_section(steps: list[list[Run]]) -> str:
    rate, completions = rewards_per_second(), PROFILES["cpu"].completions_per_step
    step = seconds_of_a_step(steps[0])
    return f"""
| | measured |
|---|---|
| all three rewards together, one core | {rate:,.0f} completions per second |
| their share of a training step ({completions} completions, {step:.2f} s) | {completions / rate / step:.3%} |
| `import grpo_utils` | {import_seconds():.2f} s |
"""


def minutes_section(runs: list[Run]) -> str:
    report = next(run.report for run in runs if run.report)
    return f"""
{where_measured(report)}

Run from a terminal, from the first cell to the last. Time is processor time of kernel, runner and what they start: the
time by the clock on a machine that does nothing else. A busy machine takes longer, so the guide and the lessons also
give the minutes that training took in the stored run, if they are half as many again or more. Memory is the largest of
kernel and runner together.

| lesson | family | time | memory |
|---|---|---|---|
{lesson_rows(runs)}
"""


def gpu_section() -> str:
    return f"""
| profile | hardware | state |
|---|---|---|
{gpu_rows()}

Parts of the course ran on an H100. [What has run where](gpu.md#what-has-run-where) shows what it, a CPU and a
simulation checked.
"""


def gpu_rows() -> str:
    return "\n".join(f"| `{p.name}` | {p.hardware} | {p.evidence} |" for p in PROFILES.values() if p.name != "cpu")


def measure_lesson_03() -> None:
    """Write the sections on lesson 03."""
    seeds = [[run_lesson(LESSON, family, SEED=seed) for seed in SEEDS] for family in FAMILIES]
    steps = [[with_steps(family, steps) for steps in STEPS] for family in FAMILIES]
    again = run_lesson(LESSON, FAMILIES[0])
    put("Lesson 03 on the cpu profile", seeds_section(seeds, again))
    put("How many steps", steps_section(steps))
    put("Costs", costs_section(steps))
    put("On GPUs", gpu_section())
    if not same(seeds[0][0].report, again.report):
        sys.exit("Error: two runs with the same seed gave different reports")


def measure_minutes() -> None:
    """Write the table of the lessons that do not print their own minutes; copy all minutes to the pages."""
    lessons = [path for path in sorted(LESSON.parent.glob("*.ipynb")) if printed_minutes(path.stem) is None]
    first = [run_lesson(LESSON, family, SEED=SEEDS[0]) for family in FAMILIES]
    others = [run_lesson(lesson, family) for lesson in lessons if lesson != LESSON for family in FAMILIES]
    put("Minutes and memory of all lessons", minutes_section([*others, *first]))
    copy_minutes()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the numbers in docs/results.md.")
    parser.add_argument("part", nargs="?", choices=["lesson03", "minutes"], help="only these sections")
    parser.add_argument("--resume", action="store_true", help="keep the runs in outputs/bench")
    given = parser.parse_args()
    if not given.resume:
        shutil.rmtree(KEPT, ignore_errors=True)
    if given.part != "minutes":
        measure_lesson_03()
    if given.part != "lesson03":
        measure_minutes()
    print(f"written: {RESULTS.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
