"""Numbers, expressions, facts, choices and JSON: what counts as the same answer."""

import json
import random
import re
import runpy
import time

import hostile
import pytest
from course import ROOT
from grpo_core.errors import CourseError
from grpo_core.training.answers import NOTATIONS
from hypothesis import given, settings
from hypothesis import strategies as st
from reward_lists import CELLS, TABLE

from grpo_utils.rewards import (
    AnswerReward,
    correctness_reward,
    exact_reward,
    extract_after_thinking,
    extract_all,
    extract_boxed,
    fuzzy_reward,
    is_strictly_right,
    json_reward,
    parse_json,
    parse_number,
    same_answer,
    same_expression,
    same_fact,
    same_json,
    same_number,
)

BASIC, TOOLS = (runpy.run_path(str(ROOT / "templates" / name / "rewards.py")) for name in ("basic_grpo", "tool_agent"))


def test_every_row_of_the_table_has_a_verdict():
    assert len(TABLE) > 100 and {cells[2].rstrip(" |") for cells in CELLS} == {"accepted", "rejected"}


def test_the_table_of_what_counts_is_true():
    wrong = [row for row in TABLE if same_answer(*row[:2]) != row[2]]
    assert not wrong, "\n".join(map(str, wrong))


def other_verdicts(said: str, gold: str, counts: bool) -> list[str]:
    """Where a template decides otherwise than the table about an answer."""
    text = f"<reasoning>a</reasoning><answer>{said}</answer>"
    episode = [{"role": "tool", "content": gold}, {"role": "assistant", "content": f"<answer>{said}</answer>"}]
    paid = correctness_reward([text], answer=[gold])
    alike = {
        "correctness_reward": BASIC["correctness_reward"]([text], answer=[gold]) == paid,
        "is_right": BASIC["is_right"](text, {"answer": gold}) == counts,
        "is_strictly_right": is_strictly_right(text, gold) == counts,
        "follows": TOOLS["follows"](episode, None, gold) == (counts and "<" not in said),
    }
    return [name for name, same in alike.items() if not same]


def test_a_template_accepts_the_same_numbers():
    rows = [row for row in TABLE if parse_number(row[1])]
    wrong = [f"{row}: {', '.join(names)}" for row in rows if (names := other_verdicts(*row))]
    assert len(rows) > 100 and not wrong, "\n".join(wrong)


def test_the_error_about_a_gold_answer_names_notations_that_count():
    assert all(parse_number(text) for text in re.split(r", (?=\S)| or ", NOTATIONS))


