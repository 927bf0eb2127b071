"""Find in seconds what would make a run fail or waste it, before any weights are loaded.

    >>> from grpo_check import preflight
    >>> from grpo_utils import training_arguments
    >>> from grpo_utils.profiles import CPU
    >>> report = preflight(training_arguments(CPU), profile=CPU)
    >>> report.ok
    True

`preflight` checks arguments, tokenizer, rows, rewards and machine. It checks only what you pass, and the report
says what it skipped. From a terminal: ``grpo-check preflight config.yaml``.

| module | contents |
|---|---|
| `run` | the given arguments and TRL's defaults |
| `values` | the values of a config, checked against the type hints of its class, and rules |
| `arguments`, `machine`, `rows`, `texts`, `lengths`, `rewards`, `thinking`, `memory` | the rules |
| `sizes`, `estimate` | memory and minutes |
| `checking` | the call, ``RULES`` with all rules, and which of them can look |
| `report` | the report |
| `config_file` | your own YAML file |

A rule is a `Rule`. Its example is the smallest change to a sound run in which it finds the problem: arguments of
`GRPOConfig`, settings of `preflight`, attributes of the ``tokenizer``, columns of one ``row``, ``keys`` of a config
file, or the size of the model's ``vocabulary``.

``grpo_check.preflight`` is the function as well as this package: write ``from grpo_check.preflight.report import …``;
``import grpo_check.preflight.report as report`` finds the function first, and fails.
"""

from .checking import RULES, preflight
from .estimate import HARDWARE, estimate_memory, estimate_minutes
from .report import PreflightReport
from .sizes import Sizes, model_sizes
