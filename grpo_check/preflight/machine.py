"""Check the machine: precision, attention, vLLM, 4-bit, and the estimated memory."""

from dataclasses import replace
from importlib.util import find_spec

import psutil

from grpo_utils.errors import CourseError
from grpo_utils.models import check_model, fit_model
from grpo_utils.profiles import T4

from .estimate import GIB, Estimate, Memory, estimate_memory, estimate_minutes
from .planned import Planned, dtype_name
from .report import Finding
from .sizes import model_sizes, read_config

AMPERE = 8.0
#: What to turn down when memory is short, in the order to try: cheap in quality first.
KNOBS = (
    "per_device_train_batch_size down and gradient_accumulation_steps up by the same factor; "
    "max_completion_length down; load_in_4bit with an adapter; gradient_checkpointing=True; optim='adamw_8bit'; "
    "num_generations down to 4; a smaller model"
)


def precision(run: Planned) -> list[Finding]:
    """bf16 and fp16 against what computes."""
    if run["fp16"] and run["bf16"]:
        return [
            Finding(
                "fp16_and_bf16", "fp16=True and bf16=True.", "GRPOConfig raises a ValueError.",
                "bf16=True alone from capability 8.0 (Ampere), fp16=True alone below, neither on a CPU.",
            )
        ]  # fmt: skip
    return _on_cpu(run) if run.on_cpu else _on_gpu(run)


def _on_cpu(run: Planned) -> list[Finding]:
    found = []
    if run.bf16 and not run["use_cpu"]:
        why = "TRL turns bf16 on unless told otherwise, and without use_cpu and a GPU GRPOConfig raises a ValueError."
        mend = "use_cpu=True, bf16=False; or a machine with a GPU (in a terminal: --gpu t4)."
        found.append(Finding("no_gpu", "no GPU was found and the arguments are for one.", why, mend))
    elif run.bf16:
        why = "only some processors have bf16, and sums in it round differently: the figures are not another machine's."
        found.append(Finding("bf16_cpu", "bf16 on a CPU.", why, "bf16=False."))
    if run["fp16"]:
        why = "it runs, but fp16 on a CPU is emulated, slow, and loses small gradients."
        found.append(Finding("fp16_cpu", "fp16=True on a CPU.", why, "fp16=False, bf16=False."))
    if "8bit" in str(run["optim"]).lower():
        why = "8-bit optimizer states save memory that a CPU has, and cost time."
        found.append(Finding("gpu_optimizer", f"optim={str(run['optim'])!r} on a CPU.", why, "optim='adamw_torch'."))
    return found


def _on_gpu(run: Planned) -> list[Finding]:
    found, card = [], run.gpu
    loaded = _loaded_in(run)
    wants_bf16 = run.bf16 or loaded == "bfloat16"
    if card.capability < AMPERE and wants_bf16:
        said = "bf16=True" if run["bf16"] else "bf16, TRL's default," if run.bf16 else "dtype='bfloat16'"
        why = (
            f"{card.name} has capability {card.capability:g}; bf16 units come with 8.0. torch emulates it silently, "
            "many times slower, or the trainer raises."
        )
        mend = "fp16=True and bf16=False, and the model in float16 (an adapter's matrices in fp32)."
        found.append(Finding("bf16_gpu", f"{said} on {card.name}.", why, mend))
    in_fp16 = run["fp16"] or loaded == "float16"
    if run["fp16"] and loaded == "float16" and run.lora_rank == 0:
        why = 'the gradient scaler of fp16 wants gradients in fp32 and raises: "Attempting to unscale FP16 gradients".'
        mend = "the model in float32 (dtype='float32') with fp16=True, or an adapter (lora_rank=16)."
        found.append(Finding("fp16_full", "fp16=True, and all weights are trained in float16.", why, mend))
    if in_fp16 and run.name and _overflows(run.name):
        why = "its activations exceed 65,504, the largest number of fp16, and become NaN."
        mend = "a Qwen model; or fp16=False and the model in float32 here (slow), in bf16 on a newer card."
        found.append(Finding("gemma_fp16", f"{run.name} in fp16.", why, mend))
    return found


def _loaded_in(run: Planned) -> str | None:
    """The type in which the model is loaded: as TRL is told in model_init_kwargs, else as it was said."""
    asked = run["model_init_kwargs"] if isinstance(run["model_init_kwargs"], dict) else {}
    return dtype_name(asked.get("dtype") or asked.get("torch_dtype")) or run.dtype


def _overflows(model: str) -> bool:
    """Whether `fit_model` would not leave a model in fp16."""
    return fit_model(T4, model)[1] != ""


