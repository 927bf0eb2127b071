"""Estimate memory and minutes of the planned run, and compare the memory with what there is."""

from collections.abc import Iterator
from dataclasses import replace

from grpo_core.errors import CourseError
from grpo_core.gpus import Gpu

from ..findings import Finding
from ..rule import Rule, adding_to, found
from .arguments import out_of_range
from .estimate import GIB, Estimate, Memory, estimate_memory, estimate_minutes, nearest_hardware
from .lengths import known_lengths
from .machine import loaded_in
from .misfits import wrong_type
from .planned import PlannedRun, UnknownArgumentError, once
from .sizes import Sizes, model_sizes

#: What to change when memory is short. Changes that cost the least quality come first.
_KNOBS = (
    "lower per_device_train_batch_size and raise gradient_accumulation_steps by the same factor; "
    "lower max_completion_length; use load_in_4bit with an adapter, gradient_checkpointing=True or optim='adamw_8bit'; "
    "lower num_generations to 4; use a smaller model"
)

RULES: list[Rule] = []
rule = adding_to(RULES, needs=("estimate",))


@once
def _estimate_or_why(run: PlannedRun) -> "tuple[Estimate | None, str]":
    """Memory and minutes for the longest prompt; or None, and what is missing for an estimate."""
    missing = [] if run.model.config else ["model"]
    wanted = "whether the script trains an adapter" if run.in_terminal else "lora_rank (0: all weights) or a profile"
    missing += [] if run.lora_rank is not None else [wanted]
    try:
        missing += ["the GPU (--gpu t4)" if run.in_terminal else "the GPU (gpu='t4')"] * run.on_unknown_gpu
        if missing:
            return None, f"missing: {', '.join(missing)}"
        if run.fails(wrong_type, out_of_range):
            return None, "fix the arguments first"
        return _computed(run, model_sizes(run.model.config)), ""
    except UnknownArgumentError as error:
        return None, f"the script does not show the value of {error}"
    except CourseError as error:
        return None, str(error)


def why_no_estimate(run: PlannedRun) -> str:
    """What is missing for an estimate, "" if there is one."""
    return _estimate_or_why(run)[1]


def estimate(run: PlannedRun) -> Estimate | None:
    """Memory and minutes of the planned run, None if something is missing for that."""
    return _estimate_or_why(run)[0]


def _computed(run: PlannedRun, sizes: Sizes) -> Estimate:
    longest, limit = max(known_lengths(run), default=0), run.max_prompt_length
    prompt_tokens = min(longest or limit or 256, limit or longest or 256)
    dtype = "float32" if run.on_cpu else (loaded_in(run) or "float32")
    shared = {
        "generated_at_once": run.completions_at_once,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": run["max_completion_length"],
        "dtype": dtype,
        "load_in_4bit": bool(run.load_in_4bit),
        "lora_rank": run.lora_rank,
        "gradient_checkpointing": bool(run["gradient_checkpointing"]),
    }
    needed = estimate_memory(
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
    return Estimate("a CPU" if run.on_cpu else run.gpu.name, _with_vllm(run, needed), minutes)


def _products(run: PlannedRun, dtype: str) -> str:
    """The type that matrix products are computed in.

    Unsloth computes those of Gemma in fp16 on a card without bf16, whatever it is asked for, and norms and attention
    in fp32 (`unsloth/models/vision.py`: `from_pretrained`, `bnb_compute_dtype`).
    """
    if run["fp16"] or run.bf16:
        return "float16" if run["fp16"] else "bfloat16"
    gemma = "gemma" in run.model.name.lower() and run.backend == "unsloth"
    return "float16" if gemma and run.older_than_ampere else dtype


def _with_vllm(run: PlannedRun, memory: Memory) -> Memory:
    """The memory, including the share that vLLM in the same process reserves."""
    if run.on_cpu or not run["use_vllm"] or run["vllm_mode"] != "colocate":
        return memory
    reserved = run["vllm_gpu_memory_utilization"] * run.gpu.memory_gib * GIB
    return replace(memory, parts={**memory.parts, "vLLM": reserved})


@once
def _available(run: PlannedRun) -> float:
    """GiB of the GPU, or free on this machine."""
    import psutil

    return psutil.virtual_memory().available / GIB if run.on_cpu else run.gpu.memory_gib


def _shortage(run: PlannedRun, said: str) -> Finding:
    """The finding where the estimate exceeds the memory."""
    needed, has, sharded = estimate(run).memory, _available(run), run.processes > 1
    where = "this machine has" if run.on_cpu else f"{run.gpu.name} has"
    what = f"{said}: estimated {needed.gib:.1f} GiB per device, available {has:.1f} GiB."
    why = f"{where} {has:.1f} GiB{' free' if run.on_cpu else ''}; the estimate is {needed}."
    unless = "ignore this if the model is sharded (FSDP, DeepSpeed ZeRO). Otherwise, " if sharded else ""
    return found(what, f"{unless}in this order: {_KNOBS}.", why=why)


@rule(
    "error",
    "the estimated memory far exceeds the available memory",
    why="even if the estimate is too high by its known error, the run would end with an out-of-memory error.",
    fixes=(f"in this order: {_KNOBS}.",),
    example={"gpu": Gpu("NVIDIA tiny", 0.4, 8.6), "use_cpu": False},
)
def memory(run: PlannedRun) -> Iterator[Finding]:
    """It looks only at runs on one device, because a model may be sharded over several."""
    if run.processes == 1 and estimate(run).memory.low > _available(run):
        yield _shortage(run, "out of memory is likely")


@rule(
    "warning",
    "the estimated memory is close to the available memory",
    why="if the estimate is too low by its known error, the run would end with an out-of-memory error.",
    fixes=(f"in this order: {_KNOBS}.",),
    unless=("memory",),
    example={"gpu": Gpu("NVIDIA small", 1.2, 8.6), "use_cpu": False},
)
def memory_tight(run: PlannedRun) -> Iterator[Finding]:
    """The report prints the estimate as a range, and the available memory is inside it."""
    if estimate(run).memory.high > _available(run):
        yield _shortage(run, "memory may run out")
