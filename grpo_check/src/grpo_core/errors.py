"""The exception whose message names the problem, the reason and the fix, and checks that raise it."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches


class CourseError(ValueError):
    """Something the reader can fix; the message names the value, the reason and the fix."""


def did_you_mean(wrong: str, valid: Iterable[str], least: float = 0.6) -> str:
    """`` Did you mean 'x'?``, with a leading space, or nothing if no name is as similar as ``least``, from 0 to 1.

    >>> did_you_mean("learnign_rate", ["learning_rate", "seed"])
    " Did you mean 'learning_rate'?"
    >>> did_you_mean("zzz", ["learning_rate", "seed"])
    ''
    """
    near = get_close_matches(wrong, list(valid), n=1, cutoff=least)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_choice(what: str, value: object, valid: Sequence[object]) -> None:
    """Raise a CourseError that suggests the nearest of ``valid`` unless ``value`` is one of them.

    >>> check_choice("FAMILY", "quen", ("qwen", "gemma"))
    Traceback (most recent call last):
    ...
    grpo_core.errors.CourseError: FAMILY='quen' is unknown. Did you mean 'qwen'? Valid: qwen, gemma.
    """
    if value not in valid:
        names = [str(choice) for choice in valid]
        hint = did_you_mean(str(value), names)
        raise CourseError(f"{what}={value!r} is unknown.{hint} Valid: {', '.join(names)}.")


def check_count(what: str, value: float, zero: str = "the profile default") -> None:
    """Raise a CourseError unless ``value`` is 0, which means ``zero``, or more.

    >>> check_count("STEPS", -5)
    Traceback (most recent call last):
    ...
    grpo_core.errors.CourseError: STEPS=-5 is negative or no number. Use 0 for the profile default, or a
    positive number.
    """
    if not 0 <= value < float("inf"):
        raise CourseError(f"{what}={value} is negative or no number. Use 0 for {zero}, or a positive number.")
