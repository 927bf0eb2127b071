"""One GRPO run, from its settings to its report, as it is in the ``lib/`` of each template.

| module | what it does |
|---|---|
| `start` (templates only) | reads the settings and checks them before torch, TRL or Unsloth is imported |
| `rows` (templates only) | reads a JSONL file of your own, and decides which rows are held out |
| `scoring` | reads the text of a completion, and calls rewards safely |
| `folder` (templates only) | keeps one run per output folder, and resumes it only with the same settings |
| `checkpoints` | finds the newest complete checkpoint |
| `policy` | loads the policy with Unsloth or plain transformers, in 4 bits or not |
| `training` | TRL's trainer, its log lines, checkpoints, Ctrl-C |
| `measuring` | evaluates before and after training, prints the table, and writes `report.json` |

Nothing here imports the rest of `grpo_utils`.
"""
