import json
import math

import pytest

from grpo_utils.data import load_rows
from grpo_utils.errors import CourseError
from grpo_utils.evaluation import before_after, evaluate, judge, mcnemar_p_value, p_text, verdict, wilson_interval

FORM = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"


def wilson_by_hand(hits: int, n: int) -> tuple[float, float]:
    """Wilson 1927, written out."""
    z, p = 1.959963984540054, hits / n
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return centre - half, centre + half


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (1, 20), (27, 200), (190, 200), (200, 200)])
def test_wilson_agrees_with_the_formula(hits, n):
    assert wilson_interval(hits, n) == pytest.approx(wilson_by_hand(hits, n), abs=1e-9)


@pytest.mark.parametrize(("better", "worse"), [(5, 1), (6, 0), (3, 3), (40, 2)])
def test_mcnemar_agrees_with_the_binomial_sum(better, worse):
    before = [False] * better + [True] * worse + [True, False]
    after = [True] * better + [False] * worse + [True, False]
    n, k = better + worse, min(better, worse)
    tail = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
    assert mcnemar_p_value(before, after) == pytest.approx(min(1.0, 2 * tail), abs=1e-12)


def test_a_format_gain_is_not_an_accuracy_gain():
    result = judge([FORM, FORM.replace("42", "41"), "It is 42."], [FORM] * 3, ["42"] * 3)
    summary = result.summary()
    assert summary["format_rate"] == pytest.approx(2 / 3)
    assert summary["accuracy"] == pytest.approx(1 / 3)
    assert summary["greedy_accuracy"] == 1.0 and summary["n"] == 3


def test_ability_is_counted_among_the_texts_in_form_alone():
    summary = judge([FORM, FORM.replace("42", "41"), "It is 42."], [FORM] * 3, ["42"] * 3).summary()
    assert (summary["formed"], summary["accuracy_given_format"]) == (2, 0.5)
    assert summary["accuracy_given_format_ci95"] == pytest.approx(wilson_by_hand(1, 2))
    assert "by_kind" not in summary


def test_where_nothing_is_in_form_no_ability_is_claimed():
    summary = judge(["no"] * 3, [FORM] * 3, ["42"] * 3, kinds=["easy"] * 3).summary()
    for counts in (summary, summary["by_kind"]["easy"]):
        assert (counts["n"], counts["formed"]) == (3, 0)
        assert counts["accuracy_given_format"] is None and counts["accuracy_given_format_ci95"] is None


#: Of the sums that carry 1 of 2 in form is right, of the others 1 of 1; in an order that is not the kinds' own.
KINDS = ["no carry", "carry", "carry", "no carry"]
MIXED = [FORM, FORM, FORM.replace("42", "41"), "It is 42."]


def test_each_kind_is_counted_apart_in_an_order_of_its_own():
    summary = judge(MIXED, MIXED, ["42"] * 4, kinds=KINDS).summary()
    assert list(summary["by_kind"]) == ["carry", "no carry"]
    carry, none = summary["by_kind"].values()
    assert (carry["n"], carry["formed"], carry["accuracy_given_format"]) == (2, 2, 0.5)
    assert (none["n"], none["formed"], none["accuracy_given_format"]) == (2, 1, 1.0)
    assert none["accuracy_given_format_ci95"] == pytest.approx(wilson_by_hand(1, 1))
    assert carry["formed"] + none["formed"] == summary["formed"]


def test_each_prompt_needs_a_kind_if_any_has_one():
    with pytest.raises(CourseError, match="4 answers, 3 kinds"):
        judge(MIXED, MIXED, ["42"] * 4, kinds=KINDS[:3])


def test_a_summary_is_the_same_after_json():
    summary = judge(MIXED, MIXED, ["42"] * 4, kinds=KINDS).summary()
    assert json.loads(json.dumps(summary)) == summary


def test_the_table_shows_ability_apart_from_form_and_each_kind():
    many = judge(MIXED * 100, MIXED * 100, ["42"] * 400, kinds=KINDS * 100).summary()
    none = judge(["no"] * 4, MIXED, ["42"] * 4, kinds=KINDS).summary()
    table = before_after(none, many, 0.01, many).splitlines()
    block = table[table.index("right among the n answers in form (95 % interval):") + 1 : -1]
    assert [line.split() for line in block[:2]] == [
        ["n", "all", "n", "carry", "n", "no", "carry"],
        ["before", "0", "-", "0", "-", "0", "-"],
    ]
    assert block[2].split(maxsplit=2)[:2] == ["after", "300"] and "0.667 (0.612 to 0.718)  200" in block[2]
    assert block[3] == block[2].replace("after ", "merged")
    assert "No improvement" not in table[-1] and "Strict accuracy rose" in table[-1]


