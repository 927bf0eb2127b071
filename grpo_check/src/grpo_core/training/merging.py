"""Merge an adapter into its unquantized base, and check that this changes nothing but rounding."""

from pathlib import Path
from typing import TYPE_CHECKING

from .generating import encode_prompts

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

#: The most that rounding may change a logit in an fp32 merge; on the tiny models it changes about 1e-6.
LARGEST_DIFFERENCE = 1e-3


def merge_adapter(
    adapter: Path, base: str, prompts: list[list[dict]]
) -> tuple["PreTrainedModel", "PreTrainedTokenizerBase", float]:
    """Merge the adapter in a folder into ``base``, a hub id or a folder, in fp32 on the CPU.

    Returns:
        The merged model, its tokenizer, and the largest difference that merging made to a logit. The logits are those
        after ``prompts``, a few lists of messages. The tokenizer is the one next to the adapter, whose chat template
        the policy was trained with, or the base's if there is none.

    Raises:
        ValueError: the tokenizer has tokens that the base does not have, or the merge changed a logit by more than
            `LARGEST_DIFFERENCE`.
    """
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    plain = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, device_map="cpu")
    beside = (adapter / "tokenizer_config.json").is_file()
    tokenizer = AutoTokenizer.from_pretrained(adapter if beside else base)
    rows = plain.get_input_embeddings().num_embeddings
    if len(tokenizer) > rows:
        raise ValueError(
            f"The tokenizer in {str(adapter)!r} has {len(tokenizer)} tokens, and {base!r} has embeddings for {rows}. "
            "Keep this adapter with its base, resized as in training, or train without new tokens."
        )
    policy = PeftModel.from_pretrained(plain, str(adapter)).eval()
    expected = logits(policy, tokenizer, prompts)
    merged = policy.merge_and_unload().eval()
    difference = (logits(merged, tokenizer, prompts) - expected).abs().max().item()
    if not difference <= LARGEST_DIFFERENCE:
        raise ValueError(
            f"The merge of {str(adapter)!r} into {base!r} changed a logit by {difference:.2g} (at most "
            f"{LARGEST_DIFFERENCE:g} is rounding). Keep the adapter and load it with its base instead."
        )
    return merged, tokenizer, difference


def logits(model: "PreTrainedModel", tokenizer: "PreTrainedTokenizerBase", prompts: list[list[dict]]) -> "torch.Tensor":
    """The logits after each prompt, of shape (prompts, vocabulary)."""
    import torch

    inputs = encode_prompts(tokenizer, prompts)
    with torch.no_grad():
        return model(**inputs.to(model.device), logits_to_keep=1).logits[:, -1].float()
