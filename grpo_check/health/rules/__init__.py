"""The rules of the health check, by subject. Each has its code, meaning, why, fixes and example in one place.

To add one, write it in the module of its subject, with its limits in `limits` and its heading in
docs/troubleshooting.md.
"""

from . import divergence, exceptions, learning, lengths, notes, outcomes, rewards, rollouts, speed, ties
from .rule import LogRule

#: Found in the text of the exception that stopped a run, or in its log; causes before symptoms.
PROBLEMS: list[LogRule] = [
    *exceptions.RULES,
    *rollouts.RULES,
    *divergence.RULES,
    *lengths.RULES,
    *rewards.RULES,
    *ties.RULES,
    *learning.RULES,
    *speed.RULES,
]
#: Worth a word next to any outcome.
NOTES = notes.RULES
#: Of these, exactly one is said of a run without problems.
OUTCOMES = outcomes.RULES
#: All of them, in the order in which findings are listed.
RULES = [*PROBLEMS, *NOTES, *OUTCOMES]
