"""Raw rows to GRPO rows: a ``prompt`` of messages and an ``answer`` to check against.

One real row (GSM8K, shortened):

    {"prompt": [{"role": "system", "content": "Think first, …"},
                {"role": "user", "content": "A robe takes 2 bolts of blue fiber …"}],
     "answer": "3"}

A row holds no worked solution: GRPO samples its own and only asks a reward whether the
result is right.

| room | what it holds |
|---|---|
| `prompts` | a question as messages or, for a base model, as text; both as tokens |
| `files` | CSV, TSV, JSON and JSONL files, with errors that name the line |
| `damage` | what a wrong encoding leaves in a text |
| `rows` | records to rows, and a report of every record that was rejected or changed |
| `sources` | the course's own datasets: additions and GSM8K |
| `splits` | training and held-out rows that share no question |
| `filters` | rows by the tokens of their prompts, and by how often the policy solves them |
"""
