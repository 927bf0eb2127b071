"""The first import of a process that is to run as on a card: GPU_PATH_CARD names the card."""

import os

import card

known = card.pretend(os.environ["GPU_PATH_CARD"])
import unsloth  # noqa: E402, F401

import cpu_kernels  # noqa: E402

cpu_kernels.finish(known)
