"""Diagnose a run from its log, or from the exception that stopped it."""

import re
from collections.abc import Sequence
from pathlib import Path

from grpo_core.errors import CourseError

from ..findings import Finding, in_order
from ..logs.files import open_log
from ..logs.log import Log, read_history
from .rules import NOTES, OUTCOMES, PROBLEMS, RULES
from .rules.policy import nan
from .rules.rewards import dead_rewards
from .rules.rule import LogRule

#: Where the error is in a text. torchrun writes the rank before it, and a summary after it.
LAST_LINES, _LAST_CHARACTERS, RANK = 50, 50_000, re.compile(r"\[rank\d{1,6}\]:")
_AT_THE_END = {rule.code for rule in RULES if rule.at_the_end}


def diagnose(log_history: Sequence[dict], *, correctness: Sequence[str] = ()) -> list[Finding]:
    """Find what is wrong with a run: errors first, and causes before symptoms.

    If nothing is wrong, ``healthy`` comes first, then notes. If nothing in the log shows which answers are correct, the
    code is ``unchecked`` instead of ``healthy``, and if correctness is known but neither rose nor is high, it is
    ``no_gain_shown``. A sure finding is an error. If it is too early to be sure, it is a warning.

    Args:
        log_history: ``trainer.state.log_history``, or the same list from a ``trainer_state.json``, of TRL 0.14
            or later; best with ``logging_steps=1``.
        correctness: names of the rewards that measure whether an answer is correct. By default they are
            recognized by name (`grpo_check.logs.names`).

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
    findings, notes = _findings(log), {rule.code for rule in NOTES}
    if any(finding.code not in notes for finding in findings):
        return findings
    return [*next(filter(None, (rule(log) for rule in OUTCOMES))), *findings]


def urgent(log: Log) -> list[Finding]:
    """What a few entries show; all other rules need the run from its start."""
    return _findings(log, [rule for rule in PROBLEMS if rule.steps <= 1])


def _findings(log: Log, rules: Sequence[LogRule] = (*PROBLEMS, *NOTES)) -> list[Finding]:
    """What some rules find, without the symptoms of others; nothing else can be read from a log with NaN."""
    if lost := nan(log):
        return lost
    found = [(rule, findings) for rule in rules if (findings := rule(log))]
    explained = {symptom for rule, _ in found for symptom in rule.hides}
    listed = [findings for rule, findings in found if not explained & {rule.code, rule.symptom}]
    return list(in_order(finding for findings in listed for finding in findings))


def diagnose_file(path: str | Path, *, correctness: Sequence[str] = ()) -> list[Finding]:
    """`diagnose` for a file: a log (see `read_log`), or a text that ends with the exception that stopped a run.

    Raises:
        CourseError: the file does not exist, or contains neither a log nor a known error.
    """
    source = open_log(path)
    lines = source.text[-_LAST_CHARACTERS:].splitlines()[-LAST_LINES:]
    errors = [error for line in lines if (error := _error_in(line))]
    if ended_by := next(filter(None, map(diagnose_error, reversed(errors))), None):
        return [ended_by]
    log = read_history(source.entries(), correctness)
    if unknown := [name for name in correctness if name not in (log.rewards | log.unscored)]:
        known = ", ".join(log.rewards) or "no single rewards"
        raise CourseError(f"the log has no reward {', '.join(map(repr, unknown))}, but {known}.")
    return judge(log)


def _error_in(line: str) -> str:
    """The error in a line of a traceback, "" if it has none.

    >>> _error_in("[rank0]: torch.OutOfMemoryError: CUDA out of memory"), _error_in("Error rates fell: 3")
    ('torch.OutOfMemoryError: CUDA out of memory', '')
    """
    rank = RANK.match(line)
    error = line[rank.end() if rank else 0 :].strip()
    name = error.partition(":")[0]
    is_error = name.endswith(("Error", "Exception")) and name.replace(".", "").isidentifier()
    return error if is_error else ""


def diagnose_error(error: BaseException | str, step: int = 0) -> Finding | None:
    """The verdict for an exception, or None if the exception is not a known failure of training.

    >>> diagnose_error(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB.")).fixes[0]
    'halve per_device_train_batch_size and double gradient_accumulation_steps (as many completions, but slower).'
    >>> diagnose_error("accuracy_reward() missing 1 required positional argument: 'solution'").code
    'missing_column'
    >>> diagnose_error(KeyError("answer")) is None
    True
    """
    text = str(error).strip()
    if isinstance(error, MemoryError):
        text = f"MemoryError {text}".strip()
    return next(iter(_findings(Log(error=text, error_step=step))), None)


def is_early(finding: Finding) -> bool:
    """Whether it is too early to report a finding. A dead reward is reported at once, other warnings wait."""
    waits = finding.severity == "warning" and finding.code != "dead_reward"
    return waits or finding.code in _AT_THE_END


def subjects_of(finding: Finding, log: Log) -> set[str]:
    """What is reported only once: the code, and for dead rewards each name, as a second one may die later."""
    dead = finding.code == "dead_reward"
    return {f"{finding.code} {name}" for name in dead_rewards(log)} if dead else {finding.code}
