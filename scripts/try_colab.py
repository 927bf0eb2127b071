"""Run lesson 03 briefly as on Colab or Kaggle, on this machine's CPU: with their Python, their packages and real pip.

    make colab-cpu              # with Python 3.13 as on Colab or, if there is none, 3.12 as on Kaggle
    make colab-cpu ARGS=3.12    # with this Python

A new environment gets the versions of tests/images. Its own kernel then runs the notebook next to the wheels of the
course and of grpo-check: the install cell, with pip, and all other cells with a few steps. Both stay in
outputs/colab-cpu until the next run. The last line says what ran, or why nothing did. A missing Python is an error only
on GitHub, where the workflow installs it.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
import papermill
from install import choose_cpu_build, pip_settings
from install_cell import FIRST_LINE, ROOT
from papermill.exceptions import PapermillExecutionError

#: Not a temporary folder: deleting an environment can take as long as making it. Its files are links into uv's cache.
FOLDER = ROOT / "outputs" / "colab-cpu"
LESSON = "03_grpo_lora.ipynb"
SHORT = {"PROFILE": "cpu", "STEPS": 3, "EVAL_ROWS": 16}
#: For each Python, the image that has it, and the variable by which the install cell knows the place.
PLACES = {"3.13": ("colab", "COLAB_RELEASE_TAG"), "3.12": ("kaggle", "KAGGLE_KERNEL_RUN_TYPE")}
#: What of an image matters here, with its requirements: what the lesson imports, what runs the install cell, and
#: packages that an install could break.
TORCH = ("torch", "torchvision")
PACKAGES = ("transformers", "peft", "accelerate", "datasets", "torchao", "sentencepiece", "einops", "scipy")
PACKAGES += ("matplotlib", "ipykernel", "ipywidgets", "pip", "setuptools", "wheel")
PACKAGES += ("omegaconf", "torchtune", "diffusers")
#: The distributions of this repository.
PACKAGED = ("grpo_check", "grpo_utils")
#: Run in the environment after the lesson: omegaconf and our rewards need the same package, antlr4-python3-runtime.
CHECK = r"""
import omegaconf, platform, torch
from grpo_utils import correctness_reward
said = [f"<answer>{text}</answer>" for text in (r"\frac{1}{2}", r"2\sqrt{2}", "x^2+2x+1", "1,250", "7")]
paid = correctness_reward(completions=said, answer=["0.5", r"\sqrt{8}", "(x+1)^2", "1250", "8"])
assert paid == [1.0, 1.0, 1.0, 1.0, 0.0], paid
print(f"Python {platform.python_version()} with torch {torch.__version__}")
"""
LONGEST_CELL = 900  # seconds


class Failure(Exception):
    """Why the lesson did not run as it should, in one line."""


# The interpreter


def candidates(version: str, on_path: str | None, pyenv: Path) -> list[Path]:
    """Where a Python of this version may be: first the one on PATH, then pyenv's, the newest first."""
    releases = [path for path in pyenv.glob(f"versions/{version}.*") if re.fullmatch(r"[\d.]+", path.name)]
    releases.sort(key=lambda path: [int(number) for number in path.name.split(".")], reverse=True)
    return [*([Path(on_path)] if on_path else []), *(path / "bin" / "python" for path in releases)]


def is_python(path: Path, version: str) -> bool:
    """Whether this program runs and is that Python; pyenv puts programs on PATH that only print an error."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([path, "-c", code], capture_output=True, text=True)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find_python(
    versions: list[str], pyenv: Path, which: Callable = shutil.which, fits: Callable = is_python
) -> tuple[str, Path] | None:
    """The first of these versions that this machine has, and its program."""
    for version in versions:
        for path in candidates(version, which(f"python{version}"), pyenv):
            if fits(path, version):
                return version, path
    return None


# The environment


def constraints(packages: dict[str, str]) -> str:
    """The image's versions, without those of CUDA: another build of torch brings its own."""
    kept = {name: version for name, version in packages.items() if not name.startswith(("nvidia-", "cuda-"))}
    return "".join(f"{name}=={version.partition('+')[0]}\n" for name, version in kept.items())


def uv(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "uv", *map(str, arguments)]
    if subprocess.run(command, env={"UV_PYTHON_DOWNLOADS": "never"} | os.environ).returncode:
        raise Failure("the image's packages could not be installed; uv's error is above")


