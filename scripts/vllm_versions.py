"""Write the table in docs/troubleshooting-gpu.md of the versions of vLLM that fit the course's trl and transformers.

    python scripts/vllm_versions.py

uv resolves the newest release of each minor version of vLLM together with the pinned trl and transformers, and alone if
they exclude each other. Only the metadata of packages is downloaded, and nothing is installed. A resolver compares what
packages require of each other; it does not run them.
"""

import re
import subprocess
import sys
from datetime import date
from importlib import metadata

from address import ROOT
from error_tables import table
from install import pin
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from refresh_image import frozen
from rule_tables import BEGIN, with_table

PAGE = ROOT / "docs" / "troubleshooting-gpu.md"
MARK = BEGIN.format("vLLM's versions").replace("rule_tables", "vllm_versions")
#: The oldest minor version in the table: 0.11 is what Unsloth's notebooks install on a T4.
OLDEST = 11
TARGET = ("--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_31")
HEADER = ("vLLM", "fits", "supported by TRL", "transformers", "torch", "CUDA", "numpy")


def resolve(*requirements: str, dependencies: bool = True) -> dict[str, str]:
    """The version of every package that uv chooses, or nothing if the requirements exclude each other."""
    command = [sys.executable, "-m", "uv", "--color", "never", "pip", "compile", "--no-annotate", *TARGET, "-"]
    command += [] if dependencies else ["--no-deps"]
    done = subprocess.run(command, input="\n".join(requirements), capture_output=True, text=True)
    if done.returncode and "No solution found" not in done.stderr:
        sys.exit(f"Error: uv could not resolve {', '.join(requirements)}:\n{done.stderr}")
    return {} if done.returncode else frozen(done.stdout)


def supported() -> SpecifierSet:
    """The versions of vLLM that the installed trl supports: what its extra ``vllm`` requires."""
    needs = [Requirement(line) for line in metadata.requires("trl")]
    return next(need.specifier for need in needs if need.name == "vllm")


def cuda(packages: dict[str, str]) -> str:
    """The version of CUDA whose libraries are among the packages.

    >>> cuda({"torch": "2.9.0", "nvidia-cuda-runtime-cu12": "12.8.90"})
    '12.8'
    """
    name = next((name for name in packages if re.fullmatch(r"nvidia-cuda-runtime(-cu\d+)?", name)), None)
    return ".".join(packages[name].split(".")[:2]) if name else "none"


def row(packages: dict[str, str], fits: bool, support: SpecifierSet) -> tuple[str, ...]:
    """One row of the table.

    >>> packages = {"vllm": "0.11.2", "transformers": "4.57.6", "torch": "2.9.0", "numpy": "2.2.6"}
    >>> row(packages, fits=False, support=SpecifierSet(">=0.20.0,<=0.30.0"))
    ('0.11.2', 'no', 'no', '4.57.6', '2.9.0', 'none', '2.2.6')
    """
    answers = ("yes" if fits else "no", "yes" if packages["vllm"] in support else "no")
    return packages["vllm"], *answers, packages["transformers"], packages["torch"], cuda(packages), packages["numpy"]


def newest(wanted: str) -> str:
    """The newest release of vLLM that a requirement allows, "" if there is none."""
    return resolve(wanted, dependencies=False).get("vllm", "")


def rows() -> list[tuple[str, ...]]:
    """A row for each minor version of vLLM, the newest first."""
    found = []
    for minor in range(int(newest("vllm").split(".")[1]), OLDEST - 1, -1):
        if not (version := newest(f"vllm==0.{minor}.*")):
            continue  # vLLM skipped this number
        together = resolve(f"vllm=={version}", pin("trl"), pin("transformers"))
        packages = together or resolve(f"vllm=={version}")
        found.append(row(packages, bool(together), supported()))
        print(*found[-1], flush=True)
    return found or sys.exit("Error: found no version of vLLM below 1.0. Change the loop over its minor versions.")


def text(found: list[tuple[str, ...]], day: date) -> str:
    """The table with the sentences above it."""
    uv = f"uv {metadata.version('uv')}"
    pins = f"`{pin('trl')}` and `{pin('transformers')}`"
    said = (
        f"Resolved on {day:%Y-%m-%d} with {uv}, for Python 3.12 and Linux on x86-64; nothing was\n"
        f"installed. A version *fits* if it resolves together with {pins}. The last\n"
        "four columns show what uv then chooses. If the version does not fit, they show what uv chooses for it alone."
    )
    return f"{said}\n\n{table(HEADER, found)}"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_table(page, MARK, text(rows(), date.today())), encoding="utf-8")
