"""Look for a task that belongs to GRPO: a program checks its answers, and there is none to imitate.

    python experiments/bench_checked.py           run what is missing, then write a section of docs/what-to-try-first.md
    python experiments/bench_checked.py --write   only write the section, from bench_checked.json

The untrained SmolLM2 answers prompts of each task (`checked.tasks`), without and with three examples in the prompt. On
the first tasks that suit, it is compared with eight examples, self-training and GRPO. Batches that were answered and
checkpoints are kept in outputs/checked/, so stop and start as you like.
"""

import os
from pathlib import Path
from time import perf_counter

from benches import FIRST, NOT_YET, ROOT, filled, only_write, provenance, put, read_stored, train_missing
from checked.arms import ARMS, OWN_SAMPLES, SEED, untrained
from checked.learned import on_letter, on_query
from checked.measuring import TOKENS, measure, rates
from checked.reading import row_of
from checked.spelling import unknown_words
from checked.tasks import HELD_OUT, TASKS, held_out
from free import first
from free.table import difference, with_interval

from grpo_utils.profiles import CPU, prepare_machine
from grpo_utils.real.measuring import SAMPLES, TEMPERATURE

STORED, TITLE = Path(__file__).with_suffix(".json"), "Tasks with a check and no answers"
WORK = ROOT / "outputs" / "checked"
EXAMPLES, PROMPTS, SAMPLED = (0, 3), 64, 32  # of a pilot
SAMPLED_HELD_OUT = 100
#: What a task needs so that GRPO has something to do: greedy accuracy with examples, and pass@8 with or without them.
MOST_GREEDY, LEAST_PASS, MOST_PASS = 0.3, 0.1, 0.6
PILOTS = [dict(task=task, examples=count) for task in TASKS for count in EXAMPLES]
TRAINED = 2  # tasks, at most: the first that suit


def pilot(task: str, examples: int) -> dict:
    """The answers of the untrained model to one task."""
    answerer, folder = untrained(examples)(task, 0, WORK), WORK / f"{task}-{examples}"
    return measure(answerer, task, TASKS[task].rows(PROMPTS), SAMPLED, folder)


def compare(task: str, arm: str, seed: int) -> dict:
    """What an arm makes of the held-out prompts of a task, and the minutes of its training and sampling for it."""
    folder = WORK / f"{task}-{arm}-{seed}"
    start = perf_counter()
    answerer = ARMS[arm](task, seed, folder)
    minutes = round((perf_counter() - start) / 60, 1)
    found = measure(answerer, task, held_out(task), SAMPLED_HELD_OUT, folder)
    unknown = dict(unknown_words=unknown_words(found["texts"])) if task == "letter" else {}
    return found | unknown | dict(minutes=minutes) | answerer.about


def fits(rows: list[dict]) -> str:
    """Whether a task, with the pilots of both prompts, leaves GRPO something to do and something to learn from."""
    if len(rows) < len(EXAMPLES):
        return NOT_YET
    greedy, _, _ = rates(max(rows, key=lambda row: row["examples"]))
    passes = [rates(row)[2] for row in rows]
    if greedy >= MOST_GREEDY:
        return f"no: with examples, greedy accuracy is {MOST_GREEDY} or more"
    if max(passes) < LEAST_PASS:
        return "no: hardly a sample is right"
    return "yes" if any(LEAST_PASS <= one <= MOST_PASS for one in passes) else "no: too many groups hold a right sample"


def verdicts(rows: list[dict]) -> dict[str, str]:
    """Of each task, whether it fits."""
    pilots = [row for row in rows if "examples" in row]
    return {task: fits([row for row in pilots if row["task"] == task]) for task in TASKS}


def comparisons(rows: list[dict]) -> list[dict]:
    """The runs of the first tasks that fit."""
    suited = [task for task, verdict in verdicts(rows).items() if verdict == "yes"][:TRAINED]
    return [dict(task=task, arm=arm, seed=SEED) for task in suited for arm in ARMS]


def line(run: dict, rows: list[dict]) -> str:
    """A pilot, or an arm on held-out prompts, as a row of the table."""
    found = next((row for row in rows if run.items() <= row.items()), None)
    cells = [run["task"], str(run.get("arm", run.get("examples")))]
    if not found:
        return f"| {' | '.join([*cells, NOT_YET, *[''] * (6 if 'arm' in run else 4)])} |"
    parts = ", ".join(f"{name} {share:.2f}" for name, share in found["parts"].items())
    greedy, sampled, passed = rates(found)
    cells += [with_interval(greedy, len(found["greedy"])), f"{sampled:.3f}"]
    cells += [with_interval(passed, len(found["sampled"])), parts, f"{found['most_common_start']:.2f}"]
    if "arm" in run:
        cells += [f"{found['different']:.2f}", f"{found['minutes']:.0f}"]
    return f"| {' | '.join(cells)} |"


def differences(rows: list[dict]) -> str:
    """How much higher the greedy accuracy of GRPO is than that of each other arm, on the same prompts."""
    lines = []
    for task in TASKS:
        if ours := row_of(rows, task, "GRPO"):
            others = (row_of(rows, task, arm) for arm in ARMS if arm != "GRPO")
            lines += [f"- {task}, GRPO compared with {one['arm']}: {difference(ours, one)}" for one in others if one]
    return "\n".join(lines) or f"- {NOT_YET}"


def answers_of(rows: list[dict]) -> str:
    """The first greedy answers of each trained arm, because a check can be satisfied in a way that nobody meant."""
    shown = [row for row in rows if "arm" in row]
    lines = [f"- {row['task']}, {row['arm']}: " + " · ".join(f"`{text}`" for text in row["texts"][:4]) for row in shown]
    return "\n".join(line.replace("\n", " ") for line in lines) or f"- {NOT_YET}"


def section(stored: dict) -> str:
    """The section of docs/what-to-try-first.md."""
    rows = stored["rows"]
    text = filled(
        "checked",
        where=provenance(stored, "two cores") if rows else f"{NOT_YET}.",
        prompts=PROMPTS,
        sampled=SAMPLED,
        samples=SAMPLES,
        temperature=TEMPERATURE,
        tokens=TOKENS,
        most_greedy=MOST_GREEDY,
        least_pass=LEAST_PASS,
        most_pass=MOST_PASS,
        table="\n".join(line(run, rows) for run in PILOTS),
        verdicts="\n".join(f"- {task}: {verdict}" for task, verdict in verdicts(rows).items()),
        held_out=HELD_OUT,
        own=f"{OWN_SAMPLES:,}",
        sampled_held_out=SAMPLED_HELD_OUT,
        arms="\n".join(line(run, rows) for run in comparisons(rows)),
        differences=differences(rows),
        on_query=on_query(rows),
        on_letter=on_letter(rows),
        answers=answers_of(rows),
    )
    return f"\n{text}"


def main() -> None:
    if not only_write(__doc__):
        unknown_words([])  # before hours of training: its dictionary is in experiments/requirements.txt
        prepare_machine(CPU, threads=os.cpu_count())
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        stored = train_missing(STORED, PILOTS, pilot)
        train_missing(STORED, comparisons(stored["rows"]), compare)
    stored = read_stored(STORED) if STORED.exists() else dict(rows=[])
    put(TITLE, section(stored), FIRST)
    first.write(stored["rows"])


if __name__ == "__main__":
    main()
