"""Tasks with a program that checks an answer and no answer to imitate: most prompts have thousands of right ones.

A check says which parts of an answer are right; the answer is right if all of them are. The parts can be rewards.
"""

import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations

from grpo_core.rewards.structured import parse_json

Parts = dict[str, bool]
MOST_WORDS = 14
HELD_OUT, HELD_OUT_SEED = 200, 1  # prompts that no arm trains on
REPEATS = 1000  # draws in a row without a new prompt; then a task has no more
LONGEST = 1000  # characters; a longer text is wrong in every part
EVERYDAY = (
    "river bread window garden teacher bicycle winter music letter kitchen forest doctor train summer picture "
    "horse bridge island market candle mirror pencil blanket engine basket farmer village mountain coffee "
    "hammer ladder school dinner flower planet pocket rabbit singer ticket tunnel valley violin wagon whistle "
    "lantern harbor cousin castle button pillow spoon shadow storm ribbon puzzle parcel orange needle monkey"
)


@dataclass(frozen=True)
class Task:
    """``draw`` makes what a prompt says, ``ask`` its text, and ``check`` the parts of an answer.

    ``shown`` has examples: what was drawn, with an answer that we wrote.
    """

    draw: Callable[[random.Random], dict]
    ask: Callable[..., str]
    check: Callable[..., Parts]
    shown: tuple[tuple[dict, str], ...]

    def rows(self, count: int, seed: int = 0) -> list[dict]:
        """``count`` different prompts with what was drawn for them, or all if the task has fewer."""
        draw, rows, repeats = random.Random(seed), {}, 0
        while len(rows) < count and repeats < REPEATS:
            drawn = self.draw(draw)
            asked = self.ask(**drawn)
            repeats = repeats + 1 if asked in rows else 0
            rows.setdefault(asked, drawn)
        return [dict(prompt=[dict(role="user", content=asked)], drawn=drawn) for asked, drawn in rows.items()]

    def examples(self, count: int) -> list[dict]:
        """The first examples as turns of a chat.

        Raises:
            ValueError: the task has fewer.
        """
        if count > len(self.shown):
            raise ValueError(f"{count} examples were asked for, and the task has {len(self.shown)}")
        turns = []
        for drawn, answer in self.shown[:count]:
            turns += [dict(role="user", content=self.ask(**drawn)), dict(role="assistant", content=answer)]
        return turns

    def parts(self, text: str, drawn: dict) -> Parts:
        """Which parts of an answer are right; none of a text that is far too long."""
        found = self.check(text[:LONGEST].strip(), **drawn)
        return {part: right and len(text) <= LONGEST for part, right in found.items()}


# One sentence


def ask_sentence(words: list[str]) -> str:
    return f"Write one sentence of at most {MOST_WORDS} words. It must contain the words {', '.join(words)}."


def check_sentence(text: str, words: list[str]) -> Parts:
    """The three words, the length, and the form of one sentence.

    >>> check_sentence("The rabbit ate bread near the river.", ["river", "bread", "rabbit"])
    {'words': True, 'length': True, 'sentence': True}
    >>> check_sentence("Rabbit, bread, river", ["river", "bread", "rabbit"])
    {'words': True, 'length': True, 'sentence': False}
    """
    said = re.findall(r"[a-z']+", text.lower())
    form = re.fullmatch(r"[A-Z][^.!?\n:]*[.!?]", text) is not None
    return dict(words=set(words) <= set(said), length=0 < len(said) <= MOST_WORDS, sentence=form)


# A shopping list


