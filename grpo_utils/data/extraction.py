"""Two tasks for a real language model: read a sentence, and write what it says as one flat JSON object.

    >>> row = extraction_rows("orders", 1, "train")[0]
    >>> print(row["prompt"][-1]["content"])
    Turn the order into one line of JSON with the keys "customer", "item", "quantity", "price" and "city".
    <BLANKLINE>
    Shipped to Busan: 9 letters at 17 euros each, paid by Mary.
    >>> row["answer"]
    '{"customer": "Mary", "item": "letters", "quantity": 9, "price": 17, "city": "Busan"}'

``orders`` asks for a form of answer that SmolLM2 does not give at first. ``older`` also asks it to compare two ages. No
name, city or item of one split is in another, so a held-out prompt tests reading and not memory.
"""

import json
import random

from grpo_core.errors import CourseError, check_choice

#: What each split draws from. ``dev`` is for choosing settings, ``test`` only for reporting. For SmolLM2, all
#: of these words have the same tokens after a blank and after a quotation mark. "forks" does not: it is one token after
#: a blank, and "for" and "ks" after a quotation mark. The model copied such words as "fork" or "forkers".
NAMES = {
    "train": "Maria Tom Aisha Olga Yuki Sam Igor Lena Zara Emil Ines Anna Peter Kofi Mina Daniel Leila Simon Chloe "
    "Samuel Kenji Paula Victor Alice Farid Martin Carla Sarah John Mary James Robert Michael David William "
    "Richard Thomas Charles Joseph George Paul Mark Adam Alex Ben Carl Frank Fred Henry Jack Jim Lee Nick Ray "
    "Scott Tim Ali Jane Lily Rita",
    "dev": "Petra Selma Matt Dina Theo Reza Sunil Dan Zoe Lola Pat Fatima Jonas Keiko Dmitri Tariq Lucia Anders "
    "Ingrid Sonia Yusuf Maya Tina Max Sven Amir Omid Arun Anil Lin Jun Akira Sato Ken Ann Will",
    "test": "Stella Marta Donna Anita Deepak Hana Aiko Layla Heidi Astrid Freya Abena Ngozi Thabo Sipho Marie Celine "
    "Simone Luca Paolo Giulia Matteo Arthur Dylan Emily Angus Rory Conor Declan",
}
CITIES = {
    "train": "Rome Paris Accra London Boston Dakar Porto Chicago Bern Graz Turin Siena Palermo Bari Zagreb Minsk "
    "Odessa Basra Doha Amman Beirut Jaffa Rabat Algiers Tripoli Harare Durban Maputo Kano Pune Goa Saigon Phuket "
    "Darwin Suva Osaka Nara Kobe Busan Newark Regina Cusco Sucre Recife Oxford Cambridge Galway Ghent Delft "
    "Utrecht",
    "dev": "Verona Genoa Varna Haifa Fez Kigali Colombo Cairns Sapporo Gdansk Hanoi Linz Pisa Muscat Lome Patna "
    "Penang Macau Salta Rosario Nassau Limerick Bruges Tampere Kaunas Brno Sana Split Xian Apia",
    "test": "Casablanca Riyadh Caracas Lincoln Lille Nantes Bordeaux Toulouse Marseille Bremen Hanover Trieste Parma "
    "Malaga Valencia Lviv Zadar Rijeka Mostar Skopje Bursa Jeddah Surat Bhopal Kandy Cebu Medan Mombasa "
    "Windhoek Medellin",
}
ITEMS = {
    "train": "chairs books shirts boxes ladders belts backpacks kettles pans pots vases drawers maps phones chargers "
    "cards games beds doors windows lights plants trees stones papers coins balls blocks cars sheets files "
    "labels letters photos images prints buttons screens bands strings records caps ties covers cases packs "
    "sacks filters clips bars poles boards seeds apples masks combs razors fridges axes rakes nets skis inks "
    "easels planes kits",
    "dev": "mugs scarves staplers flowers frames computers vests logs mops kites models cans bags keys tables brushes "
    "sandals violins flutes toasters umbrellas wrenches sofas tools boats chips nuts sticks beans wigs hoes "
    "oars chalks globes compasses chains",
    "test": "skirts sweaters torches pliers rackets harps whistles flags tokens buoys reels lures loaves pies limes "
    "plums berries melons peas hams threads zippers patches perfumes blenders mixers timers atlases racks "
    "leashes",
}
#: Sentences of each task. The known ones are in every split, and `dev` and `test` have new ones of their own.
SENTENCES = {
    "orders": {
        "known": (
            "{name} from {city} ordered {quantity} {item} at {price} euros each.",
            "{name} ({city}) bought {quantity} {item} for {price} euros apiece.",
            "{quantity} {item}, {price} euros each, were sold to {name} in {city}.",
            "Order from {city}: {name} needs {quantity} {item}, {price} euros per unit.",
            "{name} would like {quantity} {item} sent to {city}. Price per piece: {price} euros.",
            "We sold {quantity} {item} to {name} from {city}. Each cost {price} euros.",
            "New order: {quantity} {item} for {name}, {city}, {price} euros each.",
            "In {city}, {name} pays {price} euros for each of {quantity} {item}.",
            "The price is {price} euros each. {name}, who lives in {city}, wants {quantity} {item}.",
            "For {price} euros each, the shop in {city} delivers {quantity} {item} to {name}.",
            "Shipped to {city}: {quantity} {item} at {price} euros each, paid by {name}.",
            "{name} was in {city} and took {quantity} {item}, charged at {price} euros apiece.",
        ),
        "dev": (
            "Please send {quantity} {item} to {name} in {city}; each one costs {price} euros.",
            "At {price} euros per piece, {name} of {city} took {quantity} {item}.",
            "{name} lives in {city} and paid {price} euros for each of the {quantity} {item}.",
        ),
        "test": (
            "Invoice to {name}, resident of {city}. Goods: {quantity} {item}. Value of one: {price} euros.",
            "A parcel with {quantity} {item} will go to {city}; {name} has agreed to {price} euros for one.",
            "{name} called and asked for {quantity} {item}. One costs {price} euros. The address is in {city}.",
            "{name} is looking for {quantity} {item}, will spend {price} euros on every one, and has moved to {city}.",
        ),
    },
    "older": {
        "known": (
            "{name} is {age} and lives in {city}. {other}, {other_age}, lives in {other_city}.",
            "{name} ({age}) comes from {city}, and {other} ({other_age}) from {other_city}.",
            "In {city} lives {name}, aged {age}. In {other_city} lives {other}, aged {other_age}.",
        ),
        "dev": (
            "{name} of {city} turned {age} today; {other} of {other_city} turned {other_age}.",
            "Two guests: {name}, {age} years old, from {city}, and {other}, {other_age} years old, from {other_city}.",
        ),
        "test": (
            "{name}, whose age is {age}, grew up in {city}; {other}, whose age is {other_age}, in {other_city}.",
            "At {age}, {name} works in {city}. At {other_age}, {other} works in {other_city}.",
        ),
    },
}
SYSTEM = "You write JSON."
MOST = 10_000  # rows of one call; every split has several times as many
KEYS = {
    "orders": 'Turn the order into one line of JSON with the keys "customer", "item", "quantity", "price" and "city".',
    "older": 'Turn the {which} person into one line of JSON with the keys "name", "age" and "city".',
}


