"""What prompts and a model's name show: whether a chat template is missing, and which format is asked for."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from grpo_core.rewards import TAGS
from grpo_core.training.texts import message_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def _is_base_model(name: str) -> bool:
    """Whether a model's name marks a base model, for which plain text is correct even with a template.

    >>> [_is_base_model(name) for name in ("Qwen/Qwen3-0.6B-Base", "google/gemma-3-1b-pt", "Qwen/Qwen3-0.6B")]
    [True, True, False]
    """
    parts = name.lower().rpartition("/")[2].replace("_", "-").split("-")
    return "base" in parts or parts[-1] == "pt"


def asks_for_tags(prompts: Sequence[str | list[dict]]) -> bool:
    """Whether every prompt names the tags around reasoning and answer that the checks know.

    >>> asks_for_tags(["Write <reasoning>…</reasoning><answer>…</answer>."]), asks_for_tags(["What is 2 + 2?"])
    (True, False)
    """
    return all(tag in str(prompt) for prompt in prompts for tag in TAGS)


def question_text(prompt: str | Sequence[dict]) -> str:
    """The text of a prompt's last message, or the prompt itself where it is plain text.

    >>> question_text([{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "2 + 2?"}]}])
    '2 + 2?'
    """
    return prompt if isinstance(prompt, str) else message_text(prompt[-1])


def has_word(text: str, word: str) -> bool:
    """Whether a word, or several, occurs in a text and not only as a part of a longer word.

    >>> has_word("It is Paris.", "paris"), has_word("parish", "paris")
    (True, False)
    """
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def lacks_template(prompt: object, tokenizer: "PreTrainedTokenizerBase", name: str) -> bool:
    """Whether a prompt is plain text without the chat template of the model."""
    if not isinstance(prompt, str) or not tokenizer.chat_template or _is_base_model(name):
        return False
    return not any(token in prompt for token in tokenizer.all_special_tokens)
