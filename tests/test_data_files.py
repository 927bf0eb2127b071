"""Your own files: what is read, and what the error says for each fault."""

import json
import re

import pytest
from grpo_core.errors import CourseError
from grpo_core.tables import _csv_lines, _read_jsonl
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils import read_table

ROWS = [{"question": "What is 2 + 2?", "answer": "4"}, {"question": "Was kostet das Café?", "answer": "3"}]
CSV = 'question,answer\n"What is 2 + 2?",4\nWas kostet das Café?,3\n'


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


GOOD = {
    "a csv": ("a.csv", CSV.encode(), {}),
    "one with a byte order mark": ("a.csv", CSV.encode("utf-8-sig"), {}),
    "one with Windows' line ends": ("a.csv", CSV.replace("\n", "\r\n").encode(), {}),
    "one with an empty line": ("a.csv", CSV.replace("\n", "\n\n", 1).encode(), {}),
    "one from Excel": ("a.csv", CSV.encode("utf-16"), {"encoding": "utf-16"}),
    "one from old Windows": ("a.csv", CSV.encode("cp1252"), {"encoding": "cp1252"}),
    "semicolons": ("a.csv", CSV.replace(",", ";").encode(), {"delimiter": ";"}),
    "tabs": ("a.tsv", CSV.replace(",", "\t").encode(), {}),
    "no header": ("a.csv", CSV.partition("\n")[2].encode(), {"header": ["question", "answer"]}),
    "a first line for Excel": ("a.csv", b"sep=;\r\n" + CSV.replace(",", ";").encode(), {}),
    "an ending in capitals": ("A.CSV", CSV.encode(), {}),
    "tabs, an ending in capitals": ("A.TSV", CSV.replace(",", "\t").encode(), {}),
    "a mark, and utf-8 by another name": ("a.csv", CSV.encode("utf-8-sig"), {"encoding": "UTF8"}),
    "a mark, and cp1252": ("a.csv", b"\xef\xbb\xbf" + CSV.encode("cp1252"), {"encoding": "cp1252"}),
    "a mark, and utf-8 with it": ("a.csv", CSV.encode("utf-8-sig"), {"encoding": "utf-8-sig"}),
    "jsonl": ("a.jsonl", "\n".join(map(json.dumps, ROWS)).encode(), {}),
    "jsonl with an empty line and a mark": ("a.jsonl", "\n\n".join(map(json.dumps, ROWS)).encode("utf-8-sig"), {}),
    "json": ("a.json", json.dumps(ROWS, indent=2).encode(), {}),
}


@pytest.mark.parametrize(("name", "data", "how"), GOOD.values(), ids=GOOD)
def test_it_is_read(name, data, how, write):
    assert read_table(write(name, data), **how) == ROWS


