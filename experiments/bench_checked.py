"""Look for a task that belongs to GRPO: a program checks its answers, and there is none to imitate.

    python experiments/bench_checked.py           run the missing pilots, then write a section of docs/results.md
    python experiments/bench_checked.py --write   only write the section, from bench_checked.json

The untrained SmolLM2 answers prompts of each task (`checked_tasks`), without and with three examples in the prompt. A
batch that was answered is kept in outputs/checked/, so stop and start as you like.
"""

import os
from collections import Counter
from pathlib import Path
from statistics import fmean

from benches import ROOT, filled, only_write, provenance, put, read_stored, train_missing
from checked_tasks import TASKS
from free.answering import answer
from free.measuring import in_parts, load, set_threads
from free.prompts import with_examples
from grpo_core.training.measuring import wilson_interval

from grpo_utils.profiles import CPU, prepare_machine
from grpo_utils.real.measuring import SAMPLES, TEMPERATURE

STORED, TITLE = Path(__file__).with_suffix(".json"), "Tasks with a check and no answers"
WORK = ROOT / "outputs" / "checked"
EXAMPLES, PROMPTS, SAMPLED, TOKENS = (0, 3), 64, 32, 48
AT_ONCE = 64  # answers
#: What a task needs so that GRPO has something to do: greedy accuracy with examples, and pass@8 with or without them.
MOST_GREEDY, LEAST_PASS, MOST_PASS = 0.3, 0.1, 0.6
RUNS = [dict(task=task, examples=count) for task in TASKS for count in EXAMPLES]
NOT_YET = "not yet run"


def pilot(task: str, examples: int) -> dict:
    """The answers of the untrained model to one task: which are right, which parts are, and how alike they are."""
    rows = TASKS[task].rows(PROMPTS)
    framed = with_examples(TASKS[task].examples() if examples else [])
    prompts, (model, tokenizer) = [framed(row["prompt"]) for row in rows], load()
    folder = WORK / f"{task}-{examples}"

    def answers(part: range, samples: int, temperature: float) -> list[list[str]]:
        set_threads()
        how = dict(samples=samples, temperature=temperature, seed=part.start, max_new_tokens=TOKENS)
        return answer(model, tokenizer, [prompts[n] for n in part], **how)

    greedy = in_parts(PROMPTS, AT_ONCE, folder / "greedy", lambda part: answers(part, 1, 0.0))
    group = AT_ONCE // SAMPLES
    sampled = in_parts(SAMPLED, group, folder / "sampled", lambda part: answers(part, SAMPLES, TEMPERATURE))
    return judged(task, rows, greedy, sampled)


def judged(task: str, rows: list[dict], greedy: list[list[str]], sampled: list[list[str]]) -> dict:
    """What is stored of a pilot."""
    check = TASKS[task].parts
    of_greedy = [check(text, row["drawn"]) for (text,), row in zip(greedy, rows, strict=True)]
    of_samples = [[check(text, row["drawn"]) for text in said] for said, row in zip(sampled, rows, strict=False)]
    every = [parts for group in of_samples for parts in group]
    first_words = Counter(" ".join(text.split()[:2]) for (text,) in greedy)
    return dict(
        greedy="".join(str(int(all(parts.values()))) for parts in of_greedy),
        sampled=[sum(all(parts.values()) for parts in group) for group in of_samples],
        parts={name: round(fmean(parts[name] for parts in every), 3) for name in every[0]},
        most_common_start=round(first_words.most_common(1)[0][1] / len(greedy), 3),
        texts=[text for (text,) in greedy[:8]],
        sampled_texts=[text for said in sampled[:4] for text in said[:2]],
    )


def rates(row: dict) -> tuple[float, float, float]:
    """Greedy accuracy, sampled accuracy and pass@8."""
    greedy, sampled = fmean(map(int, row["greedy"])), row["sampled"]
    return greedy, fmean(sampled) / SAMPLES, fmean(count > 0 for count in sampled)


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


def line(run: dict, rows: list[dict]) -> str:
    """A pilot as a row of the table."""
    found = [row for row in rows if run.items() <= row.items()]
    cells = [run["task"], str(run["examples"])]
    if not found:
        return f"| {' | '.join([*cells, NOT_YET, *[''] * 4])} |"
    parts = ", ".join(f"{name} {share:.2f}" for name, share in found[0]["parts"].items())
    greedy, sampled, passed = rates(found[0])
    cells += [with_interval(greedy, PROMPTS), f"{sampled:.3f}", with_interval(passed, SAMPLED)]
    cells += [parts, f"{found[0]['most_common_start']:.2f}"]
    return f"| {' | '.join(cells)} |"


def with_interval(rate: float, count: int) -> str:
    """A rate of so many prompts with its 95% Wilson interval."""
    low, high = wilson_interval(round(rate * count), count)
    return f"{rate:.3f} ({low:.3f} to {high:.3f})"


def section(stored: dict) -> str:
    """The section of docs/results.md."""
    rows = stored["rows"]
    verdicts = {task: fits([row for row in rows if row["task"] == task]) for task in TASKS}
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
        table="\n".join(line(run, rows) for run in RUNS),
        verdicts="\n".join(f"- {task}: {verdict}" for task, verdict in verdicts.items()),
    )
    return f"\n{text}"


def main() -> None:
    if not only_write(__doc__):
        prepare_machine(CPU, threads=os.cpu_count())
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        train_missing(STORED, RUNS, pilot)
    put(TITLE, section(read_stored(STORED) if STORED.exists() else dict(rows=[])))


if __name__ == "__main__":
    main()
