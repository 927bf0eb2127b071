"""Install the course into the Python that runs this script: packages, Unsloth, grpo_check and grpo_utils.

    python scripts/install.py
    python scripts/install.py requirements-html.txt    only these packages, into the same environment

pip installs uv, which installs the rest from where pip would. Without an NVIDIA GPU (`nvidia-smi` lists none), or with
the variable WITHOUT_GPU=1, torch is its CPU build; with one, requirements-gpu.txt is installed too. Unsloth and
reasoning-gym come last and without their dependencies (their files explain why). `--check` only checks the version of
Python.
"""

import ast
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SUPPORTED = ((3, 11), (3, 14))
PIP = ("pip", "install", "--quiet")
UV = ("uv", "pip", "install", "--quiet", "--python", sys.executable)
#: Settings of pip, and the variables through which uv takes them; it reads none of pip's.
UV_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_OFFLINE",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "constraint": "UV_CONSTRAINT",
}


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


def pin(name: str) -> str:
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    return re.search(rf"^{name}==\S+", lines, re.MULTILINE)[0]


def run(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", *arguments], cwd=ROOT, text=True, **options)


def install(installer: tuple[str, ...], *what: str) -> None:
    if run(*installer, *what).returncode:
        sys.exit(f"Error: {' '.join(what)} could not be installed; see the error above, then run this command again.")


def pip_settings() -> dict[str, str]:
    """How pip is configured, by files and by variables such as PIP_INDEX_URL, as variables for uv."""
    listed = run("pip", "config", "list", stdout=subprocess.PIPE, check=True).stdout
    settings = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip does: the best version of all indexes
    for section in ("global", "install", ":env:"):  # as in pip, a later one wins
        for name, value in re.findall(rf"^{section}\.([\w-]+)=(.+)$", listed, re.MULTILINE):
            if name in UV_VARIABLES:
                separator = "," if name == "find-links" else " "
                settings[UV_VARIABLES[name]] = separator.join(ast.literal_eval(value).split())
    return settings


def choose_cpu_build() -> None:
    """Let uv take torch from PyTorch's index of CPU builds, if that index answers."""
    # --reinstall, because uv asks no index for what is already installed.
    cpu_build = ("--dry-run", "--reinstall", "--no-deps", "--torch-backend", "cpu", pin("torch"))
    tried = run(*UV, *cpu_build, env={"UV_HTTP_RETRIES": "1"} | os.environ, capture_output=True)
    if tried.returncode == 0:
        os.environ["UV_TORCH_BACKEND"] = "cpu"
        return
    reason = tried.stderr.strip().split("cause: ")[-1].partition("\n")[0]  # hints follow
    print(f"PyTorch's index of CPU builds gave no torch ({reason}), so torch comes from pip's index. For Linux, PyPI's")
    print("torch includes gigabytes of CUDA: to avoid them, stop here and try again with another network.", flush=True)


def main() -> None:
    check_python()
    if "--check" in sys.argv:
        return
    if sys.argv[1:]:
        install_also(sys.argv[1:])
    else:
        install_course()


def install_also(files: list[str]) -> None:
    """Install requirements files beside the course with uv, because pip lists each one that lacks dependencies."""
    os.environ.update(pip_settings() | os.environ)
    install(UV, *(part for file in files for part in ("-r", file)))


def install_course() -> None:
    """Install the course, its packages, and those for a GPU if there is one."""
    found = has_nvidia_gpu()
    gpu = found and os.environ.get("WITHOUT_GPU") != "1"
    skipped = "" if gpu else ", so GPU packages are skipped" if not found else ", but skipped: WITHOUT_GPU=1"
    print(f"NVIDIA GPU: {'found' if found else 'not found'}{skipped}", flush=True)
    install(PIP, pin("uv"))
    os.environ.update(pip_settings() | os.environ)
    if not gpu and not {"UV_OFFLINE", "UV_TORCH_BACKEND"} & set(os.environ):
        choose_cpu_build()
    print("Installing the pinned packages (about a minute; torch alone is 200 MB) ...", flush=True)
    install(UV, "-r", "requirements.txt", *(("-r", "requirements-gpu.txt") if gpu else ()))
    alone = ("-r", "requirements-unsloth.txt", "-r", "requirements-reasoning-gym.txt")
    install(UV, "--no-deps", *alone, "--editable", "grpo_check", "--editable", ".")
    print("Installed.", flush=True)


if __name__ == "__main__":
    main()
