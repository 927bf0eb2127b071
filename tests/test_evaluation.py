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
