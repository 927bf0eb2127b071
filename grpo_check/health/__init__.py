"""Diagnose a training run from its log.

    print(*diagnose(trainer.state.log_history), sep="\\n")
    trainer.add_callback(HealthCallback(test_rows))     # the same while it trains

    >>> log = [{"step": n, "loss": float("nan"), "reward": 0.5} for n in (1, 2)]
    >>> [verdict.code for verdict in diagnose(log)]
    ['nan']

`log` reads the logs of TRL 0.17 and later, `rules` has one rule per code, with its meaning, fixes and example,
`limits` every number that the rules depend on, and `watching` the callback.
"""

from .diagnosis import diagnose, diagnose_error, diagnose_file
from .log import read_log
from .rules import RULES
