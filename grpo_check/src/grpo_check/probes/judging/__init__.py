"""Judge what was seen of a reward. Nothing here calls it.

| module | contents |
|---|---|
| `rows` | the scores of one dataset row, as the rules read them |
| `rules`, `examples` | one rule per fault, and a reward with that fault |
| `counts` | how many right forms are paid too little, and how many wrong ones too much |
| `judge` | all rewards of a probe |
"""
