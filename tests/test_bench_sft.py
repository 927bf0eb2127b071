"""The bench of lesson 10: its rows, what it counts in answers, and the rule that says who follows a place."""

import re

import bench_sft
import pytest
from bench_sft import CASES, LARGER, NEXT, PROMPTS, TASKS
from benches import read_stored

STORED = read_stored(bench_sft.STORED)


def asked_in(rows) -> list[str]:
    return [row["prompt"][0]["content"] for row in rows]


@pytest.mark.parametrize("case", CASES)
def test_no_question_is_asked_twice_and_as_many_worked_answers_are_wrong_as_it_says(case):
    shown, new, held_out = bench_sft.data(case, 0)
    task, wrong, _ = CASES[case]
    held_out = [TASKS[task].ask(*question) for question in held_out]
    questions = [*asked_in(shown), *asked_in(new), *asked_in(held_out)]
    assert len(set(questions)) == len(questions) == 700
    golds = [TASKS[task].ask(*map(read, re.findall(r"\d+", question)))["answer"] for question in asked_in(shown)]
    answers = [row["completion"][0]["content"].split("<answer>")[1].split("<")[0] for row in shown]
    assert sum(gold != answer for gold, answer in zip(golds, answers, strict=True)) == wrong


def read(digits: str) -> int | str:
    return int(digits) if len(digits) == 3 else digits


def test_the_larger_number_is_first_in_half_of_the_pairs():
    _, _, held_out = bench_sft.data("larger, 100 correct", 0)
    assert sum(a > b for a, b in held_out) == PROMPTS / 2


def answered_by(monkeypatch, rule, case: str, held_out: list[tuple]) -> dict:
    """What is counted if each answer is what ``rule`` makes of the numbers of the question."""

    def generate(model, tokenizer, prompts, **how):
        numbers = [[int(n) for n in re.findall(r"\d+", prompt[0]["content"])] for prompt in prompts]
        return [f"<reasoning>so</reasoning><answer>{rule(*each)}</answer>" for each in numbers]

    monkeypatch.setattr(bench_sft, "generate", generate)
    return bench_sft.answered((None, None), case, held_out, 0)


def test_a_policy_that_names_the_first_number_is_right_in_one_order_only(monkeypatch):
    pairs = [(300, 200), (200, 300), (500, 400), (400, 500)]
    found = answered_by(monkeypatch, lambda a, b: a, "larger, 100 correct", pairs)
    assert found == dict(accuracy=0.5, first=4, second=0, both=0, only_first=4, only_second=0)
    found = answered_by(monkeypatch, lambda a, b: b, "larger, 100 correct", pairs)
    assert found == dict(accuracy=0.5, first=0, second=4, both=0, only_first=0, only_second=4)
    found = answered_by(monkeypatch, max, "larger, 100 correct", pairs)
    assert found == dict(accuracy=1.0, first=2, second=2, both=4, only_first=0, only_second=0)


def test_the_carries_and_the_wrong_answers_are_counted(monkeypatch):
    numbers = [(129,), (130,), (131,), (139,)]
    never_carries = answered_by(monkeypatch, lambda n: n + 1 - 10 * (n % 10 == 9), "next, 100 correct", numbers)
    assert never_carries == dict(accuracy=0.5, as_shown=0, carries=2, carries_right=0)
    before = answered_by(monkeypatch, lambda n: n - 1, "next, 100 correct", numbers)
    assert before == dict(accuracy=0.0, as_shown=4, carries=2, carries_right=0)


def test_the_digits_in_the_opposite_order_are_counted(monkeypatch):
    def opposite(n):
        return "".join(sorted(str(n), reverse=True))

    found = answered_by(monkeypatch, opposite, "sort, 50 of 100 wrong", [("8596",), ("1234",)])
    assert found == dict(accuracy=0.0, as_shown=2)


def test_every_case_was_trained_with_every_seed():
    wanted = [(case, arm, seed) for case in CASES for arm in CASES[case].arms for seed in bench_sft.SEEDS]
    assert sorted((row["case"], row["arm"], row["seed"]) for row in STORED["rows"]) == sorted(wanted)


def test_the_counts_agree_with_the_accuracy():
    for row in STORED["rows"]:
        for found in [row["start"], *row["points"]]:
            if CASES[row["case"]].task == LARGER:
                assert PROMPTS * found["accuracy"] <= found["first"] + found["second"]
                assert found["both"] + found["only_first"] + found["only_second"] >= round(PROMPTS * found["accuracy"])
            elif CASES[row["case"]].task == NEXT:
                assert found["carries_right"] <= min(found["carries"], round(PROMPTS * found["accuracy"]))


def test_the_accuracy_by_place_separates_the_policies_that_follow_one():
    followers, others = (bench_sft.gaps(STORED["rows"], follows) for follows in (True, False))
    assert len(followers) == 6 and len(others) == 14 and min(followers) > 0.7 > 0.3 > max(others)
