"""Format and combined rewards, and what holds for all of them."""

import math
import pickle
import re

import pytest
from grpo_core.errors import CourseError
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_lists import LIBRARY, section
from trl.rewards import get_repetition_penalty_reward, get_soft_overlong_punishment
from trl.rewards import think_format_reward as trl_think_format_reward

from grpo_utils import rewards
from grpo_utils.rewards import (
    TAGS,
    AnswerReward,
    as_chat,
    extract_boxed,
    group_advantages,
    math_rewards,
    think_format_reward,
    weighted_sum,
)

ALL = [*LIBRARY.values(), AnswerReward(extract=extract_boxed)]
IDS = [f"{i}-{reward.__name__}" for i, reward in enumerate(ALL)]

words = st.sampled_from(
    [*TAGS, "<think>", "</think>", "\\boxed{", "}", "{", '{"a": 1}', "[", "42", "-", ",", ".", "$", "%"]
)
pieces = st.one_of(
    words, st.sampled_from([" ", "\n", "x", "or", "A", "B)", "答", "٣", "\0", "\ud800", "a" * 30, "^", "!"])
)
hostile = st.lists(pieces, max_size=25).map("".join)
texts = st.lists(st.one_of(st.text(max_size=200), hostile), min_size=2, max_size=6)


@pytest.mark.parametrize("name", LIBRARY)
def test_a_reward_of_the_library_is_in_its_places(name):
    assert name in rewards.__all__, f"import {name} in grpo_check/src/grpo_core/rewards/__init__.py"
    assert f"`{name}`" in section("Which one"), f'name {name} in the table "Which one" of docs/rewards.md'
    assert re.search(r"Known\s+exploits?:\s", LIBRARY[name].__doc__), "end its docstring's paragraph: Known exploit: …"
    assert f"| `{name}` |" in section("How a policy exploits each reward"), "run: python scripts/rule_tables.py"


@pytest.mark.parametrize("reward", ALL, ids=IDS)
@settings(max_examples=60, deadline=None)
@given(texts=texts, gold=st.one_of(st.text(max_size=20), hostile), rng=st.randoms())
def test_any_text_scores_finitely_alike_as_chat_and_in_any_order(reward, texts, gold, rng):
    def score(order, chat=False):
        chosen = [texts[i] for i in order]
        completions = [[{"role": "assistant", "content": text}] for text in chosen] if chat else chosen
        ids = [list(text.encode("utf-8", "surrogatepass")) for text in chosen]
        golds = [gold] * len(order)
        columns = dict(answer=golds, solution=golds, prompts=["q"] * len(order), completion_ids=ids)
        return reward(completions=completions, **columns)

    order = list(range(len(texts)))
    scores = score(order)
    assert all(s is None or (math.isfinite(s) and -1.0 <= s <= 3.0) for s in scores)
    assert score(order, chat=True) == scores
    rng.shuffle(order)
    assert score(order) == pytest.approx([scores[i] for i in order], abs=1e-9)


@pytest.mark.parametrize("reward", ALL, ids=IDS)
@pytest.mark.parametrize(
    "completion", [None, [], {}, ["text"], [{"role": "assistant", "content": None}], [{}]], ids=str
)
def test_a_completion_that_says_nothing_earns_nothing(reward, completion):
    columns = dict(answer=["42"] * 2, solution=["42"] * 2, prompts=["q", "p"], completion_ids=[[], []])
    assert not any(score and score > 0 for score in reward(completions=[completion] * 2, **columns))


@pytest.mark.parametrize("reward", ALL, ids=IDS)
def test_every_reward_can_be_sent_to_another_process(reward):
    assert pickle.loads(pickle.dumps(reward)) == reward


def test_trls_think_format_reward_still_lacks_what_ours_takes():
    """A completion without text, one that is a string, and a thought that TRL has parsed."""
    silent = [[{"role": "assistant", "content": None}]]
    with pytest.raises(TypeError):
        trl_think_format_reward(silent)
    with pytest.raises(TypeError):
        trl_think_format_reward(["<think>a</think>b"])
    assert think_format_reward(silent) == trl_think_format_reward([as_chat(c) for c in silent]) == [0.0]
    parsed = [[{"role": "assistant", "reasoning_content": "15 + 27 = 42", "content": "<answer>42</answer>"}]]
    assert (trl_think_format_reward(parsed), think_format_reward(parsed)) == ([0.0], [1.0])


def test_trls_own_take_our_signature():
    over, again = get_soft_overlong_punishment(100, 20), get_repetition_penalty_reward()
    ids = [[1] * 90, list(range(50))]
    assert over(completions=["", ""], completion_ids=ids) == [-0.5, 0.0]
    assert again(completions=["", ""], completion_ids=ids)[1] == 0.0 > again(completions=[""], completion_ids=ids)[0]


def test_in_the_set_for_mathematics_being_right_outweighs_all_the_rest():
    rewards, weights = math_rewards()
    clean = "<reasoning>a</reasoning><answer>42</answer>"
    assert weighted_sum([reward([clean], answer=["42"]) for reward in rewards], weights) == [3.0]
    assert weights[0] > sum(weights[1:])


@pytest.mark.slow
def test_the_sum_is_trls():
    import torch

    scores, weights = [[1.0, 0.0, None], [0.5, None, None]], [2.0, 0.5]
    matrix = torch.tensor([[math.nan if s is None else s for s in column] for column in scores]).T
    trls = (matrix * torch.tensor(weights)).nansum(dim=1)
    assert [s or 0.0 for s in weighted_sum(scores, weights)] == trls.tolist()


@given(st.lists(st.floats(0, 3), min_size=4, max_size=4))
def test_the_advantages_of_a_group_add_up_to_nothing(rewards):
    assert sum(group_advantages(rewards, 4)) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_group_that_does_not_fit_is_refused(size):
    with pytest.raises(CourseError, match="are not divisible by num_generations"):
        group_advantages([1.0] * 4, size)
