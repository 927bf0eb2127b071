"""Lesson 06 as readers run it: the committed notebook, and the same with other parameters."""

import re

import pytest
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, run_other_family, run_with_nbval

from grpo_utils import show_changes
from grpo_utils.evaluation.statistics import Change, Estimate
from grpo_utils.rewards import is_strictly_right

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "06_evaluation.ipynb"
RATE = r"(\d\.\d{3}) \(\d\.\d{3} to \d\.\d{3}\)"


def numbers(pattern: str, text: str) -> list[float]:
    """The numbers in the parentheses of the only line that matches ``pattern``."""
    [found] = re.finditer(f"^{pattern}", text, re.MULTILINE)
    return [float(number) for number in found.groups()]


@briefly_and_in_full(STEPS=3)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_every_held_out_question_counts_once_and_was_not_trained_on(printed):
    assert "different held-out questions: 200\nalso in the training rows: 0" in printed


def test_every_seed_improves_a_lot(printed):
    [before] = numbers(rf"strict accuracy, sampled: {RATE}", printed)
    afters = [numbers(rf"seed {seed}, strict accuracy, sampled: {RATE}", printed)[0] for seed in range(3)]
    assert before < 0.3 and min(afters) > 0.9


def test_a_few_questions_show_more_than_all_of_them(printed):
    texts = re.findall(r"correct answer: (\d+)\n  before: (.*)\n  after:  (.*)$", printed, re.MULTILINE)
    verdicts = [(is_strictly_right(old, gold), is_strictly_right(new, gold)) for gold, old, new in texts]
    assert verdicts == [(False, True)] * 3
    [same] = numbers(r"no change: (\S+) of the questions", printed)
    assert same > 0.1
    low, high = numbers(r"five questions, 95 times of 100: (\S+) to (\S+)", printed)
    assert high - low > 0.3
    better, worse = (numbers(rf"five questions, {how}: (\S+) of the draws", printed)[0] for how in ("better", "worse"))
    assert 0 < better < 0.25 and 0 < worse < 0.25


def test_twenty_prompts_show_the_gain_and_five_never_do(printed):
    table = {n: numbers(rf" *{n} +(\S+)$", printed)[0] for n in (5, 10, 20, 50, 200)}
    assert table[5] == 0 and table[20] > 0.95 and table[200] == 1


def test_the_base_compared_with_itself_shows_nothing(printed):
    better, worse = numbers(r"better: (\d+)\nworse: (\d+)\nNo improvement shown", printed)
    assert min(better, worse) > 10
    [alarms] = numbers(r"false alarms: (\d+) of 1000", printed)
    assert alarms <= 50


def test_the_parts_of_the_gain_sum_to_it_and_both_are_real(printed):
    gain = float(re.search(r"Strict accuracy rose by (\S+) \(95% interval", printed)[1])
    form, answers = numbers(r"gain from format \+(\S+) \(.*?\), from correctness \+(\S+) ", printed)
    assert form + answers == pytest.approx(gain, abs=0.0011) and form > answers > 0.05


def test_only_sums_with_a_carry_improved(book, printed):
    easy, hard = (numbers(rf"correct sums, {kind}, before: {RATE}", printed)[0] for kind in ("no carry", "carry"))
    assert easy > 0.95 > 0.6 > hard
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("Gains in format and arithmetic")]
    verdicts = dict(re.findall(r"(?:: |; )([^;:]+?) [+-]\d\S+ \(.*?\), ([a-z ]+)", alt))
    assert verdicts.pop("sums, no carry") == "no change shown" and set(verdicts.values()) == {"improved"}


def test_pass_at_16_was_high_before_and_one_sample_beats_a_vote(book, printed):
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("pass@k")]
    found = re.findall(rf"from {RATE} at k = 1 to {RATE} at k = 16", alt)
    (once, often), (after, always) = [(float(one), float(sixteen)) for one, sixteen in found]
    assert once < 0.3 < 0.9 < often <= always and after > 0.9
    [vote] = numbers(rf"majority of 16, before: {RATE}", printed)
    assert once < vote < after
    assert numbers(rf"greedy accuracy, before: {RATE}", printed) == [0.0]
    assert "tagged greedy answers, before: 0\n" in printed


def test_training_carries_over_in_part_and_harms_facts(printed):
    rows = re.findall(r"^(.{17})(\d\.\d\d) to (\d\.\d\d)  .*, p [=<] (\S+): (.*)$", printed, re.MULTILINE)
    changes = {name.strip(): (float(before), float(after), p, verdict) for name, before, after, p, verdict in rows}
    assert len(changes) == 6
    assert all(float(p) < 0.05 for *_, p, verdict in changes.values() if verdict != "no change shown")
    verdicts = {name: verdict for name, (*_, verdict) in changes.items()}
    assert verdicts["no system prompt"] == verdicts["'the sum of'"] == "improved" and verdicts["facts"] == "got worse"
    assert verdicts["JSON"] == "no change shown"
    assert changes["'the sum of'"][1] < 0.5 < changes["no system prompt"][1]
    assert changes["three digits"][:2] == (0, 0)
    assert re.search("^Got worse elsewhere: .*facts", printed, re.MULTILINE)


def test_each_seed_has_a_before_of_its_own_and_no_seed_is_better(book, printed):
    gains = re.search(r"^seeds: (.*)$", printed, re.MULTILINE)[1].split(", ")
    assert len(gains) == len(set(gains)) == 3
    assert re.search(r"^Strict accuracy rose by .* 3 seeds", printed, re.MULTILINE)
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("Changes between seeds")]
    assert alt.count("no change shown") == 4


def test_the_best_of_sixteen_equal_models_is_lucky(printed):
    [best] = numbers(r"the best: (\S+)$", printed)
    assert best > 0.04 + numbers(r"average: (\S+)$", printed)[0]


def test_the_figure_of_changes_carries_its_numbers_as_text(capsys):
    show_changes({"facts": Change(Estimate(-0.2, -0.3, -0.1), 0, 9, 0.004)}, "Changes")
    assert "Changes, with 95% intervals: facts -0.200 (-0.300 to -0.100), got worse." in capsys.readouterr().out


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=3)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b3 steps", other_family)
    assert [int(seed) for seed in re.findall(r"seed (\d+), strict accuracy", other_family)] == [5, 6, 7]


def test_three_steps_are_no_triumph(other_family):
    [gain] = numbers(r"before to after: (\S+) on all questions", other_family)
    assert gain < 0.4
