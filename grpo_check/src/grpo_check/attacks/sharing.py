"""What the best-paid completions share, where nothing says which ones are correct."""

import re
from collections import Counter
from collections.abc import Sequence

#: What is said about each kind; the first that half of the completions have is named.
QUESTIONS = {
    "empty": "the best-paid completions are empty or nearly so.",
    "same": "the best-paid completions are the same text for different prompts.",
    "prompt": "the best-paid completions repeat the prompt.",
    "repeats": "the best-paid completions repeat themselves.",
    "form": "the best-paid completions have a form and no words.",
    "": "the best-paid completions share nothing obvious.",
}
#: Characters up to which a completion is nearly empty, and the share of repeated words that is a repetition.
SHORT, REPEATED = 3, 0.6


def shared_by(texts: Sequence[str], questions: Sequence[str]) -> str:
    """What at least half of the completions share, as a key of `QUESTIONS`.

    >>> shared_by(["go go go go go go", "up up up up up up"], ["?"] * 2), shared_by(["a robin", "two geese"], ["?"] * 2)
    ('repeats', '')
    """
    counts = Counter(texts)
    kinds = [kind_of(text, question, counts) for text, question in zip(texts, questions, strict=True)]
    return next((kind for kind in QUESTIONS if kind and 2 * kinds.count(kind) >= len(kinds) > 0), "")


def kind_of(text: str, question: str, counts: Counter) -> str:
    """What is remarkable about a completion."""
    words = text.split()
    if len(text.strip()) <= SHORT:
        return "empty"
    if counts[text] > 1:
        return "same"
    if question.strip() and question.strip() in text:
        return "prompt"
    if len(words) > 5 and len(set(words)) <= (1 - REPEATED) * len(words):
        return "repeats"
    return "" if re.search(r"[^\W_]", re.sub(r"</?\w+>", "", text)) else "form"
