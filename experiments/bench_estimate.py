"""Measure the errors of the memory and time estimates, and write them into docs/results.md.

    python experiments/bench_estimate.py
    python experiments/bench_estimate.py gpus    # only the formulas for GPUs: no measurement, a few seconds

Each case runs on a CPU, in one thread and a fresh process. The script compares the peak resident memory (minus the
memory after the imports) and the CPU seconds per step with `estimate_memory` and `estimate_minutes`.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from textwrap import fill

from benches import filled, measured_on, provenance, put, put_in_short, refuse_arguments
from grpo_check.preflights.estimate import (
    GIB,
    HARDWARE,
    MEMORY_FACTOR,
    MINUTES_FACTOR,
    Memory,
    Minutes,
    estimate_memory,
    estimate_minutes,
)
from grpo_check.preflights.sizes import model_sizes
from grpo_core.training.policy import BACKENDS

from grpo_utils.models import model_path
from grpo_utils.profiles import CPU, PROFILES, prepare_machine

TITLE, GPUS = "Preflight's estimate on a CPU", "Preflight's estimate for GPUs"

#: Models with random weights in the Qwen3 architecture: hidden, layers, heads, kv heads, intermediate, vocabulary.
SHAPES = {"qwen3-36M": (512, 6, 8, 4, 1536, 32_000), "qwen3-118M": (768, 12, 12, 4, 2304, 50_000)}
#: Model, completions per step, longest completion, steps, and what differs from a rank-16 LoRA in fp32.
CASES = {
    "tiny-qwen3, LoRA": ("tiny-qwen3", 64, 32, 20, {}),
    "tiny-qwen3, 4-bit LoRA": ("tiny-qwen3", 64, 32, 20, {"load_in_4bit": True}),
    "tiny-gemma3, LoRA": ("tiny-gemma3", 64, 32, 20, {}),
    "36M, LoRA": ("qwen3-36M", 16, 64, 2, {}),
    "36M, LoRA, checkpointing": ("qwen3-36M", 16, 64, 2, {"gradient_checkpointing": True}),
    "36M, 4-bit LoRA": ("qwen3-36M", 16, 64, 2, {"load_in_4bit": True}),
    "36M, all weights": ("qwen3-36M", 16, 64, 2, {"lora_rank": 0}),
    "36M, all weights, beta": ("qwen3-36M", 16, 64, 2, {"lora_rank": 0, "beta": 0.04}),
    "118M, LoRA": ("qwen3-118M", 16, 64, 2, {}),
    "118M, LoRA, accumulated": ("qwen3-118M", 16, 64, 2, {"batch": 4}),
}
PROMPT = 45  # tokens per prompt: an addition problem in the tiny tokenizer
#: The peak that Unsloth's own tests allocated on a T4, and the file that says so.
PUBLISHED_GIB = 13.60
PUBLISHED = "https://github.com/unslothai/unsloth/blob/main/.github/scripts/kaggle_t4_ci/legs.py"


def config_of(model: str) -> object:
    """The folder of a tiny model, else a configuration of the Qwen3 architecture in one of our sizes."""
    if model not in SHAPES:
        return model_path(model)
    from transformers import Qwen3Config

    hidden, layers, heads, kv_heads, intermediate, vocabulary = SHAPES[model]
    return Qwen3Config(
        vocab_size=vocabulary,
        hidden_size=hidden,
        intermediate_size=intermediate,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        head_dim=64,
        tie_word_embeddings=True,
        eos_token_id=1,
        pad_token_id=0,
    )


def estimates(name: str) -> tuple[Memory, Minutes]:
    """The estimates of the formulas for a case."""
    model, completions, length, steps, other = CASES[name]
    shared = {
        "generated_at_once": completions,
        "prompt_tokens": PROMPT,
        "completion_tokens": length,
        "dtype": "float32",
        "load_in_4bit": other.get("load_in_4bit", False),
        "lora_rank": other.get("lora_rank", 16),
        "gradient_checkpointing": other.get("gradient_checkpointing", False),
    }
    sizes = model_sizes(config_of(model))
    batch, beta = other.get("batch", completions), other.get("beta", 0.0)
    memory = estimate_memory(sizes, batch=batch, beta=beta, device="cpu", **shared)
    minutes = estimate_minutes(sizes, hardware="cpu", steps=steps, completions_per_step=completions, **shared)
    return memory, minutes


def resident(key: str) -> int:
    """Bytes of this process: ``VmRSS`` now, ``VmHWM`` at the peak so far (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def measure(name: str) -> dict:
    """Run one case in this process; return the bytes above the imports and the seconds per step."""
    from datasets import Dataset
    from grpo_core.training.policy import keep_trainable_fp32
    from trl import GRPOConfig, GRPOTrainer

    from grpo_utils import load_rows, math_rewards
    from grpo_utils.arguments import training_arguments

    model, completions, length, steps, other = CASES[name]
    rewards, weights = math_rewards()
    rows = load_rows("addition", "train", 64)
    assert isinstance(rows, Dataset)
    saved = tempfile.mkdtemp()
    before_peak(saved, model)
    batch = other.get("batch", completions)
    baseline = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    policy, tokenizer = load(saved, model, other)
    arguments = training_arguments(
        CPU,
        output_dir=saved,
        max_steps=steps,
        per_device_train_batch_size=batch,
        gradient_accumulation_steps=completions // batch,
        max_completion_length=length,
        reward_weights=weights,
        gradient_checkpointing=other.get("gradient_checkpointing", False),
        beta=other.get("beta", 0.0),
    )
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**arguments),
        train_dataset=rows,
        reward_funcs=rewards,
    )
    keep_trainable_fp32(policy)
    started = time.process_time()  # CPU time, so that a busy machine does not matter
    trainer.train()
    seconds = (time.process_time() - started) / steps
    lengths = max(entry["completions/max_length"] for entry in trainer.state.log_history if "reward" in entry)
    return {"bytes": resident("VmHWM") - baseline, "seconds": seconds, "longest": lengths}


