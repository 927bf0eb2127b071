"""Lesson 10 as readers run it: the committed notebook, and the same with other parameters."""

import ast
import re
from statistics import fmean

import bench_sft
import pytest
from benches import read_stored
from course import ROOT
from lessons import alt_texts, briefly_and_in_full, run_other_family, run_with_nbval

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "10_sft_then_grpo.ipynb"
RATE = r"(\d\.\d{3}) \((\d\.\d{3}) to (\d\.\d{3})\)"


def rates(text: str, label: str) -> list[float]:
    """The rates on all lines that start with ``label``, without their intervals."""
    lines = re.findall(rf"^{re.escape(label)}.*$", text, re.MULTILINE)
    return [float(rate) for line in lines for rate, *_ in re.findall(RATE, line)]


@briefly_and_in_full(STEPS=2)
def test_the_committed_lesson_runs_and_its_checked_outputs_are_the_same(tmp_path, parameters):
    run_with_nbval(LESSON, tmp_path, **parameters)


def test_grpo_alone_learns_nothing(printed):
    assert re.search(r"^rewards: \[0\.0(, 0\.0){4}\]\ntied:    \[1\.0(, 1\.0){4}\]$", printed, re.MULTILINE)
    assert "largest change of a weight: 0.0\n" in printed
    base, *_ = rates(printed, "strict accuracy, sampled:")
    assert base == 0


def test_only_the_completion_and_its_end_are_trained_on(printed):
    whole, trained = re.search(r"(\d+) tokens, trained on (\d+):\n", printed).groups()
    assert 10 < int(trained) < int(whole)
    assert re.search(r"'<reasoning>.*</answer><\|im_end\|>", printed)


def test_a_frozen_adapter_does_not_change_and_a_trainable_one_does(printed):
    frozen, trainable = printed.split("is_trainable=False")[1].split("is_trainable=True")[:2]
    changes = [float(re.search(r"change of a weight: (\S+)", part)[1]) for part in (frozen, trainable)]
    assert changes[0] == 0 < changes[1]
    assert "KL, by step: [0.0, 0.0, 0.0]" in frozen and "KL, by step: [0.0, 0.0, 0.0]" not in trainable
    assert re.search(r"KL, by step: \[0\.0, ", trainable)


def test_trl_copied_the_sft_adapter_as_the_reference(printed):
    assert "adapters: ['default', 'ref']\n" in printed


def test_sft_makes_the_pass_rate_usable(printed):
    after, formatted = rates(printed, "strict accuracy, sampled:")[1], rates(printed, "correctly formatted:")[0]
    assert 0.2 < after < 0.8 and formatted > 0.9


def test_grpo_doubles_the_accuracy_of_the_first_sft_run_to_the_guess_level(printed):
    before, after = rates(printed, "strict accuracy ")
    assert "Strict accuracy rose by" in printed and after > 1.5 * before and abs(after - 0.5) < 0.05
    first, last = re.search(r"mean reward: (\S+) in the first 5 steps, (\S+) in the last", printed).groups()
    assert float(last) > float(first)


def test_grpo_names_the_first_number_and_more_sft_compares(printed):
    found = re.findall(r"^(first SFT|GRPO|more SFT) +(\d+) +(\d+) +(\d+) +(\d+)$", printed, re.MULTILINE)
    assert [name for name, *_ in found] == ["first SFT", "GRPO", "more SFT"]
    sft, grpo, more = (dict(zip("cfsb", map(int, counts), strict=True)) for _, *counts in found)
    assert grpo["f"] > 0.8 * 200 > 10 > grpo["s"] and sft["f"] > 2 * sft["s"]
    assert more["b"] > 0.5 * 200 > 20 > grpo["b"] and 0.5 < more["f"] / more["s"] < 2


def test_the_bars_show_that_more_sft_beats_grpo_and_that_grpo_wins_with_wrong_worked_answers(book):
    results, flawed = (alt for alt in alt_texts(book) if alt.startswith("How each policy answers"))
    sft, grpo, more = (float(share) for share in re.findall(r"(?:SFT|GRPO), correct (\d\.\d\d)", results))
    assert "base, correct 0.00" in results and sft < grpo < more
    sft, grpo, more = (float(share) for share in re.findall(r"(?:SFT|GRPO), correct (\d\.\d\d)", flawed))
    assert sft < more < grpo


def test_the_bars_of_grpo_change_their_color_with_the_order(book):
    [alt] = [alt for alt in alt_texts(book) if alt.startswith("Which number each policy names")]
    _, *parts = re.split(r"the larger number is (first|second): ", alt)
    shares = {
        (order, name): (float(larger), float(smaller))
        for order, part in zip(parts[::2], parts[1::2], strict=True)
        for name, larger, smaller in re.findall(r"(\w[\w ]+), the larger (\S+), the smaller (\S+), neither", part)
    }
    larger, smaller = ({key: pair[place] for key, pair in shares.items()} for place in (0, 1))
    assert larger["first", "GRPO"] > 0.8 > 0.1 > larger["second", "GRPO"] and smaller["second", "GRPO"] > 0.6
    assert min(larger[order, "more SFT"] for order in ("first", "second")) > 0.5


