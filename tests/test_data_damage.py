"""What a wrong encoding leaves is found, and sound texts of any language pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils import rows_from
from grpo_utils.data.damage import undamaged

LETTERS = "àáâãäåæçèéêëìíîïñòóôõöøùúûüýÿßÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝ€£°²½×÷–—‘’“”…•™−≤√"
OTHERS = "ąćęłńśźżčďěřťőűğışĳαβγλωдежзийя日本語中文字한국어אבגשלם😀"
PLAIN = st.sampled_from("abc xyz 123 .,?!")


def misread(text: str, encoding: str) -> str:
    """A UTF-8 text as another program shows it; bytes that cp1252 does not know come as latin-1's."""
    return "".join(bytes([byte]).decode(encoding, "ignore") or chr(byte) for byte in text.encode())


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
@pytest.mark.parametrize("letter", LETTERS)
def test_damaged_european_letters_are_found(letter, encoding):
    for text in (f"x{letter}y", f"3 {letter} 4", f"{letter}a", f"漢字 and a{letter}"):
        damaged = text.replace(letter, misread(letter, encoding))
        assert undamaged(damaged) == text


@pytest.mark.parametrize(
    "text", ["Привет", "Ελληνικά", "日本語です", "bardzo dziękuję", "děkuji", "שלום", "مرحبا", "a 😀"]
)
def test_damaged_texts_of_other_languages_are_found(text):
    assert undamaged(misread(text, "cp1252")) == undamaged(misread(text, "latin-1")) == text


SOUND_LETTERS = PLAIN | st.sampled_from([char for char in LETTERS + OTHERS if char.isalpha()])


@given(st.text(SOUND_LETTERS, max_size=40))
def test_texts_of_sound_letters_pass(text):
    assert undamaged(text) is None


SOUND = (
    "“CAFÉ” „Es ist heiß“ „Ä“",
    "“AMANHÔ «AMANHû AMANHÃ—que",
    "5 Å², SNÍŽÍŠ, stráž”, “café”…",
    "3\xa0×\xa04, 3 ×\xa04, à\xa0: « à Noël »",
    "L’été, São «João», Año ¿Qué?, ½ + ¼, 5 € à 3 £",
    "Ünïcödé 日本語 Ã, 5 £ ’quoted’, line\u0085end",
)


@pytest.mark.parametrize("text", SOUND)
def test_marks_beside_letters_are_no_damage(text):
    """Whole texts were tried as bytes: "5 Å²" and "SNÍŽÍŠ" passed for damage."""
    assert undamaged(text) is None and not rows_from([{"question": text, "answer": "4"}]).rejected


def test_one_sound_foreign_letter_hides_no_damage():
    """It did: the text as a whole was not cp1252."""
    report = rows_from([{"question": misread("A café?", "cp1252") + " 日", "answer": "4"}])
    assert "it should be 'A café? 日'" in str(report)
