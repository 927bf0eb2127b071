"""Check the machine: precision, attention, vLLM, 4-bit, and the estimated memory."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec

import psutil

from ..findings import Finding
from .estimate import GIB, Estimate, Memory, estimate_memory, estimate_minutes, nearest_hardware
from .report import finding
from .run import Run, dtype_name
from .sizes import model_sizes

AMPERE = 8.0
#: What to change when memory is short. Changes that cost the least quality come first.
KNOBS = (
    "lower per_device_train_batch_size and raise gradient_accumulation_steps by the same factor; "
    "lower max_completion_length; use load_in_4bit with an adapter, gradient_checkpointing=True or optim='adamw_8bit'; "
    "lower num_generations to 4; use a smaller model"
)


def on_cpu(run: Run) -> Iterator[Finding]:
    """Precision and optimizer of a run on a CPU."""
    if not run.on_cpu:
        return
    if run.bf16 and not run["use_cpu"]:
        why = "TRL uses bf16 by default, and without a GPU GRPOConfig raises a ValueError unless use_cpu is set."
        fix = "set use_cpu=True and bf16=False, or name the GPU of the run: gpu='t4' (in a terminal: --gpu t4)."
        yield finding("no_gpu", "the arguments are for a GPU, but no GPU was found.", why, fix)
    elif run.bf16:
        why = "only some CPUs support bf16, and its rounding differs, so results are not comparable between machines."
        yield finding("bf16_cpu", "the run uses bf16 on a CPU.", why, "set bf16=False.")
    if run["fp16"]:
        why = "a CPU emulates fp16, which is slow and loses small gradients."
        yield finding("fp16_cpu", "fp16=True on a CPU.", why, "set fp16=False and bf16=False.")
    if "8bit" in str(run["optim"]).lower():
        why = "8-bit optimizer states save GPU memory; on a CPU they only cost time."
        yield finding("gpu_optimizer", f"optim={str(run['optim'])!r} on a CPU.", why, "set optim='adamw_torch'.")


def on_gpu(run: Run) -> Iterator[Finding]:
    """Precision of a run on a GPU."""
    if run.on_cpu:
        return
    card, loaded = run.gpu, _loaded_in(run)
    if card.capability < AMPERE and (run.bf16 or loaded == "bfloat16"):
        said = "bf16=True" if run["bf16"] else "bf16, TRL's default," if run.bf16 else "dtype='bfloat16'"
        why = (
            f"{card.name} has compute capability {card.capability:g}, and bf16 needs 8.0. torch emulates it silently, "
            "many times slower, or the trainer raises an error."
        )
        fix = "set fp16=True and bf16=False, and load the model in float16 (the adapter's matrices in fp32)."
        yield finding("bf16_gpu", f"{said} on {card.name}.", why, fix)
    if run["fp16"] and loaded == "float16" and run.lora_rank == 0:
        why = 'the gradient scaler needs fp32 gradients and raises "Attempting to unscale FP16 gradients".'
        fix = "load the model in float32 (dtype='float32') with fp16=True, or train an adapter (lora_rank=16)."
        yield finding("fp16_full", "fp16=True with full fine-tuning of float16 weights.", why, fix)
    if "gemma" in run.name.lower() and (run["fp16"] or loaded == "float16"):
        why = "its activations exceed 65,504, the largest fp16 number, and become NaN."
        fix = "use a Qwen model; or set fp16=False and load the model in float32 (slow), or in bf16 on a newer GPU."
        yield finding("gemma_fp16", f"{run.name} would run in fp16.", why, fix)


def _loaded_in(run: Run) -> str | None:
    """The dtype in which the model is loaded, from model_init_kwargs or the given dtype."""
    loading = run.options("model_init_kwargs")
    return dtype_name(loading.get("dtype") or loading.get("torch_dtype")) or run.dtype


def attention(run: Run) -> Iterator[Finding]:
    """FlashAttention 2 on a machine that cannot run it."""
    if run.options("model_init_kwargs").get("attn_implementation") != "flash_attention_2":
        return
    why = ""
    if run.on_cpu or run.gpu.capability < AMPERE:
        where = "a CPU" if run.on_cpu else run.gpu.name
        why = f"it needs a GPU with compute capability 8.0 (Ampere) or above, and the run is for {where}."
    elif find_spec("flash_attn") is None and not run.elsewhere:
        why = "flash-attn is not installed, so transformers raises an ImportError when it loads the model."
    if why:
        fix = "set attn_implementation='sdpa', which is built into torch."
        yield finding("flash_attention", "attn_implementation='flash_attention_2'.", why, fix)


def vllm(run: Run) -> Iterator[Finding]:
    """vLLM on a CPU, not installed, or on a T4."""
    if not run["use_vllm"]:
        return
    if run.on_cpu:
        yield finding("vllm", "use_vllm=True on a CPU.", "vLLM in TRL needs a CUDA device.", "set use_vllm=False.")
        return
    if find_spec("vllm") is None and not run.elsewhere:
        why = "TRL raises an ImportError when the trainer is built."
        fix = "run pip install trl[vllm], or set use_vllm=False."
        yield finding("vllm", "use_vllm=True, but vllm is not installed.", why, fix)
    if run.gpu.capability < AMPERE:
        why = "recent vLLM has no FlashAttention for compute capability 7.5 and sometimes fails there."
        yield finding("vllm_t4", f"use_vllm=True on {run.gpu.name}.", why, "set use_vllm=False.")


def four_bits(run: Run) -> Iterator[Finding]:
    """4-bit weights cannot be trained, only an adapter on top of them."""
    if run.load_in_4bit and run.lora_rank == 0:
        why = "4-bit weights have no gradients, so bitsandbytes and transformers refuse to train them."
        fix = "train an adapter (lora_rank=16; in a config file use_peft: true, lora_r: 16), or set load_in_4bit=False."
        yield finding("four_bit_full", "load_in_4bit with full fine-tuning.", why, fix)


#: The checks of the machine, which always run.
CHECKS = (on_cpu, on_gpu, attention, vllm, four_bits)


def estimate(run: Run, prompt_tokens: int) -> Estimate:
    """Memory and minutes of the planned run, for prompts of a given length."""
    sizes = model_sizes(run.model)
    dtype = "float32" if run.on_cpu else (_loaded_in(run) or "float32")
    shared = {
        "generated_at_once": run.completions_at_once,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": run["max_completion_length"],
        "dtype": dtype,
        "load_in_4bit": bool(run.load_in_4bit),
        "lora_rank": run.lora_rank,
        "gradient_checkpointing": bool(run["gradient_checkpointing"]),
    }
    memory = estimate_memory(
        sizes,
        batch=run["per_device_train_batch_size"],
        optim=str(run["optim"]).lower(),
        beta=run["beta"],
        device="cpu" if run.on_cpu else "gpu",
        backend=run.backend,
        **shared,
    )
    minutes = None
    if run["max_steps"] > 0:
        minutes = estimate_minutes(
            sizes,
            hardware="cpu" if run.on_cpu else nearest_hardware(run.gpu),
            steps=run["max_steps"],
            completions_per_step=run["per_device_train_batch_size"] * run["gradient_accumulation_steps"],
            num_iterations=run["num_iterations"],
            products=_products(run, dtype),
            **shared,
        )
    return Estimate("a CPU" if run.on_cpu else run.gpu.name, _with_vllm(run, memory), minutes)


def _products(run: Run, dtype: str) -> str:
    """The type that matrix products are computed in.

    Unsloth computes those of Gemma in fp16 on a card without bf16, whatever it is asked for, and norms and attention
    in fp32 (`unsloth/models/vision.py`: `from_pretrained`, `bnb_compute_dtype`).
    """
    if run["fp16"] or run.bf16:
        return "float16" if run["fp16"] else "bfloat16"
    gemma = "gemma" in run.name.lower() and run.backend == "unsloth"
    return "float16" if gemma and not run.on_cpu and run.gpu.capability < AMPERE else dtype


def _with_vllm(run: Run, memory: Memory) -> Memory:
    """The memory, including the share that vLLM in the same process reserves."""
    if run.on_cpu or not run["use_vllm"] or run["vllm_mode"] != "colocate":
        return memory
    reserved = run["vllm_gpu_memory_utilization"] * run.gpu.memory_gib * GIB
    return replace(memory, parts={**memory.parts, "vLLM": reserved})


def memory(run: Run, found: Estimate) -> Iterator[Finding]:
    """Compare the estimate with the memory of the GPU, or with the free memory of this machine."""
    has = psutil.virtual_memory().available / GIB if run.on_cpu else run.gpu.memory_gib
    if found.memory.high <= has:
        return
    where = "this machine has" if run.on_cpu else f"{run.gpu.name} has"
    seen = f"estimated {found.memory.gib:.1f} GiB per device, available {has:.1f} GiB."
    why = f"{where} {has:.1f} GiB{' free' if run.on_cpu else ''}; the estimate is {found.memory}."
    fix = f"in this order: {KNOBS}."
    if run.processes > 1:
        fix = f"ignore this if the model is sharded (FSDP, DeepSpeed ZeRO). Otherwise, in this order: {KNOBS}."
    elif found.memory.low > has:
        yield finding("memory", f"out of memory is likely: {seen}", why, fix)
        return
    yield finding("memory_tight", f"memory may run out: {seen}", why, fix)
