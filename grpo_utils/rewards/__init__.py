"""Reward functions: completions in, one score each out.

    >>> from grpo_utils.rewards import correctness_reward, strict_format_reward
    >>> completion = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
    >>> correctness_reward([completion], answer=["42"]), strict_format_reward([completion])
    ([1.0], [1.0])

They have TRL's signature ``f(completions, **columns) -> list[float | None]``: dataset columns such as
``answer`` arrive as lists beside the completions, ``None`` means that a reward does not apply to a row.
A completion is a string, or a list of messages where the prompt was one. Scores lie between 0 and 1
(penalties between -1 and 0), and weights stand apart. No completion, however odd, makes one raise.

| room | what it holds |
|---|---|
| `text` | what a completion says, and where its answer stands |
| `numbers`, `words`, `sums` | which number an answer states, and whether two are the same |
| `maths`, `limits` | whether two expressions are the same, in bounded time |
| `markup` | an answer without its Markdown, HTML and LaTeX wrappers |
| `correctness` | is the answer right? |
| `structured` | is it the right JSON? |
| `format` | is the form right? |
| `length` | is the length right, in tokens? |
| `style` | repetition, diversity, structure, phrases |
| `combine` | weights, adaptive weights, sets to start from |

Which to use when, beside TRL's own: docs/rewards.md.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_imports

if TYPE_CHECKING:
    from .combine import (
        AdaptiveReward,
        RewardSet,
        adaptive_weights,
        choice_rewards,
        fact_rewards,
        group_advantages,
        math_rewards,
        structured_rewards,
        weighted_sum,
    )
    from .correctness import (
        AnswerReward,
        choice_reward,
        correctness_reward,
        exact_reward,
        fuzzy_reward,
        is_strictly_right,
        parse_choice,
        same_answer,
        same_choice,
        same_fact,
        same_text,
    )
    from .format import (
        AnyCompletion,
        PatternReward,
        count_placed_tags,
        incremental_format_reward,
        strict_format_reward,
        think_format_reward,
    )
    from .length import MinimumLengthReward, TargetLengthReward
    from .maths import is_expression, same_expression
    from .numbers import Number, parse_number, same_number
    from .structured import JsonSchemaReward, json_only_reward, json_reward, parse_json, same_json
    from .style import DiversityReward, UnwantedPhrasesReward, count_steps, reasoning_steps_reward
    from .text import (
        TAGS,
        Completion,
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
        split_reasoning,
        split_thinking,
    )

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
