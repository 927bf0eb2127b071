"""A GRPO run: its arguments, its stages, its checkpoints.

| room | what it holds |
|---|---|
| `arguments` | every argument of `GRPOConfig`, in the open and checked |
| `stages` | several trainings in a row that carry one adapter, and go on where they were cut off |
| `checkpoints` | which checkpoint is whole, and so fit to resume from |

    >>> from grpo_utils.profiles import CPU
    >>> from grpo_utils.training import training_arguments
    >>> training_arguments(CPU, max_steps=10)["max_steps"]
    10
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_imports

if TYPE_CHECKING:
    from .arguments import (
        ALGORITHM,
        HOUSEKEEPING,
        REMOVED,
        REPORT_TO_CHOICES,
        check_batch,
        check_names,
        check_report_to,
        keep_trainable_fp32,
        training_arguments,
    )
    from .checkpoints import checkpoint_problem, checkpoint_step, load_adapter, newest_checkpoint, train_or_resume
    from .stages import Stage, check_save_steps, check_stages, run_stages

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
