"""Run a script with accelerate in the belief that the CPU is a GPU: so its FSDP2 runs over gloo, without any GPU.

python tests/fsdp_on_cpu.py train.py --config config.cpu.yaml        (under torchrun or accelerate launch)
"""

import runpy
import sys

import torch
from accelerate.state import PartialState
from accelerate.utils import DistributedType

begin = PartialState.__init__


def on_cpu(self, cpu=False, **kwargs):
    """accelerate shards only where it does not know that it is on a CPU."""
    begin(self, cpu=False, **kwargs)


def to_cpu(self):
    self.device = torch.device("cpu")


PartialState.__init__ = on_cpu
PartialState.set_device = to_cpu
PartialState._prepare_backend = lambda self, *args, **kwargs: ("gloo", DistributedType.MULTI_GPU)

sys.argv = sys.argv[1:]
sys.path.insert(0, "")
runpy.run_path(sys.argv[0], run_name="__main__")
