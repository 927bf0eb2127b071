"""Check a learner's answer kindly: a sentence, never an exception.

>>> def double(x):
...     return 2 * x
>>> check_exercise("Exercise 1", double, [((2,), 4), ((0,), 0)])
'Exercise 1: correct.'
>>> check_exercise("Exercise 1", lambda x: None, [((2,), 4)])
'Exercise 1: not attempted yet (the function returned nothing).'
>>> cases = [(([3, 1],), [1, 3]), (([2],), [2])]
>>> check_exercise("Exercise 2", lambda x: x.sort() or x, cases), cases[0][0]
('Exercise 2: correct.', ([3, 1],))
>>> check_exercise("Exercise 1", lambda x: 1 / x, [((1,), 1.0), ((0,), 0)])
'Exercise 1: not right yet; for (0,) it raises ZeroDivisionError: division by zero.'
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from numbers import Real

#: What can be compared as it is; an array or a tensor is told to be a list.
PLAIN = (type(None), bool, int, float, str, list, tuple)


def check_exercise(
    name: str, function: Callable, cases: Sequence[tuple[tuple, object]], hints: Sequence[tuple[object, str]] = ()
) -> str:
    """One sentence about ``function``, judged by ``cases`` of (arguments, expected result).

    Floats count as equal when they agree to two decimals, and texts when they differ only in case and outer spaces.
    ``hints`` are pairs of a wrong result and what to say to it.

    >>> check_exercise("Exercise 1", lambda x: x, [((2,), 4)], hints=[(2, "Double it.")])
    'Exercise 1: not right yet. Hint: Double it.'
    >>> check_exercise("Exercise 2", lambda: ["GRPO ", "sft"], [((), ["grpo", "SFT"])])
    'Exercise 2: correct.'
    """
    for arguments, expected in cases:
        try:
            answer = function(*deepcopy(arguments))  # an answer may change its lists
        except Exception as error:  # the one place where a learner's own code runs
            return f"{name}: not right yet; for {arguments} it raises {type(error).__name__}: {error}."
        if isinstance(answer, Real) and not isinstance(answer, int):
            answer = float(answer)  # numpy's own numbers, too
        if not isinstance(answer, PLAIN):
            kinds = type(answer).__name__, type(expected).__name__
            return "{}: not right yet; it returns a {}, but should return a {}.".format(name, *kinds)
        if _is_nothing(answer) and not _is_nothing(expected):
            return f"{name}: not attempted yet (the function returned nothing)."
        said = [hint for wrong, hint in hints if _normal(answer) == _normal(wrong) != _normal(expected)]
        if said:
            return f"{name}: not right yet. Hint: {said[0]}"
        if _normal(answer) != _normal(expected):
            answer = _rounded(answer)
            return f"{name}: not right yet; for {arguments} it returns {answer}, but should return {expected}."
    return f"{name}: correct."


def _is_nothing(answer: object) -> bool:
    """What a stub gives back."""
    return answer is None or (isinstance(answer, list | str) and not answer)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 2) + 0.0  # no negative zero
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _normal(value: object) -> object:
    """What is compared."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [_normal(item) for item in value] if isinstance(value, list | tuple) else _rounded(value)
