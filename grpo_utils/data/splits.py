"""Which questions are held out, and pairs of rows that ask the same."""

import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple


def is_held_out(key: str) -> bool:
    """Whether a question belongs to the held-out tenth, by a checksum of its text.

    The builder of the tiny base models uses it too, so they never saw a held-out question.

    >>> is_held_out("15 + 27"), is_held_out("19 + 13")
    (False, False)
    """
    return zlib.crc32(key.encode()) % 10 == 0


def prompt_key(prompt: object) -> str:
    """What makes two prompts the same: what the user says last, in lower case, with single spaces.

    Of messages, the system prompt and earlier turns do not count: they are mostly examples, and with others the
    question stays the same. A plain string counts as a whole.

    >>> prompt_key([{"role": "user", "content": "What is  2 + 2? "}]) == prompt_key("what is 2 + 2?")
    True
    >>> prompt_key("What is 5²?") == prompt_key("What is 52?")
    False
    """
    if isinstance(prompt, list):
        texts = [turn["content"] for turn in prompt if isinstance(turn, dict) and turn.get("role") == "user"]
        prompt = texts[-1] if texts else prompt
    return " ".join(unicodedata.normalize("NFC", str(prompt)).casefold().split())


def numbers_key(prompt: object) -> str:
    """The numbers of a prompt in ascending order, or its `prompt_key` if it has fewer than two.

    >>> numbers_key("What is 27 + 15?"), numbers_key("Add 15 to 27.")
    ('15 27', '15 27')
    """
    key = prompt_key(prompt)
    found = re.findall(r"\d+(?:[.,]\d+)*", key)
    numbers = sorted(float(number.replace(",", "")) for number in found if number.count(".") < 2)
    return " ".join(f"{number:.15g}" for number in numbers) if len(numbers) > 1 else key


class Twin(NamedTuple):
    """Two rows that have, or may have, the same question.

    ``how`` is ``same`` (equal except for case and spaces) or ``numbers`` (the same numbers in other words, which
    may be chance); ``similarity`` is from 0 to 100, by words in any order (rapidfuzz's token_sort_ratio).
    """

    first: int
    second: int
    how: str
    similarity: float


def find_twins(rows: Iterable[dict], others: Iterable[dict] | None = None) -> list[Twin]:
    """Pairs of rows with the same question, within ``rows`` or between ``rows`` and ``others``; most similar first.

    Each row of ``others`` (or each later row of ``rows``) is paired only with the most similar row.

    >>> rows = [{"prompt": "What is 15 + 27?"}, {"prompt": "what is 15 + 27?"}, {"prompt": "What is 27 + 15?"}]
    >>> [(twin.first, twin.second, twin.how) for twin in find_twins(rows)]
    [(0, 1, 'same'), (0, 2, 'numbers')]
    """
    keys = [prompt_key(row["prompt"]) for row in rows]
    later = keys if others is None else [prompt_key(row["prompt"]) for row in others]
    groups = defaultdict(list)  # places in ``rows`` that share their numbers
    for place, key in enumerate(keys):
        groups[numbers_key(key)].append(place)
    found = []
    for second, key in enumerate(later):
        known = [p for p in groups.get(numbers_key(key), ()) if others is not None or p < second]
        if known:
            found.append(_closest(keys, known, second, key))
    return sorted(found, key=lambda twin: -twin.similarity)


def _closest(keys: Sequence[str], known: Sequence[int], second: int, key: str) -> Twin:
    """The first of the most similar places."""
    from rapidfuzz import fuzz, process

    same = next((place for place in known if keys[place] == key), None)
    if same is not None:
        return Twin(same, second, "same", 100.0)
    _, likeness, first = process.extractOne(key, {place: keys[place] for place in known}, scorer=fuzz.token_sort_ratio)
    return Twin(first, second, "numbers", round(likeness, 1))
