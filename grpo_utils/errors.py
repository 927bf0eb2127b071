"""The exception of this package, whose message names the problem, the reason and the fix."""

from collections.abc import Iterable
from difflib import get_close_matches


class CourseError(ValueError):
    """Something the reader can fix; the message names the value, the reason and the fix."""


def did_you_mean(wrong: str, valid: Iterable[str]) -> str:
    """`` Did you mean 'x'?``, with a leading space, or nothing if no name is close.

    >>> did_you_mean("learnign_rate", ["learning_rate", "seed"])
    " Did you mean 'learning_rate'?"
    >>> did_you_mean("zzz", ["learning_rate", "seed"])
    ''
    """
    near = get_close_matches(wrong, list(valid), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
