"""All packages of the course in one folder, for a room without a network.

    python scripts/bundle.py               # on a machine with a network
    python scripts/bundle.py --gpu         # for machines with an NVIDIA GPU
    python scripts/bundle.py --show        # only print the commands

What follows is given to pip as it is, say `--extra-index-url ADDRESS` for the address of torch's CPU build (PyPI's
torch for Linux brings gigabytes of CUDA). Run it with the system, processor and Python version of the room's
machines: wheels fit no other. In the room, next to a copy of the repository, the usual command takes the folder:

    PIP_NO_INDEX=1 PIP_FIND_LINKS="$PWD/outputs/bundle" make setup
"""

import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = Path("outputs") / "bundle"


def commands(gpu: bool, more: list[str]) -> list[list[str]]:
    """What to run: the pinned packages, Unsloth as install.py installs it, and what builds grpo_utils."""
    wheel = ["-m", "pip", "wheel", "--wheel-dir", str(FOLDER), "--find-links", str(FOLDER), *more]
    more_for_gpu = ["-r", "requirements-gpu.txt"] if gpu else []
    return [
        [*wheel, "-r", "requirements.txt", *more_for_gpu],
        [*wheel, "--no-deps", "-r", "requirements-unsloth.txt"],
        [*wheel, "setuptools>=77"],
    ]


def main() -> None:
    more = [argument for argument in sys.argv[1:] if argument not in ("--gpu", "--show")]
    for command in commands("--gpu" in sys.argv, more):
        print(shlex.join(["python", *command]), flush=True)
        if "--show" not in sys.argv:
            subprocess.run([sys.executable, *command], check=True, cwd=ROOT)
    print(f'In the room: PIP_NO_INDEX=1 PIP_FIND_LINKS="$PWD/{FOLDER.as_posix()}" make setup')


if __name__ == "__main__":
    main()
