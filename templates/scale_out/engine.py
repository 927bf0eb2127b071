"""What holds the processes together: DDP, FSDP or DeepSpeed; what each of them excludes; and a check that all agree."""

import hashlib
import json
import os
from pathlib import Path

from lib import start
from lib.folder import checkpoint_problem, checkpoint_step

SHARDED = ("fsdp", "deepspeed")


def engine_name() -> str:
    """What `accelerate launch` or torchrun started: one, ddp, fsdp or deepspeed."""
    for name, variable in (("fsdp", "ACCELERATE_USE_FSDP"), ("deepspeed", "ACCELERATE_USE_DEEPSPEED")):
        if os.environ.get(variable, "false").lower() == "true":
            return name
    return "ddp" if int(os.environ.get("WORLD_SIZE", "1")) > 1 else "one"


def check(argv: list[str]) -> None:
    """Stop now at what an engine cannot do, before torch and TRL are imported."""
    engine, settings = engine_name(), start.given(argv)
    four_bits, vllm = start.is_on(settings, "load_in_4bit"), start.is_on(settings, "use_vllm")
    if start.is_on(settings, "use_unsloth", True):
        raise SystemExit("Error: use_unsloth has to be false here: its GRPO trainer is made for one GPU.")
    if four_bits and engine in SHARDED:
        raise SystemExit(f"Error: load_in_4bit goes with DDP; {engine} shards 16-bit weights: set it to false.")
    if four_bits and vllm and settings.get("vllm_mode") == "server":
        raise SystemExit("Error: load_in_4bit goes without a vLLM server: that cannot take 4-bit weights from TRL.")
    full = os.environ.get("FSDP_STATE_DICT_TYPE", "FULL_STATE_DICT") == "FULL_STATE_DICT"
    if engine == "fsdp" and not full:
        raise SystemExit("Error: fsdp_state_dict_type has to be FULL_STATE_DICT, or no model would be saved.")
    if engine in SHARDED and not vllm and os.environ.get("RANK", "0") == "0":
        print(f"Note: without vLLM, {engine} gathers the weights from all GPUs to sample each token: slow.")


def before_the_end(checkpoint: Path | None, max_steps: int) -> Path | None:
    """The checkpoint to train on from. Sharded weights come together with an optimizer only, which is by training: if
    all steps are done, and the last evaluation is not, the steps since the checkpoint before are trained again.
    """
    if checkpoint is None or engine_name() not in SHARDED:
        return checkpoint
    if max_steps <= 0:
        max_steps = json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8"))["max_steps"]
    earlier = [path for path in checkpoint.parent.glob("checkpoint-*") if checkpoint_step(path) < max_steps]
    newest_first = sorted(earlier, key=checkpoint_step, reverse=True)
    return next((path for path in newest_first if not checkpoint_problem(path)), None)


def load(training: object, model: object) -> tuple:
    """The policy without an adapter, which TRL puts on it as each engine needs it, and its tokenizer."""
    from lib.policy import checked, dtype_of, load_with_transformers

    at_once = model.load_in_4bit and not training.use_cpu  # quantized on its GPU; else the engine says where
    how = dict(dtype=dtype_of(training, model), load_in_4bit=model.load_in_4bit, lora=None, seed=training.seed)
    how["device_map"] = {"": training.local_process_index} if at_once else None
    return checked(model.model_name_or_path, load_with_transformers, **how)


def check_same_adapters(trainer: object) -> None:
    """Whether all processes trained the same weights; of sharded ones each holds its own part."""
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
    print(f"The weights of {len(digests)} processes are the same to the last bit: {digests[0][:16]}.")
