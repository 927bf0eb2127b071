"""Stands in for lib/ where that folder is missing; where it is there, Python takes the folder."""

import sys

sys.tracebacklimit = 0  # the sentence is enough
raise ImportError(
    "lib/ is missing, which git does not hold: with the course installed, `python -m grpo_utils new TEMPLATE FOLDER` "
    "copies a template with its lib/ (in a clone, `make templates` writes it in place)."
)
