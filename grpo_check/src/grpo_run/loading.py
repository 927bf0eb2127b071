"""Load the policy as the settings say: a model or an adapter that is trained further, and stop if that fails."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from grpo_core.training.policy import (
    LORA_TARGETS,
    keep_output_layer_uncopied,
    load_with_transformers,
    load_with_unsloth,
)
from grpo_core.training.resuming import load_adapter

if TYPE_CHECKING:
    import torch
    from trl import GRPOConfig, ModelConfig


def load_policy(run: object, training: "GRPOConfig", model: "ModelConfig") -> tuple:
    """A model that `GRPOTrainer` can train, and its tokenizer, loaded as the settings (from `start.parse`) say.

    If the model is an adapter's folder, its base is loaded, and that adapter is trained further with the tokenizer of
    its folder. It keeps its own rank, scale and layers.
    """
    on_cpu = training.device.type == "cpu"  # asked for, or without a GPU
    name, adapter = model.model_name_or_path, Path(model.model_name_or_path, "adapter_config.json")
    lora = dict(r=model.lora_r, lora_alpha=model.lora_alpha)
    lora["target_modules"] = model.lora_target_modules or list(LORA_TARGETS)  # TRL turns a list of one into a string
    if adapter.is_file():
        trained = json.loads(adapter.read_text(encoding="utf-8"))
        name, lora = trained["base_model_name_or_path"], {key: trained[key] for key in lora}
    lora["lora_dropout"] = model.lora_dropout
    options = dict(dtype=dtype_of(training, model), load_in_4bit=model.load_in_4bit, seed=training.seed)
    options["lora"] = lora if model.use_peft else None
    if run.use_unsloth:
        options["max_seq_length"] = run.max_prompt_tokens + training.max_completion_length
        options["checkpointing"] = training.gradient_checkpointing
        loader = load_with_unsloth
    else:
        options["device_map"] = "cpu" if on_cpu else {"": training.local_process_index}
        loader = load_with_transformers
    if adapter.is_file() and adapter.with_name("tokenizer_config.json").is_file():
        options["tokenizer_of"] = adapter.parent
    policy, tokenizer = load_or_exit(name, loader, **options)
    if adapter.is_file():
        load_adapter(policy, adapter.parent)
    if on_cpu:
        keep_output_layer_uncopied(policy)
    return policy, tokenizer


def load_or_exit(name: str, load: object, tokenizer_of: Path | None = None, **options: object) -> tuple:
    """The policy and tokenizer from a loader; stop if the model cannot be loaded or has no chat template.

    ``tokenizer_of`` is an adapter's folder with a tokenizer of its own, which replaces that of the base model.
    """
    try:
        policy, tokenizer = load(from_anywhere(name), **options)
    except (OSError, RuntimeError) as error:
        missing = error if isinstance(error, OSError) else error.__cause__  # Unsloth wraps the error of transformers
        if not isinstance(missing, OSError):
            raise
        raise SystemExit(f"Error: {name} could not be loaded: {str(missing).strip().splitlines()[0]}") from error
    if options.get("lora"):  # not the name of Unsloth's 4-bit copy, into which no adapter can be merged
        policy.peft_config["default"].base_model_name_or_path = from_anywhere(name)
    if tokenizer_of:
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(tokenizer_of)
    if tokenizer.chat_template is None:
        raise SystemExit(f"Error: {name} has no chat template. Use its instruct version.")
    tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
    return policy, tokenizer


def from_anywhere(name: str) -> str:
    """A hub id as it is, and the absolute path of a folder, so that a saved adapter finds its base from any folder."""
    return str(Path(name).resolve()) if Path(name).is_dir() else name


def dtype_of(training: "GRPOConfig", model: "ModelConfig") -> "torch.dtype":
    """The dtype of frozen weights. Trained weights need fp32, or small updates are lost."""
    import torch

    if not model.use_peft:
        return torch.float32
    return torch.bfloat16 if training.bf16 else torch.float16 if training.fp16 else torch.float32
