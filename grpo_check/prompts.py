"""Detect prompts for a chat model that lack its chat template."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def is_base_model(name: str) -> bool:
    """Whether a model's name marks a base model, for which plain text is correct even with a template.

    >>> is_base_model("Qwen/Qwen3-0.6B-Base"), is_base_model("google/gemma-3-1b-pt"), is_base_model("Qwen/Qwen3-0.6B")
    (True, True, False)
    """
    parts = name.lower().rpartition("/")[2].replace("_", "-").split("-")
    return "base" in parts or parts[-1] == "pt"


def lacks_template(prompt: object, tokenizer: "PreTrainedTokenizerBase", name: str) -> bool:
    """Whether a prompt is plain text without the chat template of the model."""
    if not isinstance(prompt, str) or not tokenizer.chat_template or is_base_model(name):
        return False
    return not any(token in prompt for token in tokenizer.all_special_tokens)
