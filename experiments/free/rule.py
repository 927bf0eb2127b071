"""What needs no model on orders: regular expressions that fit all sentences of the training and development rows."""

import json
import re

from grpo_core.rewards.structured import same_json

from grpo_utils.data.extraction import extraction_rows

from .prompts import TASK

NO_NAMES = {"At", "Each", "For", "In", "New", "Order", "Please", "Price", "Shipped", "The", "We"}
PRICE, GOODS = re.compile(r"(\d+) euros"), re.compile(r"(\d+) (?!euros)(\w+)")
CITY = re.compile(r"(?:from|[Ii]n|of|sent to|Shipped to) ([A-Z]\w+)|\(([A-Z]\w+)\)|, ([A-Z]\w+),")


def answer(order: str) -> str:
    """The JSON of an order; empty where a part is not found.

    >>> answer("Shipped to Busan: 9 letters at 17 euros each, paid by Mary.")
    '{"customer": "Mary", "item": "letters", "quantity": 9, "price": 17, "city": "Busan"}'
    """
    price, goods, place = (part.search(order) for part in (PRICE, GOODS, CITY))
    if not (price and goods and place):
        return ""
    city = next(filter(None, place.groups()))
    names = [word for word in re.findall(r"[A-Z]\w+", order) if word not in NO_NAMES | {city}]
    said = dict(customer=next(iter(names), ""), item=goods[2], quantity=int(goods[1]), price=int(price[1]), city=city)
    return json.dumps(said)


def right(rows: int, split: str = "test") -> list[bool]:
    """Which of the first rows of a split it answers correctly."""
    return [
        same_json(answer(row["prompt"][-1]["content"].partition("\n\n")[2]), row["answer"])
        for row in extraction_rows(TASK, rows, split)
    ]
