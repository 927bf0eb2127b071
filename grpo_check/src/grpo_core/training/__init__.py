"""One GRPO run, from its settings to its report: what the lessons share with the templates.

| module | what it does |
|---|---|
| `policy` | loads the policy with Unsloth or plain transformers, in 4 bits or not |
| `generating` | generates completions to prompts as in training |
| `measuring` | scores what was generated before and after training, prints the table, and writes `report.json` |
| `checkpoints` | finds the newest complete checkpoint |
| `resuming` | trains from a checkpoint to the last step |
| `merging` | merges an adapter into its unquantized base, and checks the merge |
| `publishing` | checks the files of a model, and uploads them to the Hub only when asked |
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
| `held_out` | keeps the held-out answers, shows the wrong ones, and counts the right ones per label |
| `report` | writes the result of a run, and prints it again |
| `trained` | finds and loads the model of a finished run |
| `cards` | writes a model card from the report |
| `merge`, `push` | commands: write a merged model to a folder; upload a model to the Hub |

Nothing here imports the rest of `grpo_core`, so that a template can take these modules along.
"""