def draw_basket(draw: random.Random) -> dict:
    """Six items with prices, and a budget that about a third of all threes keep to."""
    items = draw.sample(EVERYDAY.split(), 6)
    prices = {item: draw.randint(2, 20) for item in items}
    totals = sorted(map(sum, combinations(prices.values(), 3)))
    return dict(prices=prices, budget=totals[len(totals) // 3])


def ask_basket(prices: dict[str, int], budget: int) -> str:
    listed = ", ".join(f"{item} {price}" for item, price in prices.items())
    return (
        f"Prices in euros: {listed}.\nChoose three different items that cost at most {budget} euros together. Answer "
        "with one line of JSON that has the three items as keys and their prices as values."
    )


def check_basket(text: str, prices: dict[str, int], budget: int) -> Parts:
    """One JSON object, three of the items with their prices, and a total within the budget.

    >>> check_basket('{"pen": 2, "cup": 3, "hat": 4}', {"pen": 2, "cup": 3, "hat": 4, "bag": 9}, 10)
    {'object': True, 'items': True, 'budget': True}
    >>> check_basket('{"pen": 1, "cup": 3, "hat": 4}', {"pen": 2, "cup": 3, "hat": 4, "bag": 9}, 10)
    {'object': True, 'items': False, 'budget': False}
    """
    try:
        said = parse_json(text)
    except ValueError:
        said = None
    if not isinstance(said, dict) or "\n" in text:
        return dict(object=False, items=False, budget=False)
    real = len(said) == 3 and all(item in prices and repr(price) == repr(prices[item]) for item, price in said.items())
    return dict(object=True, items=real, budget=real and sum(said.values()) <= budget)


# A query

TABLE = "people(name, city, age)"
NAMES = ["Ann", "Ben", "Carl", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivan", "June"]
CITIES = ("Rome", "Oslo", "Lima")


def draw_query(draw: random.Random) -> dict:
    """Five people, and those of them that a condition on city or age finds."""
    people = [[name, draw.choice(CITIES), draw.randint(18, 70)] for name in draw.sample(NAMES, 5)]
    while True:
        city, age = draw.choice(CITIES), draw.randint(25, 60)
        from_city = [name for name, lives, _ in people if lives == city]
        older, younger = ([name for name, _, has in people if (has - age) * sign > 0] for sign in (1, -1))
        wanted = draw.choice([from_city, older, younger])
        if 1 <= len(wanted) <= 3:
            return dict(people=people, wanted=wanted)


def ask_query(people: list[list], wanted: list[str]) -> str:
    rows = "\n".join(", ".join(map(str, row)) for row in people)
    return (
        f"The SQLite table {TABLE} has these rows:\n{rows}\nWrite one SELECT query on one line that returns the name "
        f"of {' and '.join(wanted)} and of nobody else. The query must not contain a name."
    )


def check_query(text: str, people: list[list], wanted: list[str]) -> Parts:
    """One SELECT that runs, the result, and that no name is written into the query.

    >>> people = [["Ann", "Rome", 30], ["Ben", "Oslo", 50]]
    >>> check_query("SELECT name FROM people WHERE age < 40", people, ["Ann"])
    {'runs': True, 'result': True, 'no names': True}
    >>> check_query("SELECT name FROM people WHERE name = 'Ann'", people, ["Ann"])
    {'runs': True, 'result': True, 'no names': False}
    >>> check_query("DROP TABLE people", people, ["Ann"])
    {'runs': False, 'result': False, 'no names': False}
    """
    one_line = re.fullmatch(r"select\b[^\n;]*\bfrom\s+people\b[^\n;]*;?", text, re.IGNORECASE)
    found = run_query(text, people) if one_line else None
    result = found is not None and sorted(found) == sorted((name,) for name in wanted)
    hidden = found is not None and not any(name.lower() in text.lower() for name in NAMES)
    return {"runs": found is not None, "result": result, "no names": hidden}


def _only_reading(action: int, _: str | None, function: str | None, *others: object) -> int:
    """SQLite's answer to each thing that a query wants to do. Other functions could fill the memory."""
    reads = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
    harmless = action == sqlite3.SQLITE_FUNCTION and function in ("like", "min", "max", "count", "length", "lower")
    return sqlite3.SQLITE_OK if reads or harmless else sqlite3.SQLITE_DENY


def run_query(text: str, people: list[list]) -> list[tuple] | None:
    """The rows of a query, or None if it fails, writes, or takes more than some thousand steps."""
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE people (name TEXT, city TEXT, age INTEGER)")
        base.executemany("INSERT INTO people VALUES (?, ?, ?)", people)
        base.commit()
        base.set_authorizer(_only_reading)
        base.set_progress_handler(lambda: 1, 10_000)  # not 0 stops the query
        try:
            return [row for row in base.execute(text).fetchmany(20) if all(isinstance(value, str) for value in row)]
        except (sqlite3.Error, sqlite3.Warning):
            return None


# Words with letters, and a sum


def ask_letter(letters: str, least: int) -> str:
    first, second = letters
    what = f"two that start with the letter {first}, then two that start with the letter {second}"
    return f"Write four different words of at least {least} letters, on one line, separated by commas: {what}."


def check_letter(text: str, letters: str, least: int) -> Parts:
    """Four words between commas, all different and long enough, two with each of the letters.

    >>> check_letter("bread, boat, cat, cow", "bc", 3)
    {'form': True, 'different': True, 'letters': True}
    >>> check_letter("bread, bread, cat, horse", "bc", 3)
    {'form': True, 'different': False, 'letters': False}
    """
    said = [word.strip().lower() for word in text.removesuffix(".").split(",")]
    form = len(said) == 4 and all(re.fullmatch(r"[a-z]{2,}", word) for word in said)
    starts = "".join(word[0] for word in said) if form else ""
    fits = starts == letters[0] * 2 + letters[1] * 2 and all(len(word) >= least for word in said)
    return dict(form=form, different=form and len(set(said)) == 4, letters=fits)


def ask_sum(total: int, above: int) -> str:
    three = f"three different whole numbers above {above}"
    return f"Write {total} as a sum of {three}, on one line such as 12 + 13 + 14 = 39."


def check_sum(text: str, total: int, above: int) -> Parts:
    """The form of an equation, three different numbers that are large enough, and the total.

    >>> check_sum("5 + 8 + 7 = 20", 20, 4), check_sum("5 + 5 + 10 = 20", 20, 4)["different"]
    ({'form': True, 'different': True, 'total': True}, False)
    """
    found = re.fullmatch(r"(\d{1,3}) \+ (\d{1,3}) \+ (\d{1,3}) = (\d{1,4})", text)
    numbers, named = ([int(one) for one in found.groups()[:3]], int(found[4])) if found else ([], 0)
    different = len(set(numbers)) == 3 and min(numbers) > above
    return dict(form=bool(found), different=different, total=bool(found) and sum(numbers) == named == total)


PEOPLE = (
    [["Ann", "Rome", 31], ["Ben", "Oslo", 64], ["Gus", "Rome", 22], ["Fay", "Lima", 45], ["June", "Oslo", 58]],
    [["Emil", "Lima", 40], ["Hana", "Rome", 19], ["Carl", "Lima", 33], ["Dora", "Oslo", 27], ["Ivan", "Rome", 52]],
    [["Fay", "Oslo", 24], ["Carl", "Rome", 36], ["June", "Lima", 61], ["Ann", "Lima", 29], ["Ben", "Rome", 47]],
    [["Gus", "Lima", 55], ["Ivan", "Oslo", 21], ["Dora", "Lima", 38], ["Hana", "Oslo", 43], ["Emil", "Rome", 60]],
    [["June", "Rome", 34], ["Ann", "Oslo", 49], ["Carl", "Oslo", 26], ["Gus", "Lima", 62], ["Dora", "Rome", 57]],
    [["Ben", "Lima", 23], ["Hana", "Lima", 50], ["Fay", "Rome", 37], ["Ivan", "Lima", 44], ["June", "Oslo", 30]],
    [["Emil", "Oslo", 51], ["Gus", "Rome", 28], ["Ann", "Lima", 63], ["Carl", "Rome", 42], ["Hana", "Oslo", 35]],
    [["Dora", "Oslo", 46], ["Ivan", "Rome", 59], ["Ben", "Oslo", 32], ["June", "Lima", 25], ["Fay", "Lima", 53]],
)
TASKS = {
    "sentence": Task(
        lambda draw: dict(words=draw.sample(EVERYDAY.split(), 3)),
        ask_sentence,
        check_sentence,
        (
            (dict(words=["kettle", "sister", "rain"]), "My sister filled the kettle while the rain fell."),
            (dict(words=["camel", "road", "hat"]), "A camel on the dusty road ate my new hat."),
            (dict(words=["glass", "uncle", "ship"]), "On the old ship, my uncle drank a glass of water."),
        ),
    ),
    "basket": Task(
        draw_basket,
        ask_basket,
        check_basket,
        (
            (
                dict(prices=dict(kettle=9, hat=14, glass=3, map=5, drum=18, scarf=7), budget=16),
                '{"glass": 3, "map": 5, "scarf": 7}',
            ),
            (
                dict(prices=dict(rope=4, lamp=12, soap=2, fan=20, brush=6, tent=16), budget=14),
                '{"rope": 4, "soap": 2, "brush": 6}',
            ),
            (
                dict(prices=dict(clock=15, plate=8, comb=3, chair=19, vase=10, towel=6), budget=19),
                '{"plate": 8, "comb": 3, "towel": 6}',
            ),
        ),
    ),
    "query": Task(
        draw_query,
        ask_query,
        check_query,
        (
            (dict(people=PEOPLE[0], wanted=["Ann", "Gus"]), "SELECT name FROM people WHERE city = 'Rome'"),
            (dict(people=PEOPLE[1], wanted=["Emil", "Ivan"]), "SELECT name FROM people WHERE age > 35"),
            (dict(people=PEOPLE[2], wanted=["Fay"]), "SELECT name FROM people WHERE age < 26"),
            (dict(people=PEOPLE[3], wanted=["Ivan", "Hana"]), "SELECT name FROM people WHERE city = 'Oslo'"),
            (dict(people=PEOPLE[4], wanted=["Gus", "Dora"]), "SELECT name FROM people WHERE age > 50"),
            (dict(people=PEOPLE[5], wanted=["Ben", "Hana", "Ivan"]), "SELECT name FROM people WHERE city = 'Lima'"),
            (dict(people=PEOPLE[6], wanted=["Gus", "Hana"]), "SELECT name FROM people WHERE age < 40"),
            (dict(people=PEOPLE[7], wanted=["Ivan"]), "SELECT name FROM people WHERE city = 'Rome'"),
        ),
    ),
    "letter": Task(
        lambda draw: dict(letters="".join(draw.sample("abcdefghilmnoprstw", 2)), least=draw.randint(3, 5)),
        ask_letter,
        check_letter,
        (
            (dict(letters="jk", least=4), "jacket, jungle, kettle, kitchen"),
            (dict(letters="kv", least=5), "kingdom, knight, valley, village"),
            (dict(letters="vj", least=3), "van, voice, jelly, juice"),
            (dict(letters="ku", least=3), "key, king, uncle, under"),
            (dict(letters="uj", least=4), "unit, useful, join, joke"),
            (dict(letters="yv", least=5), "young, yellow, visit, vowel"),
            (dict(letters="jy", least=3), "jam, jump, yes, year"),
            (dict(letters="vk", least=4), "vase, very, keep, kind"),
        ),
    ),
    "sum": Task(
        lambda draw: dict(total=draw.randint(40, 199), above=draw.randint(1, 9)),
        ask_sum,
        check_sum,
        (
            (dict(total=38, above=5), "13 + 16 + 9 = 38"),
            (dict(total=231, above=2), "120 + 75 + 36 = 231"),
            (dict(total=215, above=7), "140 + 52 + 23 = 215"),
        ),
    ),
}


def held_out(task: str) -> list[dict]:
    return TASKS[task].rows(HELD_OUT, HELD_OUT_SEED)


def training_rows(task: str, count: int, seed: int) -> list[dict]:
    """``count`` prompts, at most; none of them is held out."""
    known = {row["prompt"][-1]["content"] for row in held_out(task)}
    drawn = TASKS[task].rows(count + HELD_OUT, HELD_OUT_SEED + 1 + seed)
    return [row for row in drawn if row["prompt"][-1]["content"] not in known][:count]
