"""Train SmolLM2-135M-Instruct, a real language model, and measure what it gained: `make real`.

    python -m grpo_utils real                             orders as JSON: 70 steps, on the GPU if there is one
    python -m grpo_utils real --profile cpu               on the CPU also where there is a GPU
    python -m grpo_utils real --task older --seed 1       another task, another seed
    python -m grpo_utils real --learning_rate 1.0e-4      any setting of the template, as for its train.py
    python -m grpo_utils real --split dev                 measured on the rows for choosing settings

The training is templates/structured_output with the three files of project/, which its users change: data.py,
rewards.py and config.yaml. So Ctrl-C saves a checkpoint, and the same command continues.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from grpo_core.errors import CourseError

from .. import smollm2
from ..data.extraction import SENTENCES
from ..install import check_gpu
from ..profiles import CPU, CPU_ENVIRONMENT, PROFILES, THREADS, Profile, prepare_machine
from ..project import copy_template
from ..runs import show_replay
from .measuring import (
    ROWS,
    SAMPLES,
    base_result,
    compare_results,
    examples_line,
    examples_result,
    measure_merged,
    rates_line,
    sampled_of,
    transcripts,
)

PROJECT = Path(__file__).parent / "project"
#: Where `make real` leaves its run; and what runs share, which stays when a finished run is renamed.
OUTPUTS, SHARED = Path("outputs/real"), Path("outputs/real-shared")
TASKS = tuple(SENTENCES)  # the first is the default


def main(arguments: argparse.Namespace, options: list[str]) -> None:
    """Fetch the model, measure it, train it, merge the adapter, and measure again; ``options`` are for train.py.

    Raises:
        CourseError: an impossible number of rows, too little memory, or the model cannot be fetched.
    """
    if arguments.rows < 2:
        raise CourseError(f"--rows is {arguments.rows}; measure at least 2 prompts.")
    machine, reason = smollm2.find_machine(arguments.profile)
    prepare_machine(machine, threads=os.cpu_count())
    if machine.name == "cpu":
        smollm2.check_memory()
    model = smollm2.fetch()
    print(f"On {check_gpu(machine)} ({reason}), in {smollm2.dtype_on(machine)}.\n{_expected_time(machine)}")
    what = model, arguments.task, SHARED, arguments.split, arguments.rows, machine
    before, examples = base_result(*what), examples_result(*what)
    print(f"Before training: {rates_line(before)}")
    folder = _folder_of(arguments.task, arguments.seed)
    how = arguments.split, arguments.rows, sampled_of(arguments.rows)
    after = run_once(model, arguments.task, arguments.seed, folder, options, *how, machine=machine)
    print(f"{transcripts(before, after)}\n\n{compare_results(before, after)}\n{examples_line(examples, after)}")
    print(f"The merged model, for AutoModelForCausalLM or pipeline: {folder / 'merged'}")
    show_replay(folder)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `main`; what they do not name is left for train.py."""
    parser.add_argument("--task", choices=TASKS, default=TASKS[0])
    parser.add_argument("--seed", type=int, default=0)
    measured = f"held-out prompts to measure (default {ROWS}; {SAMPLES} samples each for an eighth of them)"
    parser.add_argument("--rows", type=int, default=ROWS, help=measured)
    parser.add_argument("--profile", choices=("auto", *PROFILES), default="auto", help="cpu: leave a GPU alone")
    what = "the held-out rows: dev to choose settings, test only to report"
    parser.add_argument("--split", choices=("dev", "test"), default="test", help=what)


def _expected_time(machine: Profile) -> str:
    """What to expect of 70 steps: the time of the whole command, and why it is long on a slow processor.

    >>> print(_expected_time(PROFILES["t4"]))
    Expected total for 70 steps, with the measurements before and after: 10 to 20 minutes on a T4 (estimated).
    """
    expected = "Expected total for 70 steps, with the measurements before and after: "
    if machine.name != "cpu":
        return f"{expected}10 to 20 minutes on a T4 (estimated)."
    if smollm2.dtype_on(machine) == "bfloat16":
        return f"{expected}about half an hour on two cores."
    return f"{smollm2.SLOW_IN_BF16}\n{expected}80 minutes to two hours on two cores."


def _machine_options(machine: Profile, given: Sequence[str]) -> list[str]:
    """The settings of train.py that depend on the machine, without those that were ``given``. Without bf16, it is fp32.

    >>> _machine_options(PROFILES["t4"], ["--max_steps", "5"]), _machine_options(PROFILES["t4"], ["--bf16", "true"])
    (['--use_cpu', 'false', '--bf16', 'false'], ['--use_cpu', 'false'])
    """
    values = {"--use_cpu": machine.name == "cpu", "--bf16": smollm2.dtype_on(machine) == "bfloat16"}
    names = {word.partition("=")[0] for word in given}
    return [part for name, value in values.items() if name not in names for part in (name, str(value).lower())]


def _folder_of(task: str, seed: int) -> Path:
    """outputs/real, or outputs/real-older-seed1 for another task and seed.

    >>> _folder_of("orders", 0).name, _folder_of("older", 1).name
    ('real', 'real-older-seed1')
    """
    parts = [task] * (task != TASKS[0]) + [f"seed{seed}"] * (seed != 0)
    return OUTPUTS.with_name("-".join([OUTPUTS.name, *parts]))


def run_once(
    model: Path,
    task: str,
    seed: int,
    folder: Path,
    options: list[str],
    *how: object,
    machine: Profile = CPU,
) -> dict:
    """Train and merge in ``folder``, and measure the merged model; the result is also in its result.json.

    A run that was stopped after its training is only measured. ``how`` is for `measure`: the split, and numbers of
    prompts.
    """
    trained, result = (folder / "report.json").exists(), folder / "result.json"
    if trained and not result.exists():
        print(f"The run in {folder} was trained, but not measured. It is measured now.")
    else:
        train(model, task, seed, folder, options, machine)
    after = measure_merged(model, folder / "model", folder / "merged", task, *how, machine=machine)
    result.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    return after


def train(model: Path, task: str, seed: int, folder: Path, options: list[str], machine: Profile = CPU) -> None:
    """Run the template's train.py on a copy of the template; a finished run in the folder is renamed by it."""
    project = write_project(SHARED / "project")
    command = [sys.executable, "train.py", "--config", "config.yaml", "--model_name_or_path", str(model.resolve())]
    command += ["--dataset_name", task, "--seed", str(seed), "--output_dir", str(folder.resolve())]
    command += [*_machine_options(machine, options), *options]
    environment = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    if machine.name == "cpu":
        cores = os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count())
        environment |= CPU_ENVIRONMENT | dict.fromkeys(THREADS, cores)
    packages = str(Path(__file__).parents[2])  # the project imports grpo_utils, for its rows and rewards
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, [packages, os.environ.get("PYTHONPATH")]))}
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for train.py, which saves a checkpoint
    done = subprocess.run(command, cwd=project, env=os.environ | environment | paths)
    signal.signal(signal.SIGINT, before)
    if done.returncode:
        sys.exit(done.returncode)


def write_project(folder: str | Path) -> Path:
    """The template with the data, rewards and settings of `PROJECT`."""
    copy_template("structured_output", Path(folder))
    for path in PROJECT.glob("*.*"):
        shutil.copy(path, folder)
    return Path(folder)