def before_peak(folder: str, model: str) -> None:
    """Write a model with random weights if one is needed, in another process, so that its memory does not count."""
    if model in SHAPES:
        code = f"""
import bench_estimate
from transformers import AutoTokenizer, Qwen3ForCausalLM
from grpo_utils import model_path
Qwen3ForCausalLM(bench_estimate.config_of({model!r})).save_pretrained({folder!r})
AutoTokenizer.from_pretrained(model_path("tiny-qwen3")).save_pretrained({folder!r})
"""
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


def load(folder: str, model: str, other: dict) -> tuple:
    """The policy of a case and its tokenizer, from the second backend."""
    import torch
    from grpo_core.training.policy import load_with_transformers

    from grpo_utils.models import load_policy

    name = folder if model in SHAPES else model
    if other.get("lora_rank") == 0:
        options = dict(dtype=torch.float32, load_in_4bit=False, lora=None, seed=0, device_map="cpu")
        return load_with_transformers(model_path(name), **options)
    in_4bit = other.get("load_in_4bit", False)
    return load_policy(name, profile=CPU, backend="transformers", load_in_4bit=in_4bit)


def run_case(name: str) -> dict:
    """One case in a fresh process."""
    run = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
    return json.loads(run.stdout.splitlines()[-1])


def rows() -> tuple[list[str], list[float], list[float]]:
    """The table's lines, and the factors of the errors in memory and time."""
    lines, memory_factors, time_factors = [], [], []
    for name in CASES:
        print(name, "...", flush=True)
        seen, (memory, minutes) = run_case(name), estimates(name)
        seconds = minutes.total * 60 / CASES[name][3]
        print(f"   {seen['bytes'] / GIB:.2f} {memory.gib:.2f} GiB, {seen['seconds']:.2f} {seconds:.2f} s", memory, seen)
        memory_factors.append(memory.gib * GIB / seen["bytes"])
        time_factors.append(seconds / seen["seconds"])
        lines.append(
            f"| {name} | {seen['bytes'] / GIB:.2f} | {memory.gib:.2f} | {memory_factors[-1]:.2f} "
            f"| {seen['seconds']:.2f} | {seconds:.2f} | {time_factors[-1]:.2f} |"
        )
    return lines, memory_factors, time_factors


def known_config(name: str) -> object:
    """The published shapes of the models that profiles, lesson 05 and published figures name (no download)."""
    from transformers import Gemma3TextConfig, LlamaConfig, Qwen2Config, Qwen3Config

    common = {"tie_word_embeddings": True}
    return {
        "unsloth/Qwen2.5-1.5B-Instruct": Qwen2Config(
            vocab_size=151_936, hidden_size=1536, intermediate_size=8960, num_hidden_layers=28,
            num_attention_heads=12, num_key_value_heads=2, **common,
        ),
        "unsloth/Qwen2.5-7B-Instruct": Qwen2Config(
            vocab_size=152_064, hidden_size=3584, intermediate_size=18_944, num_hidden_layers=28,
            num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False,
        ),
        "unsloth/gemma-3-1b-it": Gemma3TextConfig(
            vocab_size=262_144, hidden_size=1152, intermediate_size=6912, num_hidden_layers=26,
            num_attention_heads=4, num_key_value_heads=1, head_dim=256, **common,
        ),
        "SmolLM2-135M-Instruct": LlamaConfig(
            vocab_size=49_152, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
            num_attention_heads=9, num_key_value_heads=3, head_dim=64, **common,
        ),
        "Qwen3-4B": Qwen3Config(
            vocab_size=151_936, hidden_size=2560, intermediate_size=9728, num_hidden_layers=36,
            num_attention_heads=32, num_key_value_heads=8, head_dim=128, **common,
        ),
    }[name]  # fmt: skip