def test_the_table_is_aligned_and_narrow():
    many = judge(MIXED * 1000, MIXED * 1000, ["42"] * 4000, kinds=KINDS * 1000).summary()
    none = judge(["no"] * 4, MIXED, ["42"] * 4, kinds=KINDS).summary()
    *lines, _ = before_after(none, many, 0.01, many).splitlines()
    first, second = lines[:4], lines[6:]
    assert {len(line) for line in first} == {58} and {len(line) for line in second} == {94}


def test_without_kinds_there_is_one_column():
    known, unknown = (judge(MIXED, MIXED, ["42"] * 4, kinds=kinds).summary() for kinds in (KINDS, None))
    for before, after in ((known, unknown), (unknown, known), (unknown, unknown)):
        table = before_after(before, after, 1.0)
        assert "carry" not in table and "    3  0.667 (0.208 to 0.939)\n" in table


def test_a_summary_of_an_older_report_has_no_second_table():
    new = judge(MIXED, MIXED, ["42"] * 4, kinds=KINDS).summary()
    old = {name: new[name] for name in ("n", "format_rate", "accuracy", "accuracy_ci95", "greedy_accuracy")}
    for summaries in ((old, old, 1.0), (old, new, 1.0), (new, old, 1.0), (new, new, 1.0, old)):
        assert "answers in form" not in before_after(*summaries)
    assert len(before_after(old, old, 1.0).splitlines()) == 4


def test_no_improvement_is_said_in_so_many_words():
    same = judge(["no"] * 50, ["no"] * 50, ["42"] * 50).summary()
    assert "No improvement shown" in before_after(same, same, 1.0)


def test_an_improvement_names_gain_and_p():
    old = judge(["no"] * 50, ["no"] * 50, ["42"] * 50)
    new = judge([FORM] * 50, [FORM] * 50, ["42"] * 50)
    table = before_after(old.summary(), new.summary(), mcnemar_p_value(old.right, new.right))
    assert "rose by +1.000" in table and "p = 1.8e-15" in table


def test_a_claim_never_stands_beside_p_of_a_twentieth():
    assert [p_text(p) for p in (0.049, 0.04999, 0.05)] == ["p = 0.049", "p = 0.04999", "p = 0.05"]
    assert [p_text(p) for p in (0.0, 1e-305, 2e-299)] == ["p < 1e-300", "p < 1e-300", "p = 2e-299"]
    old, new = {"accuracy": 0.5}, {"accuracy": 0.6}
    assert "p = 0.049 (" in verdict(old, new, 0.049) and "with p < 1e-300 (" in verdict(old, new, 0.0)


def test_a_loss_is_called_one():
    old = judge([FORM] * 50, [FORM] * 50, ["42"] * 50).summary()
    new = judge(["no"] * 50, ["no"] * 50, ["42"] * 50).summary()
    assert "FELL by -1.000" in before_after(old, new, 1e-9)


def test_nothing_to_evaluate_on_is_an_error():
    with pytest.raises(CourseError, match="no held-out rows"):
        evaluate(None, None, load_rows("addition", "test", 3).select([]), max_new_tokens=8)


@pytest.fixture(scope="module")
def tiny():
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from grpo_utils.models import model_path

    path = model_path("tiny-qwen3")
    return AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)


def test_the_same_seed_gives_the_same_answers_whatever_came_before(tiny):
    import torch

    rows = load_rows("addition", "test", 12)
    first = evaluate(*tiny, rows, max_new_tokens=24, seed=5)
    torch.rand(3)
    assert evaluate(*tiny, rows, max_new_tokens=24, seed=5) == first
    assert evaluate(*tiny, rows, max_new_tokens=24, seed=6).sampled != first.sampled


def test_the_kinds_of_the_rows_are_those_of_the_evaluation(tiny):
    rows = load_rows("addition", "test", 12)
    assert evaluate(*tiny, rows, max_new_tokens=4).kinds == tuple(rows["kind"])
    assert evaluate(*tiny, rows.remove_columns("kind"), max_new_tokens=4).kinds == ()


def test_greedy_answers_do_not_depend_on_the_batch(tiny):
    rows = load_rows("addition", "test", 12)
    whole = evaluate(*tiny, rows, max_new_tokens=24, batch_size=12)
    parts = evaluate(*tiny, rows, max_new_tokens=24, batch_size=5)
    assert whole.greedy == parts.greedy


def test_evaluation_leaves_the_model_in_the_mode_it_was_in(tiny):
    model, tokenizer = tiny
    for training in (True, False):
        model.train(training)
        evaluate(model, tokenizer, load_rows("addition", "test", 2), max_new_tokens=4)
        assert model.training is training
