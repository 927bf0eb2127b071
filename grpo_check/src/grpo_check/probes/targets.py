"""What a target on the command line names: a file or a module, a name in it, and arguments for it.

>>> target = parse_target("rewards.py:get_cosine_reward(0.0, most=1.0)")
>>> target.where, target.name, target.arguments
('rewards.py', 'get_cosine_reward', ((0.0,), {'most': 1.0}))
>>> parse_target("my_package.rewards.my_reward").where
'my_package.rewards'
>>> parse_target("rewards.py:make(2)[1]").place
1
>>> parse_target("train.ipynb").name
''
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from grpo_core.errors import CourseError

_FILE = re.compile(r"^(?P<where>.+?\.(?:py|ipynb))(?::(?P<what>.*))?", re.DOTALL)


@dataclass(frozen=True)
class Target:
    """A target in its parts.

    Attributes:
        where: the path of a file, or a module.
        name: the name in it; with a dot for the method of a class; empty if the target names a file alone.
        call: the arguments in parentheses, as they were written, or an empty text.
        place: which reward of several that the call returns, from 0; None for the only one.
        is_file: whether ``where`` is a path.
    """

    where: str
    name: str
    call: str = ""
    is_file: bool = True
    place: int | None = None

    def __str__(self) -> str:
        """The target as it is written."""
        sign = ":" if self.is_file else "."
        place = "" if self.place is None else f"[{self.place}]"
        return f"{self.where}{sign if self.name else ''}{self.name}{self.call}{place}"

    @property
    def arguments(self) -> tuple[tuple, dict] | None:
        """The values in the parentheses; None if there are none.

        Raises:
            CourseError: they are not literal values, such as numbers and texts.
        """
        if not self.call:
            return None
        try:
            call = ast.parse(f"f{self.call}", mode="eval").body
            values = [ast.literal_eval(one) for one in call.args]
            return tuple(values), {one.arg: ast.literal_eval(one.value) for one in call.keywords}
        except (SyntaxError, ValueError, AttributeError) as error:
            raise CourseError(
                f"{self}: the arguments in parentheses must be plain values, such as (0.5, power=2). For anything "
                f"else, write my_reward = {self.name}(…) in the file and name that."
            ) from error


def parse_target(text: str) -> Target:
    """A target in its parts; some of them may be empty, and no file is looked at."""
    if found := _FILE.fullmatch(text):
        name, call, place = _name_and_call(found["what"] or "")
        return Target(found["where"], name, call, place=place)
    name, call, place = _name_and_call(text)
    sign = ":" if ":" in name or name.endswith((".py", ".ipynb")) else "."
    where, _, name = name.rpartition(sign)
    return Target(where, name, call, is_file=sign == ":", place=place)


def _name_and_call(text: str) -> tuple[str, str, int | None]:
    """The name, the arguments, and the place behind them: ``make(2)[1]`` is the second reward that the call returns."""
    name, sign, rest = text.partition("(")
    place = re.search(r"\)\[(\d{1,3})\]$", rest)
    return (name, sign + rest[: place.start() + 1], int(place[1])) if place else (name, sign + rest, None)


def file_of(text: str) -> Path | None:
    """The file that a target names, if it names one."""
    target = parse_target(text)
    return Path(target.where) if target.is_file and target.where else None
