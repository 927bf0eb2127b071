"""The course's diagrams: each is drawn by code and described in words from the same data."""

from collections.abc import Callable

from . import guides, method
from .sheet import Drawn

DIAGRAMS: dict[str, Callable[[], Drawn]] = {
    "loop": method.loop,
    "advantages": method.advantages,
    "reward": method.reward,
    "lora": method.lora,
    "merge": method.merge,
    "failures": guides.failures,
    "packages": guides.packages,
}
