"""Which machine is this, and what can it train?

A profile is one frozen set of sizes for one class of machine. The lesson's code is the
same on all of them; only the numbers and the model's name differ.

    >>> profile, reason = choose_profile([])
    >>> profile.name, reason
    ('cpu', 'no NVIDIA GPU found')

Left out: several GPUs at once, AMD and Intel GPUs, Apple's GPU.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from grpo_core.errors import CourseError, check_choice
from grpo_core.gpus import Gpu, find_gpus, has_nvidia_gpu

FAMILIES = ("qwen", "gemma")

_NEVER_RUN = "never run on this hardware"

#: Set in a prepared process to the name of its profile.
PREPARED = "GRPO_UTILS_PREPARED"

#: Where hosted notebooks offer a GPU, by a variable that only their machines set.
_GPU_MENUS = {
    "COLAB_RELEASE_TAG": "Runtime > Change runtime type > T4 GPU",
    "KAGGLE_KERNEL_RUN_TYPE": "Settings > Accelerator > GPU T4 x2",
}

#: The variables that say how many threads torch uses.
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
#: The rest of the environment of the cpu profile, set before torch reads it.
CPU_ENVIRONMENT = {
    PREPARED: "cpu",
    "TOKENIZERS_PARALLELISM": "false",
    "UNSLOTH_FORCE_CPU": "1",
    "CUDA_VISIBLE_DEVICES": "-1",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
}


@dataclass(frozen=True)
class Profile:
    """Sizes for one class of machine. Lengths are in tokens, batches in completions."""

    name: str
    hardware: str
    why: str
    evidence: str
    expected: str  # minutes of lesson 03 from its first cell to its last
    models: dict[str, str]
    dataset: str
    dtype: str
    load_in_4bit: bool
    max_prompt_length: int
    max_completion_length: int
    per_device_train_batch_size: int
    gradient_accumulation_steps: int
    num_generations: int
    learning_rate: float
    steps: int
    train_rows: int
    eval_rows: int
    eval_batch_size: int
    optim: str
    lr_scheduler_type: str = "linear"
    warmup_steps: int = 0
    lora_rank: int = 16
    lora_alpha: int = 32
    use_vllm: bool = False

    @property
    def completions_per_step(self) -> int:
        """Completions per optimizer step."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps

    @property
    def max_seq_length(self) -> int:
        """Tokens of the longest prompt plus the longest completion."""
        return self.max_prompt_length + self.max_completion_length


CPU = Profile(
    name="cpu",
    hardware="any CPU, 2 cores, 3 GB of free memory",
    why="a tiny model and short problems train in one to two minutes",
    evidence="measured on every commit",
    expected="1 to 4 minutes on two cores (measured)",
    models={"qwen": "tiny-qwen3", "gemma": "tiny-gemma3"},
    dataset="addition",
    dtype="float32",
    load_in_4bit=True,
    max_prompt_length=96,
    max_completion_length=32,
    per_device_train_batch_size=64,
    gradient_accumulation_steps=1,
    num_generations=8,
    learning_rate=2e-3,
    steps=60,
    train_rows=2000,
    eval_rows=200,
    eval_batch_size=200,
    optim="adamw_torch",
)

T4 = Profile(
    name="t4",
    hardware="NVIDIA T4, 16 GB (Colab, Kaggle)",
    why="fp16, because a T4 has no bf16 units; 4 bits, so that 8 GB cards fit too (BASE_BITS=16 is a tenth faster)",
    evidence=_NEVER_RUN,
    expected="40 to 50 minutes on a T4 (estimated)",
    # An alternative is unsloth/Qwen3-1.7B with thinking off: "Thinking on or off" in docs/gpu.md has its recipe.
    models={"qwen": "unsloth/Qwen2.5-1.5B-Instruct", "gemma": "unsloth/gemma-3-1b-it"},
    dataset="gsm8k",
    dtype="float16",
    load_in_4bit=True,
    max_prompt_length=256,
    max_completion_length=256,  # at 512, a step takes almost twice as long: sampling is three quarters of it
    per_device_train_batch_size=8,
    gradient_accumulation_steps=4,  # 32 completions per step, as many as SmolLM2 learned with (docs/results.md)
    num_generations=8,
    learning_rate=2e-4,  # at this rate and rank, SmolLM2 learned; at 5e-5, nothing in 25 steps (docs/settings.md)
    steps=60,  # 30 minutes by the preflight's formula, without compilation; usually MINUTES ends training before
    train_rows=7000,
    eval_rows=100,
    eval_batch_size=100,  # one batch takes little longer than a part of it
    optim="adamw_8bit",
    lr_scheduler_type="constant_with_warmup",  # a run that is stopped early loses no part of its schedule
    warmup_steps=2,
)

L4 = replace(
    T4,
    name="l4",
    hardware="NVIDIA L4, RTX 3090 or RTX 4090, 24 GB",
    why="bf16 and 64 completions per step; otherwise as on the T4",
    dtype="bfloat16",
    gradient_accumulation_steps=8,
)

A100 = replace(
    L4,
    name="a100",
    hardware="NVIDIA A100, 40 or 80 GB",
    why="16-bit weights and longer answers; the T4's model, because we expect a 7B model to solve most of GSM8K",
    load_in_4bit=False,
    max_completion_length=512,
    per_device_train_batch_size=16,
    num_generations=16,
    eval_rows=200,
    optim="adamw_torch",
)

