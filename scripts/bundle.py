"""Download all packages of the course into one folder, for a classroom without a network.

    python scripts/bundle.py               # on a machine with a network
    python scripts/bundle.py --gpu         # for machines with an NVIDIA GPU
    python scripts/bundle.py --show        # only print the commands

Other arguments are passed to pip, for example `--extra-index-url ADDRESS` with the address of torch's CPU build (PyPI's
torch for Linux includes gigabytes of CUDA). Run it with the system, processor and Python version of the classroom's
machines, because wheels fit no others. In the classroom, in a copy of the repository, install from the folder:

    PIP_NO_INDEX=1 PIP_FIND_LINKS="$PWD/outputs/bundle" make setup
"""

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = Path("outputs") / "bundle"


def commands(gpu: bool, more: list[str]) -> list[list[str]]:
    """The commands for the pinned packages, those without dependencies, and what builds grpo_utils."""
    wheel = ["-m", "pip", "wheel", "--wheel-dir", str(FOLDER), "--find-links", str(FOLDER), *more]
    more_for_gpu = ["-r", "requirements-gpu.txt"] if gpu else []
    return [
        [*wheel, "-r", "requirements.txt", *more_for_gpu],
        [*wheel, "--no-deps", "-r", "requirements-unsloth.txt", "-r", "requirements-reasoning-gym.txt"],
        [*wheel, "setuptools>=77"],
    ]


def main() -> None:
    more = [argument for argument in sys.argv[1:] if argument not in ("--gpu", "--show")]
    for command in commands("--gpu" in sys.argv, more):
        print(shlex.join(["python", *command]), flush=True)
        if "--show" not in sys.argv:
            subprocess.run([sys.executable, *command], check=True, cwd=ROOT)
    print(f'In the classroom: PIP_NO_INDEX=1 PIP_FIND_LINKS="$PWD/{FOLDER.as_posix()}" make setup')


if __name__ == "__main__":
    main()
