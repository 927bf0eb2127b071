"""Before and after on the same held-out prompts: sampled and greedy, with intervals and a paired test.

python evaluate.py outputs/agent        the table of a finished run
"""

import json
import sys
from pathlib import Path

from generation import generate
from rates import table
from rewards import is_in_form, is_right


def evaluate(policy: object, tokenizer: object, rows: object, **how: object) -> dict:
    """Episodes and their worth: sampled at temperature 1, as in training, and greedily; ``how``: see `generate`."""
    sampled = generate(policy, tokenizer, rows, **how, sample=True)
    greedy = generate(policy, tokenizer, rows, **how, sample=False)
    return {
        "sampled": sampled,
        "formed": [is_in_form(episode) for episode in sampled],
        "right": [is_right(episode, row) for episode, row in zip(sampled, rows, strict=True)],
        "greedy_right": [is_right(episode, row) for episode, row in zip(greedy, rows, strict=True)],
    }


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1], "report.json").is_file():
        sys.exit(
            "Error: give the folder of a finished run, which holds a report.json: python evaluate.py outputs/agent"
        )
    print(table(json.loads(Path(sys.argv[1], "report.json").read_text(encoding="utf-8"))))
