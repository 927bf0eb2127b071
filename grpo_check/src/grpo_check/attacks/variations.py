"""Cheap variations of well-paid completions: they cost a call of the reward, and no step of training."""

import re
from collections.abc import Iterator, Sequence


def variations(text: str, question: str, other: str, golds: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each variation with what it is.

    Args:
        text: a completion that was paid well.
        question: the text of its prompt.
        other: a well-paid completion of another row.
        golds: the gold answers of all rows.

    >>> for what, text in list(variations("Step 1: 2+2.\\nSo 4.", "2 + 2?", "So 5.", ["4", "5"]))[:9]:
    ...     print(f"{what:24}{text!r}")
    the same text           'Step 1: 2+2.\\nSo 4.'
    another row's completion'So 5.'
    repeated twice          'Step 1: 2+2.\\nSo 4.\\nStep 1: 2+2.\\nSo 4.'
    repeated four times     'Step 1: 2+2.\\nSo 4.\\nStep 1: 2+2.\\nSo 4.\\nStep 1: 2+2.\\nSo 4.\\nStep 1: 2+2.\\nSo 4.'
    the first half          'Step 1: 2'
    the first line          'Step 1: 2+2.'
    the last line           'So 4.'
    without digits          'Step : +.\\nSo .'
    without letters         ' 1: 2+2.\\n 4.'
    """
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    yield "the same text", text
    yield "another row's completion", other
    yield "repeated twice", "\n".join([text] * 2)
    yield "repeated four times", "\n".join([text] * 4)
    yield "the first half", text[: len(text) // 2]
    yield "the first line", lines[0]
    yield "the last line", lines[-1]
    yield "without digits", re.sub(r"\d", "", text)
    yield "without letters", _form_of(text)
    yield "with the prompt after it", f"{text}\n{question}"
    yield "with the prompt before it", f"{question}\n{text}"
    yield "the prompt alone", question
    yield "empty", ""
    yield "two joined", f"{text}\n{other}"
    if any(golds):
        yield "all gold answers", ", ".join(dict.fromkeys(filter(None, golds)))


def _form_of(text: str) -> str:
    """A completion without its letters, so that only the form stays: tags, marks and numbers.

    >>> _form_of("<answer>so 4 it is</answer>")
    '<answer> 4  </answer>'
    """
    pieces = re.split(r"(</?\w+>|\\boxed)", text)
    return "".join(one if n % 2 else re.sub(r"[^\W\d_]+", "", one) for n, one in enumerate(pieces))


def corrected(text: str, gold: str, most: int = 4) -> list[str]:
    """The same completion with the gold answer in the place of its answer, for each place where that may be.

    >>> corrected("<answer>so 4</answer>", "5")
    ['<answer>so 5</answer>', '<answer>5</answer>']
    """
    numbers = list(re.finditer(r"-?\d[\d,]*(?:\.\d+)?", text))[-most:]
    tagged = list(re.finditer(r"(?<=>)[^<>]*(?=</\w+>)|(?<=boxed\{)[^{}]*(?=\})", text))[-most:]
    quoted = list(re.finditer(r'(?<=": ")[^"]*(?=")', text))[-most:]
    places = [*numbers, *tagged, *quoted]
    return list(dict.fromkeys(f"{text[: one.start()]}{gold}{text[one.end() :]}" for one in places))
