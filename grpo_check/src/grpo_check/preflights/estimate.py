"""Estimate memory and minutes of a GRPO run before it starts.

Both are sums that you can check by hand; the docstrings have the formulas. On a CPU they were
compared with real runs (docs/results.md); on a GPU they were never run.
"""

from dataclasses import dataclass, replace

from grpo_core.errors import check_choice
from grpo_core.gpus import Gpu
from grpo_core.training.policy import BACKENDS

from .sizes import Sizes

GIB = 1024**3
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}

#: Bytes of a weight in NF4 with double quantization: half a byte, one 8-bit scale for 64 weights, and one
#: fp32 scale for 256 of those (QLoRA, arXiv:2305.14314, section 3).
_NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
#: Copies of the logits at the peak of the backward pass, in fp32. On a CPU: the logits, and the gradients that
#: gather, logsumexp and the slice of TRL's `_full_logits_logps` each make of that size. On a GPU TRL 1.14 has one
#: kernel for the first two (`trl.kernels`).
_LOGITS_COPIES = {"cpu": 4, "gpu": 3}
#: Limits of one chunk of logits in Unsloth (`unsloth_zoo/fused_losses/fused_linear.py`: `_MIN_LOGITS`, `_MAX_ROWS`,
#: `_CHUNK_GB`): at least this many (tokens x vocabulary), in at most this many tokens and bytes.
CHUNK_LOGITS, CHUNK_TOKENS, CHUNK_BYTES = 512 * 151_936, 4096, 2 * GIB
#: Bytes in addition to the model: the CUDA context and cuBLAS workspaces on a GPU (never measured here), what the
#: trainer imports and keeps on a CPU (measured on the tiny model).
_OVERHEAD = {"gpu": 1.0 * GIB, "cpu": 0.05 * GIB}
#: By how much an estimate may be off: on a CPU the largest error measured, rounded up; on a GPU a guess.
MEMORY_FACTOR = {"cpu": 1.6, "gpu": 1.6}
MINUTES_FACTOR = {"cpu": 1.6, "gpu": 2.0}


@dataclass(frozen=True)
class Hardware:
    """One class of machine.

    Attributes:
        gpu: its GPU; None for a CPU.
        bandwidth: bytes per second between memory and processor.
        flops: floating-point operations per second that 16-bit matrix products reach in practice.
        fp32_flops: the same for fp32 products, for which a GPU does not use its tensor cores (TF32 is off in torch).
        layer_seconds: time that one layer of one decoding step costs whatever its size (kernel launches, Python).
    """

    gpu: Gpu | None
    bandwidth: float
    flops: float
    fp32_flops: float
    layer_seconds: float


def _card(gpu: Gpu, gigabytes: float, tflops: float, fp32_tflops: float, layer_seconds: float = 1e-3) -> Hardware:
    """A GPU by its data sheet. The estimate assumes that decoding reaches 70% and training a third.

    A millisecond per layer is an assumption (28 layers of a 1.5B model with an adapter: 28 ms per token in plain
    transformers).
    """
    return Hardware(gpu, 0.7 * gigabytes * 1e9, tflops * 1e12 / 3, fp32_tflops * 1e12 / 3, layer_seconds)


#: NVIDIA's data sheets: bandwidth in GB/s, dense 16-bit tensor TFLOPS (of the L4 half of the sparse figure), fp32
#: TFLOPS; the memory of a T4 is as Colab shows it. A T4 takes two milliseconds per layer, because with one all public
#: runs without vLLM were slower than the formula (docs/gpu.md); there are none for the other cards. The CPU was
#: measured: one core of the machine in docs/results.md.
HARDWARE = {
    "cpu": Hardware(None, 8e9, 6e10, 6e10, 1.2e-3),
    "t4": _card(Gpu("Tesla T4", 14.56, 7.5), 320, 65, 8.1, layer_seconds=2e-3),
    "l4": _card(Gpu("NVIDIA L4", 22.5, 8.9), 300, 121, 30.3),
    "a100": _card(Gpu("NVIDIA A100", 39.5, 8.0), 1555, 312, 19.5),
    "h100": _card(Gpu("NVIDIA H100", 79.6, 9.0), 3350, 989, 67),
}