def test_any_of_several_gold_answers_is_right():
    texts = ["<answer>6</answer>", "<answer>8.0</answer>", "<answer>7</answer>", "<answer>6 or 8</answer>"]
    assert correctness_reward(texts, answer=[["6", "8"]] * 4) == [1.0, 1.0, 0.0, 0.0]
    assert exact_reward(texts, answer=[("6", "8")] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert is_strictly_right("<reasoning>a</reasoning><answer>8</answer>", [6, 8])
    assert not same_answer("", ["", None]) and not same_answer("None", [None])


class _Missing:
    """As pandas.NA: comparing it gives no truth value."""

    def __ne__(self, other):
        raise TypeError("boolean value of NA is ambiguous")

    def __str__(self):
        return "<NA>"


def test_a_gold_answer_of_any_type_raises_nothing():
    golds = [10**5000, float("nan"), _Missing(), b"42", {"a": 1}, [], [None, "42"], True, "\ud800", "\0", 42, None]
    scores = correctness_reward(["<answer>42</answer>"] * len(golds), answer=golds)
    assert scores == [0.0, None, None, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, None]


@settings(max_examples=300)
@given(st.text(alphabet="0123456789.,-+/%$eE()\\{}^ xabortenfi\n", max_size=40))
def test_any_text_is_a_number_or_none(text):
    number = parse_number(text)
    assert number is None or same_number(text, text)
    assert number is None or number.unit == "%" or same_number(text, str(number.value))


@given(st.integers(-(10**12), 10**12))
def test_an_integer_survives_its_usual_notations(value):
    texts = [f"{value:,}", f"{value}.00", f"{value} apples", f"{value}.", f"{'-' * (value < 0)}${abs(value)}"]
    assert all(parse_number(text).value == value for text in texts)
    assert same_answer(str(-value), str(value)) == (value == 0)


@given(st.integers(-999, 999), st.integers(1, 999))
def test_a_fraction_equals_its_latex(top, bottom):
    sign = "-" if top < 0 else ""
    assert same_answer(f"{sign}\\frac{{{abs(top)}}}{{{bottom}}}", f"{top}/{bottom}")


PAYERS = ((correctness_reward, "42"), (exact_reward, "42"), (fuzzy_reward, "Paris"))


def random_answers(count: int) -> list[str]:
    """Answers of up to 30 random pieces of hostile completions."""
    rng = random.Random(0)
    return ["".join(rng.choices(hostile.PIECES, k=rng.randrange(2, 30))) for _ in range(count)]


def test_random_answers_raise_nothing_and_almost_never_earn():
    for text in random_answers(20_000):
        for reward, gold in PAYERS:
            [score] = reward([f"<answer>{text}</answer>"], answer=[gold])
            assert score == 0.0 or same_number(text, gold), text


LONG = ["9^{9^{9}}", "9^9^9^9", "9**9**9", "99999999!", "(10^{99})!", "10^{999999999}", "\\binom{10^9}{10^8}"]
LONG += ["\\sum_{i=1}^{10^{12}} i", "(x+y+z+a+b)^{99}", "(" * 90, "{" * 90, "\\frac{" * 15, "1e999999999"]
LONG += ["9" * 100_000, "1," * 50_000, " 1" * 40_000, "a " * 40_000 + "1", "1/" * 40_000, "\\boxed{" * 9_000]
LONG += [f"1{' ' * 100_000}x"]


@pytest.mark.parametrize("text", LONG, ids=lambda text: text[:20])
def test_a_hostile_answer_costs_no_run(text):
    started = time.perf_counter()
    assert not same_answer(text, "42") and not same_answer(text, "x+1")
    assert correctness_reward([f"<answer>{text}</answer>"], answer=["42"]) == [0.0]
    assert AnswerReward(extract=extract_boxed)([f"\\boxed{{{text}}}"], answer=["42"]) == [0.0]
    assert time.perf_counter() - started < 5  # unbounded, some of these take longer than the universe


def test_expressions_are_compared_in_another_thread_too():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(same_expression, r"\frac{6}{4}", r"\frac{3}{2}").result()


@settings(max_examples=200)
@given(st.text(alphabet="{}\\boxed12 ", max_size=60))
def test_a_box_is_balanced_or_none(text):
    box = extract_boxed(text)
    assert box is None or box in text


def test_the_answer_is_found_where_one_says():
    boxed, after = AnswerReward(extract=extract_boxed), AnswerReward(extract=extract_after_thinking)
    assert boxed(["\\boxed{1} so \\boxed{42}", "\\boxed{42}, again \\boxed{42}"], answer=["42"] * 2) == [0.0, 1.0]
    assert after(["<think>41</think> 42", "42", "<think>a</think></think>42"], answer=["42"] * 3) == [1.0, 0.0, 0.0]
    assert AnswerReward(extract=extract_all, column="solution")(["42"], solution=["42"]) == [1.0]


def test_a_missing_column_is_named():
    with pytest.raises(CourseError, match="no column 'solution'"):
        AnswerReward(column="solution")(["42"], answer=["42"])


FACTS = [
    ("the Eiffel Tower", "Eiffel tower"),
    ("Mississipi", "Mississippi"),
    ("U.S.A", "u s a"),
    ("NYC", ["New York", "NYC"]),
]
NO_FACTS = [("5", "15"), ("1984", "1985"), ("Austria", "Australia"), ("not Paris", "Paris"), ("", ""), ("the", "a")]
NO_FACTS += [("not the Federated States of Micronesia", "Federated States of Micronesia"), ("Paris or Rome", "Paris")]
NO_FACTS += [("north korea", "south korea"), ("Iran", "Iraq"), ("x", [None]), ("-42", "42"), ("C", "C++"), ("C#", "C")]


@pytest.mark.parametrize(("said", "gold"), FACTS)
def test_a_fact_with_a_slip_is_right(said, gold):
    assert same_fact(said, gold)


@pytest.mark.parametrize(("said", "gold"), NO_FACTS)
def test_another_fact_is_wrong(said, gold):
    assert not same_fact(said, gold)


def test_json_is_compared_as_data():
    assert same_json('{"a": 1.0, "b": [true]}', {"b": [True], "a": 1})
    for wrong in ('{"a": 2, "b": [true]}', '{"a": 1}', '{"a": 0, "a": 1, "b": [true]}', "[" * 5000, '{"a": NaN}', ""):
        assert not same_json(wrong, '{"a": 1, "b": [true]}')
    assert json_reward(["[1, 2]"], answer=[json.dumps([1, 2])]) == [1.0]


def test_numbers_that_no_float_can_hold_are_not_equal():
    """The fault: Python reads each of them as infinity."""
    assert not same_json('{"a": 1e400}', '{"a": 2e999}') and not same_json('{"a": -1e400}', '{"a": -1e400}')
    with pytest.raises(ValueError, match="1e400 is too large"):
        parse_json('{"a": 1e400}')