def test_the_accuracy_by_kind_shows_the_shortcut(printed):
    found = dict(re.findall(r"^(first SFT|GRPO|more SFT) +(\{.*\})$", printed, re.MULTILINE))
    apart = {}
    for name, kinds in found.items():
        by_kind = ast.literal_eval(kinds)
        apart[name] = by_kind["larger first"] - by_kind["larger second"]
    assert apart["GRPO"] > 0.9 and apart["first SFT"] > 0.2 > abs(apart["more SFT"])


def test_grpo_wins_where_worked_answers_are_wrong_and_never_carries(printed):
    start, grpo, more = (rates(printed, label)[0] for label in ("after the first SFT", "then GRPO:", "or more SFT:"))
    assert grpo > more > start
    assert printed.split("or more SFT:")[1].count("Strict accuracy rose by") == 1
    shown = re.findall(r"^Which number comes after (\d+)\? .*<answer>(\d+)</answer>$", printed, re.MULTILINE)
    assert [int(answer) - int(number) for number, answer in shown] == [-1, 1]
    carried, of = map(int, re.search(r"^carries after GRPO: (\d+) of (\d+) correct$", printed, re.MULTILINE).groups())
    assert carried < 0.2 * of


# The tables of seeds are what the bench stored

ROWS = read_stored(bench_sft.STORED)["rows"]


def seeds_row(case: str) -> str:
    """The mean accuracies of a case and the difference, as the lesson writes them."""
    arms = (("SFT", 0), ("GRPO", bench_sft.STEP), ("SFT", bench_sft.STEP))
    means = " | ".join(f"{fmean(bench_sft.at(ROWS, case, *arm)):.3f}" for arm in arms)
    value, low, high = bench_sft.difference(ROWS, case, bench_sft.STEP)
    return f"| {case.removeprefix('next, ')} | {means} | {value:+.3f} ({low:+.3f} to {high:+.3f}) |"


def test_the_tables_of_the_lesson_are_what_is_stored(book):
    text = "\n".join(cell.source for cell in book.cells)
    cases = [case for case in bench_sft.CASES if bench_sft.CASES[case].task == bench_sft.NEXT]
    assert [row for case in cases if (row := seeds_row(case)) not in text] == []
    assert bench_sft.swaps(ROWS) in text


def shortcuts(case: str, arm: str, step: int) -> int:
    return sum(counts.follows for counts in bench_sft.tested(ROWS, case, arm, step))


def test_the_seeds_show_what_the_lesson_says_of_the_shortcut():
    grpo, sft = ("GRPO", bench_sft.STEP), ("SFT", bench_sft.STEP)
    cases = [case for case in bench_sft.CASES if bench_sft.CASES[case].task == bench_sft.LARGER]
    assert [(shortcuts(case, *grpo), shortcuts(case, *sft)) for case in cases] == [(2, 0), (4, 0)]
    assert shortcuts(cases[0], bench_sft.ARMS[2], bench_sft.STEP) == 1
    ends = {}
    for case in cases:
        accuracies = (bench_sft.at(ROWS, case, *arm) for arm in (("SFT", 0), grpo))
        assert all(start < end for start, end in zip(*accuracies, strict=True))
        for start, end in zip(bench_sft.tested(ROWS, case, "SFT", 0), bench_sft.tested(ROWS, case, *grpo), strict=True):
            most, least = max(start[:2]), min(start[:2])
            kind = "mostly one" if most >= 4 * least else "between" if most > 1.5 * least else "balanced"
            ends.setdefault(kind, []).append(end.follows)
    assert ends["mostly one"] == [True] * 4 and ends["balanced"] == [False] * 3 and len(ends["between"]) == 3


def test_the_seeds_show_when_grpo_wins():
    larger, _, correct, some_wrong, half_wrong, sort = (
        bench_sft.difference(ROWS, case, bench_sft.STEP) for case in bench_sft.CASES
    )
    assert max(larger.high, correct.high) < 0 < min(some_wrong.low, half_wrong.low) and sort.covers_zero
    carries = [
        sum(bench_sft.at(ROWS, "next, 100 correct", *arm, "carries_right"))
        for arm in (("SFT", 0), ("GRPO", bench_sft.STEP), ("SFT", bench_sft.STEP))
    ]
    assert carries == [5, 0, 47]


def test_a_balanced_start_ends_without_the_shortcut(printed):
    solution = printed.split("Exercise 1, solution")[1]
    counts = map(int, re.search(r"only larger first (\d+), only second (\d+), both (\d+)", solution).groups())
    first, second, both = counts
    assert both > max(first, second)


@pytest.mark.upgrade
def test_the_other_family_takes_every_override(tmp_path):
    shown = run_other_family(LESSON, tmp_path, STEPS=2)
    assert re.search(r"tiny-gemma3.*\b2$", shown, re.MULTILINE)
    assert "adapters: ['default', 'ref']" in shown and "largest change of a weight: 0.00000" in shown
