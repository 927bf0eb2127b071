"""Lesson 11 as readers run it: the committed notebook, its judge, and the same with other parameters."""

import re

import pytest
from conftest import ROOT
from lessons import alt_texts, defined_by, run_other_family, run_with_nbval

from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "11_own_data_and_judge.ipynb"
RATE = re.compile(r"^(base|judge|both): ([\d.]+) \(([\d.]+) to ([\d.]+)\), (\d+) of 200$", re.MULTILINE)
PROMPT = [{"role": "user", "content": "What is 15 + 27?"}]


@pytest.fixture(scope="module")
def rates(printed) -> dict[str, list[float]]:
    """By policy: strict accuracy, its interval, and the number of correct answers."""
    return {name: [float(number) for number in row] for name, *row in RATE.findall(printed)}


@pytest.fixture
def lesson(book) -> dict:
    """What the cells of the simulated judge and of its reward define."""
    found = {}
    for line in ("def ask(", "def score_in(", "class JudgeReward:"):
        found |= defined_by(book, line, **found)
    return found


def number(pattern: str, text: str) -> str:
    """The only number that a pattern finds."""
    [found] = re.findall(pattern, text, re.MULTILINE)
    return found


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_similarity_and_keywords_pay_for_wrong_answers(printed):
    similar = number(r"^Austria +Australia +([\d.]+)", printed)
    assert float(number(r"^42\.0 +42 +([\d.]+)", printed)) < float(similar)
    assert re.search(r"^Rome, Paris or Oslo +Paris +[\d.]+ +1 +0\.0 +0\.0$", printed, re.MULTILINE)


def test_the_judge_agrees_with_the_labels_far_beyond_chance(printed):
    agree, correct = number(r"^the judge agrees with (\d+)%", printed), number(r"correct: (\d+)%$", printed)
    low = number(r"^kappa: [\d.]+ \(([\d.]+) to [\d.]+\)$", printed)
    assert int(agree) > int(correct) and float(low) > 0.5


def test_the_tests_for_bias_find_what_kappa_did_not(printed):
    flips = number(r"^verdict flips when swapped: (\d+)%$", printed)
    longer = number(r"^longer of two equals wins: +(\d+)%$", printed)
    before, after = (number(rf"^{name} +([\d.]+)$", printed) for name in ("wrong answers", "with a plea"))
    assert int(flips) > 30 and int(longer) > 60 and float(before) < 0.1 < 0.9 < float(after)


def test_a_judge_that_never_answers_is_paused_and_the_run_ends(printed):
    assert printed.count("failed 8 times in a row, and is paused") == 1
    assert re.search(r"^GRPO 100%.*3/3", printed, re.MULTILINE)


def test_a_reply_that_is_not_a_score_is_none(lesson):
    replies = ['{"score": 7}', '{"score": 0}', '{"score": 11}', '{"score": -1}', "7", "", "I cannot grade this."]
    assert [lesson["score_in"](reply) for reply in replies] == [0.7, 0.0, None, None, None, None, None]


def test_a_missing_score_is_missing_for_the_whole_group(lesson):
    reward = lesson["JudgeReward"]()
    reward.ask = lambda gold, answer: '{"score": 10}' if answer == "42" else ""
    completions = [[{"role": "assistant", "content": text}] for text in ("42", "timeout", "42")]
    prompts = [PROMPT, PROMPT, [{"role": "user", "content": "What is 20 + 22?"}]]
    assert reward(completions, prompts, ["42"] * 3) == [None, None, 1.0]


def test_a_judge_that_never_answers_is_called_eight_times_in_all(lesson, capsys):
    reward, calls = lesson["JudgeReward"](), []
    reward.ask = lambda *job: calls.append(job) or ""
    completions = [[{"role": "assistant", "content": "42"}]] * 64
    for _ in range(3):
        assert reward(completions, [PROMPT] * 64, ["42"] * 64) == [None] * 64
    assert len(calls) == 8 and capsys.readouterr().out.count("is paused") == 1


def test_a_score_ends_a_row_of_failures(lesson):
    reward, replies = lesson["JudgeReward"](), iter([""] * 7 + ['{"score": 5}'] + [""] * 7)
    reward.ask = lambda *job: next(replies)
    completions = [[{"role": "assistant", "content": "42"}]] * 15
    reward(completions, [PROMPT] * 15, ["42"] * 15)
    assert reward.failures == 7


def test_the_reward_model_judges_the_style(printed):
    shares = {name: number(rf"^{name} +([\d.]+)$", printed) for name in ("held_out", "same_style", "sentence")}
    assert float(shares["held_out"]) > 0.85 and float(shares["same_style"]) < 0.65
    assert float(shares["sentence"]) < 0.1
    [(pairs, same)] = re.findall(r"^(\d+) pairs, (\d+) in one style\. Last:$", printed, re.MULTILINE)
    assert int(same) < 0.1 * int(pairs)


def test_the_judge_is_hacked_and_the_rule_prevents_it(book, printed, rates):
    assert list(rates) == ["base", "judge", "both"]
    assert "judge: Strict accuracy FELL" in printed and "both: Strict accuracy rose" in printed
    assert rates["both"][0] > rates["base"][0] + 0.3
    [alt] = alt_texts(book)
    rewards = re.search(r"judge: the reward goes from (-?[\d.]+) to ([\d.]+).*? from ([\d.]+) to ([\d.]+)\.", alt)
    first, last, _, end = (float(value) for value in rewards.groups())
    best = float(number(r"^highest truth in the run on the judge alone: ([\d.]+)$", printed))
    assert last > first and best > 0.8 > 0.4 > end
    asked, answer = re.search(r"^What is (.*)\?\nbase: .*\n.*\njudge: .*\n  (.*)$", printed, re.MULTILINE).groups()
    gold = sum(int(part) for part in asked.split(" + "))
    assert not is_strictly_right(answer, str(gold))


def test_a_small_weight_bounds_the_judge_only_without_scaling(printed):
    def advantages(group: str, setting: str) -> list[float]:
        line = number(rf"^{group}: .*\n(?:  .*\n)*?  {setting} +(.*)$", printed)
        return [float(value) for value in line.split()]

    for group in ("all correct", "all wrong"):
        assert advantages(group, "group") == [-0.86, 0.86, -0.86, 0.86]
        assert advantages(group, "none") == [-0.05, 0.05, -0.05, 0.05]
    assert max(advantages("mixed", "group")) < 1 and advantages("all wrong", "gated") == [0] * 4
    assert min(advantages("mixed", "gated")[:2]) > max(advantages("mixed", "gated")[2:])


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=2)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b2$", other_family, re.MULTILINE)
    assert len(RATE.findall(other_family)) == 3
