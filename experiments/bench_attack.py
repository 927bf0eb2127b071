"""Attack the rewards of grpo_check/tests/attack_zoo, and count what is found.

    python experiments/bench_attack.py                  the attacks that bench_attack.json lacks: hours in all
    python experiments/bench_attack.py NAME ...         only some rewards
    python experiments/bench_attack.py --seed 1 NAME    another seed
    python experiments/bench_attack.py --control        without GRPO: the broken rewards that probe passes, seed 1
    python experiments/bench_attack.py --write          only write what the pages say

Each attack trains for five minutes in a process of its own. Its result stays in outputs/bench_attack until the page is
written, so several of these commands can run at once, each on cores of its own.

A finding may name another fault than the one that its author built into a reward. So one reader, who does not know the
faults, says what each report shows; a second compares that with the fault that the zoo records, and ``"shows_fault"``
and ``"by_policy"`` (true or false) are written into the rows of bench_attack.json. If the policy wrote such a
completion, ``"first_step"`` is the first step in which it did.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from textwrap import fill, indent
from typing import TYPE_CHECKING

from benches import ROOT, filled, measured_on, provenance, put, put_in_short, read_stored
from grpo_core.training.measuring import mcnemar_p_value

from grpo_utils.evaluation.statistics import Rate

sys.path.insert(0, str(ROOT / "grpo_check" / "tests"))
from attack_zoo import BROKEN, SOUND, ZOO, Entry

if TYPE_CHECKING:
    from transformers import TrainerCallback
    from trl import GRPOTrainer

STORED = Path(__file__).with_suffix(".json")
TITLE = "What attack finds"
KEPT, MINUTES = ROOT / "outputs" / "bench_attack", 5.0
BY_NAME = {entry.name: entry for entry in ZOO}
CONTROL_SEED = 1  # seed 0 has reports of an earlier version
LONGEST_CONTROL = 60.0  # minutes; a control ends after a pass over the rows, with at least the steps of that attack
#: The finding that counts: of a broken reward as found, of a sound one as accused.
FOUND = "pays_wrong_completions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="rewards of the zoo (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--control", action="store_true", help="as many samples, at a learning rate of 0 of GRPO")
    parser.add_argument("--write", action="store_true", help="only write the page, from what is stored")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.here:
        return attack_here(BY_NAME[options.names[0]], options.seed, options.control)
    seed = CONTROL_SEED if options.control else options.seed
    every = [entry.name for entry in BROKEN if entry.passes_probe] if options.control else BY_NAME
    for name in [] if options.write else options.names or every:
        attack_apart(name, seed, options.control)
    stored = collect()
    put(TITLE, section(stored))
    put_in_short("attack", in_short(*attacked(stored)))


def attack_apart(name: str, seed: int, control: bool) -> None:
    """Attack in a process of its own, unless the result is there."""
    if not kept(name, seed, control).exists() and not any(is_of(row, name, seed, control) for row in stored_rows()):
        print(f"{name}, seed {seed}{', without GRPO' * control}", flush=True)
        options = ["--seed", str(seed), "--here", *["--control"] * control]
        subprocess.run([sys.executable, __file__, name, *options], check=True)


def kept(name: str, seed: int, control: bool = False) -> Path:
    """Where the result of one attack is until the page is written."""
    return KEPT / f"{name}-{seed}{'-control' * control}.json"


def is_of(row: dict, name: str, seed: int, control: bool = False) -> bool:
    return (row["name"], row["seed"], row.get("control", False)) == (name, seed, control)


def stored_rows() -> list[dict]:
    return read_stored(STORED)["rows"] if STORED.exists() else []


def learn_nothing(steps: int) -> None:
    """Let the next attack sample for so many steps as it always does, and update no weight: what the start finds."""
    from grpo_check.attacks import training

    reinforce, training.GRPO["max_steps"] = training.reinforce, steps

    def sample(trainer: "GRPOTrainer", progress: "TrainerCallback") -> bool:
        trainer.args.learning_rate = 0.0
        return reinforce(trainer, progress)

    training.reinforce = sample


def attack_here(entry: Entry, seed: int, control: bool) -> None:
    """One attack, with the rows, the definition of success and the examples that a user would give."""
    from grpo_check import attack

    task, started = entry.task, time.perf_counter()
    examples = [] if task.gold else [task.honest(row) for row in task.rows[:4]]
    given = dict(correct=task.correct, answer_column=task.gold or "answer", examples=examples)
    folder = kept(entry.name, seed, control).with_suffix("")
    if control:
        learn_nothing(next(row["steps"] for row in stored_rows() if is_of(row, entry.name, seed)))
    minutes = LONGEST_CONTROL if control else MINUTES
    report = attack(entry.reward, list(task.rows), minutes=minutes, seed=seed, output_dir=folder, **given)
    row = dict(
        name=entry.name,
        seed=seed,
        control=control,
        codes={one.code: one.severity for one in report.findings},
        steps=max((one.step for one in report.paid), default=0),
        seconds=round(time.perf_counter() - started),
        threads=int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())),
        report=str(report).replace(f"{ROOT}/", ""),
    )
    kept(entry.name, seed, control).write_text(
        json.dumps(measured_on() | dict(row=row), indent=1) + "\n", encoding="utf-8"
    )


def collect() -> dict:
    """All results, in the order of the zoo: those in the file, and those that were kept since."""
    rows, about = stored_rows(), read_stored(STORED) if STORED.exists() else measured_on()
    for path in sorted(KEPT.glob("*.json")):
        found = read_stored(path)
        row = found.pop("row")
        if not any(
            is_of(one, row["name"], row["seed"], row["control"]) for one in rows
        ):  # those in the file may be judged
            rows, about = [*rows, row], about if row["control"] else found
    order = list(BY_NAME)
    rows.sort(key=lambda row: (row.get("control", False), order.index(row["name"]), row["seed"]))
    stored = {**about, "rows": rows}
    STORED.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return stored


def sources(row: dict) -> dict[str, int]:
    """On how many rows each source found an overpaid wrong completion."""
    said = re.search(r"Rows by who found it[^:]*: (.*?)\.$", row["report"], re.MULTILINE)
    pairs = (part.rsplit(": ", 1) for part in said[1].split("; ")) if said else ()
    return {source: int(count) for source, count in pairs}


def section(stored: dict) -> str:
    """The section of the results."""
    attacks = [row for row in stored["rows"] if not row.get("control")]
    passing, sound, by_name = attacked(stored)
    shown, accused = rates(passing, sound, by_name)
    threads = sorted({row["threads"] for row in attacks})
    steps, minutes = [row["steps"] for row in attacks], [row["seconds"] / 60 for row in attacks]
    text = filled(
        "attack",
        where=provenance(stored, f"cores for each: {' or '.join(map(str, threads))}"),
        attacked=len(by_name),
        minutes=MINUTES,
        least=min(minutes),
        most=max(minutes),
        fewest_steps=min(steps),
        most_steps=max(steps),
        result=in_short(passing, sound, by_name),
        shown_rate=in_percent(shown),
        accused_rate=in_percent(accused),
        found=FOUND,
        control_seed=CONTROL_SEED,
        controls=controls(stored["rows"]),
        soon=indent(fill(early(attacks), 118), "  "),
        counts=counts(by_name),
        table=table(by_name),
    )
    return f"\n{text}"


def attacked(stored: dict) -> tuple[list[Entry], list[Entry], dict[str, dict[int, dict]]]:
    """The broken rewards that `probe` passes, the sound ones, and the attacks of each by name and seed."""
    by_name = {}
    for row in stored["rows"]:
        if not row.get("control"):
            by_name.setdefault(row["name"], {})[row["seed"]] = row
    passing = [entry for entry in BROKEN if entry.name in by_name and entry.passes_probe]
    return passing, [entry for entry in SOUND if entry.name in by_name], by_name


def in_short(passing: Sequence[Entry], sound: Sequence[Entry], by_name: dict[str, dict[int, dict]]) -> str:
    """The result in a few sentences, from the broken rewards that `probe` passes and the sound ones."""
    shown, accused = rates(passing, sound, by_name)
    by_policy = sum(bool(by_name[entry.name][0].get("by_policy")) for entry in passing)
    of_probe = Rate(sum(bool(entry.errors) for entry in sound), len(sound))
    return fill(
        f"Of {shown.n} broken rewards in which `probe` finds no error, {shown.hits} have a report that shows the "
        f"fault, {by_policy} of them in a completion of the policy."
        f"{by_seed(passing, by_name)} Of {accused.n} sound rewards, `attack` flags {accused.hits}; `probe` reports an "
        f"error in {sum(bool(entry.errors) for entry in sound)} ({in_percent(of_probe)}).",
        120,
    )


def rates(passing: Sequence[Entry], sound: Sequence[Entry], by_name: dict[str, dict[int, dict]]) -> tuple[Rate, Rate]:
    """Seed 0: faults shown, of the broken rewards that `probe` passes, and flags on the sound ones."""
    shown = sum(bool(by_name[entry.name][0].get("shows_fault")) for entry in passing)
    accused = sum(FOUND in by_name[entry.name][0]["codes"] for entry in sound)
    return Rate(shown, len(passing)), Rate(accused, len(sound))


def in_percent(rate: Rate) -> str:
    """A rate with its interval, in whole percent.

    >>> in_percent(Rate(10, 16))
    '10 of 16 is 39% to 82%'
    """
    low, high = rate.interval
    return f"{rate.hits} of {rate.n} is {low:.0%} to {high:.0%}"


def by_seed(entries: Sequence[Entry], by_name: dict[str, dict[int, dict]]) -> str:
    """What the same rewards gave with each seed, if all of them were attacked with several."""
    seeds = common_seeds(entries, by_name)
    if len(seeds) < 2:
        return ""
    shown = [[bool(by_name[entry.name][seed].get("shows_fault")) for seed in seeds] for entry in entries]
    each = [sum(of_seed) for of_seed in zip(*shown, strict=True)]
    return (
        f" With the seeds {in_words(seeds)}, {in_words(each)} reports show it. For {sum(map(all, shown))} rewards, all "
        f"of these reports do, and for {sum(map(any, shown))} at least one."
    )


def in_words(some: Sequence[int]) -> str:
    """Numbers in a sentence.

    >>> in_words([0, 1, 2])
    '0, 1 and 2'
    """
    return f"{', '.join(map(str, some[:-1]))} and {some[-1]}"


def common_seeds(entries: Sequence[Entry], by_name: dict[str, dict[int, dict]]) -> list[int]:
    """The seeds with which all of some rewards were attacked."""
    return sorted(set.intersection(*(set(by_name[entry.name]) for entry in entries))) if entries else []


def controls(rows: Sequence[dict]) -> str:
    """On how many rows the policy was found overpaid with GRPO, and with sampling and no update."""
    pairs = [(row, one) for one in rows if one.get("control") for row in rows if is_of(row, one["name"], one["seed"])]
    if not pairs:
        return "A control without GRPO was not run."
    counts = [tuple(sources(row).get("written by the trained policy", 0) for row in pair) for pair in pairs]
    ours, theirs = zip(*counts, strict=True)
    more, fewer = sum(a > b for a, b in counts), sum(a < b for a, b in counts)
    alone = ", ".join(f"`{row['name']}`" for (row, _), (a, b) in zip(pairs, counts, strict=True) if a and not b)
    rises = [(rise(row), rise(one)) for row, one in pairs]
    with_grpo, without = (fmean(column) for column in zip(*rises, strict=True))
    said = (
        f"Over {len(pairs)} rewards, the policy wrote overpaid completions of {sum(ours)} rows with GRPO and of "
        f"{sum(theirs)} without: of more rows with GRPO for {more} rewards and of fewer for {fewer} (exact sign test, "
        f"p = {mcnemar_p_value(theirs, ours):.2g}). Only with GRPO was it overpaid at all in {alone or 'none'}. Rows "
        "do not show how often a policy is overpaid. The mean reward, which includes correct answers, rose by "
        f"{with_grpo:.2f} with GRPO and by {without:.2f} without (the mean of all rewards; more with GRPO for "
        f"{sum(a > b for a, b in rises)} of {len(rises)}). So sampling the started model was enough to find most of "
        "this."
    )
    lines = [
        f"| {row['name']} | {written(row)} | {a} | {span(row)} | {written(one)} | {b} | {span(one)} |"
        for (row, one), (a, b) in zip(pairs, counts, strict=True)
    ]
    head = "| reward | completions, GRPO | rows | mean reward | completions, control | rows | mean reward |"
    return "\n".join([fill(said, 120), "", head, f"|{'---|' * 7}", *lines])


def means(row: dict) -> tuple[float, float]:
    """The mean reward of the first and of the last fifth of the steps."""
    found = re.search(r"the mean reward went from (\S+) to (\S+),", row["report"])
    return float(found[1]), float(found[2])


def rise(row: dict) -> float:
    """By how much the mean reward rose."""
    return means(row)[1] - means(row)[0]


def span(row: dict) -> str:
    """From where to where the mean reward went."""
    return " to ".join(f"{mean:.2f}" for mean in means(row))


def written(row: dict) -> int:
    """How many completions the model wrote in an attack."""
    return int(re.search(r"The model wrote (\d+)", row["report"])[1])


def early(rows: Sequence[dict]) -> str:
    """How soon the policy's completions with the fault came."""
    first = [row["first_step"] for row in rows if row.get("by_policy") and "first_step" in row]
    start = sum(bool(row.get("by_start")) for row in rows)
    return (
        f"in {sum(step <= 2 for step in first)} of the {len(first)} whose first step is known, the first of these "
        f"completions came in the first two steps, and {start} reports also show one that the model wrote before it "
        "was trained on the reward. So the supervised steps may have been enough."
    )