def nearest_hardware(gpu: Gpu) -> str:
    """The row of `HARDWARE` that is nearest to a GPU: by its name, else by its memory and capability.

    >>> nearest_hardware(Gpu("NVIDIA GeForce RTX 3060", 12.0, 8.6))
    'l4'
    """
    named = [key for key in HARDWARE if key != "cpu" and key in gpu.name.lower()]
    if named:
        return named[0]
    if gpu.capability < 8.0:
        return "t4"
    return "h100" if gpu.capability >= 9.0 and gpu.memory_gib >= 70 else "a100" if gpu.memory_gib >= 38 else "l4"


@dataclass(frozen=True)
class Memory:
    """Estimated memory in bytes: parts that stay, and the two phases of which the larger one counts."""

    parts: dict[str, float]
    generating: float
    learning: float
    device: str

    @property
    def gib(self) -> float:
        """The peak in GiB."""
        return (sum(self.parts.values()) + max(self.generating, self.learning)) / GIB

    @property
    def low(self) -> float:
        """The peak if the estimate is too high by the known error."""
        return self.gib / MEMORY_FACTOR[self.device]

    @property
    def high(self) -> float:
        """The peak if the estimate is too low by the known error."""
        return self.gib * MEMORY_FACTOR[self.device]

    def __str__(self) -> str:
        """The peak as a range, and what it consists of."""
        phase = "generating" if self.generating > self.learning else "learning"
        parts = {**self.parts, phase: max(self.generating, self.learning)}
        listed = " + ".join(f"{name} {size / GIB:.2f}" for name, size in parts.items() if size >= GIB / 200)
        digits = 1 if self.gib >= 1 else 2
        return f"{self.low:.{digits}f} to {self.high:.{digits}f} GiB ({listed})"


@dataclass(frozen=True)
class Minutes:
    """Estimated minutes of training, evaluation and saving not counted."""

    generating: float
    learning: float
    device: str

    @property
    def total(self) -> float:
        """Generating and learning together."""
        return self.generating + self.learning

    def __str__(self) -> str:
        """The minutes as a range, and what they consist of."""
        each, unit, ten = (1, "minutes", 10) if self.total >= 1 else (60, "seconds", 1 / 6)
        factor = MINUTES_FACTOR[self.device]
        figures = (self.total / factor, self.total * factor, self.generating, self.learning)
        low, high, generating, learning = (f"{each * one:.{int(self.total < ten)}f}" for one in figures)
        return f"{low} to {high} {unit} of training (generating {generating}, learning {learning})"


@dataclass(frozen=True)
class Estimate:
    """The estimated memory and minutes of a run, and its hardware."""

    hardware: str
    memory: Memory
    minutes: Minutes | None

    def __str__(self) -> str:
        """Both, and whether their error is known."""
        known = "error measured on one core" if self.memory.device == "cpu" else "never run on a GPU"
        lines = [f"memory  on {self.hardware}, estimated ({known}): {self.memory}"]
        lines += [f"time    on {self.hardware}, estimated ({known}): {self.minutes}"] if self.minutes else []
        return "\n".join(lines)


