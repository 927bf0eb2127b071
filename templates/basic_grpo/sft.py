"""Train on demonstrations (SFT) before GRPO, which reinforces only what the model already writes sometimes.

python sft.py --config config.small.yaml                        the gold answers of your training rows, in their form
python sft.py demonstrations.jsonl --config config.small.yaml   completions of your own

It saves the model to the config's output_dir with -sft at the end, and prints how train.py goes on from it. A line of
demonstrations.jsonl is {"question": "…", "completion": "…"}, with the completion as you want the model to write it.
"""

import sys
from pathlib import Path

from grpo_run import start

if {"-h", "--help"} & set(sys.argv):
    print(__doc__)
    sys.exit()
file = "" if len(sys.argv) < 2 or sys.argv[1].startswith("-") else sys.argv[1]
if file and not Path(file).is_file():
    sys.exit(f"Error: there is no file {file}.")
settings = start.parse(sys.argv[2 if file else 1 :])  # rejects invalid settings, imports Unsloth before TRL

from data import chat, load_rows
from grpo_run.demonstrating import demonstrate
from rewards import gold_text, is_in_form

demonstrate(file, settings, load_rows, chat, is_in_form, gold_text)
