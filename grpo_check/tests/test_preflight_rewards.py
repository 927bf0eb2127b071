"""Preflight tries the rewards: what it refuses, what it only doubts, and what it leaves to the probe."""

import time
from math import prod

import pytest
from grpo_check.preflights import rewards as of_rewards
from grpo_core.rewards import TAGS
from preflight_runs import ROWS, check

from grpo_utils import correctness_reward


def reads_text(completions, answer, **kwargs):
    return [
        1.0 if f"<answer>{gold}</answer>" in c[0]["content"] else 0.0
        for c, gold in zip(completions, answer, strict=True)
    ]


def test_a_reward_that_reads_content_as_text_is_not_refused_for_a_message_without_it():
    from trl.rewards import think_format_reward

    report = check(rewards=reads_text, try_rewards=True)
    assert "without content" not in str(report) and "other_kind" not in report.codes, str(report)
    assert check(rewards=think_format_reward, try_rewards=True).ok


def countdown(completions, target, nums, **kwargs):
    """Pays an equation of the numbers that gives the target."""
    wanted = [f"<answer>{'*'.join(map(str, some))}</answer>" for some in nums]
    return [1.0 if text in c[0]["content"] else 0.0 for c, text in zip(completions, wanted, strict=True)]


def test_a_task_without_gold_answers_is_not_judged_rather_than_called_dead():
    rows = [{"prompt": row["prompt"], "target": prod((n, 7)), "nums": [n, 7]} for n, row in enumerate(ROWS)]
    report = check(rewards=countdown, train=rows, heldout=None, try_rewards=True)
    assert report.ok and not report.codes and "score 0.0" in report.skipped["what countdown pays for"], str(report)
    report = check(rewards=countdown, train=rows, heldout=None)
    assert report.ok and report.skipped["the rewards"] == "try_rewards=False"


def pays_all(completions, answer, **kwargs):
    return [1.0 for _ in completions]


def test_a_reward_that_pays_everything_alike_is_dead_only_in_the_format_that_was_asked_for():
    report = check(rewards=pays_all, try_rewards=True)
    assert report.ok and "what pays_all pays for" in report.skipped, str(report)
    asked = check(rewards=pays_all, try_rewards=True, tags=TAGS)
    assert {f.code for f in asked.errors} == {"reward_broken"}, str(asked)


def pays_tags(completions, answer, **kwargs):
    """Partial credit: a form that depends on the gold answer, whose value is not looked at."""
    return [float(bool(gold) and "<answer>" in c[0]["content"]) for c, gold in zip(completions, answer, strict=True)]


def test_partial_credit_is_no_error_next_to_a_reward_that_ranks_correct_answers_first():
    """The form of an answer earned as much with a wrong value, so a sound run with partial credit was refused."""
    for rewards in ([correctness_reward, pays_tags], [pays_tags, correctness_reward, pays_tags]):
        report = check(rewards=rewards, arguments={"reward_weights": None}, try_rewards=True)
        assert report.ok and not [one for one in report.findings if "wrong_beats_right" in one.why], str(report)


def prefers_wrong(completions, answer, **kwargs):
    return [1.0 - score for score in correctness_reward(completions, answer)]


def compares_the_gold_with_itself(completions, answer, **kwargs):
    return [score * float(gold == gold) for score, gold in zip(pays_tags(completions, answer), answer, strict=True)]


@pytest.mark.parametrize(
    ("rewards", "weights"),
    [
        ([pays_tags], None),
        ([compares_the_gold_with_itself, pays_tags], None),
        ([correctness_reward, pays_tags], [0.0, 1.0]),
        ([correctness_reward, pays_tags], [-1.0, 0.5]),
        ([correctness_reward, prefers_wrong], [2.0, 1.0]),
        (["some/reward-model", correctness_reward, pays_tags], [1.0, -1.0, 1.0]),
    ],
    ids=["alone", "no reward reads the value", "no weight", "a sign error", "wrong earns more", "next to a model"],
)
def test_partial_credit_is_an_error_if_nothing_ranks_correct_answers_first(rewards, weights):
    report = check(rewards=rewards, arguments={"reward_weights": weights}, try_rewards=True)
    assert any("reports wrong_beats_right" in one.why for one in report.errors), str(report)


def sleepy(completions, answer, **kwargs):
    time.sleep(0.05 * len(completions))
    return [0.0 for _ in completions]


def test_a_slow_reward_is_left_to_the_probe(monkeypatch):
    monkeypatch.setattr(of_rewards, "LONGEST_TRIAL", 0.2)
    report = check(rewards=sleepy, try_rewards=True)
    assert report.ok and "grpo-check probe" in report.skipped["the rewards"], str(report)


def test_a_function_without_a_signature_is_a_finding():
    report = check(rewards=[max])
    assert [f.code for f in report.errors] == ["not_a_reward"], str(report)
    assert "max has no signature that Python can read" in str(report)
