"""Read the held-out samples of `HealthCallback`, for a run whose completions TRL did not log."""

import json
from pathlib import Path

from grpo_core.errors import CourseError

from ..logs.log import Log
from .records import EXTRA_LENGTH, Completion, Group, Recording, Step, number_of

MARKS = {"in_form": "formatted", "answers": "correct answer"}
EXTRAS = ("prompt", "gold")
ABOUT = "Held-out prompts, one sampled completion each"
_WHY = (
    "TRL logged no completions of this run, so there are no groups and no advantages: these are the held-out samples "
    "of HealthCallback. GRPOConfig(log_completions=True) records the completions themselves."
)


def read_samples(folder: Path, file: Path, log: Log | None) -> Recording:
    """A recording from samples: each check is a step, and its samples are one group.

    Raises:
        CourseError: no line of the file is whole.
    """
    checks: dict[int, list[Completion]] = {}
    step = 0
    for sample in filter(None, map(_sample_in, file.read_text(encoding="utf-8", errors="replace").splitlines())):
        if sample["step"] < step:  # the run was resumed here, or another one began in the same folder
            checks = {earlier: found for earlier, found in checks.items() if earlier < sample["step"]}
        step = sample["step"]
        checks.setdefault(step, []).append(_completion_of(sample))
    if not checks:
        raise CourseError(f"no line of {str(file)!r} is a whole sample. Was the run stopped while it wrote them?")
    steps = tuple(Step(step, (Group(ABOUT, tuple(found)),)) for step, found in sorted(checks.items()))
    return Recording(folder.resolve().name, tuple(MARKS.values()), EXTRAS, steps, log, (_WHY,), held_out=True)


def _sample_in(line: str) -> dict | None:
    """The sample in a line; None where the line is not whole."""
    try:
        sample = json.loads(line)
    except (ValueError, RecursionError):  # RecursionError: thousands of brackets
        return None
    is_whole = isinstance(sample, dict) and isinstance(sample.get("step"), int) and isinstance(sample.get("text"), str)
    return sample if is_whole else None


def _completion_of(sample: dict) -> Completion:
    """One sample; its marks stand where rewards would."""
    marks = tuple(number_of(sample.get(mark)) for mark in MARKS)
    extras = tuple("" if sample.get(name) is None else str(sample[name])[:EXTRA_LENGTH] for name in EXTRAS)
    return Completion(sample["text"], marks, None, extras)
