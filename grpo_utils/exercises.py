"""Check a learner's answer kindly: a sentence, never an exception. Student copies also record the results.

>>> def double(x):
...     return 2 * x
>>> check_exercise("Exercise 1", double, [((2,), 4), ((0,), 0)])
'Exercise 1: correct.'
>>> check_exercise("Exercise 1", lambda x: None, [((2,), 4)])
'Exercise 1: not attempted yet (the function returned nothing).'
>>> check_exercise("Exercise 1", lambda: "", [((), "none")])
'Exercise 1: not attempted yet (nothing is filled in yet).'
>>> cases = [(([3, 1],), [1, 3]), (([2],), [2])]
>>> check_exercise("Exercise 2", lambda x: x.sort() or x, cases), cases[0][0]
('Exercise 2: correct.', ([3, 1],))
>>> check_exercise("Exercise 1", lambda x: x or None, [((2,), 2), ((0,), 0)])
'Exercise 1: not right yet; for (0,) it returns None, but should return 0.'
>>> check_exercise("Exercise 1", lambda x: 1 / x, [((1,), 1.0), ((0,), 0)])
'Exercise 1: not right yet; for (0,) it raises ZeroDivisionError: division by zero.'
>>> print(check_exercise("Exercise 1", lambda x: print(2 * x), [((2,), 4)]))
4
Exercise 1: not right yet; the function prints something, but returns nothing. End it with return.
"""

import json
import os.path
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from copy import deepcopy
from io import StringIO
from numbers import Real
from pathlib import Path

from grpo_core.errors import CourseError

#: Where a student copy records each check of an exercise, one JSON object per line; nothing is sent anywhere.
RESULTS = Path("outputs/exercises.jsonl")
#: Where the student copies are in the folder of the course.
_COPIES = Path("outputs/workshop")
CORRECT, NOTHING_RETURNED = "correct.", "not attempted yet (the function returned nothing)."
#: Of an exercise without arguments, in which the learner fills in texts and writes no function.
_NOT_FILLED_IN = "not attempted yet (nothing is filled in yet)."
_ONLY_PRINTED = "not right yet; the function prints something, but returns nothing. End it with return."

#: Types that can be compared directly; for an array or a tensor of several values, the message asks for a list.
PLAIN = (type(None), bool, int, float, str, list, tuple)


def check_exercise(
    name: str,
    function: Callable,
    cases: Sequence[tuple[tuple, object]],
    hints: Sequence[tuple[object, str]] = (),
    lesson: str = "",
) -> str:
    """One sentence about ``function``, judged by ``cases`` of (arguments, expected result).

    Floats are equal if they agree to two decimals, and texts if they differ only in case and outer spaces.
    ``hints`` are pairs of a wrong result and its hint. A student copy gives the name of its ``lesson``. Then the result
    is added to `RESULTS`, unless the exercise was not attempted.

    >>> check_exercise("Exercise 1", lambda x: x, [((2,), 4)], hints=[(2, "Double it.")])
    'Exercise 1: not right yet. Hint: Double it.'
    >>> check_exercise("Exercise 2", lambda: ["GRPO ", "sft"], [((), ["grpo", "SFT"])])
    'Exercise 2: correct.'
    >>> import numpy
    >>> check_exercise("Exercise 3", lambda x: numpy.mean(x) >= 0.9, [(([0.8, 1.0],), True)])
    'Exercise 3: correct.'
    """
    verdict = _judge(function, cases, hints)
    if lesson and verdict not in (NOTHING_RETURNED, _NOT_FILLED_IN):
        _record(lesson, name, verdict == CORRECT)
    return f"{name}: {verdict}"


def compare_prediction(prediction: str, shown: str) -> str:
    """Print what a learner predicted next to what a run shows, and return "compared": no prediction is graded.

    >>> compare_prediction("fall", "rise")
    You predicted 'fall'; the run shows 'rise'.
    'compared'
    """
    print(f"You predicted {prediction!r}; the run shows {shown!r}.")
    return "compared"


