"""Which findings are told while a run trains, and which are told already."""

from ..findings import Finding
from ..logs.log import Log
from .rules import RULES
from .rules.rewards import dead_rewards

_AT_THE_END = {rule.code for rule in RULES if rule.at_the_end}


def is_early(finding: Finding) -> bool:
    """Whether it is too early to report a finding. A dead reward is reported at once, other warnings wait."""
    waits = finding.severity == "warning" and finding.code != "dead_reward"
    return waits or finding.code in _AT_THE_END


def subjects_of(finding: Finding, log: Log) -> set[str]:
    """What is reported only once: the code, and for dead rewards each name, as a second one may die later."""
    dead = finding.code == "dead_reward"
    return {f"{finding.code} {name}" for name in dead_rewards(log)} if dead else {finding.code}
