"""Is this training run well? From what TRL logs, in words.

    print(*diagnose(trainer.state.log_history), sep="\\n")
    trainer.add_callback(HealthCallback(test_rows))     # the same while it trains

    >>> log = [{"step": n, "loss": float("nan"), "reward": 0.5} for n in (1, 2)]
    >>> [verdict.code for verdict in diagnose(log)]
    ['nan']

`log` reads what any TRL since 0.14 wrote, `rules` holds one rule per code, `limits` every
number that they depend on, `verdicts` what to do, `watching` the callback.
"""

from .diagnosis import diagnose, diagnose_error, diagnose_file
from .log import read_log
from .verdicts import CODES
