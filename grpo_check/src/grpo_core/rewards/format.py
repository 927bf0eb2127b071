"""Rewards for the required format, from 0.0 to 1.0, whatever the answer.

    >>> whole = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> strict_format_reward([whole, "It is 42."])
    [1.0, 0.0]

A completion can have the format without being correct, so give it less weight than correctness (see `combine`).
"""

import re
from collections.abc import Sequence

from ..training.texts import own_messages
from .text import CLOSING, TAGS, Completion, completion_text, split_form, split_thinking

TAG = re.compile(f"({'|'.join(TAGS)})")


def strict_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """Return 1.0 if the whole text has the required format (see `split_form`), else 0.0.

    Known exploit: any text inside the tags.

    >>> strict_format_reward(["<reasoning>a</reasoning><answer>b</answer>", "b"])
    [1.0, 0.0]
    """
    return [1.0 if split_form(completion_text(c)) else 0.0 for c in completions]


def incremental_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """Return 0.25 for each correctly placed tag, so that a partial format earns partial credit.

    A model that puts its answer in tags but writes its reasoning in front of them already earns something. Only the
    whole format earns 1.0, and repeated or reordered tags earn nothing (`count_placed_tags`). Known exploit: any text
    inside the tags.

    >>> half, whole = "Let me think. <answer>b</answer>", "<reasoning>a</reasoning><answer>b</answer>"
    >>> incremental_format_reward([half, whole, whole + whole, whole + " and so on"])
    [0.5, 1.0, 0.0, 0.75]
    """
    return [0.25 * count_placed_tags(completion_text(c)) for c in completions]


def count_placed_tags(text: str) -> int:
    """Count the tags that are in their place, from 0 to 4.

    An opening tag counts if text that is not blank follows it, and a closing tag if it closes such a text. A missing
    tag does not affect the other pair. If any tag is repeated or out of order, no tag counts. Text outside the two
    pairs costs one of four tags, so 4 means the strict format (see `split_form`).

    >>> count_placed_tags("It is 42.<reasoning></reasoning><answer></answer>")
    0
    >>> count_placed_tags("15 + 27 = 42 <answer>42</answer>")
    2
    >>> count_placed_tags("<reasoning>15 + 27 = 42</reasoning> so <answer>42</answer>")
    3
    """
    if split_form(text):
        return 4
    _, *pieces = TAG.split(text)
    tags, text_after = pieces[::2], dict(zip(pieces[::2], pieces[1::2], strict=True))
    if tags != [tag for tag in TAGS if tag in tags]:
        return 0
    pairs = ((TAGS[0], TAGS[1]), (TAGS[2], TAGS[3]))
    placed = sum(1 + (closing in tags) for opening, closing in pairs if text_after.get(opening, "").strip())
    return min(placed, 3)


def think_format_reward(completions: Sequence[Completion], **kwargs: object) -> list[float]:
    """Return 1.0 for ``<think>…</think>`` followed by an answer (see `split_thinking`), else 0.0.

    It works whether or not the chat template has written ``<think>`` into the prompt, and if TRL has moved the thought
    into ``reasoning_content``; TRL's reward of that name gives 0.0 in both cases. Known exploit: a single word as the
    reasoning.

    >>> think_format_reward(["<think>a</think>b", "a</think>b", "<think>a</think>", "<think></think>b"])
    [1.0, 1.0, 0.0, 0.0]
    >>> think_format_reward([[{"role": "assistant", "reasoning_content": "a", "content": "b"}]])
    [1.0]
    """
    return [1.0 if split_thinking(_with_thought(c)) else 0.0 for c in completions]


def _with_thought(completion: Completion) -> str:
    """The text of a completion, after the thought that TRL may have moved into ``reasoning_content``."""
    own = own_messages(completion)
    thought, text = own[-1].get("reasoning_content") if own else None, completion_text(completion)
    return f"{thought}{CLOSING}{text}" if isinstance(thought, str) else text
