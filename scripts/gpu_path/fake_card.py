"""Make torch behave as on a machine with an NVIDIA GPU, while every tensor stays on the CPU.

    pretend("t4")       # before `import unsloth`

Unsloth then takes its CUDA branches. What a CPU cannot do is replaced in torch's interface: queries about the GPU
return the values of that GPU, "cuda" in any torch call means "cpu", and streams and events do nothing.
"""

import os
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class Card:
    """A GPU's name, compute capability and memory in GiB."""

    name: str
    capability: tuple[int, int]
    memory_gib: int

    @property
    def has_bf16(self) -> bool:
        """Whether it has units for bf16."""
        return self.capability >= (8, 0)

    @property
    def properties(self) -> SimpleNamespace:
        """What ``torch.cuda.get_device_properties`` gives."""
        major, minor = self.capability
        return SimpleNamespace(
            name=self.name,
            total_memory=self.memory_gib << 30,
            major=major,
            minor=minor,
            multi_processor_count=40,
            warp_size=32,
            max_threads_per_multi_processor=1024,
            regs_per_multiprocessor=65536,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=65536,
            L2_cache_size=4 << 20,
            gcnArchName="",
            uuid="",
        )


CARDS = {
    "t4": Card("Tesla T4", (7, 5), 15),
    "l4": Card("NVIDIA L4", (8, 9), 23),
    "a100": Card("NVIDIA A100-SXM4-40GB", (8, 0), 40),
}

#: Unsloth reads these while it is imported.
ENVIRONMENT = {
    "UNSLOTH_ALLOW_CPU": "1",  # take the CUDA branches without a driver
    "UNSLOTH_DISABLE_STATISTICS": "1",
    "TRITON_INTERPRET": "1",  # Triton's kernels run in its interpreter
    "TORCHDYNAMO_DISABLE": "1",  # there is no compiler for this "device"
    "UNSLOTH_ENABLE_FLEX_ATTENTION": "0",  # FlexAttention has no backward pass on a CPU
    "HF_DEACTIVATE_ASYNC_LOAD": "1",  # the redirection below belongs to one thread
}


def pretend(name: str) -> Card:
    """From now on, torch behaves as on this GPU in this process."""
    card = CARDS[name]
    os.environ.update(ENVIRONMENT)
    answer_questions(card)
    replace_streams()
    replace_autocast()
    Redirect().__enter__()  # for as long as the process lives
    return card


def answer_questions(card: Card) -> None:
    """The GPU's name, capability and memory in ``torch.cuda``."""
    memory = (card.memory_gib << 30, card.memory_gib << 30)
    answers = {
        "device_count": OneCard(1),
        "current_device": 0,
        "get_device_capability": card.capability,
        "get_device_name": card.name,
        "get_device_properties": card.properties,
        "mem_get_info": memory,
        "is_current_stream_capturing": False,
    }
    answers |= dict.fromkeys(("memory_reserved", "memory_allocated", "max_memory_reserved", "max_memory_allocated"), 0)
    nothing = ("set_device", "empty_cache", "synchronize", "reset_peak_memory_stats", "ipc_collect", "_lazy_init")
    for question, answer in (answers | dict.fromkeys(nothing)).items():
        setattr(torch.cuda, question, lambda *args, answer=answer, **kwargs: answer)
    torch.version.cuda = "12.8"
    torch._C._cuda_getCurrentRawStream = lambda index=0: 0
    torch._C._cuda_getDevice = lambda: 0
    torch.cuda.default_generators = (torch.default_generator,)  # random states are saved and set through it
    torch.cpu.get_rng_state = lambda device=None: torch.get_rng_state()  # `fork_rng` asks the device's module for them
    torch.cpu.set_rng_state = lambda state, device=None: torch.set_rng_state(state)


class OneCard(int):
    """The number of GPUs. ``[None] * number`` also works with a CPU tensor's index, which is None."""

    def __rmul__(self, other: object) -> object:
        return ForEachCard(other * int(self)) if isinstance(other, list) else other * int(self)


class ForEachCard(list):
    """A list with one entry per GPU."""

    def __getitem__(self, index):
        return super().__getitem__(0 if index is None else index)

    def __setitem__(self, index, value):
        super().__setitem__(0 if index is None else index, value)


class Still:
    """A stream, an event or a device context that does nothing."""

    idx, cuda_stream, device = 0, 0, torch.device("cpu")

    def __init__(self, *args, **kwargs): ...

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def query(self):
        return True

    def _nothing(self, *args, **kwargs): ...

    record = wait = wait_stream = wait_event = synchronize = record_stream = _nothing

    def record_event(self, *args):
        return Still()


def become_available(card: Card) -> None:
    """Report a GPU. Before Unsloth and bitsandbytes are imported, they would open CUDA's libraries."""
    from transformers.utils import import_utils

    torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
    torch.cuda.is_bf16_supported = lambda *args, **kwargs: card.has_bf16  # Unsloth replaced it
    for answer in (import_utils.is_torch_cuda_available, import_utils.is_torch_bf16_gpu_available):
        answer.cache_clear()  # it was "no" while Unsloth was imported


def replace_streams() -> None:
    """Streams order the work on a GPU; on a CPU there is nothing to order."""
    torch.cuda.Stream = torch.cuda.Event = torch.cuda.device = Still
    torch.cuda.stream = torch.cuda.current_stream = torch.cuda.default_stream = lambda *args, **kwargs: Still()


def on_cpu(value: object) -> object:
    """The device that torch should use: "cuda", "cuda:0" and ``torch.device("cuda")`` become the CPU."""
    if isinstance(value, str) and value.startswith("cuda"):
        return "cpu"
    return torch.device("cpu") if isinstance(value, torch.device) and value.type == "cuda" else value


def replace_autocast() -> None:
    """Autocast for "cuda" becomes autocast on the CPU."""
    enabled, dtype, original = torch.is_autocast_enabled, torch.get_autocast_dtype, torch.autocast

    class Autocast(original):
        def __init__(self, device_type, *args, **kwargs):
            super().__init__(on_cpu(device_type), *args, **kwargs)

    torch.is_autocast_enabled = lambda device="cpu": enabled(on_cpu(device))
    torch.get_autocast_dtype = lambda device="cpu": dtype(on_cpu(device))
    torch.autocast = torch.amp.autocast = torch.amp.autocast_mode.autocast = Autocast


class Redirect(TorchFunctionMode):
    """Every torch call that names the GPU uses the CPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), getattr(function, "__name__", "")
        if kwargs.get("device") is not None:
            kwargs["device"] = "cpu" if type(kwargs["device"]) is int else on_cpu(kwargs["device"])
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        if function is torch.device and args and (type(args[0]) is int or on_cpu(args[0]) == "cpu"):
            return torch._C.device("cpu") if hasattr(torch._C, "device") else function("cpu")
        if name in ("cuda", "pin_memory"):
            return args[0]
        if name == "to":
            args = (args[0], *("cpu" if type(value) is int else on_cpu(value) for value in args[1:]))
        return function(*args, **kwargs)
