"""Try a reward: call it with completions, and note what it does. Nothing here judges.

| module | contents |
|---|---|
| `planning` | the gold answers, columns and format with which rewards are tried |
| `trial` | one reward, and everything that was seen of it |
| `looking` | the first few calls: can it be called at all, and what does a call cost? |
| `growth` | the check that its run time is bounded |
| `discovery`, `choosing` | the format that it expects, and whether it reads the answer |
| `scoring` | all completions, in several ways |
"""
