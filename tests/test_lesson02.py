"""Lesson 02 as readers run it: the committed notebook, and the same with other parameters."""

import re
from inspect import getsource
from types import SimpleNamespace

import pytest
from course import ROOT
from lessons import briefly_and_in_full, defined_by, run_other_family, run_with_nbval

from grpo_utils import check_exercise
from grpo_utils.rewards import count_placed_tags, extract_answer

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "02_rewards.ipynb"
ROW = re.compile(r"^(before|flawed|fixed|both) +([\d.]+) +([\d.]+) \(([\d.]+) to ([\d.]+)\)$", re.MULTILINE)
CURVE = re.compile(r"^(step|\w+, (?:reward|correct)) +([\d. ]+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def rates(printed) -> dict[str, list[float]]:
    """By run: share formatted, strict accuracy, and the interval of it."""
    return {name: [float(number) for number in row] for name, *row in ROW.findall(printed)}


@pytest.fixture(scope="module")
def curves(printed) -> dict[str, list[float]]:
    return {name: [float(number) for number in row.split()] for name, row in CURVE.findall(printed)}


@briefly_and_in_full(STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(parameters, tmp_path):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_the_committed_lesson_shows_the_hack_and_the_fix(rates, curves):
    assert rates["before"][0] < 0.4 and rates["fixed"][0] > 0.8
    assert rates["flawed"][0] < 0.05 and rates["flawed"][3] < rates["before"][2]
    rewards = [values for name, values in curves.items() if name.endswith("reward")]
    assert len(rewards) == 3 and all(values[-1] > 2 * values[0] for values in rewards)
    assert rates["before"][3] < rates["fixed"][2] and rates["before"][3] + 0.3 < rates["both"][2]


def test_only_the_flawed_reward_is_hacked(curves):
    peak = max(curves["flawed, correct"])
    assert peak > 0.7 and curves["flawed, correct"].index(peak) < len(curves["step"]) - 3  # learned first, then hacked
    last = {name: values[-1] for name, values in curves.items()}
    assert last["fixed, reward"] == pytest.approx(1.0, abs=0.05) and last["flawed, reward"] > 2
    assert last["flawed, correct"] < 0.1 < min(last["fixed, correct"], last["both, correct"])


def test_the_styles_explain_why_a_reward_for_the_format_raised_accuracy(printed):
    found = re.findall(r"^(\w+, \w+) +(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE)
    counts = {name: [int(number) for number in row] for name, *row in found}
    answers, formatted, correct = counts["before, columns"]
    assert formatted / answers > 0.9 < correct / answers  # it has the format, and it is correct
    others, others_formatted, _ = counts["before, equation"]
    assert others_formatted / others < 0.9 and counts["fixed, columns"][0] > 2 * answers


def test_a_small_bonus_gets_full_advantages_where_correctness_ties(printed):
    rows = re.findall(r"divided: \[(.*?)\]  not divided: \[(.*?)\]$", printed, re.MULTILINE)
    (mixed, far), (tied, near) = [[[abs(float(n)) for n in part.split(", ")] for part in row] for row in rows]
    assert min(tied) > 0.95 * max(mixed) and max(near) < min(far) / 10


def test_it_shows_what_trl_passes_and_what_the_fixed_reward_counts(printed):
    assert re.search(r"^TRL passes: .*\bcompletions\b.*\banswer\b.*\bcompletion_ids\b", printed, re.MULTILINE)
    assert getsource(count_placed_tags) in printed


def test_a_reward_pays_only_the_form_that_it_reads(printed):
    rows = re.findall(r"^(\w+)((?: +[01]\.0){4})$", printed, re.MULTILINE)
    pays = {name: [float(score) for score in scores.split()] for name, scores in rows}
    assert len(pays) == 4 and all(0.0 in scores[:3] for scores in pays.values())
    assert not any(pays["extract_answer"]) and pays["extract_boxed"] == [0, 1, 0, 0]
    assert pays.pop("last_number")[3] == 1  # it was cut off before it answered
    assert not any(scores[3] for scores in pays.values())


@pytest.mark.parametrize(
    ("guess", "after", "answer"),
    [
        ("", 90, "not attempted yet"),
        ("rise", 90, "'rise'; the run shows 'rise'"),
        ("rise", 10, "'rise'; the run shows 'fall'"),
    ],
)
def test_exercise_1_compares_the_guess_with_the_run(book, capsys, guess, after, answer):
    def rates(hits):
        return SimpleNamespace(accuracy=SimpleNamespace(hits=hits))

    stand_ins = dict(
        train_on=lambda rewards, weights, steps: ([], rates(after)),
        before=rates(50),
        run=SimpleNamespace(steps=38),
        show_reward_and_truth=len,
        my_reward=len,
        my_guess=guess,
    )
    names = defined_by(book, "def compared", **stand_ins)
    assert answer in check_exercise("1", *names["mine"]) + capsys.readouterr().out


def words(text: str) -> list[str]:
    return text.lower().strip(".").removeprefix("the answer is ").split()


@pytest.mark.parametrize(
    ("same", "answer"),
    [
        (lambda said, gold: words(said) == words(gold), "correct."),
        (lambda said, gold: words(said)[-1] == words(gold)[-1], "Old Delhi"),
        (lambda said, gold: said == gold, "paris."),
        (lambda said, gold: gold.lower() == said.lower().strip("."), "The answer is Paris"),
        (lambda said, gold: True, "Lyon"),
        (lambda said, gold: said.lower().strip(".").endswith(gold.lower()), "London or Paris"),
    ],
)
def test_exercise_2_names_the_text_with_the_wrong_score(book, same, answer):
    def reward(completions, answer, **kwargs):
        pairs = zip(map(extract_answer, completions), answer, strict=True)
        return [float(same(said, gold)) for said, gold in pairs]

    assert answer in check_exercise("2", reward, defined_by(book, "CLAIMS =")["TEXTS"])


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=3)


def test_every_override_arrives(other_family, printed):
    assert re.search(r"tiny-gemma3.*\b3$", other_family, re.MULTILINE)
    answers = re.compile(r"^answer: .*$", re.MULTILINE)
    assert answers.findall(other_family) != answers.findall(printed)  # another seed, other prompts
