import re

import pytest
from course import judged
from grpo_core.errors import CourseError
from grpo_core.training.measuring import before_after, mcnemar_p_value, p_text, summary, verdict

from grpo_utils import load_rows
from grpo_utils.evaluation.judging import evaluate

FORM = "<reasoning>15 + 27 = 42</reasoning><answer>42</answer>"


def test_form_is_counted_apart_from_accuracy_and_ability_among_the_texts_in_form_alone():
    summary = judged([FORM, FORM.replace("42", "41"), "It is 42."], [FORM] * 3, ["42"] * 3).summary()
    assert summary["format_rate"] == pytest.approx(2 / 3) and summary["accuracy"] == pytest.approx(1 / 3)
    assert summary["greedy_accuracy"] == 1.0 and summary["n"] == 3 and "by_kind" not in summary
    assert (summary["formed"], summary["accuracy_given_format"]) == (2, 0.5)
    assert summary["accuracy_given_format_ci95"] == pytest.approx([0.0945, 0.9055], abs=1e-4)


def test_where_nothing_is_in_form_no_ability_is_claimed():
    summary = judged(["no"] * 3, [FORM] * 3, ["42"] * 3, kind=["easy"] * 3).summary()
    for counts in (summary, summary["by_kind"]["easy"]):
        assert (counts["n"], counts["formed"]) == (3, 0)
        assert counts["accuracy_given_format"] is None and counts["accuracy_given_format_ci95"] is None


#: Of the sums that carry 1 of 2 in form is right, of the others 1 of 1; in an order that is not the kinds' own.
KINDS = ["no carry", "carry", "carry", "no carry"]
MIXED = [FORM, FORM, FORM.replace("42", "41"), "It is 42."]


def test_each_kind_is_counted_apart_in_an_order_of_its_own():
    summary = judged(MIXED, MIXED, ["42"] * 4, kind=KINDS).summary()
    assert list(summary["by_kind"]) == ["carry", "no carry"]
    carry, none = summary["by_kind"].values()
    assert (carry["n"], carry["formed"], carry["accuracy_given_format"]) == (2, 2, 0.5)
    assert (none["n"], none["formed"], none["accuracy_given_format"]) == (2, 1, 1.0)
    assert carry["formed"] + none["formed"] == summary["formed"]


def test_the_table_shows_ability_apart_from_form_and_each_kind():
    many = judged(MIXED * 100, MIXED * 100, ["42"] * 400, kind=KINDS * 100).summary()
    none = judged(["no"] * 4, MIXED, ["42"] * 4, kind=KINDS).summary()
    table = before_after(none, many, 0.01, many).splitlines()
    block = table[table.index("accuracy among the n correctly formatted answers (95% interval):") + 1 : -1]
    assert len({len(line) for line in table[:4]}) == len({len(line) for line in block}) == 1
    assert [line.split() for line in block[:2]] == [
        ["n", "all", "n", "carry", "n", "no", "carry"],
        ["before", "0", "-", "0", "-", "0", "-"],
    ]
    assert block[2].split(maxsplit=2)[:2] == ["after", "300"] and "0.667 (0.612 to 0.718)  200" in block[2]
    assert block[3] == block[2].replace("after ", "merged")
    assert "No improvement" not in table[-1] and "Strict accuracy rose" in table[-1]


def test_without_kinds_there_is_one_column():
    known, unknown = (judged(MIXED, MIXED, ["42"] * 4, **kind).summary() for kind in ({"kind": KINDS}, {}))
    for before, after in ((known, unknown), (unknown, known), (unknown, unknown)):
        table = before_after(before, after, 1.0)
        assert "carry" not in table and "    3  0.667 (0.208 to 0.939)\n" in table


def test_a_summary_of_an_older_report_has_no_second_table():
    new = judged(MIXED, MIXED, ["42"] * 4, kind=KINDS).summary()
    old = {name: new[name] for name in ("n", "format_rate", "accuracy", "accuracy_ci95", "greedy_accuracy")}
    for summaries in ((old, old, 1.0), (old, new, 1.0), (new, old, 1.0), (new, new, 1.0, old)):
        assert "correctly formatted answers" not in before_after(*summaries)
    assert len(before_after(old, old, 1.0).splitlines()) == 4


def test_a_template_may_have_no_greedy_answers_and_answers_that_are_right_but_not_in_form():
    rates = summary({"formed": [True, False], "right": [False, True]})
    assert (rates["accuracy"], rates["accuracy_given_format"]) == (0.5, 0.0)
    assert before_after(rates, rates, 1.0).splitlines()[1].endswith("   -")


RIGHT, NOTHING = ([FORM] * 50, [FORM] * 50, ["42"] * 50), (["no"] * 50, ["no"] * 50, ["42"] * 50)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (NOTHING, NOTHING, r"No improvement shown: .* p = 1\)"),
        (NOTHING, RIGHT, r"rose by 1.000.*p = 1.8e-15"),
        (RIGHT, NOTHING, r"FELL by 1.000"),
    ],
)
def test_the_sentence_names_gain_or_loss_and_p(before, after, said):
    old, new = judged(*before), judged(*after)
    assert re.search(said, before_after(old.summary(), new.summary(), mcnemar_p_value(old.right, new.right)))


def test_a_claim_never_stands_beside_p_of_a_twentieth():
    assert [p_text(p) for p in (0.049, 0.04999, 0.05)] == ["p = 0.049", "p = 0.04999", "p = 0.05"]
    assert [p_text(p) for p in (0.0, 1e-305, 2e-299)] == ["p < 1e-300", "p < 1e-300", "p = 2e-299"]
    old, new = {"accuracy": 0.5}, {"accuracy": 0.6}
    assert "test, p = 0.049)" in verdict(old, new, 0.049) and "test, p < 1e-300)" in verdict(old, new, 0.0)


def test_nothing_to_evaluate_on_is_an_error():
    with pytest.raises(CourseError, match="no held-out rows"):
        evaluate(None, None, load_rows("addition", "test", 3).select([]), max_new_tokens=8)


def test_the_same_seed_gives_the_same_answers_whatever_came_before(tiny):
    import torch

    rows = load_rows("addition", "test", 12)
    first = evaluate(*tiny, rows, max_new_tokens=24, seed=5)
    torch.rand(3)
    assert evaluate(*tiny, rows, max_new_tokens=24, seed=5) == first
    assert evaluate(*tiny, rows, max_new_tokens=24, seed=6).sampled != first.sampled


def test_the_kinds_of_the_rows_are_those_of_the_evaluation(tiny):
    rows = load_rows("addition", "test", 12)
    assert evaluate(*tiny, rows, max_new_tokens=4).kinds == list(rows["kind"])
    assert evaluate(*tiny, rows.remove_columns("kind"), max_new_tokens=4).kinds == []


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
