"""Check the machine: precision, attention, vLLM and 4-bit weights."""

from collections.abc import Iterator
from importlib.util import find_spec

from ..findings import Finding
from ..rule import Rule, adding_to, found
from .planned import PlannedRun, dtype_name

RULES: list[Rule] = []
rule = adding_to(RULES)


def loaded_in(run: PlannedRun) -> str | None:
    """The dtype in which the model is loaded, from model_init_kwargs or the given dtype."""
    loading = run.options("model_init_kwargs")
    return dtype_name(loading.get("dtype") or loading.get("torch_dtype")) or run.dtype


@rule(
    "error",
    "arguments for a GPU on a machine without one",
    why="TRL uses bf16 by default, and without a GPU GRPOConfig raises a ValueError unless use_cpu is set.",
    fixes=("set use_cpu=True and bf16=False, or name the GPU of the run: gpu='t4' (in a terminal: --gpu t4).",),
    example={"gpu": "cpu", "use_cpu": False, "bf16": None},
)
def no_gpu(run: PlannedRun) -> Iterator[Finding]:
    """A run in fp32 or fp16 starts without a GPU, and is not reported here.

    Where this machine has no GPU and none is named, the run is taken to be for another machine.
    """
    if run.on_cpu and run.bf16 and not run["use_cpu"]:
        yield found("the arguments are for a GPU, but no GPU was found.")


@rule(
    "warning",
    "bf16 on a CPU, where results differ between machines",
    why="only some CPUs support bf16, and its rounding differs, so results are not comparable between machines.",
    fixes=("set bf16=False.",),
    example={"bf16": True},
)
def bf16_cpu(run: PlannedRun) -> Iterator[Finding]:
    """The run itself works, so you can ignore this if you compare with no other machine."""
    if run.on_cpu and run.bf16 and run["use_cpu"]:
        yield found("the run uses bf16 on a CPU.")


@rule(
    "warning",
    "fp16 on a CPU, which is slow and loses small gradients",
    why="a CPU emulates fp16, which is slow and loses small gradients.",
    fixes=("set fp16=False and bf16=False.",),
    example={"fp16": True},
)
def fp16_cpu(run: PlannedRun) -> Iterator[Finding]:
    """TRL 1.14 does not stop such a run."""
    if run.on_cpu and run["fp16"]:
        yield found("fp16=True on a CPU.")


@rule(
    "warning",
    "an optimizer for GPUs, on a CPU",
    why="8-bit optimizer states save GPU memory; on a CPU they only cost time.",
    fixes=("set optim='adamw_torch'.",),
    example={"optim": "adamw_8bit"},
)
def gpu_optimizer(run: PlannedRun) -> Iterator[Finding]:
    """It looks for optimizers with 8-bit states, such as adamw_8bit and paged_adamw_8bit."""
    if run.on_cpu and "8bit" in str(run["optim"]).lower():
        yield found(f"optim={str(run['optim'])!r} on a CPU.")


@rule(
    "error",
    "bf16 on a GPU that does not support it",
    why="bf16 needs compute capability 8.0 (Ampere). On an older GPU torch emulates it silently, many times slower, "
    "or the trainer raises an error.",
    fixes=(
        "set fp16=True and bf16=False, and load the model in float16 (the adapter's matrices in fp32).",
        "to train all weights, load the model in float32; for Gemma, set fp16=False as well.",
    ),
    example={"gpu": "t4", "use_cpu": False, "bf16": True},
)
def bf16_gpu(run: PlannedRun) -> Iterator[Finding]:
    """It looks at the autocast, which is bf16 unless you say otherwise, and at the type of the loaded weights."""
    loaded = loaded_in(run)
    if not run.older_than_ampere or not (run.bf16 or loaded == "bfloat16"):
        return
    said = "bf16=True" if run["bf16"] else "bf16, TRL's default," if run.bf16 else "dtype='bfloat16'"
    why = (
        f"{run.gpu.name} has compute capability {run.gpu.capability:g}, and bf16 needs 8.0. torch emulates it "
        "silently, many times slower, or the trainer raises an error."
    )
    yield found(f"{said} on {run.gpu.name}.", _without_bf16(run), why=why)


def _without_bf16(run: PlannedRun) -> str:
    """What to do on a card without bf16, where fp16 suits neither Gemma nor the training of fp16 weights."""
    if "gemma" in run.model.name.lower():
        return "set bf16=False and load the model in float32 (slow), use a newer GPU, or use a Qwen model in fp16."
    if run.lora_rank == 0:
        return "set fp16=True and bf16=False, and load the model in float32 (dtype='float32'), or train an adapter."
    return bf16_gpu.fixes[0]


@rule(
    "error",
    "full fine-tuning of fp16 weights with fp16=True",
    why='the gradient scaler needs fp32 gradients and raises "Attempting to unscale FP16 gradients".',
    fixes=("load the model in float32 (dtype='float32') with fp16=True, or train an adapter (lora_rank=16).",),
    example={"gpu": "l4", "use_cpu": False, "fp16": True, "dtype": "float16", "lora_rank": 0, "load_in_4bit": False},
)
def fp16_full(run: PlannedRun) -> Iterator[Finding]:
    """The gradients of fp16 weights are fp16. An adapter's weights are fp32, and so are their gradients."""
    if not run.on_cpu and run["fp16"] and loaded_in(run) == "float16" and run.lora_rank == 0:
        yield found("fp16=True with full fine-tuning of float16 weights.")


