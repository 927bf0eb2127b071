"""Load the policy with Unsloth or plain transformers, in 4 bits or not, to train an adapter or all weights."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

#: The loaders below: one with Unsloth, one with plain transformers and PEFT.
BACKENDS = ("unsloth", "transformers")
#: The layers that get adapters: all projections of attention and MLP.
LORA_TARGETS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


def load_with_unsloth(
    name: str, *, dtype: "torch.dtype", load_in_4bit: bool, lora: dict | None, seed: int, max_seq_length: int,
    checkpointing: bool,
) -> tuple:  # fmt: skip
    """Load with Unsloth, which has its own kernels on a GPU. Without ``lora``, all weights train."""
    from unsloth import FastLanguageModel

    gradient_checkpointing = "unsloth" if checkpointing else False
    policy, tokenizer = FastLanguageModel.from_pretrained(
        model_name=name,
        max_seq_length=max_seq_length,
        dtype=dtype,
        load_in_4bit=load_in_4bit,
        full_finetuning=lora is None,
        use_gradient_checkpointing=gradient_checkpointing,
    )
    policy.generation_config.max_length = None  # max_new_tokens is the limit; with both, each call warns
    if lora is None:
        return policy, tokenizer
    options = dict(use_gradient_checkpointing=gradient_checkpointing, random_state=seed)
    return FastLanguageModel.get_peft_model(policy, **lora, **options), tokenizer


def load_with_transformers(
    name: str, *, dtype: "torch.dtype", load_in_4bit: bool, lora: dict | None, seed: int, device_map: object
) -> tuple:
    """Load with plain transformers, PEFT and bitsandbytes. Without ``lora``, there is no adapter."""
    import torch
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
    from transformers import AutoTokenizer

    policy = load_base(name, dtype=dtype, load_in_4bit=load_in_4bit, device_map=device_map)
    tokenizer = AutoTokenizer.from_pretrained(name)
    torch.manual_seed(seed)  # PEFT or TRL initializes the adapter from the global generator
    if lora is None:
        return policy, tokenizer
    if load_in_4bit:  # the trainer turns checkpointing on if the settings ask for it
        policy = prepare_model_for_kbit_training(policy, use_gradient_checkpointing=False)
    return get_peft_model(policy, LoraConfig(**lora, task_type="CAUSAL_LM")), tokenizer


def load_base(name: str, *, dtype: "torch.dtype | str", load_in_4bit: bool, device_map: object) -> object:
    """A base model from plain transformers, without an adapter; 4-bit means NF4 with double quantization.

    Without 4 bits, ``dtype`` may be "auto": as the weights were saved.
    """
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    quantization = None
    if load_in_4bit:
        four_bits = dict(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)
        quantization = BitsAndBytesConfig(**four_bits, bnb_4bit_compute_dtype=dtype)
    policy = AutoModelForCausalLM.from_pretrained(
        name, dtype=dtype, quantization_config=quantization, device_map=device_map
    )
    if load_in_4bit:
        keep_4bit_weights_unpacked(policy)
    return policy


def keep_4bit_weights_unpacked(policy: "torch.nn.Module") -> None:
    """Stop bitsandbytes 0.50 from repacking 4-bit weights at their first forward pass without gradients.

    On CPUs with AVX512-BF16, it repacks them for speed and never undoes it, so the layers before a repacked one get
    wrong gradients. Unsloth's CPU loader has the same fix.
    """
    from bitsandbytes.nn import Linear4bit

    for module in policy.modules():
        if isinstance(module, Linear4bit):
            module.support_avx512bf16_for_cpu = False


def keep_output_layer_uncopied(policy: "torch.nn.Module") -> None:
    """Give the frozen output layer contiguous hidden states, which transformers takes as a slice.

    From a slice, torch on a CPU copies the layer's weights once for each sequence of the batch. With the 49,000 tokens
    of SmolLM2's vocabulary, this was a fifth of a training step (two cores, measured).
    """
    policy.get_output_embeddings().register_forward_pre_hook(lambda _, hidden: (hidden[0].contiguous(),))


def keep_trainable_fp32(policy: "torch.nn.Module") -> int:
    """Cast trainable parameters back to fp32 after `GRPOTrainer` was built, and return how many there are.

    TRL casts the adapter of a 4-bit model to bf16. On a T4 that breaks fp16 training, and at an
    adapter's learning rate bf16 rounds small updates away: 0.87 instead of 0.92 strict accuracy
    on a tiny model (100 steps at a constant 1e-3, n = 600, measured). On a GPU, Unsloth removes the cast too.
    """
    trainable = [parameter for parameter in policy.parameters() if parameter.requires_grad]
    for parameter in trainable:
        parameter.data = parameter.data.float()
    return len(trainable)
