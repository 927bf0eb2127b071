"""The rewards. CHANGE THIS FILE FIRST: the model learns what you reward.

An expert's answer is one of many correct ones. So the rewards compare what answers say beyond the question: "15 + 27
is 42." says 42. A reward gets the completions of a batch and, by name, every column of `data.py` as a list of the
same length. It returns one number for each completion, or None for no score. To add a reward, write a function and
add it with its weight to `REWARDS`.
"""

import re
import unicodedata
from decimal import Decimal

from grpo_core.training.texts import completion_text
from judge import judge_all
from rapidfuzz import fuzz

MINUS = str.maketrans("\u2212\u2013", "--")  # the minus sign, and the dash that many people use for it
MARKUP = re.compile(r"[<>`{}]")
#: The language of your answers: en, de, fr or es. For another one, add its small words below.
LANGUAGE = "en"
#: Words without content of their own, by language.
SMALL_WORDS = {
    "en": "a an the this that it its is are was were be been do does in on at of to for from by with and or",
    "de": "der die das den dem des ein eine einen einem einer eines dies diese dieser dieses es er sie man ist sind "
    "war waren wird werden hat haben heißt in im an am auf bei zu zum zur für von vom aus mit und oder",
    "fr": "le la les l un une des du de d ce cet cette ces c il elle on est sont était étaient a ont en dans sur à au "
    "aux pour par avec et ou c'est s'appelle",
    "es": "el la los las lo un una unos unas este esta esto ese esa eso es son era eran ha han hay se en a al de del "
    "para por con y e o u llama",
}
SMALL = set(SMALL_WORDS[LANGUAGE].split())
#: How a language writes a number: 1,250.5 in English, 1.250,5 in German and Spanish, 1 250,5 in French.
THOUSANDS, POINT = (",", ".") if LANGUAGE == "en" else (".", ",")
#: A blank that groups digits, such as the thin one of French: it is taken out of a number.
GROUPING = re.compile(r"(?<=[0-9])[\u00a0\u2009\u202f](?=[0-9]{3}(?![0-9]))")
TOKEN = re.compile(
    r"(?P<number>(?<![\w.])(?<![0-9][,:])(?:-(?=[0-9]))?"
    rf"(?:[1-9][0-9]{{0,2}}(?:{re.escape(THOUSANDS)}[0-9]{{3}})+|[0-9]+)(?:{re.escape(POINT)}[0-9]+)?(?!\w|[.,:][0-9]))"
    r"|(?P<joined>[0-9]+(?:[.:][0-9]+)+)"  # a time, a date, a version: one token, so that 10:22 is not 22:10
    r"|(?P<word>[^\W_]+(?:['’][^\W_]+)*)"
)
ENOUGH = 0.7  # the overlap at which an answer to a row without a key counts as correct


def tokens(text: str) -> list[str | Decimal]:
    """Words without case, and numbers: 1,250 and 1250.0 are equal. (Three signs are a minus.)"""
    plain = unicodedata.normalize("NFKC", GROUPING.sub("", text)).translate(MINUS).casefold()
    return [meaning(found) for found in TOKEN.finditer(plain)]


def meaning(found: re.Match) -> str | Decimal:
    """A token as it is compared: 09:05 is 9:05, and a number is its value."""
    if found["number"]:
        return Decimal(found[0].replace(THOUSANDS, "").replace(POINT, "."))
    return re.sub(r"^0(?=[0-9]:)", "", found[0]) if found["joined"] else found[0]


def beyond(text: str, question: str, expert: str) -> set:
    """What a text says beyond the question, or all of it if the expert only picks from the question."""
    free = SMALL | set(tokens(question))
    if free.issuperset(tokens(expert)):
        free = SMALL.difference(tokens(expert))
    return set(tokens(text)) - free


def numbers(found: set) -> set[Decimal | str]:
    """The numbers among tokens, and what begins with one: a time, a date, 5kg."""
    return {token for token in found if isinstance(token, Decimal) or token[0].isdigit()}


def false(text: str, question: str, expert: str) -> bool:
    """Whether a text has a number that the expert does not, or picks something else from the question."""
    more = beyond(text, question, expert) - beyond(expert, question, expert)
    return bool(numbers(more) or more & set(tokens(question)) - SMALL)


