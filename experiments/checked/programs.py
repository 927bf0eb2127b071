"""Programs that write correct answers to *query* and *letter*, for SFT to imitate."""

import random
import re
from functools import cache, partial
from operator import eq, gt, lt

from .spelling import english
from .tasks import CITIES

#: Conditions that answer prompts of *query*, and the people whom each finds.
BY_CITY = {f"city = '{city}'": partial(eq, city) for city in CITIES}
BY_AGE = {
    f"age {sign} {years}": partial(than, years) for years in range(18, 71) for sign, than in (("<", gt), (">", lt))
}
CONDITIONS = BY_CITY | BY_AGE


def is_right(row: dict, condition: str) -> bool:
    """Whether a condition finds the wanted people of a prompt of *query*, and nobody else."""
    people, wanted = row["drawn"]["people"], row["drawn"]["wanted"]
    holds, column = CONDITIONS[condition], 1 if condition in BY_CITY else 2
    return {person[0] for person in people if holds(person[column])} == set(wanted)


def query(drawn: dict, draw: random.Random) -> str:
    """A query with the first condition on a city that finds the wanted people, or else any such condition on an age."""
    found = [condition for condition in CONDITIONS if is_right(dict(drawn=drawn), condition)]
    return f"SELECT name FROM people WHERE {found[0] if 'city' in found[0] else draw.choice(found)}"


def letter(drawn: dict, draw: random.Random) -> str:
    """Words of the dictionary, drawn from those that are long enough."""
    said = []
    for first in drawn["letters"]:
        fitting = [word for word in _dictionary() if word[0] == first and len(word) >= drawn["least"]]
        said += draw.sample(fitting, 2)
    return ", ".join(said)


@cache
def _dictionary() -> list[str]:
    """The words of small letters in the dictionary, without those that it makes of them."""
    stems = {word.stem for word in english().dic.words}
    return sorted(stem for stem in stems if re.fullmatch(r"[a-z]{3,}", stem))


PROGRAMS = dict(query=query, letter=letter)
