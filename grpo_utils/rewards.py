"""Every reward and extractor that a lesson or template uses; `grpo_core.rewards` has the code, for the checks too.

>>> from grpo_utils.rewards import correctness_reward
>>> correctness_reward(["<answer>42</answer>"], ["42"])
[1.0]
"""

from grpo_core.rewards import *  # noqa: F403  (the lazy names of that package)
from grpo_core.rewards import __all__ as __all__