@rule(
    "error",
    "a Gemma model in fp16, which overflows",
    why="its activations exceed 65,504, the largest fp16 number, and become NaN.",
    fixes=("use a Qwen model; or set fp16=False and load the model in float32 (slow), or in bf16 on a newer GPU.",),
    example={"gpu": "t4", "use_cpu": False, "fp16": True, "model": "google/gemma-3-1b-it"},
)
def gemma_fp16(run: PlannedRun) -> Iterator[Finding]:
    """It goes by the model's name, and looks at fp16 autocast as well as at weights in float16."""
    if not run.on_cpu and "gemma" in run.model.name.lower() and (run["fp16"] or loaded_in(run) == "float16"):
        yield found(f"{run.model.name} would run in fp16.")


@rule(
    "error",
    "FlashAttention 2 on a machine that cannot run it",
    why="it needs a GPU with compute capability 8.0 (Ampere) or above and the package flash-attn; without them, "
    "transformers raises an error when it loads the model.",
    fixes=("set attn_implementation='sdpa', which is built into torch.",),
    example={"model_init_kwargs": {"attn_implementation": "flash_attention_2"}},
)
def flash_attention(run: PlannedRun) -> Iterator[Finding]:
    """For a GPU that is not on this machine, it does not look at what is installed here."""
    if run.options("model_init_kwargs").get("attn_implementation") != "flash_attention_2":
        return
    why = ""
    if run.on_cpu or run.older_than_ampere:
        where = "a CPU" if run.on_cpu else run.gpu.name
        why = f"it needs a GPU with compute capability 8.0 (Ampere) or above, and the run is for {where}."
    elif find_spec("flash_attn") is None and not run.elsewhere:
        why = "flash-attn is not installed, so transformers raises an ImportError when it loads the model."
    if why:
        yield found("attn_implementation='flash_attention_2'.", why=why)


@rule(
    "error",
    "vLLM on a machine that cannot run it",
    why="vLLM in TRL needs a CUDA device and the package vllm.",
    fixes=("set use_vllm=False.", "on a machine with a GPU, run pip install trl[vllm]."),
    example={"use_vllm": True},
)
def vllm(run: PlannedRun) -> Iterator[Finding]:
    """For a GPU that is not on this machine, it does not look at what is installed here."""
    if run["use_vllm"] and run.on_cpu:
        yield found("use_vllm=True on a CPU.", "set use_vllm=False.", why="vLLM in TRL needs a CUDA device.")
    elif run["use_vllm"] and find_spec("vllm") is None and not run.elsewhere:
        why = "TRL raises an ImportError when the trainer is built."
        fix = "run pip install trl[vllm], or set use_vllm=False."
        yield found("use_vllm=True, but vllm is not installed.", fix, why=why)


@rule(
    "warning",
    "vLLM on a GPU on which it sometimes fails",
    why="recent vLLM has no FlashAttention for compute capability 7.5 and sometimes fails there.",
    fixes=("set use_vllm=False.",),
    example={"gpu": "t4", "use_cpu": False, "fp16": True, "use_vllm": True},
)
def vllm_t4(run: PlannedRun) -> Iterator[Finding]:
    """It is a warning and not an error, because vLLM does not always fail on a card older than Ampere."""
    if run["use_vllm"] and run.older_than_ampere:
        yield found(f"use_vllm=True on {run.gpu.name}.")


@rule(
    "warning",
    "4-bit weights with vLLM, to which TRL cannot send them",
    why="TRL sends the packed 4-bit weights without the scales that vLLM needs to read them.",
    fixes=(
        "set load_in_4bit=False.",
        "load the model with Unsloth and fast_inference=True, which shares 4-bit weights with vLLM, untried here.",
    ),
    example={"gpu": "l4", "use_cpu": False, "use_vllm": True, "vllm_mode": "server", "load_in_4bit": True,
             "backend": "transformers"},
)  # fmt: skip
def vllm_four_bits(run: PlannedRun) -> Iterator[Finding]:
    """TRL sends every weight as the policy has it (`trl/generation/vllm_generation.py`: `_iter_named_params`).

    4 bits are packed in another shape than a server's weights, and come without their scales, also where TRL starts
    vLLM with ``quantization="bitsandbytes"``: in the training process (trl#4973, trl#6922). Unsloth has its own vLLM.
    """
    if run["use_vllm"] and run.load_in_4bit and run.backend == "transformers":
        yield found(f"load_in_4bit with vllm_mode={run['vllm_mode']!r}.")


@rule(
    "error",
    "full fine-tuning of 4-bit weights",
    why="4-bit weights have no gradients, so bitsandbytes and transformers refuse to train them.",
    fixes=("train an adapter (lora_rank=16; in a config file use_peft: true, lora_r: 16), or set load_in_4bit=False.",),
    example={"lora_rank": 0, "load_in_4bit": True},
)
def four_bit_full(run: PlannedRun) -> Iterator[Finding]:
    """4-bit weights can carry an adapter, whose own weights are trained in fp32 on top of them (QLoRA)."""
    if run.load_in_4bit and run.lora_rank == 0:
        yield found("load_in_4bit with full fine-tuning.")
