"""Whether a word is English, by a spelling dictionary."""

from collections.abc import Sequence


def unknown_words(texts: Sequence[str]) -> list[str]:
    """The words of lists between commas that Hunspell's English dictionary does not have, sorted.

    >>> unknown_words(["home,happiness", "happinesst, Welfareal"])
    ['happinesst', 'welfareal']
    """
    from spylls.hunspell import Dictionary  # of experiments/requirements.txt: only a run needs it

    english = Dictionary.from_files("en_US")
    return sorted(word for word in {word for text in texts for word in words(text)} if not english.lookup(word))


def words(text: str) -> list[str]:
    """The words of a list between commas, as the check of *letter* reads them."""
    return [word.strip().lower() for word in text.split(",")]
