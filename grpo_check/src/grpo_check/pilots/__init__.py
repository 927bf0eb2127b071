"""Sample some groups before training, and say whether GRPO has something to learn from: ``grpo_check.pilot``.

| module | contents |
|---|---|
| `sampling` | groups of completions, with TRL's decoding and the run's rewards |
| `examples` | the rows to sample, with others as examples in the prompt |
| `figures` | shares, the pull of the reward, tokens, seconds |
| `verdicts` | thresholds and verdicts; ``RULES`` has them in the order of decision |
| `running` | the call, the command and the report |
"""
