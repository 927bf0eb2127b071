"""Lesson 13 as readers run it: the committed notebook, and the same with other parameters."""

import re
from types import SimpleNamespace

import pytest
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, defined_by, run_other_family, run_with_nbval

from grpo_utils import check_exercise, logged

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "13_tools.ipynb"
EVALUATED = re.compile(r"^calls per episode: ([\d.]+), correct: (\d+) of 200$", re.MULTILINE)
CHANGE = r"([+-][\d.]+) \(([+-][\d.]+) to ([+-][\d.]+)\), (p [=<] \S+): ([\w ]+)"


@pytest.fixture(scope="module")
def costly(book) -> list[tuple[str, str]]:
    """The first and last value of each curve of the run in which a call costs 1, from left to right."""
    [alt] = [alt for alt in alt_texts(book) if "a call costs 1 " in alt]
    return re.findall(r"(-?\d+\.\d\d) to (-?\d+\.\d\d)", alt)


@briefly_and_in_full(STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_the_packages_scorer_pays_for_two_answers(printed):
    assert "1.00  -224\n0.00  224\n0.67  -224.0\n0.36  -224 or 224" in printed


def test_only_the_shortcut_pays_for_what_the_tool_wrote(printed):
    scored = re.findall(r"^shortcut (\S+), outcome (\S+): ", printed, re.MULTILINE)
    assert scored == [("1.0", "1.0"), ("1.0", "0.0"), ("1.0", "0.0"), ("1.0", "0.0")]


def test_the_tools_text_is_masked_and_the_calls_and_answers_are_not(book):
    [alt] = [alt for alt in alt_texts(book) if "tokens of an episode" in alt]
    masked = alt.partition("The gray ones read: ")[2]
    assert "<tool_response>" in masked and "<tool_call>" not in masked
    count, own, gray = (int(number) for number in re.findall(r"\d+", alt)[:3])
    assert own + gray == count and own > gray > 5


def test_only_a_call_with_a_correct_answer_has_a_positive_advantage(printed):
    lines = re.findall(r"^advantage (\S+)  (.*)$", printed, re.MULTILINE)
    group = [(float(advantage), text) for advantage, text in lines]
    called = [text for _, text in group if text.startswith("(call) | ")]
    [best] = [text for advantage, text in group if advantage > 0]
    assert len(group) == 8 and len(called) > 1
    assert re.fullmatch(r"\(call\) \| (\d+) \| <answer>\1</answer>", best)


def test_both_runs_improve_and_a_reward_for_calls_makes_the_answers_worse(printed):
    evaluated = [(float(calls), int(right)) for calls, right in EVALUATED.findall(printed)]
    base, first, _, _, again, second = evaluated
    assert base == again and first[0] > base[0] + 0.3 and second[0] > first[0]
    changes = re.findall(rf"^[\w ]+ to [\w ]+: {CHANGE}$", printed, re.MULTILINE)
    assert [verdict for *_, verdict in changes] == ["improved", "improved", "got worse"]


def test_calls_fall_to_zero_while_the_reward_rises(printed, costly):
    (reward, right, calls) = [(float(first), float(last)) for first, last in costly]
    assert reward[1] > reward[0] + 0.5 and right[1] < right[0] and calls[1] <= 0.05 < calls[0]
    [step] = re.findall(r"step (\d+): [\d.]+ calls per episode", printed)
    assert int(step) < 20


def test_a_second_tool_lowers_the_calls_and_training_brings_them_back(printed):
    evaluated = [(float(calls), int(right)) for calls, right in EVALUATED.findall(printed)]
    (before, _), (calls, right), (_, later) = evaluated[1:4]
    assert calls < before - 0.2 and later > right + 50


def test_an_environment_that_raises_is_told_and_its_steps_are_kept(printed):
    assert "calls that raised: 100%" in printed and "the model reads: {'error': " in printed
    assert "stopped after 2 steps: the server does not answer" in printed


@pytest.mark.parametrize(
    ("price", "guess", "calls", "answer"),
    [
        (None, "", [1.0], "not attempted yet"),
        (1.0, "vanish", [0.3] * 10 + [0.0] * 5, "'vanish'; the run shows 'vanish'"),
        (1.0, "stay", [0.3] * 10 + [0.0] * 5, "'stay'; the run shows 'vanish'"),
        (0.5, "vanish", [0.3] * 20, "'vanish'; the run shows 'stay'"),
    ],
)
def test_exercise_2_compares_the_guess_with_the_run(book, capsys, price, guess, calls, answer):
    log = [{"tools/call_frequency": value} for value in calls]
    learner = SimpleNamespace(train=list, state=SimpleNamespace(log_history=log))
    stand_ins = dict.fromkeys(("outcome", "formatted", "cost", "keys"))
    stand_ins |= dict(new_trainer=lambda *given: learner, new_policy=list, show_run_curves=lambda *given: None)
    names = defined_by(book, "def compared", logged=logged, my_cost=price, my_guess=guess, **stand_ins)
    assert answer in check_exercise("2", *names["mine"]) + capsys.readouterr().out


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=3)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b3$", other_family, re.MULTILINE)
    assert len(EVALUATED.findall(other_family)) == 6
    assert "stopped after 2 steps" in other_family