def _judge(function: Callable, cases: Sequence[tuple[tuple, object]], hints: Sequence[tuple[object, str]]) -> str:
    """The sentence of `check_exercise`, without the name of the exercise."""
    attempted = False
    for arguments, expected in cases:
        where = f" for {arguments}" if arguments else ""
        try:
            answer, printed = _run(function, arguments)
        except Exception as error:  # the only place that runs a learner's code
            return f"not right yet;{where} it raises {type(error).__name__}: {error}."
        if not isinstance(answer, PLAIN):
            kinds = type(answer).__name__, type(expected).__name__
            return "not right yet; it returns a value of type {}, but should return one of type {}.".format(*kinds)
        attempted = attempted or not _is_nothing(answer)
        if not attempted and not _is_nothing(expected):
            empty = NOTHING_RETURNED if arguments or answer != "" else _NOT_FILLED_IN
            return _ONLY_PRINTED if printed else empty
        matching = [hint for wrong, hint in hints if _normal(answer) == _normal(wrong) != _normal(expected)]
        if matching:
            return f"not right yet. Hint: {matching[0]}"
        if _normal(answer) != _normal(expected):
            return f"not right yet;{where} it returns {_rounded(answer)!r}, but should return {expected!r}."
    return CORRECT


def _run(function: Callable, arguments: tuple) -> tuple[object, bool]:
    """What a learner's function returns, and whether it printed something, which is shown."""
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            answer = function(*deepcopy(arguments))  # an answer may change its lists
    finally:
        print(printed.getvalue(), end="")
    return _plain(answer), bool(printed.getvalue())


def _record(lesson: str, name: str, correct: bool) -> None:
    """Add one check to the results of this machine."""
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"lesson": lesson, "exercise": name, "correct": correct}) + "\n")


def _copies_from_here() -> Path:
    """The student copies of the current folder or one above it: first those with results, then those without."""
    here = Path.cwd()
    places = [place for above in (here, *here.parents) for place in (above / _COPIES, above)]
    found = [place for place in places if (place / RESULTS).is_file()]
    found += [place for place in places if place.is_dir() and place.match(f"*/{_COPIES}")]
    return Path(os.path.relpath(found[0])) if found else _COPIES


def exercise_table(folder: Path | None = None) -> str:
    """Which exercises were solved in the student copies of ``folder``, and after how many checks.

    Without a folder, `_copies_from_here` finds it.

    Raises:
        CourseError: there is no such folder.
    """
    folder = folder or _copies_from_here()
    path = folder / RESULTS
    if not folder.is_dir():
        raise CourseError(
            f"There is no folder {str(folder)!r}, in which a student copy would record its exercises. Run this command "
            "in the course's folder, or name the folder of the copies: python -m grpo_utils exercises FOLDER."
        )
    if not path.is_file():
        return f"No exercise was attempted in {str(folder)!r} yet (a check of an empty answer is not recorded)."
    checks = defaultdict(list)
    for check in _recorded(path):
        checks[check["lesson"], check["exercise"]].append(check["correct"])
    rows = [f"{lesson:<22} {name}: {_summary(results)}" for (lesson, name), results in sorted(checks.items())]
    solved = sum(any(results) for results in checks.values())
    return "\n".join([*rows, f"{solved} correct of {len(checks)} attempted ({path})"])


def _recorded(path: Path) -> Iterator[dict]:
    """The recorded checks. A line that was not written to its end, as on a full disk, is left out."""
    for line in path.read_text(encoding="utf-8").splitlines():
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def _summary(results: list[bool]) -> str:
    """The result of all checks of an exercise: a correct answer counts even if it was changed later.

    >>> _summary([False, True, False]), _summary([False]), _summary([True])
    ('correct at check 2', 'not yet, 1 check', 'correct at check 1')
    """
    if any(results):
        return f"correct at check {results.index(True) + 1}"
    return f"not yet, {len(results)} check{'s' * (len(results) > 1)}"


def _plain(answer: object) -> object:
    """A scalar of numpy or torch, or any other real number, as a bool, int or float, in a list too; the rest as it is.

    >>> import numpy
    >>> _plain([numpy.float32(0.25), numpy.array(1)])
    [0.25, 1]
    """
    import numpy

    if isinstance(answer, list | tuple):
        return [_plain(item) for item in answer]
    torch = sys.modules.get("torch")  # no answer is a tensor before torch is loaded
    arrays = (numpy.generic, numpy.ndarray, *([torch.Tensor] if torch else []))
    if isinstance(answer, arrays) and answer.ndim == 0:
        return answer.item()
    return float(answer) if isinstance(answer, Real) and not isinstance(answer, int) else answer


def _is_nothing(answer: object) -> bool:
    """Whether the answer is what an unchanged stub returns."""
    return answer is None or (isinstance(answer, list | str) and not answer)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 2) + 0.0  # no negative zero
    return [_rounded(item) for item in value] if isinstance(value, list | tuple) else value


def _normal(value: object) -> object:
    """A value in the form that is compared."""
    if isinstance(value, str):
        return value.strip().casefold()
    return [_normal(item) for item in value] if isinstance(value, list | tuple) else _rounded(value)
