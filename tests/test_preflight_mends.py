"""Faults that a hostile review of preflight found, each with a test named after it."""

import time
from dataclasses import replace
from math import prod

import pytest
from datasets import Dataset
from test_preflight import HELDOUT, REWARDS, ROWS, changed, check, codes, imports, load_tokenizer, on  # noqa: F401

from grpo_utils import chat_prompt
from grpo_utils.errors import CourseError
from grpo_utils.preflight import model_sizes, preflight
from grpo_utils.preflight import planned as of_planned
from grpo_utils.profiles import Gpu


def reads_text(completions, answer, **kwargs):
    return [
        1.0 if f"<answer>{gold}</answer>" in c[0]["content"] else 0.0
        for c, gold in zip(completions, answer, strict=True)
    ]


def test_a_reward_that_reads_content_as_text_is_not_refused_for_a_message_without_it(load_tokenizer):  # noqa: F811
    from trl.rewards import think_format_reward

    report = check(load_tokenizer(), rewards=reads_text)
    assert "reward_weak" in report.codes and "With tools: (message.get('content') or '')" in str(report), str(report)
    assert not [f for f in report.errors if "calls this raises" in f.why], str(report)
    assert check(load_tokenizer(), rewards=think_format_reward).ok


def countdown(completions, target, nums, **kwargs):
    """Pays an equation of the numbers that gives the target."""
    wanted = [f"<answer>{'*'.join(map(str, some))}</answer>" for some in nums]
    return [1.0 if text in c[0]["content"] else 0.0 for c, text in zip(completions, wanted, strict=True)]


def test_a_task_without_gold_answers_is_not_called_dead(load_tokenizer):  # noqa: F811
    rows = [{"prompt": row["prompt"], "target": prod((n, 7)), "nums": [n, 7]} for n, row in enumerate(ROWS)]
    report = check(load_tokenizer(), rewards=countdown, train=rows, heldout=None)
    assert report.ok and "calls this dead" in str(report), str(report)
    assert "answer_column='…'" in str(report) and "lab=False" in str(report) and "examples=" not in str(report)
    report = check(load_tokenizer(), rewards=countdown, train=rows, heldout=None, lab=False)
    assert report.ok and "reward_weak" not in report.codes and report.skipped["the reward lab"] == "lab=False"


def pays_all(completions, answer, **kwargs):
    return [1.0 for _ in completions]


def test_a_dead_reward_that_reads_the_answers_stays_an_error(load_tokenizer):  # noqa: F811
    report = check(load_tokenizer(), rewards=pays_all)
    assert {f.code for f in report.errors} == {"reward_broken"}, str(report)
    both = check(load_tokenizer(), rewards=[pays_all, reads_text], arguments={"reward_weights": None})
    assert {f.code for f in both.errors} == {"reward_broken"}, str(both)


def sleepy(completions, answer, **kwargs):
    time.sleep(0.3 * len(completions))
    return [0.0 for _ in completions]


def test_a_slow_reward_does_not_take_minutes(load_tokenizer):  # noqa: F811
    started = time.perf_counter()
    report = check(load_tokenizer(), rewards=sleepy)
    assert report.ok and "too slow to try here" in report.skipped["the reward lab"], str(report)
    assert "python -m grpo_utils probe" in report.skipped["the reward lab"]
    assert time.perf_counter() - started < 5


def test_the_lab_has_a_time_budget_in_all(load_tokenizer, monkeypatch):  # noqa: F811
    from grpo_utils.preflight import rewards

    monkeypatch.setattr(rewards, "LAB_SECONDS", 0.0)
    report = check(load_tokenizer())
    assert "too slow to try here" in report.skipped["the reward lab"], str(report)
