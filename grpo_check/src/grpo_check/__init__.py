"""Checks for a GRPO run, before and after training, in any TRL project.

| check | when, and what it answers |
|---|---|
| `probe` | before training: can a policy earn the reward without a correct answer? |
| `attack` | before training: what does a small model learn when it is trained on the reward for a few minutes? |
| `preflight` | before training: which settings, rows and rewards would make the run fail or waste it? |
| `pilot` | before training: will the run learn, and what will it cost? A few dozen prompts are sampled. |
| `diagnose`, `HealthCallback` | during and after training: what went wrong, according to the log? |

From a terminal: ``grpo-check --help``; it also has ``replay``, a page of a run. ``import grpo_check`` loads no
torch. The packages `probes`, `attacks`, `preflights`, `pilots`, `health`, `replay` and `logs` hold the parts.
"""

from grpo_core.lazy import lazy_imports  # isort: skip  (first: it keeps your random.py from replacing Python's)

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # each name is imported when it is first used
    from grpo_core.errors import CourseError
    from grpo_core.gpus import Gpu

    from .attacks.report import AttackReport
    from .attacks.running import attack
    from .findings import Finding
    from .health.diagnosis import diagnose, diagnose_error, diagnose_file
    from .health.watching import HealthCallback
    from .logs.files import read_log
    from .pilots.running import PilotReport, pilot
    from .preflights.checking import preflight
    from .preflights.estimate import estimate_memory, estimate_minutes
    from .preflights.report import PreflightReport
    from .preflights.sizes import Sizes, model_sizes
    from .probes.probing import probe
    from .probes.report import ProbeReport

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
