"""Lesson 10 as readers run it: the committed notebook, what its outputs show, and the other family."""

import re
from pathlib import Path

import pytest
import trl
from conftest import ROOT
from lessons import alt_texts, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "10_thinking.ipynb"
RATE = r"^{} +([\d.]+) tokens, correct: ([\d.]+) \(([\d.]+) to ([\d.]+)\)"
RUNS = ("untrained", "tolerant", "punished", "masked", "overlong")


@pytest.fixture(scope="module")
def curves(book) -> list[str]:
    return alt_texts(book)


def rates(name: str, printed: str) -> list[float]:
    """The mean tokens of a run, its share of correct answers, and the interval; as printed last."""
    return [float(number) for number in re.findall(RATE.format(name), printed, re.MULTILINE)[-1]]


def ends(key: str, run: str, alt: str) -> list[float]:
    """The first and the last value of a curve, from the alt text of a figure."""
    curves = re.search(rf"{key}: (.*?)(?:; |\.$)", alt)[1]
    return [float(number) for number in re.search(rf"{run} ([\d.]+) to ([\d.]+)", curves).groups()]


def by_digit(name: str, printed: str) -> list[int]:
    """How many completions of a run add digit by digit, and how many of these are correct; as printed last."""
    pattern = rf"^{name} .*\n +(\d+) digit by digit, (\d+) correct$"
    return [int(number) for number in re.findall(pattern, printed, re.MULTILINE)[-1]]


def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path):
    run_with_nbval(LESSON, tmp_path)


def test_each_template_prefills_what_the_text_says_of_it(printed):
    files = Path(trl.__file__).parent.glob("chat_templates/*.jinja")
    count = sum("_training" not in file.stem for file in files)
    table = re.findall(r"^(\w+) +('.*?') +('.*?') +('.*?')$", printed, re.MULTILINE)
    assert f"{len(table)} of {count} templates add a tag" in printed
    row = {name: ends for name, *ends in table}
    assert row["deepseek_r1_distill"] == row["deepseekv3"] == ["'<think>↵'"] * 3
    assert row["qwen3_6"][0] == row["nemotron_3_nano"][0] == "'<think>↵'"
    assert row["qwen3"][:2] == ["''", "''"] and row["qwen3"][2] == row["qwen3_5_nothink"][0] == "'<think>↵↵</think>↵↵'"


def test_trls_reward_scores_a_prefilled_thought_zero(printed):
    sampled, with_tag = (float(n) for n in re.findall(r"^mean score .*: +([\d.]+)$", printed, re.MULTILINE))
    assert sampled == 0 and with_tag > 0.5


def test_the_preflight_finds_the_prefilled_tag(printed):
    assert "error   prefilled_think: " in printed


def test_only_the_tolerant_reward_pays_all_three_shapes(printed):
    lines = re.search(r"^strict  tolerant\n(.*?)\n\n", printed + "\n\n", re.MULTILINE | re.DOTALL)[1].splitlines()
    assert [line.split()[:2] for line in lines] == [["1.0", "1.0"]] + [["0.0", "1.0"]] * 2 + [["0.0", "0.0"]] * 3


def test_only_the_tolerant_run_learns_and_its_completions_grow(printed, curves):
    figure = curves[0]
    learned, logged = (ends("rewards/tolerant_reward/mean", run, figure) for run in ("tolerant", "strict"))
    assert learned[1] > 0.8 and max(logged) < 0.7
    assert min(ends("frac_reward_zero_std", "strict", figure)) > 0.8
    short, long = ends("completions/mean_length", "tolerant", figure)
    assert long > short + 1
    assert int(re.search(r"paid anything: (\d+) of 20", printed)[1]) < 10


def test_the_tolerant_run_adds_digit_by_digit_because_that_earns_more(printed):
    assert re.search(r"^change: .*: improved$", printed, re.MULTILINE)
    digits, paid = by_digit("untrained", printed)
    all_paid = int(re.search(r"^untrained .*, (\d+) of 200$", printed, re.MULTILINE)[1])
    assert paid > 0.9 * digits and all_paid - paid < 0.5 * (200 - digits)
    assert by_digit("tolerant", printed)[0] > digits + 100
    _, after = re.search(r"before and after:\n(.*)\n(.*)\n", printed).groups()
    assert "," in after


def test_a_limit_that_suits_the_untrained_model_truncates_the_trained_one(printed):
    untrained, tolerant = re.search(r"^18 +(\d+)% +(\d+)%$", printed, re.MULTILINE).groups()
    assert int(tolerant) > int(untrained) + 30


def test_adding_with_a_carry_does_not_fit_the_tight_limit(printed):
    shortest = re.findall(r"^shortest correct completion .*: (\d+) tokens$", printed, re.MULTILINE)
    plain, carried = (int(count) for count in shortest)
    assert plain <= 18 < carried


def test_each_tight_run_is_worse_than_the_generous_one(printed):
    for name in RUNS[2:]:
        assert re.search(rf"^tolerant to {name}: .*: got worse$", printed, re.MULTILINE)
        assert by_digit(name, printed)[0] < by_digit("tolerant", printed)[0] - 50


def test_the_paired_test_tells_runs_apart_whose_intervals_overlap(printed):
    (*_, high), (*_, low, _) = rates("punished", printed), rates("masked", printed)
    assert low < high
    verdicts = re.findall(r"^(\w+ to \w+): .*: ([a-z ]+)$", printed, re.MULTILINE)
    assert verdicts[-3:] == [
        ("punished to masked", "improved"),
        ("punished to overlong", "no change shown"),
        ("masked to overlong", "no change shown"),
    ]


def test_masking_keeps_the_truncated_completions_and_punishing_does_not(curves):
    first, last = ends("completions/clipped_ratio", "punished", curves[1])
    assert last < 0.1 < first
    assert ends("completions/clipped_ratio", "masked", curves[1])[1] > 0.15
    assert ends("completions/clipped_ratio", "tolerant", curves[1])[0] == 0


def test_the_last_number_pays_for_thoughts_that_never_close(printed):
    rows = re.findall(r"^(\w+) +(\d+)% +(\d+)%$", printed.split("last number correct")[1], re.MULTILINE)
    found = {name: (int(closed), int(last)) for name, closed, last in rows}
    assert found["untrained"][1] > 100 * rates("untrained", printed)[1] + 10
    assert min(found[name][0] for name in RUNS[1:]) > found["untrained"][0] + 10


@pytest.fixture(scope="module")
def other_family(tmp_path_factory) -> str:
    return run_other_family(LESSON, tmp_path_factory.mktemp("other"), STEPS=2)


def test_every_override_arrives(other_family):
    assert re.search(r"tiny-gemma3.*\b2$", other_family, re.MULTILINE)
    assert "<start_of_turn>model\\n<think>" in other_family
    assert re.search(r"paid anything: \d of 2", other_family)


def test_the_other_family_meets_the_same_fault(other_family):
    assert re.search(r"what was sampled: +0\.00", other_family) and "error   prefilled_think" in other_family
