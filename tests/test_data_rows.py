"""Records to rows: each is a row or is named, and none goes silently."""

import math
import re
from decimal import Decimal

import numpy
import pandas
import pytest
from grpo_core.errors import CourseError
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils import chat_prompt, check_rows, rows_from
from grpo_utils.data.sources import gsm8k_answer, gsm8k_rows
from grpo_utils.rewards import extract_after_hashes

GOOD = {"question": "What is 2 + 2?", "answer": "4"}

REJECTED = {
    "no question": ({"answer": "4"}, "its 'question' is missing"),
    "a missing answer": ({**GOOD, "answer": None}, "its 'answer' is missing"),
    "pandas' missing answer": ({**GOOD, "answer": math.nan}, "its 'answer' is missing"),
    "an empty question": ({**GOOD, "question": " \n"}, "its 'question' is empty"),
    "a list": ({**GOOD, "answer": ["4"]}, r"its 'answer' is of type list, not text: \['4'\]"),
    "a switch": ({**GOOD, "answer": True}, "its 'answer' is of type bool"),
    "a lost letter": ({**GOOD, "question": "A caf\ufffd?"}, "U\\+FFFD, so a letter was lost"),
    "a wrong encoding": (
        {**GOOD, "question": "A cafÃ©?"},
        "UTF-8 that was read as cp1252 or latin-1; it should be 'A café\\?'",
    ),
    "a copy": (GOOD, "it duplicates row 0"),
    "a copy in small letters": (
        {**GOOD, "question": "what is  2 + 2?"},
        r"it duplicates row 0 \(ignoring case, spacing and Unicode form\)",
    ),
    "pandas' other missing answer": ({**GOOD, "answer": pandas.NA}, "its 'answer' is of type NAType, not text: <NA>"),
    "an array": ({**GOOD, "answer": numpy.array([1, 2])}, "its 'answer' is of type ndarray, not text"),
    "a decimal": ({**GOOD, "answer": Decimal(4)}, "its 'answer' is of type Decimal, not text"),
    "without end": ({**GOOD, "answer": math.inf}, "its 'answer' is inf, not a finite number"),
    "nothing to be seen": ({**GOOD, "answer": "\u200b"}, "its 'answer' is empty"),
}


@pytest.mark.parametrize(("record", "message"), REJECTED.values(), ids=REJECTED)
def test_a_bad_record_is_rejected_and_named(record, message):
    report = rows_from([GOOD, record])
    assert len(report.rows) == 1 and list(report.rejected) == [1]
    with pytest.raises(CourseError, match=f"1 of 2 records were rejected.*\n.*\nrejected: row 1: .*{message}"):
        report.all_rows()


@pytest.mark.parametrize("text", ["nan", "N/A", "null", "None", "#N/A"])
def test_a_word_for_a_missing_answer_is_rejected_unless_it_is_meant(text):
    report = rows_from([{**GOOD, "answer": text}])
    assert f"its 'answer' is {text!r}, which counts as missing; to accept it, use read_answer=str" in str(report)
    assert rows_from([{**GOOD, "answer": text}], read_answer=str).rows[0]["answer"] == text


@pytest.mark.parametrize(("number", "text"), [(numpy.int64(3), "3"), (numpy.float32(0.5), "0.5")])
def test_numpys_numbers_become_text(number, text):
    report = rows_from([{**GOOD, "answer": number}])
    assert report.rows[0]["answer"] == text and f"was the number {text} and" in str(report)


@pytest.mark.parametrize("read_answer", [int, lambda text: text.split()[5], lambda text: re.search("x", text)[1]])
def test_an_error_of_read_answer_names_the_row(read_answer):
    report = rows_from([{**GOOD, "answer": "four"}], read_answer=read_answer)
    assert "rejected: row 0: no gold answer in 'four': read_answer raises" in str(report)


def test_a_number_from_read_answer_becomes_text():
    assert rows_from([GOOD], read_answer=int).rows[0]["answer"] == "4"
    assert "no gold answer in '4': its 'read_answer(answer)' is of type list" in str(
        rows_from([GOOD], read_answer=list)
    )


