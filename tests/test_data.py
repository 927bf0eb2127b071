import json

import pytest
from grpo_core.errors import CourseError

from grpo_utils import chat_prompt, check_rows, load_rows
from grpo_utils.data.sources import addition_key, addition_kind, addition_rows, gsm8k_answer, gsm8k_rows, read_gsm8k
from grpo_utils.data.splits import is_held_out
from grpo_utils.rewards import parse_number

GOOD = {"prompt": chat_prompt("What is 2 + 2?"), "answer": "4"}

BAD_ROWS = [
    ({"answer": "4"}, "row 1: it has no 'prompt'; its columns are answer"),
    ({"prompt": GOOD["prompt"]}, "row 1: it has no 'answer'"),
    ({**GOOD, "answer": None}, "row 1: it has no 'answer'"),
    ({**GOOD, "prompt": "What is 2 + 2?"}, "row 1: its prompt is a plain string.*Use: chat_prompt"),
    ({**GOOD, "prompt": []}, "row 1: its prompt is not a list of messages"),
    ({**GOOD, "prompt": [{"role": "user"}]}, "row 1: its prompt is not a list of messages"),
    ({**GOOD, "prompt": [{"role": "assistant", "content": "4"}]}, "ends with a user message"),
    ({**GOOD, "prompt": [{"role": "user", "content": " "}]}, "ends with a user message"),
    ({**GOOD, "prompt": [{"role": "user", "content": None}]}, "ends with a user message"),
    ({**GOOD, "answer": 4}, r"row 1: its answer 4 is of type int; rewards compare text. Use: str\(answer\)"),
    ({**GOOD, "answer": "  "}, "row 1: its answer is empty"),
]


@pytest.mark.parametrize(("row", "message"), BAD_ROWS)
def test_a_bad_row_is_named_with_its_fault(row, message):
    with pytest.raises(CourseError, match=message):
        check_rows([GOOD, row])


def test_no_rows_at_all_are_an_error():
    with pytest.raises(CourseError, match="no rows"):
        check_rows([])


def numbers(rows: list[dict]) -> list[tuple[int, int]]:
    return [tuple(map(int, row["prompt"][-1]["content"].removesuffix("?").split()[2::2])) for row in rows]


def test_train_and_test_share_no_question_either_way_round():
    train, test = ({*numbers(addition_rows(n, split))} for n, split in ((7000, "train"), (390, "test")))
    assert len(train) == 7000
    assert not train & (test | {(b, a) for a, b in test})


def test_no_held_out_addition_stands_there_both_ways_round():
    """It did, and 31 of 200 counted twice."""
    asked = numbers(addition_rows(390, "test"))
    assert len({frozenset(pair) for pair in asked}) == 390
    assert 0.4 < sum(a > b for a, b in asked) / 390 < 0.6


def test_answers_are_right_and_the_kind_is_what_the_units_make_it():
    rows = addition_rows(200, "test", seed=3)
    assert rows == addition_rows(200, "test", seed=3) != addition_rows(200, "test", seed=4)
    for row, (a, b) in zip(rows, numbers(rows)):
        kind = "carry" if int(str(a)[-1]) + int(str(b)[-1]) > 9 else "no carry"
        assert (row["answer"], row["kind"]) == (str(a + b), kind)
    assert {row["kind"] for row in rows} == {"carry", "no carry"}


@pytest.mark.parametrize(("a", "b", "kind"), [(15, 15, "carry"), (15, 14, "no carry"), (90, 90, "no carry")])
def test_only_the_units_decide_whether_an_addition_carries(a, b, kind):
    assert addition_kind(a, b) == addition_kind(b, a) == kind


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("addition", "test", 900), "count=900 is too large"),
        (("gsm9k", "train", 10), "dataset='gsm9k' is unknown.*Valid"),
        (("addition", "valid", 10), "split='valid' is unknown.*Valid"),
    ],
)
def test_rows_that_do_not_exist(asked, said):
    with pytest.raises(CourseError, match=said):
        load_rows(*asked)


def test_about_a_tenth_is_held_out():
    keys = [addition_key(a, b) for a in range(10, 100) for b in range(10, 100)]
    assert 0.09 < sum(map(is_held_out, keys)) / len(keys) < 0.11


def test_gsm8k_from_a_file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "How much?", "answer": "500+734\n#### 1,234"}) + "\n")
    rows = gsm8k_rows(read_gsm8k("test", str(path)))
    assert rows == [{"prompt": chat_prompt("How much?"), "answer": "1234"}]


def test_gsm8k_from_a_file_that_is_empty_or_not_there(tmp_path):
    """An empty one gave no records, and the lesson went on with made ones under the name of GSM8K."""
    (tmp_path / "rows.jsonl").touch()
    for name, message in (("none.jsonl", "no file"), ("rows.jsonl", "has no records")):
        with pytest.raises(CourseError, match=message):
            read_gsm8k("test", str(tmp_path / name))


def test_gsm8k_without_network_says_what_failed():
    with pytest.raises(CourseError, match=r"'openai/gsm8k' could not be downloaded.*HF_HUB_OFFLINE=1"):
        read_gsm8k("test")


@pytest.mark.parametrize(("said", "gold"), [("(1,2)", "(1,2)"), ("10,5", "10,5"), ("1,234,567", "1234567")])
def test_only_thousands_commas_go(said, gold):
    """All commas went: (1,2) became (12)."""
    assert gsm8k_answer(f"so\n#### {said}\n") == gold


NO_SOLUTIONS = [("no marker", "no answer after"), ("####", "no answer after"), ("#### ", "no answer after")]
NO_SOLUTIONS += [("#### 5\nmore", "more than one line after"), (None, "not None")]


@pytest.mark.parametrize(("solution", "message"), NO_SOLUTIONS)
def test_a_solution_without_one_clear_answer(solution, message):
    with pytest.raises(CourseError, match=message):
        gsm8k_answer(solution)


def test_every_real_gsm8k_row_becomes_a_fit_row(gsm8k_records):
    rows = check_rows(gsm8k_rows(gsm8k_records))
    assert len(rows) == len(gsm8k_records) == 1319
    assert all(parse_number(row["answer"]) is not None for row in rows)
