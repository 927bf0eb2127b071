"""Numbers, expressions, facts, choices and JSON: what counts as the same answer."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grpo_utils.errors import CourseError
from grpo_utils.rewards import (
    AnswerReward,
    correctness_reward,
    exact_reward,
    extract_after_thinking,
    extract_all,
    extract_boxed,
    fuzzy_reward,
    json_reward,
    parse_number,
    same_answer,
    same_expression,
    same_fact,
    same_json,
)

SAME = [
    ("1,000", "1000"),
    ("1000", "1,000"),
    ("$18", "18"),
    ("-$5", "-5"),
    ("€18.50", "18.5"),
    ("18 dollars per hour", "18"),
    ("$18/hour", "18"),
    ("42 apples", "42"),
    ("5km", "5"),
    ("5 m^2", "5"),
    ("50%", "50"),
    ("50 percent", "0.5"),
    ("0.5", "50%"),
    ("+5", "5"),
    ("minus 5", "-5"),
    ("\u22125", "-5"),
    (".5", "0.5"),
    ("18.00", "18"),
    ("1/2", "0.5"),
    ("1 1/2", "1.5"),
    ("-3/4", "-0.75"),
    ("1.5e3", "1500"),
    ("1.5 x 10^3", "1500"),
    ("2 \\times 10^{5}", "200000"),
    ("2 million", "2000000"),
    ("3 dozen eggs", "36"),
    ("The answer is 42.", "42"),
    ("x = 42", "42"),
    ("So we get: 42", "42"),
    ("\\boxed{42}", "42"),
    ("\\boxed{\\frac{1}{2}}", "0.5"),
    ("\\dfrac{3}{4}", "0.75"),
    ("1{,}000", "1000"),
    ("\\$1,234.00", "1234"),
    ("42 \\text{ cm}", "42"),
    ("\\sqrt{16}", "4"),
    ("2\\sqrt{2}", "\\sqrt{8}"),
    ("(x+1)^2", "x^2+2x+1"),
    ("\\{1, 2\\}", "\\{2, 1\\}"),
    ("Paris", "Paris"),
    ("007", "7"),
]

DIFFERENT = [
    ("95", "100"),
    ("-5", "5"),
    ("5", "-5"),
    ("minus 5", "5"),
    ("negative 5", "5"),
    ("5", "15"),
    ("42 or 43", "42"),
    ("43 or 42", "42"),
    ("5 or 6 or 7", "6"),
    ("5, 6, 7", "6"),
    ("\\boxed{5, 6}", "6"),
    ("not 42", "42"),
    ("it isn't 42", "42"),
    ("at least 42", "42"),
    ("less than 42", "42"),
    ("half of 42", "42"),
    ("42 thousand", "42"),
    ("42k", "42"),
    ("42%", "4.2"),
    ("2x", "2"),
    ("2 x", "2"),
    ("42!", "42"),
    ("42^2", "42"),
    ("42 + 0", "43"),
    ("41 = 42", "42"),
    ("41 = 42 = 43", "43"),
    ("3,5", "35"),
    ("1,00", "100"),
    ("4 2", "42"),
    ("1.2.3", "1.2"),
    ("12:30", "12"),
    ("5-6", "5"),
    ("A-42", "-42"),
    ("\u221a42", "42"),
    ("0.333", "1/3"),
    ("forty-two", "42"),
    ("paris", "Paris"),
    ("-(42)", "42"),
    ("- (42)", "42"),
    ("-:42", "42"),
    ("x - 42", "-42"),
    ("x / 42", "42"),
    ("f(42)", "42"),
    ("arctan(1)", "1"),
    ("x 42", "42"),
    ("3/t", "3"),
    ("seventy 2", "2"),
    ("unlike 42", "42"),
    ("almost 42", "42"),
    ("the opposite of 42", "42"),
    ("42 is false", "42"),
    ("42 tenths", "42"),
    ("42 lakh", "42"),
    ("10 AM", "10 PM"),
    ("5 km", "5 miles"),
    ("\\text{not }42", "42"),
    ("\\text{40, 41, 43, }42", "42"),
    ("42 and up", "42"),
    ("42 Elm Street", "42 Oak Street"),
    ("3t", "3"),
    ("\\sqrt{4}\\text{ or not}", "2"),
    ("World War 1", "World War 2"),
    ("World Cup 2", "World War 2"),
    ("", ""),
    ("None", ""),
]


@pytest.mark.parametrize(("said", "gold"), SAME)
def test_the_same_answer_in_another_writing(said, gold):
    assert same_answer(said, gold)


@pytest.mark.parametrize(("said", "gold"), DIFFERENT)
def test_another_answer(said, gold):
    assert not same_answer(said, gold)


def test_a_long_answer_of_spaces_costs_no_run():
    started = time.perf_counter()
    assert correctness_reward([f"<answer>1{' ' * 100_000}x</answer>"], answer=["42"]) == [0.0]
    assert time.perf_counter() - started < 1  # quadratic time took a minute


def test_a_missing_answer_of_pandas_is_not_applicable():
    assert correctness_reward(["<answer>nan</answer>"], answer=[float("nan")]) == [None]


HOSTILE = ["9^{9^{9}}", "9^9^9^9", "9**9**9", "99999999!", "(10^{99})!", "10^{999999999}", "\\binom{10^9}{10^8}"]
HOSTILE += ["\\sum_{i=1}^{10^{12}} i", "(x+y+z+a+b)^{99}", "(" * 90, "{" * 90, "\\frac{" * 15, "1e999999999"]
HOSTILE += ["9" * 100_000, "1," * 50_000, " 1" * 40_000, "a " * 40_000 + "1", "1/" * 40_000, "\\boxed{" * 9_000]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_a_hostile_expression_costs_no_run(text):
    started = time.perf_counter()
    assert not same_answer(text, "42") and not same_answer(text, "x+1")
    assert correctness_reward([f"<answer>{text}</answer>"], answer=["42"]) == [0.0]
    assert AnswerReward(extract=extract_boxed)([f"\\boxed{{{text}}}"], answer=["42"]) == [0.0]
    assert time.perf_counter() - started < 5  # unbounded, some of these take longer than the universe


def test_expressions_are_compared_in_another_thread_too():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(same_expression, r"\frac{6}{4}", r"\frac{3}{2}").result()


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="0123456789.,-+/%$eE()\\{}^ xabortenfi\n", max_size=40))
def test_any_text_is_a_number_or_none(text):
    number = parse_number(text)
    assert number is None or number.value == number.value
    assert parse_number(text, words=False) in (number, None)


@given(st.integers(-(10**12), 10**12))
def test_an_integer_survives_its_usual_writings(value):
    texts = [
        f"{value:,}",
        f"{value}.00",
        f"{value} apples",
        f"The answer is {value}.",
        f"\\boxed{{{value}}}",
        f"${value}",
    ]
    assert all(parse_number(text).value == value for text in texts)
    assert same_answer(str(-value), str(value)) == (value == 0)


@given(st.integers(-999, 999), st.integers(1, 999))
def test_a_fraction_equals_its_latex(top, bottom):
    sign = "-" if top < 0 else ""
    assert same_answer(f"{sign}\\frac{{{abs(top)}}}{{{bottom}}}", f"{top}/{bottom}")


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


def test_a_row_without_gold_answer_is_not_applicable():
    texts = ["<answer>42</answer>", "<answer></answer>", "<answer>None</answer>"]
    for reward in (correctness_reward, exact_reward, fuzzy_reward):
        assert reward(texts, answer=[None] * 3) == [None] * 3
        assert reward(texts, answer=[""] * 3) == [0.0] * 3


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
