"""Test how the file of questions and answers is read, and how bad rows are reported: pytest test_data.py (seconds)."""

import json
import subprocess
import sys

import data
import pytest
import rewards
from grpo_run.rows import same_question

GOOD = [(f"What is {n} + 30?", f"It is {n + 30}.") for n in range(10, 99)]


def csv_file(path, rows, header="question,answer"):
    """A CSV file of these rows and the good ones."""
    path.write_text("\n".join([header, *rows, *(f"{q},{a}" for q, a in GOOD)]), encoding="utf-8")
    return path


def error_of(path) -> str:
    """The error message for a rejected file."""
    with pytest.raises(SystemExit) as stopped:
        data.own_rows(str(path))
    return str(stopped.value)


def test_a_file_is_summarized(tmp_path):
    run = [sys.executable, "data.py", str(csv_file(tmp_path / "a.csv", []))]
    done = subprocess.run(run, capture_output=True, text=True)
    assert "89 valid rows" in done.stdout and "held out" in done.stdout, done.stderr


def test_the_sample_is_valid_and_no_question_is_in_both_splits():
    sides = [data.load_rows("expert_answers.csv", split, 10_000, seed=0) for split in ("train", "test")]
    train, test = ({same_question(q) for q in rows["question"]} for rows in sides)
    assert not train & test and len(train) == len(sides[0]) and len(test) == len(sides[1])
    assert sides[0][0]["prompt"][-1] == {"role": "user", "content": sides[0][0]["question"]}


def test_csv_tsv_semicolons_and_jsonl_give_the_same_rows(tmp_path):
    rows = [*GOOD, ('Who said "I came,\nI saw"?', "It was Caesar; in 47 BC.")]
    quoted = [[f'"{text}"' for text in (q.replace('"', '""'), a)] for q, a in rows]
    for name, mark in (("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t")):
        text = "\r\n".join(["\ufeffQuestion" + mark + " answer", *(mark.join(row) for row in quoted), ""])
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    lines = [json.dumps({"question": q, "answer": a, "more": 1}) for q, a in rows]
    (tmp_path / "d.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = [data.own_rows(str(tmp_path / name)) for name in ("a.csv", "b.csv", "c.tsv", "d.jsonl")]
    assert [(row["question"], row["answer"]) for row in found[0]] == rows and all(one == found[0] for one in found)


BAD = {
    ",It is 5.": "line 2: the question is empty: fill it in, or delete the row.",
    "What is 2 + 3?,": "line 2: the answer is empty: fill it in, or delete the row.",
    "What is 2 + 3?,  ": "line 2: the answer is empty",
    "What is 2 + 3?": "line 2: has 1 fields, but the header has 2",
    "What is 2, or 3?,It is 5.": "line 2: has 3 fields, but the header has 2: quote any text that contains",
    "What is 2 + 3?,…": "line 2: the expert's answer '…' would not count as correct: does it contain a word?",
    "Caf\ufffd?,It is 5.": r"line 2: the question contains '\ufffd', a character that was lost",
    "What is 2\0?,It is 5.": r"line 2: the question contains '\x00', a character that was lost",
    "What is 2 + 3?,#N/A": "line 2: the answer is #N/A, a spreadsheet error: enter the text itself.",
    f"What?,{'5' * 2001}": "line 2: the answer has 2001 characters: the limit is 2000",
    "What is 10 + 30?,It is 40.": "line 3: duplicates line 2: delete one.",
    "What is 2 + 3?,2 and 3 are 5. #### 5": "line 2: the answer has a worked solution before '####'",
    "what is 10 + 30,It is 41.": "line 3: has the same question as line 2, but another answer: keep one.",
}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_row_is_reported_with_its_fix(tmp_path, row):
    assert BAD[row] in error_of(csv_file(tmp_path / "a.csv", [row]))


def test_questions_that_differ_in_a_sign_are_different():
    signs = {same_question(f"What is 7 {sign} 3?") for sign in "+-*/<>"}
    assert len(signs) == 6 and same_question(" WHAT is 7 + 3 ") in signs


def test_line_numbers_count_quoted_line_ends_and_empty_lines(tmp_path):
    rows = ['"What is\n2 + 3?",It is 5.', "", ",", "What is 2 + 4?,"]
    assert ": 1\n  line 6: the answer is empty" in error_of(csv_file(tmp_path / "a.csv", rows))


def test_a_problem_of_many_rows_is_reported_once(tmp_path):
    text = error_of(csv_file(tmp_path / "a.csv", [f"What is {n} + 3?," for n in range(30)]))
    assert ": 30\n" in text and text.count("the answer is empty") == 1 and "lines 2, 3, 4 and 27 more:" in text


def test_different_problems_are_counted(tmp_path):
    text = error_of(csv_file(tmp_path / "a.csv", [f"What is {n} + 3?,{'5' * (2001 + n)}" for n in range(30)]))
    assert ": 30\n" in text and "line 21:" in text and "line 22:" not in text and text.endswith("and 10 more")


JSON_BAD = {
    "[1]": "line 1: is not a JSON object",
    "{'question': 1}": "line 1: is not valid JSON",
    '{"question": "Who?"}': "line 1: has no column 'answer'; it has 'question'. Add 'answer', or rename",
    '{"question": "Who?", "solution": "Ana."}': "Rename 'solution' to 'answer'.",
    '{"prompt": "Who?", "solution": "Ana."}': "Rename 'prompt' to 'question' and rename 'solution' to 'answer'.",
    '{"question": "Who?", "answer": NaN}': "line 1: is not valid JSON (JSON has no NaN).",
    '{"question": "Who?", "answer": 1e400}': "(1e400 is too large for a number; write it in quotes).",
    r'{"question": "Who \ud800?", "answer": "Ana."}': r"line 1: the question contains '\ud800', a character that",
    '{"question": "Who?", "anser": "Ana."}': "it has 'question', 'anser'. Rename 'anser' to 'answer'.",
    '{"question": "Who?", "answer": ["Ana."]}': "line 1: the column 'answer' has a list instead of text.",
    '{"question": [{"role": "user", "content": "Who?"}], "answer": "Ana."}': "keep the content of its last message.",
    '{"question": "Who?", "answer": null}': "line 1: the answer is empty",
}


@pytest.mark.parametrize("line", JSON_BAD)
def test_a_bad_line_of_jsonl_is_reported(tmp_path, line):
    (tmp_path / "a.jsonl").write_text("\n".join([line, *(json.dumps(dict(question=q, answer=a)) for q, a in GOOD)]))
    text = error_of(tmp_path / "a.jsonl")
    assert JSON_BAD[line] in text and not text.endswith(("..", "?."))


def test_other_columns_of_jsonl_may_have_any_value(tmp_path):
    """A file with {"meta": {...}} was once rejected, although other columns are ignored."""
    lines = [json.dumps(dict(question=q, answer=a, meta={"by": "Ana"}, seen=True)) for q, a in GOOD]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    assert len(data.own_rows(str(tmp_path / "a.jsonl"))) == len(GOOD)


@pytest.mark.parametrize("start", ["sep=;\n", "\n\n", "\ufeff\r\n"])
def test_what_excel_writes_before_the_header_is_skipped(tmp_path, start):
    rows = "\n".join(["question;answer", "Who?;", *(f"{q};{a}" for q, a in GOOD)])
    (tmp_path / "a.csv").write_text(start + rows, encoding="utf-8")
    assert f"line {start.count(chr(10)) + 2}: the answer is empty" in error_of(tmp_path / "a.csv")


HEADERS = {
    "question,anwser": "has no column 'answer'; it has 'question', 'anwser'. Rename 'anwser' to 'answer'.",
    "id,text": "has no column 'question' or 'answer'; it has 'id', 'text'. Rename 'text' to 'question' and add",
    "nr.;frage;antwort": "Rename 'frage' to 'question' and rename 'antwort' to 'answer'.",
    "question,answer,answer": "has the column 'answer' twice; rename one.",
}


@pytest.mark.parametrize("header", HEADERS)
def test_a_missing_column_is_reported_with_the_nearest(tmp_path, header):
    assert HEADERS[header] in error_of(csv_file(tmp_path / "a.csv", [], header))


def test_a_key_and_a_split_are_checked(tmp_path):
    rows = ["What is gold?,A metal.,element,", "What is tin?,A metal.,metal,dev", "What is lead?,A metal.,metal,Test"]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["question,answer,key,split", *rows]))
    text = error_of(path)
    assert (
        "line 2: the expert's answer 'A metal.' would not count as correct: does it contain the key 'element'?" in text
    )
    assert "line 3: the split is 'dev': use train, test, or leave it empty." in text and "line 4" not in text


