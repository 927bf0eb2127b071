"""Two tasks for a real language model: read a sentence, and write what it says as one flat JSON object.

    >>> row = extraction_rows("orders", 1, "train")[0]
    >>> print(row["prompt"][-1]["content"])
    Turn the order into JSON with the keys "customer", "item", "quantity", "price" and "city".
    <BLANKLINE>
    Emil (Accra) bought 6 clocks for 17 euros apiece.
    >>> row["answer"]
    '{"customer": "Emil", "item": "clocks", "quantity": 6, "price": 17, "city": "Accra"}'

``orders`` asks for a form of answer that SmolLM2 does not give at first. ``older`` also asks it to compare two ages. No
name, city or item of one split is in another, so a held-out prompt tests reading and not memory.
"""

import json
import random

from ..errors import CourseError
from ..profiles import check_choice

#: What each split draws from. ``dev`` is for choosing settings, ``test`` only for reporting.
NAMES = {
    "train": "Maria Tom Aisha Chen Olga Pedro Yuki Sam Nadia Igor Lena Ravi Hugo Zara Emil Ines Anna Peter Laura Kofi "
    "Mina Jorge Sofia Ahmed Ruth Marek",
    "dev": "Nora Felix Amara Luis Petra Viktor",
    "test": "Clara Bruno Fatima Jonas Keiko Dmitri Elsa Omar Greta Tariq Lucia Anders",
}
CITIES = {
    "train": "Rome Oslo Lima Cairo Delhi Paris Kyoto Quito Berlin Accra Athens Sydney Warsaw Havana",
    "dev": "Lisbon Prague Seoul Tunis",
    "test": "Madrid Vienna Dublin Lagos Hanoi Boston Zurich Bogota",
}
ITEMS = {
    "train": "pens cups lamps chairs books shirts plates ropes coats bowls clocks spoons",
    "dev": "mugs scarves forks",
    "test": "bags hats keys tables candles brushes",
}
#: Sentences of each task, by kind. Only the known ones are trained on.
SENTENCES = {
    "orders": {
        "known sentence": (
            "{name} from {city} ordered {quantity} {item} at {price} euros each.",
            "{name} ({city}) bought {quantity} {item} for {price} euros apiece.",
            "{quantity} {item}, {price} euros each, were sold to {name} in {city}.",
        ),
        "new sentence": (
            "Please send {quantity} {item} to {name} in {city}; each one costs {price} euros.",
            "At {price} euros per piece, {name} of {city} took {quantity} {item}.",
        ),
    },
    "older": {
        "known sentence": (
            "{name} is {age} and lives in {city}. {other}, {other_age}, lives in {other_city}.",
            "{name} ({age}) comes from {city}, and {other} ({other_age}) from {other_city}.",
            "In {city} lives {name}, aged {age}. In {other_city} lives {other}, aged {other_age}.",
        ),
        "new sentence": (
            "{name} of {city} turned {age} today; {other} of {other_city} turned {other_age}.",
            "Two guests: {name}, {age} years old, from {city}, and {other}, {other_age} years old, from {other_city}.",
        ),
    },
}
SYSTEM = "You write JSON."
MOST = 10_000  # rows of one call; the smallest split has four times as many
KEYS = {
    "orders": 'Turn the order into JSON with the keys "customer", "item", "quantity", "price" and "city".',
    "older": 'Turn the {which} person into JSON with the keys "name", "age" and "city".',
}


def extraction_rows(task: str, count: int, split: str = "train", seed: int = 0) -> list[dict]:
    """``count`` different rows of ``task`` ("orders" or "older"), with the columns prompt, answer (JSON) and kind.

    ``train`` and ``dev`` have known sentences only; in ``test``, every second row has a new one.

    Raises:
        CourseError: an unknown task or split, or more rows than there are different ones for sure.
    """
    check_choice("task", task, tuple(SENTENCES))
    check_choice("split", split, tuple(NAMES))
    if count > MOST:
        raise CourseError(f"count={count} is too large: ask for at most {MOST} rows, so that all can be different.")
    draw, rows = random.Random(f"{task} {split} {seed}"), {}
    kinds = tuple(SENTENCES[task]) if split == "test" else ("known sentence",)
    while len(rows) < count:
        row = _row(task, kinds[len(rows) % len(kinds)], split, draw)
        rows[row["prompt"][-1]["content"]] = row
    return list(rows.values())


def _row(task: str, kind: str, split: str, draw: random.Random) -> dict:
    said, gold = (_order if task == "orders" else _older)(split, draw)
    sentence = draw.choice(SENTENCES[task][kind]).format(**said)
    asked = f"{KEYS[task].format(**said)}\n\n{sentence}"
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]
    return {"prompt": messages, "answer": json.dumps(gold), "kind": kind}


def _order(split: str, draw: random.Random) -> tuple[dict, dict]:
    """What an order says, and the JSON object that it should become."""
    name, city, item = (draw.choice(words[split].split()) for words in (NAMES, CITIES, ITEMS))
    said = dict(name=name, item=item, quantity=draw.randint(2, 12), price=draw.randint(2, 20), city=city)
    return said, {"customer" if key == "name" else key: value for key, value in said.items()}


def _older(split: str, draw: random.Random) -> tuple[dict, dict]:
    """What two people's ages and cities are, and the older (or younger) one as a JSON object."""
    names, cities = draw.sample(NAMES[split].split(), 2), [draw.choice(CITIES[split].split()) for _ in "ab"]
    ages, which = draw.sample(range(19, 81), 2), draw.choice(["older", "younger"])
    said = dict(name=names[0], age=ages[0], city=cities[0], other=names[1], other_age=ages[1], other_city=cities[1])
    chosen = ages.index(max(ages) if which == "older" else min(ages))
    gold = dict(name=names[chosen], age=ages[chosen], city=cities[chosen])
    return said | dict(which=which), gold
