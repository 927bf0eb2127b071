"""Start a script as on a GPU without bf16 units, such as a T4: Unsloth then trains a model in fp32 that was loaded so.

python without_bf16.py train.py --config c.yaml
"""

import os
import runpy
import sys

import torch
import unsloth  # noqa: F401  it replaces torch's function, so the next line must come after

torch.cuda.is_bf16_supported = lambda *args, **kwargs: False

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.getcwd())
    runpy.run_path(sys.argv[0], run_name="__main__")