def too_long(text: str, expert: str) -> bool:
    """Whether a text is much longer than the expert's; a text that says everything also says what is correct."""
    return len(text) > 2 * len(expert) + 80


def overlap(text: str, question: str, expert: str) -> float:
    """F1 between the text and the expert's answer, 0 to 1; 0 for a wrong number, however similar the text is."""
    if too_long(text, expert):
        return 0.0
    want, have = beyond(expert, question, expert), beyond(text, question, expert)
    if not have or false(text, question, expert):
        return 0.0
    return 2 * len(want & have) / (len(want) + len(have))


def has_key(text: str, key: str) -> bool:
    """Whether a text has every part of the key: "30 days; receipt|bill" needs "30 days" and one of the two words."""
    found, parts = tokens(text), [part.split("|") for part in key.split(";") if part.strip()]
    return bool(parts) and all(any(appears_in(tokens(one), found) for one in part) for part in parts)


def appears_in(words: list, found: list) -> bool:
    """Whether the words appear in this order, next to each other."""
    return bool(words) and any(found[at : at + len(words)] == words for at in range(len(found)))


def is_right(text: str, row: dict) -> bool:
    """Whether the report counts a text as accurate. With a key: the key, no wrong number, and little that the expert
    does not say. Without a key: enough overlap, and all numbers of the expert.
    """
    question, expert, key = row["question"], row["answer"], row["key"]
    want, have = beyond(expert, question, expert), beyond(text, question, expert)
    if too_long(text, expert) or false(text, question, expert):
        return False
    if key:
        return has_key(text, key) and len(have - want - set(tokens(key))) < max(1, len(have) / 2)
    return overlap(text, question, expert) >= ENOUGH and numbers(want) <= have


def is_in_form(text: str) -> bool:
    """Whether the report counts a text as correctly formatted: words, and no markup."""
    return bool(tokens(text)) and not MARKUP.search(text)


def correctness_reward(completions: list, question: list, answer: list, key: list, **kwargs) -> list[float]:
    """1.0 for a correct answer."""
    rows = [dict(question=q, answer=a, key=k) for q, a, k in zip(question, answer, key, strict=True)]
    return [float(is_right(completion_text(c), row)) for c, row in zip(completions, rows, strict=True)]


def overlap_reward(completions: list, question: list, answer: list, **kwargs) -> list[float]:
    """The overlap with the expert's answer, as partial credit."""
    return [overlap(completion_text(c), q, a) for c, q, a in zip(completions, question, answer, strict=True)]


def wording_reward(completions: list, question: list, answer: list, **kwargs) -> list[float]:
    """The similarity of the wording, times the overlap. Similarity alone would give 0.93 for 41 instead of 42."""
    texts = [completion_text(c) for c in completions]
    same = overlap_reward(texts, question, answer)
    return [s and s * fuzz.ratio(text, a) / 100 for s, text, a in zip(same, texts, answer, strict=True)]


def judge_reward(completions: list, question: list, answer: list, key: list, **kwargs) -> list[float | None]:
    """A language model's score (see judge.py) for a correct answer, 0 to 1; 0 for a wrong one, without a call.

    A small weight alone would not keep a wrong answer from earning with the judge: in a group without a correct answer,
    TRL's default scale_rewards ("group") scales any difference to the same size. None for all answers to a question if
    one of them got no score: TRL counts None as 0 in the sum, so a single None would penalize the answer without a
    score.
    """
    jobs = [(q, completion_text(c), a) for c, q, a in zip(completions, question, answer, strict=True)]
    correct = correctness_reward(completions, question, answer, key)
    scores = dict.fromkeys(jobs, 0.0) | judge_all(job for job, right in zip(jobs, correct, strict=True) if right)
    lost = {job[0] for job in jobs if scores[job] is None}
    return [None if job[0] in lost else scores[job] for job in jobs]


#: The rewards that `train.py` uses, with their weights. Correctness outweighs all others together. To use a judge (see
#: README.md), add judge_reward: 1.0.
REWARDS = {correctness_reward: 2.0, overlap_reward: 0.5, wording_reward: 0.5}


def gold_text(row: dict) -> str:
    """The gold answer as the model should write it, for the checks before training: it must count as correct."""
    return row["answer"]
