"""A test set of rewards, thirty broken and fifteen sound, for tools that look for faults in rewards.

No tool should be tuned on it: a rule that is written to catch one of these entries makes the set
worthless as a measure of that tool.
"""

from .entries import BROKEN, SOUND, ZOO, Entry
from .tasks import Task

__all__ = ["BROKEN", "SOUND", "ZOO", "Entry", "Task"]
