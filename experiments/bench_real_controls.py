"""Train SmolLM2 with the true rewards and with two controls, and write a section of docs/results.md.

    python experiments/bench_real_controls.py           train what its .json file lacks, on a GPU if there is one
    python experiments/bench_real_controls.py --write   only write the section, from the .json file

The controls never read the answer. With the task *older*, the true rewards show what an ability that does not rise
looks like. Each run is stored when it ends, and its checkpoints continue a run that was stopped.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import fmean

from bench_real import changes_of, packed
from benches import curves, only_write, provenance, put, read_stored, train_missing

from grpo_utils import smollm2
from grpo_utils.real.measuring import SAMPLES, TEMPERATURE, measure, measure_merged, rates
from grpo_utils.real.training import SHARED, write_project

STORED, TITLE = Path(__file__).with_suffix(".json"), "Controls on a real model"
CONTROLS = Path(__file__).parent / "real_controls"
SEEDS, PROMPTS, SAMPLED = range(3), 200, 50
#: The steps of each task and reward. Those of *older* are enough for its greedy and sampled accuracy to part.
RUNS = [
    *(("orders", reward, 25) for reward in ("true rewards", "format alone", "coin toss")),
    ("older", "true rewards", 40),
]

NOT_ENDED = """These runs were stopped after 15 steps, when the time on the GPU ran out. So we do not know their
effect on accuracy. The command above trains them to the end."""
#: What is kept of each step of a run, and its key in the log.
KEPT = dict(reward="reward", form="rewards/alone_reward/mean", entropy="entropy", seconds="step_time")


def on_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def base(task: str) -> dict:
    """The model before training, measured once for each task."""
    kept = SHARED / "controls" / f"base-{task}.json"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        found = measure(smollm2.fetch(), task, "test", PROMPTS, SAMPLED, machine=smollm2.find_machine("auto")[0])
        kept.write_text(json.dumps(found) + "\n", encoding="utf-8")
    return json.loads(kept.read_text(encoding="utf-8"))


def train(task: str, arm: str, steps: int, seed: int) -> dict:
    """One run: its rewards and seconds step by step, and what was right before and after."""
    folder = (SHARED / "controls" / re.sub(r"\W+", "-", f"{task} {arm} seed{seed}")).resolve()
    kept = folder / "result.json"
    if not kept.exists():
        run_template(folder, task, arm, steps, seed)
        how = (task, "test", PROMPTS, SAMPLED, smollm2.find_machine("auto")[0])
        found = measure_merged(smollm2.fetch(), folder / "run" / "model", folder / "merged", *how)
        kept.write_text(json.dumps(found) + "\n", encoding="utf-8")
    after = json.loads(kept.read_text(encoding="utf-8"))
    results = {when: packed(each, PROMPTS, SAMPLED) for when, each in (("before", base(task)), ("after", after))}
    return results | curves(folder / "run" / f"checkpoint-{steps}", KEPT)


def run_template(folder: Path, task: str, arm: str, steps: int, seed: int) -> None:
    """Train in a copy of the template with the project of `make real`, with this reward."""
    project = write_project(folder / "project")
    if arm != "true rewards":
        (project / "rewards.py").replace(project / "true_rewards.py")
        shutil.copy(CONTROLS / f"{arm.replace(' ', '_')}.py", project / "rewards.py")
    options = dict(model_name_or_path=smollm2.fetch().resolve(), output_dir=folder / "run", dataset_name=task)
    options |= dict(max_steps=steps, seed=seed, save_total_limit=1, eval_rows=8) | hardware()
    given = [part for name, value in options.items() for part in (f"--{name}", str(value))]
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH")]))
    variables = {"PYTHONPATH": paths, "HF_HUB_OFFLINE": "1", "UNSLOTH_COMPILE_LOCATION": str(folder / "compiled")}
    command = [sys.executable, "train.py", "--config", "config.yaml", *given]
    subprocess.run(command, cwd=project, env=os.environ | variables, check=True)


def hardware() -> dict[str, str]:
    """The settings of a GPU, or those of `make real`."""
    if on_gpu():
        return dict(use_cpu="false", bf16="true")
    return dict(bf16=str(smollm2.fast_bf16()).lower())


def section(stored: dict) -> str:
    """The section of docs/results.md: the rewards of all runs, and the accuracy of those that ended."""
    begun = [*stored["begun"], *stored["rows"]]
    rewards = "\n".join(map(reward_line, begun))
    where, cores = (f"on {stored['card']}", "one GPU") if stored.get("card") else ("on a CPU", "all cores")
    return f"""
*Measured* by `make bench-real-controls` {where}, {provenance(stored, cores)}

SmolLM2 is trained on the tasks of `make real` with its four rewards (*true rewards*, at most 3.0 together), or with one
that never reads the answer (at most 1.0):
*format alone* pays for one flat JSON object and nothing else, and *coin toss* pays 0 or 1 at random. The columns have
the mean reward of a run's first five steps, and of steps 11 to 15:

| task | reward | seed | steps 1 to 5 | steps 11 to 15 |
|---|---|---|---|---|
{rewards}

{accuracy(stored["rows"])}
"""


def accuracy(rows: list[dict]) -> str:
    """Rates before and after training, with paired tests."""
    if not rows:
        return NOT_ENDED
    lines, tests = ("\n".join(map(shown, rows)) for shown in (rates_row, paired_test))
    return f"""Before and after training: *greedy* accuracy on {PROMPTS} held-out prompts; *sampled*, at a temperature
of {TEMPERATURE}, and *pass@8* on {SAMPLED} of them with {SAMPLES} samples each.

| task | reward | steps | seed | greedy | sampled | pass@8 |
|---|---|---|---|---|---|---|
{lines}

The paired changes on the same prompts, each with its 95% interval:

{tests}"""


def reward_line(row: dict) -> str:
    """A run's mean reward early and later."""
    ends = [f"{fmean(row['reward'][part]):.2f}" for part in (slice(5), slice(10, 15))]
    return f"| {' | '.join([row['task'], row['arm'], str(row['seed']), *ends])} |"


def rates_row(row: dict) -> str:
    """The rates of one run before and after training."""
    before, after = (rates(row[when]) for when in ("before", "after"))
    changes = [f"{before[name]:.3f} to {after[name]:.3f}" for name in ("greedy", "sampled", "pass@8")]
    return f"| {' | '.join([row['task'], row['arm'], str(row['steps']), str(row['seed']), *changes])} |"


def paired_test(row: dict) -> str:
    """How the three rates of one run changed on the same prompts."""
    shown = "; ".join(f"{name} {change}" for name, change in changes_of(row).items())
    return f"- {row['task']}, {row['arm']}, seed {row['seed']}: {shown}"


def about() -> dict:
    """The card, if there is one."""
    import torch

    return dict(card=torch.cuda.get_device_name()) if on_gpu() else {}


def runs() -> list[dict]:
    return [dict(task=task, arm=arm, steps=steps, seed=seed) for task, arm, steps in RUNS for seed in SEEDS]


def main() -> None:
    stored = read_stored(STORED) if only_write(__doc__) else train_missing(STORED, runs(), train, begun=[], **about())
    put(TITLE, section(stored))


if __name__ == "__main__":
    main()
