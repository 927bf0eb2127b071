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


def test_an_added_token_that_no_text_uses_is_no_mismatch(load_tokenizer):  # noqa: F811
    tokenizer = load_tokenizer()
    tokenizer.add_tokens(["<image_soft_token>"], special_tokens=True)
    assert check(tokenizer).ok
    used = changed(ROWS, prompt=chat_prompt("What is <image_soft_token>?"))
    assert "tokenizer_mismatch" in {f.code for f in check(tokenizer, train=used).errors}


def texts(tokenizer, render):
    return [{**row, "prompt": render(row["prompt"])} for row in ROWS]


def test_a_prompt_that_is_rendered_already_is_no_string_prompt(load_tokenizer):  # noqa: F811
    tokenizer = load_tokenizer()
    rendered = texts(tokenizer, lambda p: tokenizer.apply_chat_template(p, add_generation_prompt=True, tokenize=False))
    assert not codes(check(tokenizer, train=rendered)) & {"string_prompt", "maybe_string_prompt"}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Qwen2.5-0.5B", "maybe_string_prompt"),
        ("Qwen2.5-0.5B-Instruct", "string_prompt"),
        ("gemma-3-1b-it", "string_prompt"),
    ],
)
def test_text_prompts_to_a_base_model_with_a_template_are_a_warning(name, code, load_tokenizer, tmp_path):  # noqa: F811
    from transformers import AutoConfig

    from grpo_utils import model_path

    AutoConfig.from_pretrained(model_path("tiny-qwen3")).save_pretrained(tmp_path / name)
    rows = texts(load_tokenizer(), lambda prompt: prompt[-1]["content"])
    report = check(load_tokenizer(), model=str(tmp_path / name), train=rows, heldout=None)
    assert code in report.codes and report.ok == (code == "maybe_string_prompt"), str(report)


def test_equal_questions_with_another_system_prompt_or_answer_are_no_leak(load_tokenizer):  # noqa: F811
    asked = [{"role": "user", "content": "What is 0 + 1?"}]
    other = [{"role": "system", "content": "Answer in French."}, *asked]
    same = {"prompt": ROWS[0]["prompt"], "answer": ROWS[0]["answer"]}
    assert "leak" not in check(load_tokenizer(), heldout=[{"prompt": other, "answer": "1"}]).codes
    assert "leak" not in check(load_tokenizer(), heldout=[{**same, "answer": "2"}]).codes
    assert "leak" in check(load_tokenizer(), heldout=[same]).codes
    assert "leak" in check(load_tokenizer(), heldout=[{"prompt": same["prompt"]}]).codes


def test_equal_questions_about_different_images_are_no_leak(load_tokenizer):  # noqa: F811
    rows = [{**row, "prompt": ROWS[0]["prompt"], "answer": "yes", "image": n} for n, row in enumerate(ROWS)]
    report = check(load_tokenizer(), train=rows, heldout=rows[:4])
    assert not report.codes & {"leak", "duplicates"} and "images, which are not compared" in str(report)


@pytest.mark.parametrize(
    "prompt",
    [
        [{"role": "user", "content": "What is 1 + 2?"}, {"role": "assistant", "content": "It is "}],
        [{"role": "system", "content": "Write a riddle."}],
    ],
    ids=["prefill", "system only"],
)
def test_prompts_that_trl_accepts_are_no_bad_prompts(prompt, load_tokenizer):  # noqa: F811
    assert check(load_tokenizer(), train=changed(ROWS, prompt=prompt)).ok


def test_the_mend_for_a_blank_answer_drops_it(load_tokenizer):  # noqa: F811
    rows = Dataset.from_list(changed(ROWS, answer=" "))
    report = check(load_tokenizer(), train=rows)
    condition = str(report).partition("rows.filter(lambda row: ")[2].partition(").\n")[0]
    kept = rows.filter(lambda row: eval(condition, {"row": row}))  # noqa: S307
    assert len(kept) == len(ROWS) - 1 and check(load_tokenizer(), train=kept).ok


def test_an_empty_cell_is_not_called_a_missing_column(load_tokenizer):  # noqa: F811
    report = check(load_tokenizer(), train=changed(ROWS, prompt=None))
    assert "no_prompt" in report.codes and "KeyError" not in str(report) and "rename_column" not in str(report)


def test_sixty_thousand_rows_take_seconds(load_tokenizer):  # noqa: F811
    rows = Dataset.from_list(
        [{"prompt": chat_prompt(f"What is {n} + 1?"), "answer": str(n + 1)} for n in range(60_000)]
    )
    started = time.perf_counter()
    report = check(load_tokenizer(), train=rows)
    assert time.perf_counter() - started < 5, time.perf_counter() - started
    assert report.ok and "3000 of 60000 train rows, evenly spread, were looked at" in str(report), str(report)


def test_images_are_not_read_to_check_the_prompts(load_tokenizer):  # noqa: F811
    from datasets import Features, Image, Value
    from PIL import Image as Picture

    picture = Picture.new("RGB", (1500, 1500))
    features = Features(
        {"prompt": [{"role": Value("string"), "content": Value("string")}], "answer": Value("string"), "image": Image()}
    )
    rows = Dataset.from_list([{"prompt": r["prompt"], "answer": r["answer"], "image": picture} for r in ROWS], features)
    rows = rows.select(list(range(40)) * 20)
    started = time.perf_counter()
    report = check(load_tokenizer(), train=rows)
    assert time.perf_counter() - started < 5 and report.ok, str(report)
