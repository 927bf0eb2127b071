"""Which NVIDIA GPUs may this process use? ``nvidia-smi`` tells, without torch."""

import os
import shutil
import subprocess
from dataclasses import dataclass

from .errors import CourseError


@dataclass(frozen=True)
class Gpu:
    """One NVIDIA GPU: its name, memory in GiB and compute capability."""

    name: str
    memory_gib: float
    capability: float


def find_gpus() -> list[Gpu]:
    """The NVIDIA GPUs that this process may use, according to ``nvidia-smi`` (no torch import)."""
    listed = _nvidia_smi("--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")
    return visible_gpus(parse_gpus(listed), os.environ.get("CUDA_VISIBLE_DEVICES"))


def has_nvidia_gpu() -> bool:
    """Whether ``nvidia-smi`` lists a GPU."""
    return os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1") and "GPU" in _nvidia_smi("-L")


def _nvidia_smi(*arguments: str) -> str:
    """The output of ``nvidia-smi``; nothing if it is missing or fails."""
    if not shutil.which("nvidia-smi"):
        return ""
    answer = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True)
    return "" if answer.returncode else answer.stdout


def parse_gpus(text: str) -> list[Gpu]:
    """Read the lines of ``nvidia-smi --query-gpu=name,memory.total,compute_cap``.

    >>> parse_gpus("Tesla T4, 15360, 7.5")
    [Gpu(name='Tesla T4', memory_gib=15.0, capability=7.5)]
    """
    rows = [[field.strip() for field in line.rsplit(",", 2)] for line in text.strip().splitlines()]
    try:
        return [Gpu(name, float(mib) / 1024, float(capability)) for name, mib, capability in rows]
    except ValueError as error:
        raise CourseError(
            f"nvidia-smi printed {text.strip()!r}, which does not show memory and capability. Name the machine: "
            "PROFILE in a lesson, --gpu (in Python gpu=…) for grpo-check."
        ) from error


def visible_gpus(gpus: list[Gpu], visible: str | None) -> list[Gpu]:
    """The GPUs that ``CUDA_VISIBLE_DEVICES`` selects; all of them if it is unset or lists UUIDs.

    >>> visible_gpus([Gpu("A", 16, 7.5), Gpu("B", 24, 8.9)], "1")
    [Gpu(name='B', memory_gib=24, capability=8.9)]
    >>> visible_gpus([Gpu("A", 16, 7.5)], "")
    []
    """
    if visible is None:
        return gpus
    indices = [part.strip() for part in visible.split(",") if part.strip()]
    if not all(part.lstrip("-").isdigit() for part in indices):
        return gpus
    return [gpus[int(part)] for part in indices if 0 <= int(part) < len(gpus)]
