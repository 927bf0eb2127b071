"""Diagnose a training run from its log.

    print(*diagnose(trainer.state.log_history), sep="\\n")
    trainer.add_callback(HealthCallback(test_rows))     # the same while it trains

    >>> from grpo_check import diagnose
    >>> log = [{"step": n, "loss": float("nan"), "reward": 0.5} for n in (1, 2)]
    >>> [verdict.code for verdict in diagnose(log)]
    ['nan']

| module | contents |
|---|---|
| `diagnosis` | the whole diagnosis, of a log, a file or an exception |
| `rules` | one rule per code, with its meaning, fixes and example |
| `correctness`, `trends` | what rules ask a log: are answers correct, is a change more than noise |
| `limits` | every number that the rules depend on |
| `watching`, `samples`, `stalling` | `HealthCallback`, its held-out samples, and its watchdog for steps that hang |
| `replaying` | the page that replays a run, written when training ends |
"""
