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

What only projects from a template need is in `grpo_run`.
"""
