"""Rules about the exception that stopped a run; `divergence` has one that its log shows as well."""

import re
from collections.abc import Iterator

from ...findings import Finding
from ...rules import adding_to
from ..log import Log
from .rule import LogRule, seen

#: Messages of out-of-memory errors: PyTorch on CUDA, ROCm and CPU; cuBLAS; vLLM; Python.
MEMORY_TEXTS = (
    "out of memory",
    "can't allocate memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "No available memory for the cache blocks",
    "MemoryError",
)
#: A call without some of its arguments, as Python reports it: the function, if it has a name, and the arguments.
MISSING = re.compile(
    r"(?:(?<![\w.<>])([\w.<>]{1,100})\(\) )?missing \d+ required (?:positional|keyword-only) arguments?: (.+)"
)
#: What no column provides: TRL 1.14 passes these to rewards by itself, and the last two are not passed to a reward.
NOT_COLUMNS = {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
NOT_COLUMNS |= {"self", "old_hidden_states"}

RULES: list[LogRule] = []
rule = adding_to(RULES, LogRule)


@rule(
    "error",
    "the run needs more memory than there is",
    why="the run stopped, and the next one will stop at the same place",
    fixes=(
        "halve per_device_train_batch_size and double gradient_accumulation_steps (same training, slower)",
        "if sampling failed, keep steps_per_generation as it was, so that fewer completions are sampled at once",
        "turn gradient_checkpointing on",
        "reduce max_completion_length",
        "load the base model in 4 bits",
        "set optim='adamw_8bit'",
        "reduce num_generations (to 4 at least), or use a smaller model",
    ),
    steps=0,
    example="CUDA out of memory. Tried to allocate 2.00 GiB.",
)
def out_of_memory(log: Log) -> Iterator[Finding]:
    """The error comes from PyTorch, cuBLAS, vLLM or Python itself."""
    memory = [line.strip() for line in log.error.splitlines() if any(known in line for known in MEMORY_TEXTS)]
    if memory:
        yield seen(memory[0][:160])


@rule(
    "error",
    "a reward parameter that matches no dataset column",
    why="TRL passes columns to a reward by name, so the call raises a TypeError",
    fixes=(
        "give the column and the parameter the same name: dataset.rename_column(old, new), or rename the parameter",
        "if the reward can do without it, give the parameter a default value",
    ),
    steps=0,
    example="TypeError: accuracy_reward() missing 1 required positional argument: 'solution'",
)
def missing_column(log: Log) -> Iterator[Finding]:
    """The call of a reward failed because of an argument that no column provides."""
    call = MISSING.search(log.error)
    columns = re.findall(r"'(\w+)'", call[2]) if call else []
    if call and not NOT_COLUMNS.intersection(columns) and not _is_no_reward(call[1] or ""):
        needs = f"the column{'s' * (len(columns) > 1)} {', '.join(map(repr, columns))}"
        what = f"{call[1] or 'a reward'} needs {needs}, which the dataset does not have"
        yield seen(call[0][:160], what=what)


def _is_no_reward(name: str) -> bool:
    """Whether a call surely was not that of a reward, which is a function or an object with ``__call__``."""
    return name == "main" or ("__" in name and not name.endswith("__call__"))
