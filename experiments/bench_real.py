"""Train SmolLM2 with other tasks, seeds and settings, and write a part of docs/results.md, settings.md and the README.

    python experiments/bench_real.py            train what bench_real.json lacks: hours; stop and start as you like
    python experiments/bench_real.py --write    only write the sections, from bench_real.json

Each run is that of `make real`, or its first 25 steps with one setting changed. It is stored when it ends, and its
checkpoints continue a run that was stopped. The rate is constant, so the first 25 steps of `make real` itself are those
of the whole run, in the checkpoint that it left there.
"""

import json
import re
from pathlib import Path
from statistics import fmean
from textwrap import fill

import bench_checked
from benches import (
    ROOT,
    curves,
    difference_text,
    filled,
    only_write,
    provenance,
    put,
    read_stored,
    train_missing,
    write_between,
)
from checked.arms import WRITTEN
from checked.learned import letter_run
from checked.reading import on_task
from free import first, rule, table
from free.arms import of as cells_of
from free.arms import sft_name
from free.whole_runs import span

from grpo_utils import paired_change, smollm2
from grpo_utils.evaluation.statistics import Change, Rate, paired_difference
from grpo_utils.real.measuring import (
    MEASURES,
    ROWS,
    SAMPLED_ROWS,
    SAMPLES,
    TEMPERATURE,
    base_result,
    measure_merged,
    rates,
)
from grpo_utils.real.training import SHARED, TASKS, run_once

STORED, TITLE = Path(__file__).with_suffix(".json"), "A real model on a CPU"
SETTINGS = ROOT / "docs" / "settings.md"
BEGIN, END = "<!-- real: written by `make bench-real`, do not edit -->", "<!-- end of real -->"
README, README_BEGIN, README_END = ROOT / "README.md", "<!-- written by make bench-real -->", "<!-- end -->"
SEEDS = range(3)
#: Steps of `make real`, and of the runs that compare settings, which are measured on fewer held-out prompts.
STEPS, FEWER_STEPS, FEWER_ROWS, FEWER_SAMPLED = 70, 25, 200, 25
TIMES = ("before", "after")
USUAL = "as in `make real`"
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
#: Settings of train.py by the name that the table shows, compared over all seeds. All use 32 completions per step.
QUESTIONS = {
    USUAL: [],
    "learning rate 5e-5": ["--learning_rate", "5.0e-5"],
    "learning rate 8e-4": ["--learning_rate", "8.0e-4"],
    "adapters on attention only": ["--lora_target_modules", *ATTENTION],
    "groups of 8": ["--num_generations", "8"],
}
#: Other ways to load the model, which are trained with one seed: what they cost matters most.
LOADED_OTHERWISE = {
    "base in 4 bits, merged into 16": ["--load_in_4bit", "true"],
    "without Unsloth": ["--use_unsloth", "false"],
}
VARIANTS = QUESTIONS | LOADED_OTHERWISE
RUNS = [dict(task="orders", variant=USUAL, seed=seed, steps=STEPS) for seed in SEEDS]
RUNS += [dict(task="older", variant=USUAL, seed=0, steps=STEPS)]
RUNS += [dict(task="orders", variant=name, seed=seed, steps=FEWER_STEPS) for seed in SEEDS for name in QUESTIONS]
RUNS += [dict(task="orders", variant=name, seed=0, steps=FEWER_STEPS) for name in LOADED_OTHERWISE]


def train(task: str, variant: str, seed: int, steps: int) -> dict:
    """One run: what was right before and after, the seconds of training, and its curves."""
    model = smollm2.fetch()
    sizes = (ROWS, SAMPLED_ROWS) if steps == STEPS else (FEWER_ROWS, FEWER_SAMPLED)
    before = base_result(model, task, SHARED)
    name = re.sub(r"\W+", "-", f"{task} {variant} seed{seed}")
    folder = SHARED / "bench" / name  # apart from the runs of `make real`
    whole = STEPS if variant == USUAL else steps
    kept = folder / "result.json"
    if not kept.exists():
        options = [*VARIANTS[variant], "--max_steps", str(whole), "--save_total_limit", str(STEPS), "--eval_rows", "8"]
        run_once(model, task, seed, folder, options, "test", *sizes)
    after = json.loads(kept.read_text(encoding="utf-8"))
    if steps < whole:
        after = measure_merged(model, folder / f"checkpoint-{steps}", folder / f"merged-{steps}", task, "test", *sizes)
    return dict(before=packed(before, *sizes), after=packed(after, *sizes), **curves(folder / f"checkpoint-{steps}"))


