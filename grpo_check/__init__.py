"""Checks for a GRPO run, before and after training, in any TRL project.

| check | when, and what it answers |
|---|---|
| `probe` | before training: can a policy earn the reward without a correct answer? |
| `attack` | before training: what does a small model learn when it is trained on the reward for a few minutes? |
| `preflight` | before training: which settings, rows and rewards would make the run fail or waste it? |
| `pilot` | before training: will the run learn, and what will it cost? A few dozen prompts are sampled. |
| `diagnose`, `HealthCallback` | during and after training: what went wrong, according to the log? |

From a terminal: ``grpo-check --help``; it also has ``replay``, a page of a run. ``import grpo_check`` loads no torch.
`attack`, `pilot` and `preflight` are functions here, and packages of the same names hold their parts: write
``from grpo_check.pilot.running import …`` to reach into one.
"""

from grpo_utils.errors import CourseError  # isort: skip  (first: it keeps your random.py from replacing Python's)

from .attack import AttackReport, attack
from .findings import Finding
from .health import diagnose, diagnose_error, diagnose_file, read_log
from .pilot import PilotReport, pilot
from .preflight import PreflightReport, estimate_memory, estimate_minutes, model_sizes, preflight
from .reward_lab import ProbeReport, probe

__all__ = [
    "AttackReport",
    "CourseError",
    "Finding",
    "HealthCallback",
    "PilotReport",
    "PreflightReport",
    "ProbeReport",
    "attack",
    "diagnose",
    "diagnose_error",
    "diagnose_file",
    "estimate_memory",
    "estimate_minutes",
    "model_sizes",
    "pilot",
    "preflight",
    "probe",
    "read_log",
]


def __getattr__(name: str) -> object:
    """Import `HealthCallback` only when it is used, because its module imports transformers."""
    if name != "HealthCallback":
        raise AttributeError(f"module 'grpo_check' has no attribute {name!r}")
    from .health.watching import HealthCallback

    return HealthCallback