def attention(run: Planned) -> list[Finding]:
    """FlashAttention 2 where it cannot run."""
    asked = (run["model_init_kwargs"] or {}) if isinstance(run["model_init_kwargs"], dict | None) else {}
    if asked.get("attn_implementation") != "flash_attention_2":
        return []
    where = "a CPU" if run.on_cpu else run.gpu.name
    if run.on_cpu or run.gpu.capability < AMPERE:
        why = f"it needs a GPU of capability 8.0 (Ampere) or above, and this is {where}."
    elif find_spec("flash_attn") is None and not run.elsewhere:
        why = "flash-attn is not installed here, and transformers raises an ImportError when it loads the model."
    else:
        return []
    mend = "attn_implementation='sdpa', which torch has built in."
    return [Finding("flash_attention", "attn_implementation='flash_attention_2'.", why, mend)]


def vllm(run: Planned) -> list[Finding]:
    """vLLM on a CPU, or not installed, or on a T4."""
    if not run["use_vllm"]:
        return []
    if run.on_cpu:
        why = "TRL's vLLM backend wants a CUDA device."
        return [Finding("vllm", "use_vllm=True on a CPU.", why, "use_vllm=False.")]
    found = []
    if find_spec("vllm") is None and not run.elsewhere:
        why = "TRL raises an ImportError when the trainer is built."
        mend = "pip install trl[vllm], or use_vllm=False."
        found.append(Finding("vllm", "use_vllm=True, and vllm is not installed here.", why, mend))
    if run.gpu.capability < AMPERE:
        why = "newer vLLM has no FlashAttention path for capability 7.5, and is known to fail there now and then."
        found.append(Finding("vllm_t4", f"use_vllm=True on {run.gpu.name}.", why, "use_vllm=False."))
    return found


def four_bits(run: Planned) -> list[Finding]:
    """4-bit weights cannot be trained, only adapters beside them."""
    if not run.load_in_4bit or run.lora_rank != 0:
        return []
    why = "4-bit weights have no gradients; bitsandbytes and transformers refuse to train them."
    mend = "an adapter (use_peft: true, lora_r: 16 in a config file; lora_rank=16 here), or load_in_4bit=False."
    return [Finding("four_bit_full", "load_in_4bit with full fine-tuning.", why, mend)]


def model(run: Planned) -> list[Finding]:
    """Whether the model can be had."""
    if not run.name:
        return []
    try:
        check_model(run.name)
        read_config(run.name)
    except CourseError as error:
        what, _, mend = str(error).replace("MODEL=", "model=").partition(". ")
        why = "nothing can be loaded; context length, sizes and memory were not checked either."
        return [
            Finding("model_missing", what.rstrip(".") + ".", why, mend or "A hub id 'owner/name' or a model's folder.")
        ]
    return []


def estimate(run: Planned, prompt_tokens: int) -> Estimate:
    """Memory and minutes of the planned run; the prompts as long as given."""
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
    minutes = estimate_minutes(
        sizes,
        hardware=run.machine,
        steps=run["max_steps"],
        completions_per_step=run["per_device_train_batch_size"] * run["gradient_accumulation_steps"],
        num_iterations=run["num_iterations"],
        **shared,
    ) if run["max_steps"] > 0 else None  # fmt: skip
    return Estimate("a CPU" if run.on_cpu else run.gpu.name, _with_vllm(run, memory), minutes)


def _with_vllm(run: Planned, memory: Memory) -> Memory:
    """The memory with the share of the card that a vLLM in the same process reserves for itself."""
    if run.on_cpu or not run["use_vllm"] or run["vllm_mode"] != "colocate":
        return memory
    reserved = run["vllm_gpu_memory_utilization"] * run.gpu.memory_gib * GIB
    return replace(memory, parts={**memory.parts, "vLLM": reserved})


def memory(run: Planned, found: Estimate) -> list[Finding]:
    """The estimate against what the GPU has, or what is free on this machine."""
    has, memory = psutil.virtual_memory().available / GIB if run.on_cpu else run.gpu.memory_gib, found.memory
    where = "this machine has free" if run.on_cpu else f"{run.gpu.name} has"
    why = f"{where} {has:.1f} GiB; estimated {memory}."
    if memory.high > has and run.processes > 1:
        what = f"memory may not suffice: {memory.gib:.1f} GiB estimated for a device alone, {has:.1f} there."
        mend = f"Nothing if the model is sharded (FSDP, DeepSpeed ZeRO). Else, in this order: {KNOBS}."
        return [Finding("memory_tight", what, why, mend)]
    if memory.low > has:
        what = f"out of memory is likely: {memory.gib:.1f} GiB estimated, {has:.1f} there."
        return [Finding("memory", what, why, f"In this order: {KNOBS}.")]
    if memory.high > has:
        what = f"memory may not suffice: {memory.gib:.1f} GiB estimated, {has:.1f} there."
        return [Finding("memory_tight", what, why, f"Try it; if it fails, in this order: {KNOBS}.")]
    return []