def profile_rows() -> str:
    """The estimates of the formulas for the GPU profiles, never run."""
    lines = []
    for profile in PROFILES.values():
        if profile.name == "cpu":
            continue
        sizes = model_sizes(known_config(profile.models["qwen"]))
        shared = {
            "generated_at_once": profile.completions_per_step,
            "prompt_tokens": profile.max_prompt_length,
            "completion_tokens": profile.max_completion_length,
            "dtype": profile.dtype,
            "load_in_4bit": profile.load_in_4bit,
            "lora_rank": profile.lora_rank,
        }
        batch, optim = profile.per_device_train_batch_size, profile.optim
        unsloth, plain = (
            estimate_memory(sizes, batch=batch, optim=optim, backend=backend, **shared) for backend in BACKENDS
        )
        minutes = estimate_minutes(
            sizes,
            hardware=profile.name,
            steps=profile.steps,
            completions_per_step=profile.completions_per_step,
            **shared,
        )
        card = HARDWARE[profile.name].gpu
        name = profile.models["qwen"].partition("/")[2]
        lines.append(
            f"| `{profile.name}`, {name} | {unsloth.gib:.1f} | {plain.gib:.1f} | {card.memory_gib:g} "
            f"| {minutes.total:.0f} ({minutes.generating:.0f} + {minutes.learning:.0f}) |"
        )
    return "\n".join(lines)


def published_gib() -> float:
    """What the formula says of the one published peak for a GPU."""
    sizes = model_sizes(known_config("Qwen3-4B"))
    memory = estimate_memory(
        sizes,
        batch=2,
        generated_at_once=2,
        prompt_tokens=256,
        completion_tokens=1024,
        dtype="bfloat16",
        load_in_4bit=True,
        lora_rank=16,
        optim="adamw_8bit",
        backend="unsloth",
    )
    return memory.gib


def measured() -> tuple[str, str]:
    """The section on a CPU, and the result in a sentence."""
    lines, memory_factors, time_factors = rows()
    worst_memory, worst_time = (max(max(f), 1 / min(f)) for f in (memory_factors, time_factors))
    assert worst_memory <= MEMORY_FACTOR["cpu"], f"memory is off by {worst_memory:.2f}: raise MEMORY_FACTOR['cpu']"
    assert worst_time <= MINUTES_FACTOR["cpu"], f"time is off by {worst_time:.2f}: raise MINUTES_FACTOR['cpu']"
    text = filled(
        "estimate",
        where=provenance(measured_on(), "one thread"),
        table="\n".join(lines),
        worst_memory=worst_memory,
        worst_time=worst_time,
        memory_factor=MEMORY_FACTOR["cpu"],
        time_factor=MINUTES_FACTOR["cpu"],
    )
    short = (
        f"In {len(lines)} cases on a CPU, the largest errors are a factor of {worst_memory:.2f} for memory and "
        f"{worst_time:.2f} for time."
    )
    return f"\n{text}", short


def on_gpus() -> str:
    """The section on GPUs: arithmetic only."""
    peak = published_gib()
    text = filled(
        "estimate_gpus",
        table=profile_rows(),
        memory_factor=MEMORY_FACTOR["gpu"],
        time_factor=MINUTES_FACTOR["gpu"],
        published=PUBLISHED_GIB,
        source=PUBLISHED,
        estimated=peak,
        factor=peak / PUBLISHED_GIB,
    )
    return f"\n{text}"


def main() -> None:
    asked = sys.argv[1] if len(sys.argv) == 2 else ""
    if asked not in ("gpus", *CASES):
        refuse_arguments(__doc__)
    prepare_machine(CPU)
    if asked in CASES:  # the process that `run_case` starts
        print(json.dumps(measure(asked)))
        return
    if asked == "gpus":
        put(GPUS, on_gpus())
        return
    section, short = measured()
    put(TITLE, section)
    put_in_short("estimate", fill(short, 120))
    put(GPUS, on_gpus())


if __name__ == "__main__":
    main()
