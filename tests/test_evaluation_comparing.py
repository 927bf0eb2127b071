"""Comparisons that refuse what cannot be compared, and claim no more than was shown."""

import re
from dataclasses import replace

import numpy
import pytest
from course import judged
from datasets import Dataset
from grpo_core.errors import CourseError

from grpo_utils import load_rows
from grpo_utils.data.sources import addition_rows
from grpo_utils.evaluation.comparing import compare, compare_seeds
from grpo_utils.evaluation.judging import evaluate_samples, generate_samples, judge_samples
from grpo_utils.evaluation.statistics import Change, Estimate
from grpo_utils.plots.rates import VERDICTS, change_figure, pass_at_k_figure

FORM = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"
WRONG = FORM.replace("42", "41")


def result(right: int, wrong: int = 0, unformed: int = 0):
    texts = [FORM] * right + [WRONG] * wrong + ["It is 42."] * unformed
    return judged(texts, texts, ["42"] * len(texts))


def test_rates_and_parts_by_hand():
    found = compare(result(8, 2, 30), result(36, 0, 4))
    assert (found.better, found.worse) == (28, 0)
    for rates in ("10 of 40   0.900", "8 of 10   1.000", "8 of 40   0.900"):
        assert re.search(rates.replace("   ", " +"), str(found))
    assert found.format_part.value == pytest.approx((0.9 - 0.25) * (0.8 + 1.0) / 2)
    assert found.answer_part.value == pytest.approx((1.0 - 0.8) * (0.25 + 0.9) / 2)
    assert found.format_part.value + found.answer_part.value == pytest.approx(found.difference.value)
    assert found.improved and "rose by 0.700" in found.sentence


def test_a_gain_of_form_alone_is_called_so():
    found = compare(result(20, 20, 60), result(50, 50, 0))
    assert found.format_part.value == pytest.approx(found.difference.value) and found.answer_part.value == 0.0
    assert found.answer_part.covers_zero and "from correctness +0.000" in str(found)


def test_never_in_form_cannot_be_split_and_says_so():
    found = compare(result(0, 0, 30), result(30, 0, 0))
    assert found.format_part is None and found.answer_part is None
    assert "none formatted" in str(found) and "cannot be split" in str(found) and found.improved


@pytest.mark.parametrize("before", [result(1, 0, 29), result(0, 19, 11)])
def test_hardly_any_in_form_gets_no_interval_of_no_width(before):
    found = compare(before, result(27, 1, 2))
    assert found.format_part is None and found.answer_part is None
    assert "too few correctly formatted answers (below 20, all alike)" in str(found)
    assert compare(result(20, 0, 10), result(27, 1, 2)).answer_part is not None


def test_the_answers_in_form_may_be_missing_from_a_resample():
    found = compare(result(1, 1, 8), result(9, 1, 0))
    assert found.format_part.low == found.format_part.low  # no NaN


def test_the_bootstrap_alone_claims_nothing():
    """5 better and none worse: the interval leaves zero out, the exact test says 0.06."""
    found = compare(result(0, 200), result(5, 195))
    assert not found.difference.covers_zero and found.p_value == 0.0625
    assert not found.improved and found.sentence.startswith("No improvement shown")


def test_nothing_changed_and_all_changed():
    same = compare(result(50), result(50))
    assert (same.difference.value, same.p_value, same.improved) == (0.0, 1.0, False)
    worse = compare(result(50), result(0, 50))
    assert worse.changed and not worse.improved and "FELL by 1.000 (95% interval 0.857 to 1.000" in worse.sentence


def test_evaluations_of_different_prompts_are_refused():
    with pytest.raises(CourseError, match="4 and 3 prompts.*same rows"):
        compare(result(4), result(3))
    golds = ["42", "41"]
    old, new = (judged([FORM, WRONG], [FORM, WRONG], answers) for answers in (golds, golds[::-1]))
    with pytest.raises(CourseError, match="different prompts, or of the same in another order"):
        compare(old, new)
    old, new = (judged([FORM], [FORM], ["42"], prompt=[question]) for question in ("15 + 27?", "27 + 15?"))
    with pytest.raises(CourseError, match="different prompts"):
        compare(old, new)