def packed(result: dict, rows: int, sampled: int) -> dict:
    """What was right, as digits: a string for the greedy answers, and the number of right samples per prompt."""
    greedy = "".join(str(int(right)) for right in result["greedy"][:rows])
    other = {"wrong_person": sum(result["wrong_person"][:rows])} if "wrong_person" in result else {}
    return dict(greedy=greedy, sampled=[sum(right) for right in result["sampled"][:sampled]], **other)


def of(stored: dict, task: str, variant: str, steps: int) -> list[dict]:
    """The rows of one setting, by seed."""
    wanted = dict(task=task, variant=variant, steps=steps)
    return sorted((row for row in stored["rows"] if wanted.items() <= row.items()), key=lambda row: row["seed"])


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    text = filled(
        "real",
        where=provenance(stored, "two cores"),
        steps=STEPS,
        rows=ROWS,
        sampled_rows=SAMPLED_ROWS,
        samples=SAMPLES,
        temperature=TEMPERATURE,
        measures=" | ".join(MEASURES),
        bars="---|" * len(MEASURES),
        table="\n".join(line(row) for task in TASKS for row in of(stored, task, USUAL, STEPS)),
        tests="\n".join(filter(None, (paired_tests(of(stored, task, USUAL, STEPS)) for task in TASKS))),
        people="\n\n".join(map(chosen_people, of(stored, "older", USUAL, STEPS))),
        sft=first.mean(sft_name(200), "greedy"),
        eight=table.draws("8 examples"),
    )
    return f"\n{text}"


def in_readme(stored: dict) -> str:
    """What the README says that `make real` reached, next to what is free."""
    before = rates(of(stored, TASKS[0], USUAL, STEPS)[0]["before"])["greedy"]
    free = dict(eight=table.draws("8 examples", "{:.0%}"), sft=first.mean(sft_name(200), "greedy"))
    free |= dict(grpo=first.mean("GRPO", "greedy"), minutes_sft=table.minutes(cells_of(sft_name(200))))
    free |= dict(minutes_grpo=table.minutes(cells_of("GRPO")), rule=fmean(rule.right(ROWS)))
    free |= dict(self=first.mean("self-training", "greedy"))
    reached, checked = span(), read_stored(bench_checked.STORED)["rows"]
    arms = dict(letter_eight="8 examples", letter_own=WRITTEN, letter_grpo="GRPO")
    letter, lists = {name: on_task(checked, "letter", arm) for name, arm in arms.items()}, letter_run(checked, STEPS)
    letter |= {name: lists[name] for name in ("letter_known", "letter_own_known")}
    text = filled("real_readme", rows=ROWS, first=before, **free, **letter, **reached)
    return f"{README_BEGIN}\n{text}{README_END}"


def line(row: dict) -> str:
    """One whole run as a row of the table."""
    before, after = (rates(row[when]) for when in TIMES)
    changes = [f"{before[name]:.3f} to {after[name]:.3f}" for name in MEASURES]
    return f"| {' | '.join([row['task'], str(row['seed']), *changes, kind_of_gain(row), minutes([row])])} |"


def paired_tests(rows: list[dict]) -> str:
    """For each seed, how the three rates changed on the same prompts."""
    lines = []
    for row in rows:
        shown = "; ".join(f"{name} {change}" for name, change in changes_of(row).items())
        lines.append(f"- {row['task']}, seed {row['seed']}: {shown}")
    return "\n".join(lines)


