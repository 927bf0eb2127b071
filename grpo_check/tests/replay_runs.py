"""Folders of runs as TRL leaves them, without training: completions in Parquet files, and a log."""

import json
import random
from pathlib import Path

import pandas

WORDS = "first we add the ones then carry one and add the tens so that the sum of both numbers is about"


def completion_at(step, steps, chance):
    """A text of a policy that learns to write long and forgets to answer."""
    cheats = chance.random() < step / steps
    words = " ".join(chance.choices(WORDS.split(), k=chance.randint(30, 45) if cheats else chance.randint(4, 14)))
    return words if cheats else f"<reasoning>{words}</reasoning><answer>{chance.randint(20, 180)}</answer>"


def table_at(step, steps, *, groups=4, size=4, texts=None):
    """The rows of one step: a reward for length, and a correctness reward with weight 0."""
    chance, rows = random.Random(step), []
    for group in range(groups):
        prompt = f"What is {10 + group} + {20 + step}?"
        said = texts or [completion_at(step, steps, chance) for _ in range(size)]
        paid = [min(1.0, len(text) / 200) for text in said]
        mean = sum(paid) / size
        for text, reward in zip(said, paid):
            right = float("<answer>" in text and chance.random() < 0.8)
            row = dict(step=step, prompt=prompt, completion=text, answer_length=reward, correctness_reward=right)
            rows.append(row | dict(advantage=0.0 if max(paid) == min(paid) else 3 * (reward - mean)))
    return pandas.DataFrame(rows)


def entry_of(table):
    """What TRL logs of a step."""
    step = int(table["step"].iloc[0])
    entry = {"step": step, "reward": table["answer_length"].mean(), "frac_reward_zero_std": 0.0, "loss": 0.1}
    for name in ("answer_length", "correctness_reward"):
        entry |= {f"rewards/{name}/mean": table[name].mean(), f"rewards/{name}/std": table[name].std()}
    return entry | {"completions/mean_length": table["completion"].str.len().mean() / 4, "reward_std": 0.2}


def write_step(folder: Path, table, step=None):
    """One file of completions, named as TRL names it."""
    (folder / "completions").mkdir(parents=True, exist_ok=True)
    file = folder / "completions" / f"completions_{step or int(table['step'].iloc[0]):05d}.parquet"
    table.to_parquet(file)
    return file


def write_log(folder: Path, entries):
    """A trainer_state.json as a checkpoint has it."""
    place = folder / f"checkpoint-{entries[-1]['step']}"
    place.mkdir(parents=True)
    state = {"global_step": entries[-1]["step"], "log_history": entries}
    (place / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")


def write_run(folder: Path, steps=30, **how):
    """A whole run."""
    tables = [table_at(step, steps, **how) for step in range(1, steps + 1)]
    for table in tables:
        write_step(folder, table)
    write_log(folder, [entry_of(table) for table in tables])
    return folder