def test_what_is_changed_is_told():
    report = rows_from([{"question": " What is 2 + 2? ", "answer": 4}])
    assert report.rows == [{"prompt": chat_prompt("What is 2 + 2?"), "answer": "4"}]
    assert report.changed[0] == "'question' had spaces around it. 'answer' was the number 4 and is text now."
    assert report.all_rows() is report.rows


def test_a_question_with_two_answers_is_rejected_altogether():
    report = rows_from([GOOD, {**GOOD, "answer": "5"}, {"question": "What is 1 + 1?", "answer": "2"}])
    assert list(report.rejected) == [0, 1] and len(report.rows) == 1
    assert "row 0 '4', row 1 '5'. Fix the wrong answer" in report.rejected[0]


def test_the_same_number_written_otherwise_is_no_contradiction():
    report = rows_from([{**GOOD, "answer": "1,250"}, {**GOOD, "answer": "1250"}])
    assert "it duplicates row 0" in report.rejected[1]


def test_a_raised_number_is_another_question():
    """NFKC made one of 5² and 52, and sound rows were rejected as contradictory."""
    assert not rows_from([{"question": f"What is {n}?", "answer": a} for n, a in (("5²", "25"), ("52", "52"))]).rejected


def test_questions_that_differ_in_case_alone_are_told_to_be_no_copies():
    report = rows_from([{"question": f"5 M{b} in bits?", "answer": a} for b, a in (("b", "5e6"), ("B", "4e7"))])
    assert "the same question (ignoring case, spacing and Unicode form) has different answers" in report.rejected[0]


def test_an_example_is_not_asked():
    report = rows_from([GOOD, {"question": "What is 1 + 1?", "answer": "2"}], examples=[("What is 2 + 2?", "4")])
    assert "it duplicates an example of the prompt" in report.rejected[0] and len(report.rows) == 1


def test_answers_are_read_from_a_solution():
    records = [{"question": "a?", "answer": "1 + 1 = 2\n#### 2"}, {"question": "b?", "answer": "two"}]
    for read in (gsm8k_answer, extract_after_hashes):
        report = rows_from(records, read_answer=read)
        assert report.rows[0]["answer"] == "2" and report.rejected[1].startswith("no gold answer in 'two'")


def test_a_base_model_gets_text():
    def as_text(question, system_prompt, examples):
        shown = [f"Question: {asked}\nAnswer: {answer}" for asked, answer in examples]
        return "\n\n".join([*shown, f"Question: {question}\nAnswer:"])

    row = rows_from([GOOD], prompt=as_text, system_prompt=None, examples=[("What is 1 + 1?", "2")]).rows[0]
    assert row["prompt"] == "Question: What is 1 + 1?\nAnswer: 2\n\nQuestion: What is 2 + 2?\nAnswer:"


def test_examples_come_as_earlier_turns():
    turns = chat_prompt("c?", "Be brief.", [("a?", "A"), ("b?", "B")])
    assert [turn["content"] for turn in turns] == ["Be brief.", "a?", "A", "b?", "B", "c?"]
    check_rows([{"prompt": turns, "answer": "C"}])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "no records"),
        (
            [{"questions": "a", "answer": "b"}],
            "No record has the column 'question'; the columns are 'questions'.*'questions'",
        ),
        ([{"What is 2 + 2?": "What is 3 + 3?", "4": "6"}], r"'What is 2 \+ 2\?', '4'.*the file has no header"),
    ],
)
def test_records_without_the_columns_are_rejected(records, said):
    with pytest.raises(CourseError, match=said):
        rows_from(records)


def test_many_notes_are_cut_and_counted():
    report = rows_from([GOOD, *[{"question": "x", "answer": ""}] * 30])
    assert "rejected: 20 more; all 30 are in report.rejected" in str(report)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@given(st.lists(st.fixed_dictionaries({"question": VALUES, "answer": VALUES}), min_size=1, max_size=12))
def test_every_record_is_a_row_or_is_rejected_once(records):
    report = rows_from(records)
    assert len(report.rows) + len(report.rejected) == report.total == len(records)
    assert report.rejected.keys() <= set(range(len(records)))
    assert not report.rows or check_rows(report.rows)


def test_real_gsm8k_records_become_the_rows_that_gsm8k_rows_makes(gsm8k_records):
    report = rows_from(gsm8k_records, read_answer=gsm8k_answer)
    assert report.all_rows() == gsm8k_rows(gsm8k_records)
