"""Rewards for the required format, from 0.0 to 1.0, whatever the answer.

    >>> whole = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> strict_format_reward([whole, "It is 42."])
    [1.0, 0.0]

A completion can have the format without being correct, so give it less weight than correctness (see `combine`).
"""

import re
from collections.abc import Sequence

from ..run.texts import messages_of
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

    Repeated, appended or reordered tags do not raise the score (`count_placed_tags`). Known exploit: any text inside
    the tags.

    >>> half, whole = "<reasoning>a <answer>b", "<reasoning>a</reasoning><answer>b</answer>"
    >>> incremental_format_reward([half, whole, whole + whole, whole + " and so on"])
    [0.5, 1.0, 0.0, 0.75]
    """
    return [0.25 * count_placed_tags(completion_text(c)) for c in completions]


def count_placed_tags(text: str) -> int:
    """Count the tags that are in their place, from 0 to 4.

    A text scores 0 if it does not start with ``<reasoning>``, repeats a tag, or has the tags out of order. A tag counts
    if its part of the format is there: reasoning that is not blank (else the text scores 0), nothing between the two
    parts, an answer that is not blank, and nothing after it.

    >>> count_placed_tags("It is 42.<reasoning></reasoning><answer></answer>")
    0
    >>> count_placed_tags("<reasoning>15 + 27 = 42</reasoning> so <answer>42</answer>")
    3
    """
    before, *rest = TAG.split(text.strip())
    parts = dict(zip(rest[::2], map(str.strip, rest[1::2]), strict=True))
    if before or rest[::2] != [tag for tag in TAGS if tag in parts] or not parts.get(TAGS[0]):
        return 0
    answered = TAGS[2] in parts and not parts.get(TAGS[1])
    ended = parts.get(TAGS[3]) == "" and bool(parts.get(TAGS[2]))
    return 1 + (TAGS[1] in parts) + answered + ended


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
    own = [m for m in messages_of(completion) if m.get("role") in ("assistant", None)]
    thought, text = own[-1].get("reasoning_content") if own else None, completion_text(completion)
    return f"{thought}{CLOSING}{text}" if isinstance(thought, str) else text
