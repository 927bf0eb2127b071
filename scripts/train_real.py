"""Train SmolLM2-135M-Instruct, a real language model, on a CPU, and measure what it gained: `make real`.

    python scripts/train_real.py                              orders as JSON: 70 steps
    python scripts/train_real.py --task older --seed 1        another task, another seed
    python scripts/train_real.py --learning_rate 1.0e-4       any setting of the template, as for its train.py
    python scripts/train_real.py --split dev                  measured on the rows for choosing settings

The training is templates/structured_output with the three files of real_project, which its users change: data.py,
rewards.py and config.yaml. So Ctrl-C saves a checkpoint, and the same command continues.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from measure_real import base_result, compare_results, measure_merged, rates_line, transcripts

from grpo_utils import smollm2
from grpo_utils.data.extraction import SENTENCES
from grpo_utils.errors import CourseError
from grpo_utils.project import LEFT_OUT, TEMPLATES

HERE = Path(__file__).parent
#: Where `make real` leaves its run; and what runs share, which stays when a finished run is renamed.
OUTPUTS, SHARED = Path("outputs/real"), Path("outputs/real-shared")
TASKS = tuple(SENTENCES)  # the first is the default


def main() -> None:
    """Fetch the model, measure it, train it, merge the adapter, and measure again."""
    arguments, options = parse()
    smollm2.check_memory()
    model = smollm2.fetch()
    print(expected_time(smollm2.fast_bf16()))
    before = base_result(model, arguments.task, SHARED, arguments.split)
    print(f"Before training: {rates_line(before)}")
    folder = folder_of(arguments.task, arguments.seed)
    after = run_once(model, arguments.task, arguments.seed, folder, options, arguments.split)
    print(f"{transcripts(before, after)}\n\n{compare_results(before, after)}")
    print(f"The merged model, for AutoModelForCausalLM or pipeline: {folder / 'merged'}")


def expected_time(fast_bf16: bool) -> str:
    """What to expect of 70 steps: the time of the whole command, and why it is long on a slow processor.

    >>> print(expected_time(True))
    Expected total for 70 steps on two cores, with the measurements before and after: about half an hour.
    """
    total = "about half an hour" if fast_bf16 else "80 minutes to two hours"
    expected = f"Expected total for 70 steps on two cores, with the measurements before and after: {total}."
    return expected if fast_bf16 else f"{smollm2.SLOW_IN_BF16}\n{expected}"


def folder_of(task: str, seed: int) -> Path:
    """outputs/real, or outputs/real-older-seed1 for another task and seed.

    >>> folder_of("orders", 0).name, folder_of("older", 1).name
    ('real', 'real-older-seed1')
    """
    parts = [task] * (task != TASKS[0]) + [f"seed{seed}"] * (seed != 0)
    return OUTPUTS.with_name("-".join([OUTPUTS.name, *parts]))


def run_once(model: Path, task: str, seed: int, folder: Path, options: list[str], *how: object) -> dict:
    """Train and merge in ``folder``, and measure the merged model; the result is also in its result.json.

    A run that was stopped after its training is only measured. ``how`` is for `measure`: the split, and numbers of
    prompts.
    """
    trained, result = (folder / "report.json").exists(), folder / "result.json"
    if trained and not result.exists():
        print(f"The run in {folder} was trained, but not measured. It is measured now.")
    else:
        train(model, task, seed, folder, options)
    after = measure_merged(model, folder / "model", folder / "merged", task, *how)
    result.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    return after


def parse() -> tuple[argparse.Namespace, list[str]]:
    """The task and seed, and what is left for train.py."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", choices=TASKS, default=TASKS[0])
    parser.add_argument("--seed", type=int, default=0)
    what = "the held-out rows: dev to choose settings, test only to report"
    parser.add_argument("--split", choices=("dev", "test"), default="test", help=what)
    return parser.parse_known_args()


def train(model: Path, task: str, seed: int, folder: Path, options: list[str]) -> None:
    """Run the template's train.py on a copy of the template; a finished run in the folder is renamed by it."""
    project = write_project(SHARED / "project")
    command = [sys.executable, "train.py", "--config", "config.yaml", "--model_name_or_path", str(model.resolve())]
    command += ["--dataset_name", task, "--seed", str(seed), "--output_dir", str(folder.resolve())]
    command += options if "--bf16" in options else [*options, "--bf16", str(smollm2.fast_bf16()).lower()]
    cores = os.environ.get("OMP_NUM_THREADS") or str(os.cpu_count())
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), cores)
    quiet = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "UNSLOTH_FORCE_CPU": "1"}
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, [str(TEMPLATES.parent), os.environ.get("PYTHONPATH")]))}
    before = signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for train.py, which saves a checkpoint
    done = subprocess.run(command, cwd=project, env=os.environ | threads | quiet | paths)
    signal.signal(signal.SIGINT, before)
    if done.returncode:
        sys.exit(done.returncode)


def write_project(folder: Path) -> Path:
    """The template with this folder's data, rewards and settings."""
    shutil.copytree(TEMPLATES / "structured_output", folder, ignore=LEFT_OUT, dirs_exist_ok=True)
    shutil.copytree(HERE / "real_project", folder, dirs_exist_ok=True)
    return folder


if __name__ == "__main__":
    try:
        main()
    except CourseError as error:
        sys.exit(f"Error: {error}")
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command continues.")
