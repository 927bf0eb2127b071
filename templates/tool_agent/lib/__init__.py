# Generated from grpo_utils 0.1.0, grpo_utils/run/__init__.py; the same in every template.
"""One GRPO run, from its settings to its report. The templates carry a copy of these files as ``lib/``.

| room | what it does |
|---|---|
| `start` | settings from YAML and the command line, checked before torch, TRL or Unsloth is imported |
| `rows` | a JSONL file of your own, and which rows are held out |
| `scoring` | what a completion says, and rewards called safely |
| `folder` | one run per output folder; a run resumes only with the settings that it began with |
| `policy` | load the policy with Unsloth or plain transformers, in 4 bits or not |
| `training` | TRL's trainer, its log lines, checkpoints, Ctrl-C |
| `measuring` | sample, evaluate before and after, rates, the table, `report.json` |

Nothing here imports the rest of `grpo_utils`.
"""
