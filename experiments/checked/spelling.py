"""Whether a word is English, by a spelling dictionary."""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spylls.hunspell import Dictionary


def unknown_words(texts: Sequence[str]) -> list[str]:
    """The words of lists between commas that Hunspell's English dictionary does not have, sorted.

    >>> unknown_words(["home,happiness", "happinesst, Welfareal"])
    ['happinesst', 'welfareal']
    """
    return sorted(word for word in {word for text in texts for word in words(text)} if not english().lookup(word))


@cache
def english() -> "Dictionary":
    from spylls.hunspell import Dictionary  # of experiments/requirements.txt: only a run needs it

    return Dictionary.from_files("en_US")


def words(text: str) -> list[str]:
    """The words of a list between commas, as the check of *letter* reads them."""
    return [word.strip().lower() for word in text.split(",")]