def test_seeds_that_agree_show_an_improvement_and_others_do_not():
    steady = over_seeds((10, 40), (11, 43), (9, 40))
    assert steady.improved and "rose by 0.620" in steady.sentence and "3 seeds" in steady.sentence
    erratic = over_seeds((10, 40), (9, 8), (11, 31))
    assert not erratic.improved and erratic.sentence.startswith("No improvement shown")
    worse = over_seeds((10, 0), (11, 2), (12, 1))
    assert not worse.improved and "FELL" in worse.sentence
    with pytest.raises(CourseError, match="1 seed:"):
        over_seeds((10, 11))


def sampled(right: int, n: int = 50):
    """So many right, and greedy texts that are others: nothing was decoded greedily."""
    return judged([FORM] * right + [WRONG] * (n - right), [FORM] * n, ["42"] * n)


def over_seeds(*rights: tuple[int, int]):
    return compare_seeds([compare(sampled(before), sampled(after)) for before, after in rights])


def test_one_sampled_before_for_all_seeds_is_refused():
    with pytest.raises(CourseError, match="1 and 3 share the same sampled before.*Sample the base again"):
        over_seeds((10, 20), (11, 21), (10, 22))


def test_one_greedy_before_for_all_seeds_has_no_noise():
    old = judged([FORM] * 50, [FORM] * 50, ["42"] * 50)
    assert not compare_seeds([compare(old, sampled(n)) for n in (20, 30)]).improved


def test_one_policy_counted_as_two_seeds_is_refused():
    with pytest.raises(CourseError, match="2 and 3 are of the same texts: one training run counted twice"):
        over_seeds((9, 19), (10, 20), (10, 20))
    once = compare(judged([FORM] * 50, [FORM] * 50, ["42"] * 50), sampled(20))  # greedy before
    with pytest.raises(CourseError, match="counted twice"):
        compare_seeds([once, once])


def test_seeds_that_agree_by_rounding_claim_nothing():
    assert over_seeds((10, 11), (20, 21)).difference == pytest.approx((0.02, -0.160, 0.200), abs=1e-3)


def test_seeds_on_different_prompts_are_refused():
    with pytest.raises(CourseError, match="different prompts. Evaluate all seeds on the same rows"):
        compare_seeds([compare(sampled(9), sampled(19)), compare(sampled(10, 60), sampled(20, 60))])
    other = [judged([FORM] * 50, [WRONG] * 50, ["41"] * 50), judged(["41"] * 50, [WRONG] * 50, ["41"] * 50)]
    with pytest.raises(CourseError, match="different prompts"):
        compare_seeds([compare(sampled(9), sampled(19)), compare(*other)])


def seeds_of(template, changes: list[Estimate]) -> list:
    """Comparisons like the template, each with its own texts and difference."""
    befores = [replace(template.before, sampled=[str(number)]) for number in range(len(changes))]
    return [replace(template, before=before, difference=c) for before, c in zip(befores, changes)]


@pytest.mark.parametrize("count", [3, 10])
def test_seeds_that_did_nothing_raise_a_false_alarm_in_one_of_twenty_cases_at_most(count):
    """A/A: both sides of each seed are 200 prompts, 23 % right. With one shared before it was 16 and 51 %."""
    rng, alarms = numpy.random.default_rng(1), 0
    template = replace(compare(sampled(46, 200), sampled(46, 200)), better=35, worse=35)
    for _ in range(1000):
        before, after = rng.binomial(200, 0.23, size=(2, count)) / 200
        seeds = seeds_of(template, [Estimate(change, -1, 1) for change in after - before])
        alarms += not compare_seeds(seeds).difference.covers_zero
    assert 0.005 <= alarms / 1000 <= 0.05


