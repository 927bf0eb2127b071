"""SmolLM2 on the machines of the course's profiles; the model itself is `grpo_core.smollm2`.

python -m grpo_utils.smollm2        fetch it: 93 MB to download, 270 MB in the cache, about a minute
"""

import os

from grpo_core.errors import CourseError
from grpo_core.smollm2 import NAME, check_memory, fast_bf16, fetch, folder, is_complete, main

from .profiles import PROFILES, Profile, find_profile, offered_gpu

__all__ = ["NAME", "check_memory", "dtype_on", "fast_bf16", "fetch", "find_machine", "folder", "is_complete"]

SLOW_IN_BF16 = (
    "This processor is slow in bf16, so training computes in fp32: two to six times as long (measured on AMD EPYCs "
    "without AVX512-BF16; the longest times with other work on the machine)."
)


def find_machine(name: str) -> tuple[Profile, str]:
    """`find_profile` for this model, which also trains on a CPU: there if torch was built without CUDA.

    Raises:
        CourseError: as `find_profile`; or Colab or Kaggle runs without a GPU, where training takes two hours or more.
    """
    machine, reason = find_profile(name)
    if name == "auto" and machine.name == "cpu" and offered_gpu(os.environ):
        raise CourseError(f"{reason}. To train on this machine's CPU for two hours or more, set PROFILE='cpu'.")
    if name == "auto" and machine.name != "cpu":
        import torch

        if torch.version.cuda is None:
            return PROFILES["cpu"], f"{reason}, but this torch is a build for CPUs"
    return machine, reason


def dtype_on(profile: Profile) -> str:
    """The number format in which this model trains on a machine: bf16 if that is fast there, else fp32.

    It never trains in fp16, which is what a T4 has instead of bf16: fp32 takes about a second longer per step there
    (estimated), and needs no scaling of the loss.

    >>> dtype_on(PROFILES["t4"]), dtype_on(PROFILES["l4"])
    ('float32', 'bfloat16')
    """
    fast = fast_bf16() if profile.name == "cpu" else profile.dtype == "bfloat16"
    return "bfloat16" if fast else "float32"


if __name__ == "__main__":
    main()