BAD = {
    "another ending": ("a.xlsx", CSV, {}, "ends in '.xlsx'; rows are read from .jsonl, .json, .csv, .tsv"),
    "cp1252": ("a.csv", CSV.encode("cp1252"), {}, "line 3: byte 53 (0xe9) is not valid utf-8"),
    "cp1252, its text": (
        "a.csv",
        CSV.encode("cp1252"),
        {},
        "das Café', save it as UTF-8 (in Python: read_table(path, encoding='cp1252'))",
    ),
    "utf-16": ("a.csv", CSV.encode("utf-16"), {}, "this is UTF-16, such as Excel's 'Unicode text'. Save it as UTF-8"),
    "utf-16 without its mark": ("a.csv", b"\0a\0\n\0b", {}, "line 1 has a zero byte"),
    "an unknown encoding": ("a.csv", CSV, {"encoding": "utf-9"}, "encoding: unknown encoding: utf-9"),
    "another encoding that fails": ("a.csv", CSV, {"encoding": "ascii"}, "line 3: byte 53 (0xc3) is not valid ascii"),
    "a mark and cp1252": ("a.csv", b"\xef\xbb\xbf" + CSV.encode("cp1252"), {}, "line 3: byte 56 (0xe9) is not valid"),
    "no cp1252 either": ("a.csv", b"q,a\n\x81,1\n", {"encoding": "cp1252"}, "byte 4 (0x81) is not valid cp1252"),
    "an encoding of no text": ("a.csv", CSV, {"encoding": "base64"}, "encoding: 'base64' is not a text encoding"),
    "nothing": ("a.csv", "", {}, "is empty: it has neither a header nor rows"),
    "nothing but a header": ("a.csv", "q,a\n", {}, "has no records"),
    "an empty jsonl": ("a.jsonl", " \n\n", {}, "has no records"),
    "an empty json": ("a.json", "", {}, "has no records"),
    "an empty list": ("a.json", "[]", {}, "has no records"),
    "too many fields": ("a.csv", "q,a\nx,1\nx,1,250\n", {}, "line 3 has more fields than the header (3, not 2)"),
    "too few fields": ("a.csv", "q,a\nx,1\nx\n", {}, "line 3 has fewer fields than the header (1, not 2)"),
    "after a field of two lines": ("a.csv", 'q,a\n"x\ny",1\nx\n', {}, "line 4 has fewer fields"),
    "an open quote": ("a.csv", 'q,a\nx,1\n"x,2\ny,3\n', {}, "the row that starts on line 3 is not valid CSV"),
    "a wrong line after Excel's": ("a.csv", "sep=;\nq;a\n1;2\n3\n", {}, "line 4 has fewer fields"),
    "a very long field": ("a.csv", "q,a\n" + "x" * 140_000 + ",1\n", {}, "csv.field_size_limit(10**7)"),
    "a name twice": ("a.csv", "q,a,q\n1,2,3\n", {}, "the header has 'q' twice"),
    "semicolons": (
        "a.csv",
        "q;a\n1;2\n",
        {},
        "one field with semicolons. Save it with commas (in Python: read_table(path, delimiter=';'))",
    ),
    "a broken object": ("a.jsonl", '{"q": 1}\n\n{"q": \n', {}, "line 3 is not valid JSON: Expecting value, column 7."),
    "a list in it": ("a.jsonl", '{"q": 1}\n[1]\n', {}, "line 2 is a list; a row is an object"),
    "json named jsonl": ("a.jsonl", '[{"q": 1}]', {}, "Rename the file to .json."),
    "json on many lines named jsonl": ("a.jsonl", json.dumps(ROWS, indent=2), {}, "Rename the file to .json."),
    "a broken list": (
        "a.json",
        '[{"q": 1},\n {"q" 1}]',
        {},
        "not valid JSON: Expecting ':' delimiter, line 2, column 7",
    ),
    "a key twice": (
        "a.jsonl",
        '{"q": 1}\n{"q": 1, "q": 2}',
        {},
        "line 2 cannot be read: an object has the key 'q'",
    ),
    "a number without end": ("a.jsonl", '{"q": ' + "1" * 5000 + "}", {}, "line 1 cannot be read: Exceeds the limit"),
    "lists in lists": ("a.jsonl", '{"q": ' + "[" * 10**5, {}, "line 1 cannot be read: maximum recursion depth"),
    "jsonl named json": ("a.json", '{"q": 1}\n{"q": 2}\n', {}, "is an object, rename the file to .jsonl"),
    "an object": ("a.json", '{"data": []}', {}, "contains a dict; write a list of rows"),
    "a text in the list": ("a.json", '[{"q": 1}, "x"]', {}, "row 1 is a str; a row is an object"),
}


@pytest.mark.parametrize(("name", "content", "how", "message"), BAD.values(), ids=BAD)
def test_a_fault_is_one_clear_sentence(name, content, how, message, write):
    with pytest.raises(CourseError, match=re.escape(message)):
        read_table(write(name, content), **how)


def test_a_file_that_is_not_there_names_the_nearest(write):
    path = write("rows.csv", CSV)
    with pytest.raises(CourseError, match="Did you mean 'rows.csv'"):
        read_table(path.with_name("row.csv"))


def test_a_line_separator_in_a_text_does_not_cut_a_json_line(write):
    """`str.splitlines` cuts at U+2028 and U+0085, which JSON allows inside a text."""
    row = {"question": "one\u2028two\u0085three", "answer": "3"}
    assert read_table(write("a.jsonl", json.dumps(row, ensure_ascii=False))) == [row]


def test_a_line_break_in_a_quoted_field_is_kept(write):
    assert read_table(write("a.csv", 'q,a\n"x\ny",1\n')) == [{"q": "x\ny", "a": "1"}]


@given(st.lists(st.dictionaries(st.text(), st.text(), min_size=1)))
def test_any_objects_come_back_from_jsonl(rows):
    text = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    assert _read_jsonl(text, "any.jsonl") == rows


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\0\r")), min_size=2, max_size=4), min_size=1))
def test_any_fields_come_back_from_csv(rows):
    quoted = ["".join(["\n", ",".join('"' + field.replace('"', '""') + '"' for field in row)]) for row in rows]
    assert [fields for _, fields in _csv_lines("".join(quoted), "any.csv", ",")] == rows