H100 = replace(
    A100,
    name="h100",
    hardware="NVIDIA H100 or H200, 80 GB and more",
    why="like the A100, with twice the prompts per step",
    evidence="never run; parts of the course ran on an H100",
    per_device_train_batch_size=32,
)

PROFILES = {profile.name: profile for profile in (CPU, T4, L4, A100, H100)}


def choose_profile(gpus: list[Gpu]) -> tuple[Profile, str]:
    """The profile for the first of ``gpus``, and the reason in words.

    What counts is memory and compute capability (8.0 has bf16 units), not the name, so
    consumer GPUs get a profile too.

    >>> profile, reason = choose_profile([Gpu("NVIDIA GeForce RTX 3060", 12.0, 8.6)])
    >>> profile.name, profile.dtype, profile.per_device_train_batch_size
    ('t4', 'bfloat16', 4)
    >>> print(reason)
    NVIDIA GeForce RTX 3060 has 12 GiB (under 14: half the batch) and bf16 units
    """
    if not gpus:
        return CPU, "no NVIDIA GPU found" + offered_gpu(os.environ)
    gpu = gpus[0]
    has = f"{gpu.name} has {gpu.memory_gib:.0f} GiB"
    if gpu.capability < 7.0 or gpu.memory_gib < 7:
        return CPU, f"{has} and capability {gpu.capability}; a GPU profile needs 7 GiB and 7.0{offered_gpu(os.environ)}"
    if gpu.capability < 8.0:
        return _fit_memory(T4, gpu, has, "no bf16 units")
    for profile, memory_gib, capability in ((H100, 70, 9.0), (A100, 38, 8.0), (L4, 21, 8.0)):
        if gpu.memory_gib >= memory_gib and gpu.capability >= capability:
            return profile, f"{has} and bf16 units"
    return _fit_memory(replace(T4, dtype="bfloat16"), gpu, has, "bf16 units")


def offered_gpu(environment: Mapping[str, str]) -> str:
    """Where Colab or Kaggle offers a GPU, to be appended to a sentence; "" on any other machine.

    >>> offered_gpu({"COLAB_RELEASE_TAG": "release-colab"})
    '. To use one, choose Runtime > Change runtime type > T4 GPU, and run all cells again'
    >>> offered_gpu({})
    ''
    """
    menus = [menu for variable, menu in _GPU_MENUS.items() if variable in environment]
    return f". To use one, choose {menus[0]}, and run all cells again" if menus else ""


def _fit_memory(profile: Profile, gpu: Gpu, has: str, units: str) -> tuple[Profile, str]:
    """Halve the batch and double its accumulation on GPUs smaller than a T4."""
    if gpu.memory_gib >= 14:
        return profile, f"{has} and {units}"
    halved = replace(
        profile,
        per_device_train_batch_size=profile.per_device_train_batch_size // 2,
        gradient_accumulation_steps=profile.gradient_accumulation_steps * 2,
        eval_batch_size=profile.eval_batch_size // 2,
    )
    return halved, f"{has} (under 14: half the batch) and {units}"


def find_profile(name: str = "auto") -> tuple[Profile, str]:
    """The profile called ``name`` and the reason; ``"auto"`` looks at the machine.

    >>> find_profile("cpu")[1]
    'you asked for it'
    >>> find_profile("h10")
    Traceback (most recent call last):
    ...
    grpo_core.errors.CourseError: PROFILE='h10' is unknown. Did you mean 'h100'? Valid: auto, cpu, t4, l4, a100, h100.

    Raises:
        CourseError: the name is unknown, or a GPU profile was asked for on a machine without one.
    """
    check_choice("PROFILE", name, ("auto", *PROFILES))
    if name == "auto":
        return choose_profile(find_gpus())
    if name != "cpu" and os.environ.get(PREPARED) == "cpu":
        raise CourseError(
            f"PROFILE={name!r}: this process was prepared for the cpu profile, which hides the GPU. Restart the kernel."
        )
    if name != "cpu" and not has_nvidia_gpu():
        fix = offered_gpu(os.environ) or ". Use PROFILE='cpu'"
        raise CourseError(f"PROFILE={name!r} needs an NVIDIA GPU and nvidia-smi shows none on this machine{fix}.")
    return PROFILES[name], "you asked for it"


def prepare_machine(profile: Profile, offline: bool = True, threads: int = 1) -> None:
    """Set the environment before torch is imported: threads, device, offline mode.

    The cpu profile uses ``threads`` threads: one by default, because two are slower for tiny matrices, and far slower
    on a busy machine. It keeps Unsloth on the CPU and hides all GPUs. With ``offline``, nothing waits for a
    network. A GPU profile uses the first GPU. Other variables that you set are not changed.
    """
    if profile.name != "cpu":
        os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as nvidia-smi counts; CUDA puts the fastest first
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # a second GPU would double the batch
        return
    # bitsandbytes suggests a faster kernel at every 4-bit load, which no CPU run needs.
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)
    settings = CPU_ENVIRONMENT | dict.fromkeys(THREADS, str(threads)) | ({"HF_HUB_OFFLINE": "1"} if offline else {})
    for name, value in settings.items():
        os.environ.setdefault(name, value)
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # even if a cluster or an earlier GPU profile set it
