"""Start a process as on a GPU. GPU_PATH_CARD names the GPU; Unsloth is imported here, before anything else.

import start                                  # in a notebook's kernel, or in our own scripts
python start.py train.py --config c.yaml      # for any other script
"""

import os
import runpy
import sys

import fake_card

known = fake_card.pretend(os.environ["GPU_PATH_CARD"])
import cpu_kernels  # noqa: E402
import unsloth  # noqa: E402, F401

cpu_kernels.finish(known)

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.getcwd())
    runpy.run_path(sys.argv[0], run_name="__main__")