def test_three_seeds_that_agree_by_luck_are_no_surer_than_their_prompts():
    """Each difference was uncertain by 0.045, all three lay within 0.01, and "FELL" was claimed."""
    one = replace(compare(sampled(10, 200), sampled(7, 200)), better=8, worse=11)
    changes = [Estimate(value, value - 0.045, value + 0.045) for value in (-0.025, -0.015, -0.020)]
    assert compare_seeds(seeds_of(one, changes)).difference == pytest.approx((-0.02, -0.0447, 0.0047), abs=1e-3)


def judged_samples(texts: list[list[str]]):
    return judge_samples(texts, Dataset.from_dict({"answer": ["42"] * len(texts)}))


def test_samples_give_pass_at_k_and_a_vote():
    samples = judged_samples([[FORM, WRONG, "42", "42"], [WRONG, WRONG, FORM, FORM]])
    assert samples.right == [[True, False, False, False], [False, False, True, True]]
    assert samples.pass_at_k(1).value == 0.375 and samples.pass_at_k(4).value == 1.0
    assert samples.majority_of_each() == [0.5, 0.5]  # what is not in form does not vote, and two tie
    assert judged_samples([[FORM]] * 20).pass_at_k(1).low < 0.9  # right always is not certainty
    with pytest.raises(CourseError, match="Draw at least 5"):
        samples.pass_at_k(5)


def test_a_figure_shows_each_verdict_by_color_and_marker():
    up, flat, down = Estimate(0.2, 0.1, 0.3), Estimate(0.1, -0.1, 0.3), Estimate(-0.2, -0.3, -0.1)
    changes = {"a": Change(up, 9, 0, 0.004), "b": Change(flat, 9, 8, 1.0), "c": Change(down, 0, 9, 0.004)}
    figure = change_figure(changes | {"d": Change(up, 5, 0, 0.06)}, "t")
    points = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
    drawn = [(point.get_color(), point.get_marker()) for point in points]
    verdicts = ["improved", "no change shown", "got worse", "no change shown"]
    assert drawn == [VERDICTS[verdict] for verdict in verdicts]
    assert len({color for color, _ in drawn}) == len({marker for _, marker in drawn}) == 3
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(VERDICTS)
    assert [tick.get_text() for tick in figure.axes[0].get_yticklabels()] == list("abcd")


def test_the_figure_of_pass_at_k_has_a_line_a_name():
    samples = judged_samples([[FORM, WRONG]] * 5)
    points = {k: samples.pass_at_k(k) for k in (1, 2)}
    axes = pass_at_k_figure({"before": points, "after": points}).axes[0]
    assert [line.get_label() for line in axes.lines] == ["before", "after"]
    assert list(axes.lines[0].get_ydata()) == [0.5, 1.0] and len(axes.collections) == 2


def test_what_cannot_be_sampled_is_an_error():
    with pytest.raises(CourseError, match="samples=0"):
        generate_samples(None, None, [], samples=0, max_new_tokens=8)
    with pytest.raises(CourseError, match="temperature 0"):
        generate_samples(None, None, [], samples=2, temperature=0, max_new_tokens=8)
    with pytest.raises(CourseError, match="no held-out rows"):
        evaluate_samples(None, None, load_rows("addition", "test", 3).select([]), samples=2, max_new_tokens=8)


def test_samples_of_the_tiny_model_belong_to_their_prompts(tiny):
    rows = Dataset.from_list(addition_rows(6, "test"))
    found = evaluate_samples(*tiny, rows, samples=4, max_new_tokens=32, seed=1)
    assert (found.n, found.samples, found.answers) == (6, 4, rows["answer"][:])
    assert found == evaluate_samples(*tiny, rows, samples=4, max_new_tokens=32, seed=1)
    asked = [prompt[-1]["content"].removeprefix("What is ").removesuffix("?") for prompt in rows["prompt"]]
    assert sum(question in text for question, texts in zip(asked, found.texts) for text in texts) > 12
