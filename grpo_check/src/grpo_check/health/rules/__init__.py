"""The rules of the health check, each with its code, meaning, why, fixes and example in one place.

| module | its rules are about |
|---|---|
| `setup` | memory, columns, prompts, tools, and the weights of what vLLM sampled |
| `policy` | a policy that is lost |
| `completions` | how long completions are, and whether they end |
| `rewards` | rewards that do not tell completions apart, and tied groups |
| `progress` | what the run learns, and how long its steps take |
| `outcomes` | a run without problems |

To add a rule, write it in the module of its subject, with its limits in `limits` and its heading in
docs/troubleshooting.md.
"""

from . import completions, outcomes, policy, progress, rewards, setup
from .rule import LogRule

_BY_SUBJECT = [*setup.RULES, *policy.RULES, *completions.RULES, *rewards.RULES, *progress.RULES]
#: Found in the log of a run, or in the text of the exception that stopped it; causes before symptoms.
PROBLEMS: list[LogRule] = [rule for rule in _BY_SUBJECT if not rule.harmless]
#: Worth a word next to any outcome.
NOTES: list[LogRule] = [rule for rule in _BY_SUBJECT if rule.harmless]
#: Of these, exactly one is said of a run without problems.
OUTCOMES: list[LogRule] = outcomes.RULES
#: All of them, in the order in which findings are listed.
RULES: list[LogRule] = [*PROBLEMS, *NOTES, *OUTCOMES]
