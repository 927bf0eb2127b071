"""The course's diagrams: each is drawn by code and described in words from the same data."""

from collections.abc import Callable

from ..errors import CourseError, did_you_mean
from . import guides, method
from .base import show
from .sheet import Drawn

DIAGRAMS: dict[str, Callable[[], Drawn]] = {
    "loop": method.loop,
    "advantages": method.advantages,
    "reward": method.reward,
    "lora": method.lora,
    "merge": method.merge,
    "failures": guides.failures,
    "path": guides.path,
    "packages": guides.packages,
}


def draw_diagram(name: str) -> Drawn:
    """A diagram's figure, and the same in words.

    Raises:
        CourseError: there is no diagram of that name.
    """
    if name not in DIAGRAMS:
        names = ", ".join(DIAGRAMS)
        raise CourseError(f"There is no diagram {name!r}.{did_you_mean(name, DIAGRAMS)} The diagrams are {names}.")
    return DIAGRAMS[name]()


def diagram(name: str) -> None:
    """Display a diagram with its alt text: loop, advantages, reward, lora, merge, failures, path or packages."""
    show(*draw_diagram(name))
