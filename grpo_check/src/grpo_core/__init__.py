"""What the checks, the lessons and the templates share: errors, rewards, and the parts of one training run.

It knows neither ``grpo_check`` nor the course. ``import grpo_core`` loads no torch and is instant.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # `python -m` puts the current folder first: a random.py there would replace Python's own.
    sys.path.append(sys.path.pop(0))