def test_a_split_column_decides(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{q},{a},{'test' if n < 12 else 'train'}" for n, (q, a) in enumerate(GOOD)]
    path.write_text("\n".join(["question,answer,split", *rows]))
    held_out = data.load_rows(str(path), "test", 100, seed=0)
    assert set(held_out["question"]) == {q for q, _ in GOOD[:12]}


def test_other_encodings_are_reported(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("question,answer\nOne?,1.\nCafé?,Yes.".encode("cp1252"))
    assert "line 3 is not UTF-8 (as cp1252: " in (text := error_of(path)) and "Café" in text
    path.write_bytes("question,answer\nCafé?,Yes.".encode("utf-16"))
    assert "looks like UTF-16. Save it as UTF-8" in error_of(path)
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    assert "looks like an Excel workbook. Save it" in error_of(path)


def test_a_quote_that_never_closes_is_reported_with_its_first_line(tmp_path):
    assert "line 3: unexpected end of data. Is a quotation mark not closed?" in error_of(
        csv_file(tmp_path / "a.csv", ["One?,1.", '"Two?,2.'])
    )


GERMAN = dict(question="Wie heißt die Hauptstadt von Österreich?", answer="Wien", key="")


@pytest.mark.parametrize("language, right", [("en", False), ("de", True)])
def test_small_words_are_those_of_the_language(monkeypatch, language, right):
    monkeypatch.setattr(rewards, "SMALL", set(rewards.SMALL_WORDS[language].split()))
    assert rewards.is_right("Das ist Wien.", GERMAN) == right


def test_the_summary_shows_how_three_answers_would_be_counted(tmp_path):
    said = data.summary(str(csv_file(tmp_path / "a.csv", []))).splitlines()[-4:]
    assert said[0].startswith("three answers to 'What is ") and [line.split(":")[0].strip() for line in said[1:]] == [
        *("correct", "wrong", "wrong")
    ]


def test_a_missing_file_is_reported_with_the_nearest(tmp_path):
    csv_file(tmp_path / "answers.csv", [])
    assert f"Did you mean {str(tmp_path / 'answers.csv')!r}?" in error_of(tmp_path / "answer.csv")
    (tmp_path / "answers.xlsx").write_bytes(b"PK\x03\x04")
    assert "must end in .csv, .tsv, .jsonl" in error_of(tmp_path / "answers.xlsx")