def make_environment(python: Path, image: str) -> Path:
    """A new environment with the image's versions; the path of its Python."""
    listed = json.loads((ROOT / "tests" / "images" / f"{image}.json").read_text(encoding="utf-8"))["packages"]
    versions = FOLDER / "versions.txt"
    versions.write_text(constraints(listed), encoding="utf-8")
    os.environ.update(pip_settings() | os.environ)
    if not {"UV_OFFLINE", "UV_TORCH_BACKEND"} & set(os.environ):
        choose_cpu_build()
    uv("venv", "--quiet", "--python", python, FOLDER / "venv")
    there = FOLDER / "venv" / "bin" / "python"
    install = ("pip", "install", "--quiet", "--python", there, "--constraint", versions)
    uv(*install, *TORCH)
    os.environ.pop("UV_TORCH_BACKEND", None)  # PyTorch's index need not have the rest
    uv(*install, *PACKAGES)
    return there


# The lesson


def add_kernel(python: Path, variable: str) -> None:
    """Let Jupyter find a kernel "image" in the environment, which believes it runs in Colab or Kaggle."""
    where = {variable: "x", "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    start = [str(python), "-Xfrozen_modules=off", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": start, "display_name": "image", "language": "python", "env": where}
    kernel = FOLDER / "kernels" / "image"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    os.environ["JUPYTER_PATH"] = str(FOLDER)


def newest_wheels() -> list[Path]:
    """The wheels of grpo-check and of the course."""
    built = [sorted((ROOT / "outputs").glob(f"{name}-*.whl"), key=os.path.getmtime) for name in PACKAGED]
    if not all(built):
        raise Failure(f"outputs/ has no wheels of {' and '.join(PACKAGED)}; run `make wheel` first")
    return [files[-1] for files in built]


def run_lesson() -> nbformat.NotebookNode:
    """The executed lesson."""
    how = dict(parameters=SHORT, kernel_name="image", cwd=FOLDER, execution_timeout=LONGEST_CELL)
    try:
        return papermill.execute_notebook(ROOT / "notebooks" / LESSON, FOLDER / LESSON, progress_bar=False, **how)
    except PapermillExecutionError as error:
        print(error)
        said = str(error.evalue).partition("\n")[0]
        raise Failure(f"cell {error.exec_count} of the lesson failed: {error.ename}: {said}") from error


def pip_errors(cell: nbformat.NotebookNode) -> list[str]:
    """The errors that pip prints, each in one line; it may exit with 0 all the same."""
    text = re.sub(r"\x1b\[[\d;]*m", "", "".join(output.get("text", "") for output in cell.outputs))
    errors = re.findall(r"^ERROR.*?(?=^(?:ERROR|WARNING|Note)|\Z)", text, re.MULTILINE | re.DOTALL)
    return [" ".join(error.split()) for error in errors]


def check(python: Path) -> str:
    """The versions of Python and torch, if the environment is sound after the lesson."""
    done = subprocess.run([python, "-c", CHECK], capture_output=True, text=True)
    if done.returncode:
        raise Failure(f"after the lesson, {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.strip().splitlines()[-1]


def try_lesson(version: str, python: Path) -> str:
    """What ran, and for how long."""
    image, variable = PLACES[version]
    wheels = newest_wheels()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    started = time.perf_counter()
    there = make_environment(python, image)
    installed = time.perf_counter()
    add_kernel(there, variable)
    for wheel in wheels:
        shutil.copy(wheel, FOLDER)  # the install cell looks for them next to the notebook
    cells = [cell for cell in run_lesson().cells if cell.cell_type == "code"]
    [install_cell] = [cell for cell in cells if FIRST_LINE.match(cell.source)]
    if errors := pip_errors(install_cell):
        raise Failure(f"pip in the install cell said: {errors[0]}")
    ran = check(there)
    pip = install_cell.metadata.papermill.duration
    others = sum(cell.metadata.papermill.duration for cell in cells) - pip
    total = time.perf_counter() - started
    return (
        f"{ran} and {image.title()}'s packages ran lesson 03 in {total:.0f} s "
        f"(packages {installed - started:.0f}, install cell {pip:.0f}, other cells {others:.0f})"
    )


def main() -> None:
    versions = sys.argv[1:] or [*PLACES]
    if unknown := set(versions) - set(PLACES):
        sys.exit(f"Error: {', '.join(unknown)} is not the Python of an image; choose {' or '.join(PLACES)}")
    found = find_python(versions, Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv"))
    if not found:
        print(f"colab-cpu: nothing ran, because this machine has no Python {' or '.join(versions)}")
        sys.exit(int(os.environ.get("GITHUB_ACTIONS") == "true"))
    try:
        print(f"colab-cpu: {try_lesson(*found)}")
    except Failure as failure:
        print(f"colab-cpu: failed with Python {found[0]}: {failure}")
        sys.exit(1)


if __name__ == "__main__":
    main()
