"""Raw rows to GRPO rows: a ``prompt`` of messages and an ``answer`` to check against.

One real row (GSM8K, shortened):

    {"prompt": [{"role": "system", "content": "Think first, …"},
                {"role": "user", "content": "A robe takes 2 bolts of blue fiber …"}],
     "answer": "3"}

A row needs no worked solution: GRPO samples its own and only asks a reward whether the
result is correct.

| module | what it does |
|---|---|
| `prompts` | a question as messages or, for a base model, as text |
| `files` | CSV, TSV, JSON and JSONL files, with errors that name the line |
| `damage` | traces of a wrong encoding in a text |
| `rows` | records to rows, and a report of every record that was rejected or changed |
| `sources` | the course's datasets: addition problems and GSM8K |
| `splits` | training and held-out rows that share no question |
| `filters` | filters by prompt length, and by how often the policy solves a row |
"""
