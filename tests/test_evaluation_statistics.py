"""Intervals, tests and estimators against scipy, brute force, and published numbers."""

import doctest
import itertools
import math
import re

import numpy
import pytest
from course import ROOT
from grpo_core.errors import CourseError
from grpo_core.training.measuring import mcnemar_p_value, wilson_interval
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_1samp

from grpo_utils.evaluation.comparing import split_gain
from grpo_utils.evaluation.statistics import (
    Change,
    Estimate,
    majority_right,
    majority_vote,
    mean_interval,
    paired_change,
    pass_at_k,
    t_interval,
)

NEWCOMBE = [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611), (1, 29, 0.0061, 0.1718)]
SHARES = st.floats(0, 1)
CHANGES = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


@pytest.mark.parametrize(("hits", "n", "low", "high"), NEWCOMBE)
def test_wilson_gives_the_published_examples(hits, n, low, high):
    """Newcombe 1998, Statistics in Medicine 17:857, table I, method 3."""
    assert [round(end, 4) for end in wilson_interval(hits, n)] == [low, high]


@given(CHANGES)
def test_mcnemar_is_symmetric_and_agrees_with_the_binomial_sum(pairs):
    before, after = zip(*pairs)
    better, worse = pairs.count((False, True)), pairs.count((True, False))
    p_value = mcnemar_p_value(before, after)
    assert p_value == mcnemar_p_value(after, before)
    tail = sum(math.comb(better + worse, i) for i in range(min(better, worse) + 1)) / 2 ** (better + worse)
    assert p_value == pytest.approx(min(1.0, 2 * tail), abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40))
def test_the_sign_test_asks_only_which_way(pairs):
    before, after = zip(*pairs)
    there, back = paired_change(before, after), paired_change(after, before)
    assert there.p_value == back.p_value and (there.better, there.worse) == (back.worse, back.better)
    assert there.p_value == mcnemar_p_value([b > a for b, a in pairs], [a > b for b, a in pairs])


def test_four_worse_of_a_hundred_is_no_loss():
    found = paired_change([1.0] * 100, [1.0] * 96 + [0.0] * 4)
    assert found.estimate.high < 0 and found.p_value == 0.125 and found.verdict == "no change shown"
    assert paired_change([0.5] * 100, [0.5] * 90 + [0.0] * 10).verdict == "got worse"
    assert paired_change([0.5] * 100, [0.5] * 90 + [1.0] * 10).verdict == "improved"


def test_a_mean_and_a_test_that_point_apart_show_nothing():
    few_much_many_little = Change(Estimate(0.1, 0.02, 0.18), better=5, worse=30, p_value=1e-5)
    assert not few_much_many_little.shown and few_much_many_little._replace(better=30, worse=5).shown


def test_a_pair_needs_two():
    with pytest.raises(CourseError, match="2 results before and 1 after.*same rows"):
        paired_change([True, False], [True])
    with pytest.raises(CourseError, match="0 results before.*at least one"):
        paired_change([], [])


@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_agrees_with_trying_every_choice(counts):
    n, right, k = counts
    choices = list(itertools.combinations([True] * right + [False] * (n - right), k))
    assert pass_at_k(n, right, k) == pytest.approx(sum(map(any, choices)) / len(choices), abs=1e-12)


@pytest.mark.parametrize("k", [0, 17])
def test_more_k_than_samples_says_how_many_to_draw(k):
    with pytest.raises(CourseError, match=f"pass@{k} cannot be estimated from 16 samples.*Draw at least {max(k, 1)}"):
        pass_at_k(16, 4, k)


def test_a_tie_is_broken_by_lot_and_silence_is_wrong():
    assert majority_right(majority_vote(["41", "42", "42", "41", "7"]), "42") == 0.5
    assert majority_right(majority_vote([None, None]), "42") == 0.0


def test_a_vote_for_1000_is_a_vote_for_1_000():
    assert majority_vote(["7", "1,000", "1000", "7.0", "1000.0"]) == ["1,000"]


@given(st.lists(st.sampled_from(["1", "2", "3", None]), max_size=12))
def test_the_majority_is_what_a_count_says(answers):
    counts = {a: answers.count(a) for a in answers if a}
    assert set(majority_vote(answers)) == {a for a, c in counts.items() if c == max(counts.values())}


@given(SHARES, SHARES, SHARES, SHARES)
def test_the_parts_sum_to_the_gain(f0, a0, f1, a1):
    by_form, by_answers = split_gain(f0, a0, f1, a1)
    assert by_form + by_answers == pytest.approx(f1 * a1 - f0 * a0, abs=1e-12)


@settings(max_examples=25, deadline=None)
@given(CHANGES)
def test_a_paired_interval_holds_the_change_and_turns_with_it(pairs):
    before, after = zip(*pairs)
    there, back = paired_change(before, after).estimate, paired_change(after, before).estimate
    assert -1 <= there.low <= there.value <= there.high <= 1
    assert (back.value, back.low) == pytest.approx((-there.value, -there.high), abs=0.1)


def test_all_alike_is_no_certainty():
    nothing = paired_change([True] * 20, [True] * 20).estimate
    assert nothing == pytest.approx((0.0, -0.161, 0.161), abs=1e-3) and nothing.covers_zero
    everything = paired_change([False] * 20, [True] * 20).estimate
    assert everything == pytest.approx((1.0, 0.678, 1.0), abs=1e-3)
    assert mean_interval([2.0, 2.0]) == (2.0, 2.0, 2.0)  # no bounds are known
    assert mean_interval([1.0], bounds=(0, 1)).low < 0.25


def test_the_t_interval_is_where_the_t_test_turns():
    values = [0.70, 0.72, 0.77, 0.69]
    found = t_interval(values, 0.0)
    scipy_says = ttest_1samp(values, 0).confidence_interval()
    assert found[1:] == pytest.approx((scipy_says.low, scipy_says.high), abs=1e-9)
    assert ttest_1samp(values, found.low).pvalue == pytest.approx(0.05, abs=1e-9)


def test_scatter_has_a_floor_where_values_are_rounded():
    expected = 12.7062 * 0.005 / math.sqrt(2)
    assert t_interval([0.01, 0.01], 0.005).high == pytest.approx(0.01 + expected, abs=1e-5)
    assert t_interval([0.1, 0.3, 0.2], 0.005) == t_interval([0.1, 0.3, 0.2], 0.0)


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, numpy.float64("nan")])
def test_a_missing_result_is_an_error_and_no_nan(missing):
    with pytest.raises(CourseError, match=r"Value 2 of 3 is (None|nan|inf).*Score what gave no result as wrong"):
        mean_interval([0.5, missing, 0.7])
    for pair in (([1.0, missing], [0.0, 1.0]), ([0.0, 1.0], [1.0, missing])):
        with pytest.raises(CourseError, match="Value 2 of 2"):
            paired_change(*pair)


@pytest.mark.parametrize("values", [[], [0.7]])
def test_one_seed_is_no_scatter(values):
    with pytest.raises(CourseError, match="train with three at least"):
        t_interval(values, 0.005)


def test_the_examples_of_the_page_give_what_it_shows():
    page = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    examples = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
    found = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(examples, {}, "evaluation.md", None, 0))
    assert found.failed == 0 and found.attempted == 10
