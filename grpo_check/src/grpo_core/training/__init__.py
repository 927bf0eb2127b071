"""One GRPO run, from its settings to its report: what the lessons share with the templates.

| module | what it does |
|---|---|
| `policy` | loads the policy with Unsloth or plain transformers, in 4 bits or not |
| `generating` | generates completions to prompts as in training |
| `measuring` | scores what was generated before and after training, prints the table, and writes `report.json` |
| `checkpoints` | finds the newest complete checkpoint |
| `resuming` | trains from a checkpoint to the last step |
| `time_limit` | ends training by the clock |
| `texts` | reads the text of a completion |
| `answers` | compares an answer with the gold answer, as numbers or as text |
| `small_yaml` | reads a YAML file, if it is not made to be huge |

Templates have more modules, from ``templates/_lib``. Each ``lib/`` has only the modules that its template uses:

| module | what it does |
|---|---|
| `known` | reads from TRL's source which settings it has |
| `limits` | says what the settings must be, alone and together |
| `start` | reads the settings, and checks them before anything heavy is imported |
| `table` | reads a CSV, TSV or JSONL file |
| `rows` | reports all bad rows of a file of your own, and decides which rows are held out |
| `checking` | tries rewards and rows, and measures lengths, before a model is loaded |
| `folder` | keeps one run per output folder, and resumes it only with the same settings |
| `loading` | loads the policy as the settings say |
| `scoring` | calls rewards safely |
| `training` | TRL's trainer, its log lines, Ctrl-C |
| `evaluating` | generates and scores completions before and after training |
| `report` | prints the table of a finished run again |

Nothing here imports the rest of `grpo_core`, so that a template can take these modules along.
"""
