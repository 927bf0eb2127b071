"""From a log to verdicts, and from an exception to a verdict."""

import re
from collections.abc import Sequence
from pathlib import Path

from grpo_utils.errors import CourseError

from .log import Log, find_file, read_history, read_log, read_text
from .rules import AT_ONCE, IN_TIME, NOT_YET
from .statistics import first, last, span
from .thresholds import limit
from .verdicts import CODES, EXPLAINS, NOTES, Verdict

#: What an exception of too little memory says: PyTorch on CUDA, on ROCm, on a CPU; cuBLAS; vLLM.
MEMORY_TEXTS = (
    "out of memory",
    "can't allocate memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "No available memory for the cache blocks",
)


def diagnose(log_history: Sequence[dict], *, correctness: Sequence[str] = ()) -> list[Verdict]:
    """What is wrong with a run, causes before consequences; ``healthy`` first if nothing is, then quiet notes.

    Args:
        log_history: ``trainer.state.log_history``, or the same from a ``trainer_state.json``, of any
            TRL since 0.14; best logged at every step (``logging_steps=1``).
        correctness: names of the rewards that measure whether an answer is right; if not given, those
            whose names sound so (`grpo_check.health.names`).

    >>> dead = [{"step": n, "reward": 0.0, "rewards/f/mean": 0.0, "rewards/f/std": 0.0,
    ...          "frac_reward_zero_std": 1.0} for n in range(1, 13)]
    >>> [verdict.code for verdict in diagnose(dead)]
    ['dead_reward', 'no_gradient']
    >>> diagnose(dead)[0].seen
    'f = 0 for every completion of the last 10 steps and more'

    Raises:
        CourseError: there is no step of a GRPO training in it.
    """
    return judge(read_history(log_history, correctness))


def judge(log: Log) -> list[Verdict]:
    """The same of a log that was read."""
    seen = {code: evidence for code, rule in AT_ONCE.items() if (evidence := rule(log))}
    if "nan" not in seen and log.steps >= limit("fewest"):
        seen |= {code: evidence for code, rule in IN_TIME.items() if (evidence := rule(log))}
    explained = set().union(*(EXPLAINS.get(code, set()) for code in seen))
    step = log.entries[-1]["step"]
    found = [
        Verdict(code, *seen[code], step, quiet=code in NOT_YET and NOT_YET[code](log))
        for code in CODES
        if code in seen and code not in explained
    ]
    return found if any(verdict.code not in NOTES for verdict in found) else [_nothing_wrong(log, step), *found]


def _nothing_wrong(log: Log, step: int) -> Verdict:
    if log.steps < limit("fewest"):
        return Verdict(
            "too_short", f"{log.steps} logged steps; {limit('fewest'):g} are needed", {"steps": len(log)}, step
        )
    rewards = log.values("reward")
    few = min(int(limit("window")), len(rewards))
    said = f"reward {span(rewards)}, means of the first and last {few} of {len(rewards)} entries"
    tied = f"; {last(log.tied):.0%} of the groups tied at the end" if log.tied else ""
    return Verdict("healthy", said + tied, {"reward_first": first(rewards), "reward": last(rewards)}, step)


def diagnose_file(path: str | Path) -> list[Verdict]:
    """The same of a file: a log (see `read_log`), or a text with the exception that ended a run.

    Raises:
        CourseError: there is no such file, or nothing in it that can be judged.
    """
    file = find_file(path)
    text = read_text(file).strip()
    if text.startswith(("{", "[")) or file.suffix in (".json", ".jsonl"):
        return diagnose(read_log(file))
    ended_by = _ending(text)
    if not ended_by:
        last_line = (text.splitlines() or [""])[-1][:120]
        raise CourseError(
            f"{str(file)!r} is neither a log (JSON) nor a text that ends in an error with a verdict; its last line is "
            f"{last_line!r}. docs/troubleshooting.md lists many error texts; for a log give a trainer_state.json."
        )
    return [ended_by]


def _ending(text: str) -> Verdict | None:
    """The verdict on the exception with which a text ends, if there is one among its last lines."""
    lines = [line for line in text.strip().splitlines()[-20:] if re.match(r"\s*[\w.]*(Error|Exception)\b", line)]
    return diagnose_error(lines[-1].strip()) if lines else None


def diagnose_error(error: BaseException | str, step: int = 0) -> Verdict | None:
    """The verdict that an exception amounts to, or None if it is none of a run's own ills.

    >>> diagnose_error(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")).first[0]
    'halve per_device_train_batch_size and double gradient_accumulation_steps (the same training, slower)'
    >>> diagnose_error(KeyError("answer")) is None
    True
    """
    text = str(error)
    if isinstance(error, MemoryError) or any(known in text for known in MEMORY_TEXTS):
        return Verdict("out_of_memory", _first_line(text) or "MemoryError", {}, step)
    if "probability tensor contains either `inf`, `nan` or element < 0" in text:
        return Verdict("nan", _first_line(text), {}, step)
    return None


def _first_line(text: str) -> str:
    known = [line.strip() for line in text.splitlines() if any(part in line for part in MEMORY_TEXTS)]
    return (known or text.strip().splitlines() or [""])[0][:160]