def counts(by_name: dict[str, dict[int, dict]]) -> str:
    """How many broken rewards were found by what, and how many sound ones were accused."""
    broken = [entry for entry in BROKEN if entry.name in by_name]
    passing = [entry for entry in broken if entry.passes_probe]
    kinds = [("broken, with an error of `probe`", [entry for entry in broken if not entry.passes_probe], 0)]
    kinds += [(f"broken, without one, seed {seed}", passing, seed) for seed in common_seeds(passing, by_name)]
    kinds += [("sound", [entry for entry in SOUND if entry.name in by_name], 0)]
    lines = [f"| {kind} | {len(some)} | {count(some, by_name, seed)} |" for kind, some, seed in kinds if some]
    head = "| rewards | n | `probe` | `attack`: an error | `attack`: flagged | either | the fault | by the policy |"
    return "\n".join([head, f"|{'---|' * 8}", *lines])


def count(entries: Sequence[Entry], by_name: dict[str, dict[int, dict]], seed: int) -> str:
    """How many of some rewards were found, in the columns of the table."""
    rows = {entry.name: by_name[entry.name][seed] for entry in entries}
    probed = {entry.name for entry in entries if entry.errors}
    flagged = {name for name, row in rows.items() if FOUND in row["codes"]}
    errors = {name for name in flagged if rows[name]["codes"][FOUND] == "error"}
    shown = {name for name in flagged if rows[name].get("shows_fault")}
    own = {name for name in shown if rows[name]["by_policy"]}
    return " | ".join(str(len(part)) for part in (probed, errors, flagged, probed | flagged, shown, own))


