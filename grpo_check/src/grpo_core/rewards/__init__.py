"""Reward functions: they take completions and return one score for each.

    >>> from grpo_core.rewards import correctness_reward, strict_format_reward
    >>> completion = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> correctness_reward([completion], answer=["42"]), strict_format_reward([completion])
    ([1.0], [1.0])

They have TRL's signature ``f(completions, **columns) -> list[float | None]``: dataset columns such as
``answer`` are lists of the same length, and ``None`` means that a reward does not apply to a row. A
completion is a string, or a list of messages if the prompt was one. Scores are between 0 and 1
(penalties between -1 and 0), without weights. No completion makes a reward raise.

| module | what it does |
|---|---|
| `text` | finds the text of a completion and the answer in it |
| `correctness` | rewards a correct answer; `grpo_core.training.answers` reads the number in it |
| `maths` | compares two expressions in bounded time |
| `structured` | rewards correct JSON |
| `format` | rewards the required format |
| `combine` | weights, and a set of rewards to start from |

docs/rewards.md explains when to use which reward, including TRL's, and has recipes for multiple choice,
length, style, JSON schemas, adaptive weights and more.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_imports

if TYPE_CHECKING:
    from .combine import (
        RewardSet,
        group_advantages,
        math_rewards,
        weighted_sum,
    )
    from .correctness import (
        AnswerReward,
        correctness_reward,
        exact_reward,
        fuzzy_reward,
        is_strictly_right,
        same_answer,
        same_fact,
        same_number,
        same_text,
    )
    from .format import (
        count_placed_tags,
        incremental_format_reward,
        strict_format_reward,
        think_format_reward,
    )
    from .maths import is_expression, parse_number, same_expression
    from .structured import json_reward, parse_json, same_json
    from .text import (
        TAGS,
        as_chat,
        completion_text,
        extract_after_hashes,
        extract_after_thinking,
        extract_all,
        extract_answer,
        extract_boxed,
        is_async,
        reward_name,
        split_form,
        split_thinking,
    )

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
