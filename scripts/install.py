"""Install the course into the Python that runs this script: packages, Unsloth and grpo_utils.

    python scripts/install.py

With an NVIDIA GPU (`nvidia-smi` lists one), requirements-gpu.txt is installed too. Unsloth and reasoning-gym come last
and without their dependencies (their files explain why). `--check` only checks the version of Python.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUPPORTED = ((3, 11), (3, 14))


def check_python() -> None:
    oldest, beyond = SUPPORTED
    if not oldest <= sys.version_info[:2] < beyond:
        sys.exit(
            f"Error: this is Python {platform.python_version()}; the course needs 3.11, 3.12 or 3.13. "
            "Choose one: make setup PYTHON=python3.12"
        )


def has_nvidia_gpu() -> bool:
    if not shutil.which("nvidia-smi"):
        return False
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    return listed.returncode == 0 and "GPU" in listed.stdout


def pip_install(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *arguments], check=True, cwd=ROOT)


def main() -> None:
    check_python()
    if "--check" in sys.argv:
        return
    gpu = has_nvidia_gpu()
    print(f"NVIDIA GPU: {'found' if gpu else 'not found, so GPU packages are skipped'}", flush=True)
    print("Installing the pinned packages (a minute or two; torch alone is 200 MB) ...", flush=True)
    pip_install("-r", "requirements.txt", *(("-r", "requirements-gpu.txt") if gpu else ()))
    pip_install("--no-deps", "-r", "requirements-unsloth.txt", "-r", "requirements-reasoning-gym.txt")
    pip_install("--no-deps", "--editable", ".")
    print("Installed.", flush=True)


if __name__ == "__main__":
    main()
