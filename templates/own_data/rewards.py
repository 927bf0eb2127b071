"""The rewards. THIS IS THE FIRST FILE TO CHANGE: what you pay for is what the model learns.

An expert's answer is one of many right ones. So answers are compared by what they say beyond the question: "15 + 27
is 42." says 42. A reward gets the completions of a batch and, by name, every column of `data.py` as a list of the
same length. It returns one number for each completion, or None where it has none to give. A new reward is one
function and one line in `REWARDS`, with its weight.
"""

import re
import unicodedata
from decimal import Decimal

from judge import judge_all
from lib.scoring import text_of
from rapidfuzz import fuzz

TOKEN = re.compile(
    r"(?P<number>(?<![\w.])(?:-(?=[0-9]))?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?!\w))"
    r"|(?P<word>[^\W_]+(?:['’][^\W_]+)*)"
)
MINUS = str.maketrans("\u2212\u2013", "--")  # the sign itself, and the dash that many write for it
MARKUP = re.compile(r"[<>`{}]")
#: Words that say nothing by themselves. Write those of your language here.
SMALL = {
    "a", "an", "the", "this", "that", "it", "its", "is", "are", "was", "were", "be", "been", "do",
    "does", "in", "on", "at", "of", "to", "for", "from", "by", "with", "and", "or",
}  # fmt: skip
ENOUGH = 0.7  # the overlap from which an answer without a key counts as right


def tokens(text: str) -> list[str | Decimal]:
    """Words without their case, and numbers: 1,250 and 1250.0 are one. (A minus may be any of three signs.)"""
    plain = unicodedata.normalize("NFKC", text).translate(MINUS).casefold()
    found = TOKEN.finditer(plain)
    return [Decimal(token[0].replace(",", "")) if token["number"] else token[0] for token in found]


def beyond(text: str, question: str, expert: str) -> set:
    """What a text says that the question does not; all of it, where the expert too only picks from the question."""
    free = SMALL | set(tokens(question))
    if free.issuperset(tokens(expert)):
        free = SMALL.difference(tokens(expert))
    return set(tokens(text)) - free


def numbers(said: set) -> set[Decimal]:
    return {token for token in said if isinstance(token, Decimal)}


def false(text: str, question: str, expert: str) -> bool:
    """Whether a text has a number that the expert has not, or chooses from the question what the expert did not."""
    more = beyond(text, question, expert) - beyond(expert, question, expert)
    return bool(numbers(more) or more & set(tokens(question)) - SMALL)


def too_long(text: str, expert: str) -> bool:
    """Who says everything also says the right thing; so nobody may say much more than the expert."""
    return len(text) > 2 * len(expert) + 80


def overlap(text: str, question: str, expert: str) -> float:
    """F1 of what is said and what the expert says, 0 to 1; nothing for a wrong number, however near the text is."""
    if too_long(text, expert):
        return 0.0
    want, have = beyond(expert, question, expert), beyond(text, question, expert)
    if not have or false(text, question, expert):
        return 0.0
    return 2 * len(want & have) / (len(want) + len(have))


def has_key(text: str, key: str) -> bool:
    """Whether a text has all that the key asks for: "30 days; receipt|bill" is both, the second in either word."""
    said, parts = tokens(text), [part.split("|") for part in key.split(";") if part.strip()]
    return bool(parts) and all(any(stands_in(tokens(one), said) for one in part) for part in parts)


def stands_in(words: list, said: list) -> bool:
    """Whether the words stand there, side by side."""
    return bool(words) and any(said[at : at + len(words)] == words for at in range(len(said)))


def is_right(text: str, row: dict) -> bool:
    """What the report counts as accurate. With a key: it is said, no wrong number, and little else that the expert
    does not say. Without one: enough overlap, and every number of the expert.
    """
    question, expert, key = row["question"], row["answer"], row["key"]
    want, have = beyond(expert, question, expert), beyond(text, question, expert)
    if too_long(text, expert) or false(text, question, expert):
        return False
    if key:
        return has_key(text, key) and len(have - want - set(tokens(key))) < max(1, len(have) / 2)
    return overlap(text, question, expert) >= ENOUGH and numbers(want) <= have


def is_in_form(text: str) -> bool:
    """What the report counts as in form: words, and no markup."""
    return bool(tokens(text)) and not MARKUP.search(text)


def correctness_reward(completions: list, question: list, answer: list, key: list, **kwargs) -> list[float]:
    """1.0 for an answer that is right."""
    rows = [dict(question=q, answer=a, key=k) for q, a, k in zip(question, answer, key, strict=True)]
    return [float(is_right(text_of(c), row)) for c, row in zip(completions, rows, strict=True)]


def overlap_reward(completions: list, question: list, answer: list, **kwargs) -> list[float]:
    """How much of it the expert says too: a slope that leads to the right answer."""
    return [overlap(text_of(c), q, a) for c, q, a in zip(completions, question, answer, strict=True)]


def wording_reward(completions: list, question: list, answer: list, **kwargs) -> list[float]:
    """How near the letters are to the expert's. By itself this pays 0.93 for 41 instead of 42; so it counts only as
    far as the same is said.
    """
    texts = [text_of(c) for c in completions]
    same = overlap_reward(texts, question, answer)
    return [s and s * fuzz.ratio(text, a) / 100 for s, text, a in zip(same, texts, answer, strict=True)]


def judge_reward(completions: list, question: list, answer: list, **kwargs) -> list[float | None]:
    """What a language model says to it (see judge.py), 0 to 1; None for a question of which any answer got no score.

    TRL counts None as 0 in the sum: one None among eight answers would punish the one that was not judged.
    """
    jobs = [(q, text_of(c), a) for c, q, a in zip(completions, question, answer, strict=True)]
    asked = [job for job in jobs if job[1].strip() and not too_long(job[1], job[2])]  # the others get 0, unasked
    scores = dict.fromkeys(jobs, 0.0) | judge_all(asked)
    lost = {job[0] for job in jobs if scores[job] is None}
    return [None if job[0] in lost else scores[job] for job in jobs]


#: What `train.py` trains on, each with its weight: correctness outweighs the rest together. With a judge (README.md),
#: add judge_reward: 1.0.
REWARDS = {correctness_reward: 2.0, overlap_reward: 0.5, wording_reward: 0.5}
