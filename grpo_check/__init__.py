"""Checks for a GRPO run, before it and after it, in any project on TRL.

| ask | when |
|---|---|
| `probe` | before training: can a reward be earned without the right answer? |
| `preflight` | before training: what in the settings, rows and rewards would fail, or waste the run? |
| `diagnose`, `HealthCallback` | during and after training: what does the log say went wrong? |

From a terminal: ``python -m grpo_check --help``. ``import grpo_check`` loads no torch.
"""

from grpo_utils.errors import CourseError  # isort: skip  (first: it keeps a random.py of yours from replacing Python's)

from .findings import Finding
from .health import diagnose, diagnose_error, diagnose_file, read_log
from .preflight import PreflightReport, estimate_memory, estimate_minutes, model_sizes, preflight
from .reward_lab import ProbeReport, probe

__all__ = [
    "CourseError",
    "Finding",
    "HealthCallback",
    "PreflightReport",
    "ProbeReport",
    "diagnose",
    "diagnose_error",
    "diagnose_file",
    "estimate_memory",
    "estimate_minutes",
    "model_sizes",
    "preflight",
    "probe",
    "read_log",
]


def __getattr__(name: str) -> object:
    """Reach `HealthCallback`, whose module imports transformers, only when it is asked for."""
    if name != "HealthCallback":
        raise AttributeError(f"module 'grpo_check' has no attribute {name!r}")
    from .health.watching import HealthCallback

    return HealthCallback