def estimate_memory(
    sizes: Sizes,
    *,
    batch: int,
    generated_at_once: int,
    prompt_tokens: int,
    completion_tokens: int,
    dtype: str = "float32",
    load_in_4bit: bool = False,
    lora_rank: int = 0,
    optim: str = "adamw_torch",
    gradient_checkpointing: bool = True,
    beta: float = 0.0,
    device: str = "gpu",
    backend: str = "transformers",
) -> Memory:
    """Bytes that a GRPO run takes at its peak, on one device. The defaults are plain TRL's: all weights, in fp32.

    Args:
        sizes: of the model, from `model_sizes`.
        batch: completions in one forward and backward pass (``per_device_train_batch_size``).
        generated_at_once: completions sampled together (batch x ``steps_per_generation``).
        prompt_tokens, completion_tokens: the longest of each, in tokens.
        dtype: of the weights that are not in 4 bits, and of activations.
        load_in_4bit: whether the linear layers are in NF4 with double quantization.
        lora_rank: of the adapter; 0 trains all weights.
        optim: as in `GRPOConfig`; those with ``8bit`` in the name keep a byte for each of two moments.
        gradient_checkpointing: whether only the input of each layer is kept for the backward pass.
        beta: above 0, full fine-tuning loads a second copy as reference (an adapter is just switched off).
        device: ``gpu`` or ``cpu``.
        backend: ``unsloth`` on a GPU computes logits chunk by chunk.

    Formula, with b = ``batch``, g = ``generated_at_once``, L = prompt + completion tokens, s = bytes of
    ``dtype``:

    - base: linear parameters x 0.516 (4-bit) or s; all others x s;
    - trained: adapter (rank x (in + out) of each projection), or all weights, x (weight and gradient, 4 + 4
      for an adapter, s more for full weights) and two moments (4 + 4; 1 + 1 in 8 bits);
    - reference: the base once more, only if beta > 0 and all weights are trained;
    - overhead: 1 GiB on a GPU, 0.05 GiB on a CPU;
    - generating: KV cache 2 x layers x g x L x kv heads x head dim x s, one layer of it twice more and once in
      full heads, and three fp32 rows of the vocabulary for each of g;
    - learning: logits b x (completion tokens + 1) x vocabulary x 4 bytes x 3 (CPU: 4), with Unsloth on a GPU only one
      chunk of them (`one_chunk`), usually 512 tokens x vocabulary x 4 bytes; and the activations, b x L x s x
      (hidden for each layer + one layer in full) with gradient checkpointing, all layers in full without;
      a layer in full is 14 hidden + 6 heads x head dim + 4 kv heads x head dim + 7 intermediate.

    Left out: vLLM, Liger's smaller logits, Unsloth's offloading, sliding windows, fragmentation. Unsloth splits a batch
    that it estimates to need more than 80% of the free memory (`unsloth_zoo/rl_replacements.py`:
    `autotune_batch_and_chunks`); all of it is counted.

    >>> small = Sizes(10**9, 10**8, 10**5, 20, 1024, 4096, 16, 4, 64, 50_000)
    >>> memory = estimate_memory(small, batch=8, generated_at_once=32, prompt_tokens=256, completion_tokens=256,
    ...                          dtype="bfloat16", load_in_4bit=True, lora_rank=16)
    >>> f"{memory.gib:.1f}", f"{memory.parts['base'] / GIB:.2f}"
    ('3.4', '0.67')

    Raises:
        CourseError: an unknown dtype, device or backend.
    """
    check_choice("dtype", dtype, tuple(BYTES))
    check_choice("device", device, tuple(_OVERHEAD))
    check_choice("backend", backend, BACKENDS)
    width = BYTES[dtype]
    base = sizes.linear * (_NF4_BYTES if load_in_4bit else width) + sizes.other * width
    parts = {
        "base": base,
        "trained": _trained(sizes, lora_rank, optim, width),
        "reference": base if beta and not lora_rank else 0.0,
        "overhead": _OVERHEAD[device],
    }
    length = prompt_tokens + completion_tokens
    scored = batch * (completion_tokens + 1)
    chunked = backend == "unsloth" and device == "gpu"
    logits = one_chunk(sizes, scored) if chunked else _LOGITS_COPIES[device] * 4 * scored * sizes.vocabulary
    learning = logits + _activations(sizes, batch * length, width, gradient_checkpointing)
    return Memory(parts, _cache(sizes, generated_at_once, length, width), learning, device)


def _trained(sizes: Sizes, rank: int, optim: str, width: int) -> float:
    """Bytes of what is trained beyond the base: adapter weights, gradients, two moments."""
    moments = 2 if "8bit" in optim else 8
    if rank:
        return sizes.lora_per_rank * rank * (4 + 4 + moments)
    return sizes.parameters * (width + (2 if moments == 2 else 2 * width))


def _cache(sizes: Sizes, count: int, length: int, width: int) -> float:
    """Bytes while sampling: keys and values of every layer, copies of one layer's, the last logits."""
    one = 2 * count * length * sizes.kv_heads * sizes.head_dim * width
    full_heads = 2 * count * length * sizes.heads * sizes.head_dim * width
    return sizes.layers * one + 2 * one + full_heads + 3 * 4 * count * sizes.vocabulary


def one_chunk(sizes: Sizes, scored: int) -> float:
    """Bytes of the fp32 logits of ``scored`` tokens that Unsloth holds at once.

    By `fused_linear_rows` in `unsloth_zoo/fused_losses/fused_linear.py`, which also rounds the tokens down to a power
    of two. On cards of up to 24 GiB its Triton kernels need less, at most 256 MiB (`_tiled_layout`).
    """
    tokens = max(512, CHUNK_LOGITS / sizes.vocabulary, scored * sizes.hidden / sizes.vocabulary)
    return min(4 * sizes.vocabulary * min(tokens, CHUNK_TOKENS, scored), CHUNK_BYTES)


