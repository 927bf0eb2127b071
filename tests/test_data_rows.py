"""Records to rows: each is a row or is named, and none goes silently."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils.data import chat_prompt, check_rows, gsm8k_answer, gsm8k_rows, plain_prompt, rows_from
from grpo_utils.errors import CourseError
from grpo_utils.rewards import extract_after_hashes

GOOD = {"question": "What is 2 + 2?", "answer": "4"}

REFUSED = {
    "no question": ({"answer": "4"}, "it has no 'question'"),
    "a missing answer": ({**GOOD, "answer": None}, "it has no 'answer'"),
    "pandas' missing answer": ({**GOOD, "answer": math.nan}, "it has no 'answer'"),
    "an empty question": ({**GOOD, "question": " \n"}, "its 'question' is empty"),
    "a list": ({**GOOD, "answer": ["4"]}, r"its 'answer' is a list, no text: \['4'\]"),
    "a switch": ({**GOOD, "answer": True}, "its 'answer' is a bool"),
    "a lost letter": ({**GOOD, "question": "A caf\ufffd?"}, "U\\+FFFD: a letter was lost"),
    "a wrong encoding": ({**GOOD, "question": "A cafÃ©?"}, "UTF-8 that was read as cp1252; it should be 'A café\\?'"),
    "a copy": ({"question": "what is  2 + 2?", "answer": "4"}, "it asks what row 0 asks, with the same answer"),
}


@pytest.mark.parametrize(("record", "message"), REFUSED.values(), ids=REFUSED)
def test_a_bad_record_is_refused_and_named(record, message):
    report = rows_from([GOOD, record])
    assert len(report.rows) == 1 and [note.row for note in report.refused] == [1]
    with pytest.raises(CourseError, match=f"1 of 2 records were refused.*\n.*\nrefused: row 1: .*{message}"):
        report.all_rows()


@pytest.mark.parametrize("text", ["Café, naïve, 5 €", "Ünïcödé", "日本語", "plain", "Ã", "5 £ ’quoted’"])
def test_a_sound_text_is_not_taken_for_a_wrong_encoding(text):
    assert not rows_from([{**GOOD, "question": text}]).refused


def test_what_is_changed_is_told():
    report = rows_from([{"question": " What is 2 + 2? ", "answer": 4}])
    assert report.rows == [{"prompt": chat_prompt("What is 2 + 2?"), "answer": "4"}]
    assert (
        str(report.changed[0]) == "row 0: 'question' had spaces around it. 'answer' was the number 4 and is text now."
    )
    assert report.all_rows() is report.rows


def test_a_question_with_two_answers_is_refused_altogether():
    report = rows_from([GOOD, {**GOOD, "answer": "5"}, {"question": "What is 1 + 1?", "answer": "2"}])
    assert [note.row for note in report.refused] == [0, 1] and len(report.rows) == 1
    assert "row 0 '4', row 1 '5'; one is wrong" in report.refused[0].said


def test_the_same_number_written_otherwise_is_no_contradiction():
    report = rows_from([{**GOOD, "answer": "1,250"}, {**GOOD, "answer": "1250"}])
    assert "with the same answer" in report.refused[0].said


def test_an_example_is_not_asked():
    report = rows_from([GOOD, {"question": "What is 1 + 1?", "answer": "2"}], examples=[("What is 2 + 2?", "4")])
    assert "it asks what an example of the prompt answers" in report.refused[0].said and len(report.rows) == 1


def test_answers_are_read_from_a_solution():
    records = [{"question": "a?", "answer": "1 + 1 = 2\n#### 2"}, {"question": "b?", "answer": "two"}]
    for read in (gsm8k_answer, extract_after_hashes):
        report = rows_from(records, read_answer=read)
        assert report.rows[0]["answer"] == "2" and report.refused[0].said.startswith("no gold answer")


def test_a_base_model_gets_text():
    row = rows_from([GOOD], prompt=plain_prompt, system_prompt=None, examples=[("What is 1 + 1?", "2")]).rows[0]
    assert row["prompt"] == "Question: What is 1 + 1?\nAnswer: 2\n\nQuestion: What is 2 + 2?\nAnswer:"


def test_examples_come_as_earlier_turns():
    turns = chat_prompt("c?", "Be brief.", [("a?", "A"), ("b?", "B")])
    assert [turn["content"] for turn in turns] == ["Be brief.", "a?", "A", "b?", "B", "c?"]
    check_rows([{"prompt": turns, "answer": "C"}])


def test_a_column_that_is_not_there_names_the_nearest():
    with pytest.raises(CourseError, match="No record has the column 'question'; there are: 'questions'.*'questions'"):
        rows_from([{"questions": "a", "answer": "b"}])


def test_a_header_that_is_missing_is_guessed_from_the_columns():
    with pytest.raises(CourseError, match="'What is 2 \\+ 2\\?', '4'.*the file has no header"):
        rows_from([{"What is 2 + 2?": "What is 3 + 3?", "4": "6"}])


def test_no_records_is_an_error():
    with pytest.raises(CourseError, match="no records"):
        rows_from([])


def test_many_notes_are_cut_and_counted():
    report = rows_from([GOOD, *[{"question": "x", "answer": ""}] * 30])
    assert "refused: 20 more, in report.refused" in str(report)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@given(st.lists(st.fixed_dictionaries({"question": VALUES, "answer": VALUES}), min_size=1, max_size=12))
def test_every_record_is_a_row_or_is_refused_once(records):
    report = rows_from(records)
    assert len(report.rows) + len(report.refused) == report.total == len(records)
    assert len({note.row for note in report.refused}) == len(report.refused)
    assert not report.rows or check_rows(report.rows)


def test_real_gsm8k_records_become_the_rows_that_gsm8k_rows_makes(gsm8k_records):
    report = rows_from(gsm8k_records, read_answer=gsm8k_answer)
    assert report.all_rows() == gsm8k_rows(gsm8k_records)