def changes_of(row: dict) -> dict[str, Change]:
    """The paired change of greedy accuracy, of sampled accuracy, and of pass@8."""
    sampled = [[count / SAMPLES for count in row[when]["sampled"]] for when in TIMES]
    return {
        "greedy": paired_change(*([int(digit) for digit in row[when]["greedy"]] for when in TIMES)),
        "sampled": paired_change(*sampled),
        "pass@8": paired_change(*([float(rate > 0) for rate in rates] for rates in sampled)),
    }


def chosen_people(row: dict) -> str:
    """How often an answer of the task older is in the right form, and how often it then describes the right person."""
    chosen = {when: person_rate(row[when]) for when in TIMES}
    forms = {when: Rate(chosen[when].n, len(row[when]["greedy"])) for when in TIMES}
    text = f"""
    In *older*, seed {row["seed"]}, the share of greedy answers that describe one of the two people without an error was
    {forms["before"]}, before training, and {forms["after"]}, after it. What improved is the
    form and the copying of one person's name, age and city; we did not measure the two separately. Of these answers,
    the share that describe the right person was {chosen["before"]}, before training, and {chosen["after"]}, after it.
    A guess is right half of the time.
    """
    return fill(" ".join(text.split()), 120)


def person_rate(result: dict) -> Rate:
    """Of the greedy answers that describe one of the two people without an error, the share about the right person."""
    right = result["greedy"].count("1")
    return Rate(right, right + result["wrong_person"])


def kind_of_gain(row: dict) -> str:
    """What the three changes show together. In the task older, the choice must also be better than a guess."""
    if "wrong_person" in row["after"] and person_rate(row["after"]).interval[0] <= 0.5:
        return "form, not choice"
    rose = {name: change.verdict == "improved" for name, change in changes_of(row).items()}
    if rose["pass@8"]:
        return "new in eight tries" if rose["greedy"] else "more found in eight tries"
    if rose["sampled"]:
        return "sharpening" if rose["greedy"] else "less noise"
    if rose["greedy"]:
        return "another most likely answer"
    return "none shown"


def minutes(rows: list[dict]) -> str:
    """The mean minutes of training, without runs that shared the machine; those are marked by hand."""
    alone = [sum(row["seconds"]) for row in rows if not row.get("busy")]
    return f"{fmean(alone) / 60:.0f}" if alone else "-"


def compared(stored: dict) -> str:
    """The table of docs/settings.md: each setting compared seed by seed with those of `make real`."""
    usual = of(stored, TASKS[0], USUAL, FEWER_STEPS)
    lines = (setting(name, of(stored, TASKS[0], name, FEWER_STEPS), usual) for name in VARIANTS)
    table = "\n".join(filter(None, lines))
    if not table:
        return f"{BEGIN}\n\nNone of these runs has finished yet: `make bench-real`.\n\n{END}"
    where = provenance(stored, "two cores")
    text = filled("real_settings", where=where, fewer_steps=FEWER_STEPS, fewer_rows=FEWER_ROWS, table=table)
    return f"{BEGIN}\n\n{text}\n{END}"


def setting(name: str, rows: list[dict], usual: list[dict]) -> str:
    """One setting as a row of the table; nothing if none of its runs has finished."""
    if not rows:
        return ""
    same = [base for base in usual if base["seed"] in {row["seed"] for row in rows}]
    ours, theirs = ([rates(row["after"])["greedy"] for row in some] for some in (rows, same))
    shown = "the base" if name == USUAL else "one seed"
    if name != USUAL and len(ours) > 1:
        shown = difference_text(paired_difference(ours, theirs, FEWER_ROWS))
    ends = [fmean(value for row in rows for value in row[curve][-5:]) for curve in ("correct", "fields", "entropy")]
    cells = [name, ", ".join(f"{rate:.3f}" for rate in ours), shown, *(f"{end:.2f}" for end in ends), minutes(rows)]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    stored = read_stored(STORED) if only_write(__doc__) else train_missing(STORED, RUNS, train)
    put(TITLE, section(stored))
    write_between(SETTINGS, BEGIN, END, compared(stored))
    write_between(README, README_BEGIN, README_END, in_readme(stored))


if __name__ == "__main__":
    main()
