"""How a project from a template runs: its settings, rows, training, evaluation and result.

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
| `held_out` | keeps the held-out answers, shows the wrong ones, and counts the right ones per label |
| `finishing` | writes what a run leaves, and says what to do next |
| `trained`, `asking` | finds and loads the model of a finished run; asks it |
| `cards` | writes a model card from the report |
| `report`, `merge`, `push` | commands: print the result of a run, write a merged model, upload a model to the Hub |

What lessons use of this too is in `grpo_core.training`.
"""
