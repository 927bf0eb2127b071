"""Where things are."""

from pathlib import Path

#: The folder of the distribution, and the repository around it, whose templates and tiny models some tests use.
HERE = Path(__file__).parent.parent
ROOT = HERE.parent
