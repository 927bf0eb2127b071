"""The engine (DDP, FSDP or DeepSpeed): what it does not support, and a check that all processes agree."""

import hashlib
import json
import os
from pathlib import Path

from grpo_core.training.checkpoints import checkpoint_problem, checkpoint_step

SHARDED = ("fsdp", "deepspeed")


def engine_name() -> str:
    """The engine that `accelerate launch` or torchrun started: one, ddp, fsdp or deepspeed."""
    for name, variable in (("fsdp", "ACCELERATE_USE_FSDP"), ("deepspeed", "ACCELERATE_USE_DEEPSPEED")):
        if os.environ.get(variable, "false").lower() == "true":
            return name
    return "ddp" if int(os.environ.get("WORLD_SIZE", "1")) > 1 else "one"


def check(values: dict) -> None:
    """Stop at a setting that the engine does not support, before anything is imported."""
    engine, name = engine_name(), values["model_name_or_path"]
    four_bits, vllm = values["load_in_4bit"], values["use_vllm"]
    if values["use_unsloth"]:
        raise SystemExit("Error: use_unsloth must be false here, because Unsloth's GRPO trainer is made for one GPU.")
    if Path(name, "adapter_config.json").is_file():
        raise SystemExit(f"Error: {name} is an adapter; merge it into its base model first.")
    if four_bits and engine in SHARDED:
        raise SystemExit(f"Error: load_in_4bit works only with DDP; {engine} needs load_in_4bit: false.")
    if four_bits and vllm and values["vllm_mode"] == "server":
        raise SystemExit("Error: load_in_4bit does not work with a vLLM server, because TRL cannot send 4-bit weights.")
    full = os.environ.get("FSDP_STATE_DICT_TYPE", "FULL_STATE_DICT") == "FULL_STATE_DICT"
    if engine == "fsdp" and not full:
        raise SystemExit("Error: fsdp_state_dict_type must be FULL_STATE_DICT, or no model would be saved.")
    if engine in SHARDED and not vllm:
        print(f"Note: without vLLM, {engine} is slow, because it gathers the weights from all GPUs for each token.")


def before_the_end(checkpoint: Path | None, max_steps: int) -> Path | None:
    """The checkpoint to resume from. Sharded weights can only be loaded to train, so a run that was interrupted in its
    last evaluation repeats the steps since the previous checkpoint.
    """
    if checkpoint is None or engine_name() not in SHARDED:
        return checkpoint
    if max_steps <= 0:
        max_steps = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["max_steps"]
    earlier = [path for path in checkpoint.parent.glob("checkpoint-*") if checkpoint_step(path) < max_steps]
    newest_first = sorted(earlier, key=checkpoint_step, reverse=True)
    return next((path for path in newest_first if not checkpoint_problem(path)), None)


def load(training: object, model: object) -> tuple:
    """The policy and its tokenizer, without an adapter, which TRL adds as the engine needs it."""
    from grpo_core.training.policy import load_with_transformers
    from grpo_run.loading import dtype_of, load_or_exit

    at_once = model.load_in_4bit and not training.use_cpu  # quantized on its GPU; else the engine chooses the device
    options = dict(dtype=dtype_of(training, model), load_in_4bit=model.load_in_4bit, lora=None, seed=training.seed)
    options["device_map"] = {"": training.local_process_index} if at_once else None
    return load_or_exit(model.model_name_or_path, load_with_transformers, **options)


def check_same_adapters(trainer: object) -> None:
    """With DDP, stop if the processes ended with different weights."""
    if engine_name() != "ddp":
        return
    import torch
    from accelerate.utils import gather_object

    digest = hashlib.sha256()
    for parameter in trainer.model.parameters():
        if parameter.requires_grad:
            digest.update(parameter.detach().to("cpu", torch.float32).numpy().tobytes())
    digests = gather_object([digest.hexdigest()])
    if len(set(digests)) > 1:
        raise SystemExit(f"Error: the {len(digests)} processes ended with different weights; the model is not saved.")
    print(f"The weights of {len(digests)} processes are identical: {digests[0][:16]}.")
