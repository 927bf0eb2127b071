"""Read the log of a run, in any form and spelling that people have.

`health` judges a log and `replay` draws it; this package is below both and knows neither.

| module | contents |
|---|---|
| `log` | the steps of a run and the checks of `HealthCallback`, under TRL's names |
| `names` | how others spell the metrics of TRL, and what the name of a reward says about it |
| `files` | the file with the log, in a folder or as given; what else a run leaves in its folder |
| `forms` | the entries in a text: JSON, a table, a notebook, what a trainer printed |
"""
