"""Diagnose a run from its log, or from the exception that stopped it."""

import re
from collections.abc import Sequence
from pathlib import Path

from grpo_utils.errors import CourseError

from ..findings import Finding
from . import limits
from .evidence import evidence, is_favorable
from .log import Log, find_file, read_history, read_log, read_text
from .rules import AT_ONCE, IN_TIME, NOT_YET
from .statistics import ends, last, span
from .verdicts import CODES, EXPLAINS, NOTES, verdict

#: Messages of out-of-memory errors: PyTorch on CUDA, ROCm and CPU; cuBLAS; vLLM.
MEMORY_TEXTS = (
    "out of memory",
    "can't allocate memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "No available memory for the cache blocks",
)


def diagnose(log_history: Sequence[dict], *, correctness: Sequence[str] = ()) -> list[Finding]:
    """Find what is wrong with a run, causes before symptoms. If nothing is, ``healthy`` comes first, then notes.

    If nothing in the log shows which answers are correct, the code is ``unchecked`` instead of ``healthy``, and if
    correctness is known but neither rose nor is high, it is ``no_gain_shown``. A sure
    finding is an error. If it is too early to be sure, it is a warning.

    Args:
        log_history: ``trainer.state.log_history``, or the same list from a ``trainer_state.json``, of TRL 0.17
            or later; best with ``logging_steps=1``.
        correctness: names of the rewards that measure whether an answer is correct. By default they are
            recognized by name (`grpo_check.health.names`).

    >>> dead = [{"step": n, "reward": 0.0, "rewards/f/mean": 0.0, "rewards/f/std": 0.0,
    ...          "frac_reward_zero_std": 1.0} for n in range(1, 13)]
    >>> [verdict.code for verdict in diagnose(dead)]
    ['dead_reward', 'no_gradient']
    >>> diagnose(dead)[0].seen
    'f = 0 for every completion of the last 10 steps or more'

    Raises:
        CourseError: the log contains no step of a GRPO run.
    """
    return judge(read_history(log_history, correctness))


def judge(log: Log) -> list[Finding]:
    """`diagnose` for a log that was already read."""
    seen = {rule.__name__: rule(log) for rule in AT_ONCE}
    if not seen["nan"] and log.steps >= limits.FEWEST:
        seen |= {rule.__name__: rule(log) for rule in IN_TIME}
    seen = {code: evidence for code, evidence in seen.items() if evidence}
    explained = set().union(*(EXPLAINS.get(code, ()) for code in seen))
    step, accumulated = log.entries[-1]["step"], max(log.checked("accumulation"), default=1.0) > 1
    found = [
        verdict(code, seen[code], step, code in NOT_YET and NOT_YET[code](log), accumulated)
        for code in CODES
        if code in seen and code not in explained
    ]
    return found if set(seen) - explained - {*NOTES} else [_nothing_wrong(log, step), *found]


def _nothing_wrong(log: Log, step: int) -> Finding:
    if log.steps < limits.FEWEST:
        return verdict("too_short", f"{log.steps} logged steps, at least {limits.FEWEST} needed", step)
    rewards, shown = log.values("reward"), evidence(log)
    few = ends(rewards)
    compared = f"first and last {few} logged steps" if few > 1 else "first and last logged step"
    said = [f"mean reward {span(rewards)} ({compared})", shown.said]
    said += [f"{last(log.tied):.0%} of the latest groups tied"] if log.tied else []
    code = "healthy" if is_favorable(log, shown) else "no_gain_shown" if shown.known else "unchecked"
    return verdict(code, "; ".join(filter(None, said)), step)


def diagnose_file(path: str | Path) -> list[Finding]:
    """`diagnose` for a file: a log (see `read_log`), or a text that ends with the exception that stopped a run.

    Raises:
        CourseError: the file does not exist, or contains neither a log nor a known error.
    """
    file = find_file(path)
    text = read_text(file).strip()
    if text.startswith(("{", "[")) or file.suffix in (".json", ".jsonl"):
        return diagnose(read_log(file))
    lines = text.splitlines() or [""]
    errors = [line.strip() for line in lines[-20:] if re.match(r"\s*[\w.]*(Error|Exception)\b", line)]
    ended_by = diagnose_error(errors[-1]) if errors else None
    if not ended_by:
        raise CourseError(
            f"{str(file)!r} is neither a log (JSON) nor a text that ends in a known error. Its last line is "
            f"{lines[-1][:120]!r}. Pass a trainer_state.json, or look for the error in docs/troubleshooting.md."
        )
    return [ended_by]


def diagnose_error(error: BaseException | str, step: int = 0) -> Finding | None:
    """The verdict for an exception, or None if the exception is not a known failure of training.

    >>> diagnose_error(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")).fixes[0]
    'halve per_device_train_batch_size and double gradient_accumulation_steps (same training, slower)'
    >>> diagnose_error(KeyError("answer")) is None
    True
    """
    lines = str(error).strip().splitlines()
    memory = [line.strip() for line in lines if any(known in line for known in MEMORY_TEXTS)]
    if memory or isinstance(error, MemoryError):
        return verdict("out_of_memory", [*memory, *lines, "MemoryError"][0][:160], step)
    if "probability tensor contains either `inf`, `nan` or element < 0" in str(error):
        return verdict("nan", lines[0][:160], step)
    return None
