"""Lesson 12 as readers run it: the committed notebook, its judge, and the same with other parameters."""

import re
from types import SimpleNamespace

import numpy
import pytest
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, defined_by, run_other_family, run_with_nbval
from tiny_trainer import tiny_trainer

from grpo_utils import load_rows
from grpo_utils.models import model_path
from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "12_own_data_and_judge.ipynb"
POLICIES = ["base", "judge alone", "small weight", "gated"]
RATE = re.compile(rf"^({'|'.join(POLICIES)}): ([\d.]+) \(([\d.]+) to ([\d.]+)\), (\d+) of 200$", re.MULTILINE)
PROMPT = [{"role": "user", "content": "What is 15 + 27?"}]


@pytest.fixture(scope="module")
def rates(printed) -> dict[str, list[float]]:
    """By policy: strict accuracy, its interval, and the number of correct answers."""
    return {name: [float(number) for number in row] for name, *row in RATE.findall(printed)}


@pytest.fixture
def lesson(book) -> dict:
    """What the cells of the advantages define."""
    found = {"numpy": numpy}
    for line in ("CORRECT = ", "gated = 2"):
        found |= defined_by(book, line, **found)
    return found


def number(pattern: str, text: str) -> str:
    """The only number that a pattern finds."""
    [found] = re.findall(pattern, text, re.MULTILINE)
    return found


@briefly_and_in_full(STEPS=2)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_similarity_and_keywords_pay_for_wrong_answers(printed):
    similar = number(r"^Austria +Australia +([\d.]+)", printed)
    assert float(number(r"^42\.0 +42 +([\d.]+)", printed)) < float(similar)
    assert re.search(r"^Rome, Paris or Oslo +Paris +[\d.]+ +1 +0\.0 +0\.0$", printed, re.MULTILINE)


def test_the_reward_model_judges_the_style(printed):
    shares = {name: number(rf"^{name} +([\d.]+)$", printed) for name in ("held_out", "same_style", "sentence")}
    assert float(shares["held_out"]) > 0.85 and float(shares["same_style"]) < 0.65
    assert float(shares["sentence"]) < 0.1
    [(pairs, same)] = re.findall(r"^(\d+) pairs, (\d+) with all tags in both answers$", printed, re.MULTILINE)
    assert int(same) < 0.1 * int(pairs)


def test_the_judge_alone_is_hacked(book, printed, rates):
    assert "Strict accuracy FELL" in printed and rates["judge alone"][0] < rates["base"][0] - 0.1
    [alt] = [alt for alt in alt_texts(book) if "judge alone" in alt]
    rewards = re.search(r"judge alone: the reward goes from (-?[\d.]+) to ([\d.]+).*? from ([\d.]+) to ([\d.]+)\.", alt)
    first, last, _, end = (float(value) for value in rewards.groups())
    best = float(number(r"^highest truth in the run on the judge alone: ([\d.]+)$", printed))
    assert last > first and best > 0.8 > 0.4 > end
    asked, answer = re.search(
        r"^What is (.*)\?\nbase: .*\n.*\njudge alone: .*\n  (.*)$", printed, re.MULTILINE
    ).groups()
    gold = sum(int(part) for part in asked.split(" + "))
    assert not is_strictly_right(answer, str(gold))


def test_a_rule_next_to_the_judge_prevents_the_hack(rates):
    assert list(rates) == POLICIES
    assert min(rates["small weight"][0], rates["gated"][0]) > rates["base"][0] + 0.3


def test_the_gate_makes_no_difference_where_groups_are_rarely_all_wrong(printed):
    assert re.search(r"^small weight to gated: No improvement shown", printed, re.MULTILINE)


def test_the_rule_ties_in_most_groups_in_the_end(book):
    [alt] = [alt for alt in alt_texts(book) if "all_correct" in alt]
    wrong, correct = re.findall(r"small weight ([\d.]+) to ([\d.]+)", alt)
    assert float(correct[1]) > 0.5 > float(correct[0]) and float(wrong[1]) < 0.2


def largest(lesson: dict, name: str, scale: str) -> list[float]:
    """The largest advantage of each of the three groups: mixed, all correct, all wrong."""
    return lesson["advantages"](lesson[name], scale).max(axis=1).round(2).tolist()


def test_a_small_weight_bounds_the_judge_only_without_division_by_the_group(lesson):
    assert largest(lesson, "weighted", "group") == [0.91, 0.86, 0.86]
    assert largest(lesson, "weighted", "none") == [1.05, 0.05, 0.05]


def test_a_gate_bounds_the_judge_only_where_all_answers_are_wrong(lesson):
    assert largest(lesson, "gated", "group") == [0.9, 0.86, 0.0]
    assert largest(lesson, "gated", "none")[1:] == [0.05, 0.0] and largest(lesson, "gated", "batch")[1:] == [0.04, 0.0]


@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_the_advantages_are_trls(lesson, tmp_path, scale):
    def totals(completions, **kwargs):
        return lesson["weighted"].flatten().tolist()

    sizes = dict(num_generations=4, per_device_train_batch_size=12, max_steps=1)
    rows = load_rows("addition", "train", 3)
    trainer = tiny_trainer(tmp_path, [totals], rows, scale_rewards=scale, reward_weights=[1.0], **sizes)
    trainer.model.train()
    batch = trainer._generate_and_score_completions([row for row in rows for _ in range(4)])
    ours = lesson["advantages"](lesson["weighted"], scale).flatten()
    assert batch["advantages"].tolist() == pytest.approx(ours, abs=1e-4)


def test_a_gated_judge_pays_only_for_correct_answers(book):
    """The reward model gives every answer the score 0, and the sigmoid of 0 is a half."""
    import torch
    from transformers import AutoTokenizer

    def judge(input_ids, **kwargs):
        return SimpleNamespace(logits=torch.zeros(len(input_ids), 1))

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    good = [{"role": "assistant", "content": "<answer>42</answer>"}]
    given = dict(judge=judge, tokenizer=tokenizer, pairs=[dict(prompt=PROMPT, chosen=good, rejected=good)])
    scored = defined_by(book, "def scored(", **given)["scored"]
    reward = defined_by(book, "def judged_if_correct(", scored=scored)["judged_if_correct"]
    answers = [[{"role": "assistant", "content": f"<answer>{number}</answer>"}] for number in (42, 52)]
    assert reward([PROMPT] * 2, answers, ["42"] * 2) == [0.5, 0.0]


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=2)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b2$", other_family, re.MULTILINE)
    assert len(RATE.findall(other_family)) == 4