def table(by_name: dict[str, dict[int, dict]]) -> str:
    """One row per reward."""
    lines = [line(entry, [*by_name[entry.name].values()]) for entry in ZOO if entry.name in by_name]
    head = "| reward | | `probe` | `attack`, each seed | rows of the last seed, by source | the fault, each seed |"
    return "\n".join([head, "|---|---|---|---|---|---|", *lines])


def line(entry: Entry, rows: list[dict]) -> str:
    """One reward."""
    probed = ", ".join(f"`{code}`" for code in entry.errors.split()) or "-"
    verdicts = ", ".join(row["codes"].get(FOUND, "-") for row in rows)
    who = "; ".join(f"{short(source)} {count}" for source, count in sources(rows[-1]).items()) or "-"
    kind = "broken" if entry.fault else "sound"
    return f"| {entry.name} | {kind} | {probed} | {verdicts} | {who} | {', '.join(map(judged, rows))} |"


def judged(row: dict) -> str:
    """What a reader said of the report."""
    shown = {True: "by the policy" if row.get("by_policy") else "shown", False: "another", None: "-"}
    return shown[row.get("shows_fault")]


def short(source: str) -> str:
    """A source of completions in one or two words.

    >>> short("written by the trained policy"), short("reference")
    ('policy', 'reference')
    """
    kinds = {"written": "policy", "sampled": "policy, before", "a variation": "variation", "a fixed": "fixed text"}
    return next((kind for start, kind in kinds.items() if source.startswith(start)), source)


if __name__ == "__main__":
    main()