def _activations(sizes: Sizes, tokens: int, width: int, checkpointing: bool) -> float:
    attention = 6 * sizes.heads * sizes.head_dim + 4 * sizes.kv_heads * sizes.head_dim
    layer = 14 * sizes.hidden + attention + 7 * sizes.intermediate
    kept = sizes.layers * sizes.hidden + layer if checkpointing else sizes.layers * layer
    return tokens * kept * width


def estimate_minutes(
    sizes: Sizes,
    *,
    hardware: str,
    steps: int,
    completions_per_step: int,
    generated_at_once: int,
    prompt_tokens: int,
    completion_tokens: int,
    dtype: str = "float32",
    load_in_4bit: bool = False,
    lora_rank: int = 0,
    gradient_checkpointing: bool = True,
    num_iterations: int = 1,
    products: str | None = None,
) -> Minutes:
    """Minutes of training; without vLLM, evaluation, saving, or slow rewards. The defaults are those of plain TRL.

    Args:
        sizes: of the model, from `model_sizes`.
        hardware: a key of `HARDWARE`.
        steps: optimizer steps.
        completions_per_step: that one optimizer step learns from.
        generated_at_once: completions sampled together.
        prompt_tokens: of the longest prompt of a batch, since shorter ones are padded.
        completion_tokens: of the longest completion of a batch, since sampling goes on until the last one ends.
        dtype, load_in_4bit, lora_rank, gradient_checkpointing: as in `estimate_memory`.
        num_iterations: optimizer passes over each batch of completions.
        products: the type that matrix products are computed in, where it is not ``dtype``: with ``fp16=True`` or
            ``bf16=True`` that of autocast.

    Formula: one decoding step reads the weights and the cache once and costs a fixed time a layer, so it takes
    layers x layer time + bytes / bandwidth; in 4 bits bitsandbytes reads the weight, writes it in ``dtype``, and reads
    that (0.516 + 2 s bytes a parameter). With it come 2 x parameters operations a token. Learning takes 2 x
    parameters operations a token forward, as many backward to the activations, as many again for full
    fine-tuning's weight gradients, and a second forward with gradient checkpointing. Products in fp32 run at the card's
    rate without tensor cores.

    Left out: bitsandbytes' 16-bit products for small batches that read the 4-bit weight alone (its
    `backends/cuda/ops.py`: `gemm_4bit`), and what Unsloth replays as CUDA graphs.

    >>> small = Sizes(10**9, 10**8, 10**5, 20, 1024, 4096, 16, 4, 64, 50_000)
    >>> minutes = estimate_minutes(small, hardware="t4", steps=100, completions_per_step=32, generated_at_once=32,
    ...                            prompt_tokens=256, completion_tokens=256, dtype="bfloat16", load_in_4bit=True,
    ...                            lora_rank=16)
    >>> f"{minutes.generating:.0f}", f"{minutes.learning:.0f}"
    ('28', '9')

    Raises:
        CourseError: unknown hardware, dtype or products.
    """
    check_choice("hardware", hardware, tuple(HARDWARE))
    check_choice("dtype", dtype, tuple(BYTES))
    check_choice("products", products or dtype, tuple(BYTES))
    machine, length = HARDWARE[hardware], prompt_tokens + completion_tokens
    if (products or dtype) == "float32":
        machine = replace(machine, flops=machine.fp32_flops)
    rounds = steps * completions_per_step / generated_at_once / num_iterations
    decoding = completion_tokens * _decoding_step(sizes, machine, generated_at_once, length, BYTES[dtype], load_in_4bit)
    prefill = 2 * sizes.parameters * generated_at_once * prompt_tokens / machine.flops
    passes = 2 + (not lora_rank) + gradient_checkpointing
    learning = steps * completions_per_step * length * 2 * sizes.parameters * passes / machine.flops
    learning += 3 * steps * sizes.layers * machine.layer_seconds
    return Minutes(rounds * (decoding + prefill) / 60, learning / 60, "cpu" if hardware == "cpu" else "gpu")


def _decoding_step(sizes: Sizes, machine: Hardware, count: int, length: int, width: int, four_bits: bool) -> float:
    """Seconds to sample one token for each of ``count`` completions, the cache half full on average."""
    weights = sizes.linear * (_NF4_BYTES + 2 * width if four_bits else width) + sizes.other * width
    cache = sizes.layers * count * length * sizes.kv_heads * sizes.head_dim * width  # 2 (keys, values) / 2 (half full)
    operations = 2 * sizes.parameters * count
    moved = (weights + cache) / machine.bandwidth
    return sizes.layers * machine.layer_seconds + max(moved, operations / machine.flops)
