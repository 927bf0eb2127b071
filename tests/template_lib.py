"""The modules of a template's lib/, which is the same in every template."""

import sys

from course import ROOT

sys.path.insert(0, str(ROOT / "templates" / "basic_grpo"))
from lib import checking, evaluating, folder, held_out, limits, loading, rows, scoring, start, table  # noqa: F401

sys.path.pop(0)