def extraction_rows(task: str, count: int, split: str = "train", seed: int = 0) -> list[dict]:
    """``count`` different rows of ``task`` ("orders" or "older"), with the columns prompt, answer (JSON) and kind.

    Rows of "older" also have the column other: the answer for the other person, which a guess gives half of the time.
    ``train`` has known sentences only. In ``dev`` and ``test``, every second row has a new one.

    Raises:
        CourseError: an unknown task or split, or more rows than there are different ones for sure.
    """
    check_choice("task", task, tuple(SENTENCES))
    check_choice("split", split, tuple(NAMES))
    if count > MOST:
        raise CourseError(f"count={count} is too large: ask for at most {MOST} rows, so that all can be different.")
    draw, rows = random.Random(f"{task} {split} {seed}"), {}
    while len(rows) < count:
        row = _row(task, split, draw, new=split != "train" and len(rows) % 2 == 1)
        rows[row["prompt"][-1]["content"]] = row
    return list(rows.values())


def _row(task: str, split: str, draw: random.Random, new: bool) -> dict:
    said, answers = (_order if task == "orders" else _older)(split, draw)
    sentence = draw.choice(SENTENCES[task][split if new else "known"]).format(**said)
    asked = f"{KEYS[task].format(**said)}\n\n{sentence}"
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]
    columns = {column: json.dumps(value) for column, value in answers.items()}
    return {"prompt": messages, **columns, "kind": f"{'new' if new else 'known'} sentence"}


def _order(split: str, draw: random.Random) -> tuple[dict, dict]:
    """What an order says, and the column of its answer."""
    name, city, item = (draw.choice(words[split].split()) for words in (NAMES, CITIES, ITEMS))
    said = dict(name=name, item=item, quantity=draw.randint(2, 12), price=draw.randint(2, 20), city=city)
    return said, {"answer": {"customer" if key == "name" else key: value for key, value in said.items()}}


def _older(split: str, draw: random.Random) -> tuple[dict, dict]:
    """What two people's ages and cities are, and the columns with the older (or younger) one and with the other."""
    names, cities = draw.sample(NAMES[split].split(), 2), [draw.choice(CITIES[split].split()) for _ in "ab"]
    ages, which = draw.sample(range(19, 81), 2), draw.choice(["older", "younger"])
    said = dict(name=names[0], age=ages[0], city=cities[0], other=names[1], other_age=ages[1], other_city=cities[1])
    chosen = ages.index(max(ages) if which == "older" else min(ages))
    people = [dict(zip(("name", "age", "city"), one, strict=True)) for one in zip(names, ages, cities, strict=True)]
    return said | dict(which=which), {"answer": people[chosen], "other": people[1 - chosen]}
