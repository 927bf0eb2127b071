"""The prompts of the arms: with examples as earlier turns of the chat, or with instructions written with care."""

from collections.abc import Callable, Sequence

from grpo_utils.data.extraction import extraction_rows

TASK = "orders"
Frame = Callable[[list[dict]], list[dict]]

#: Instructions in place of those of the task. Development rows choose one: `cells.careful`.
INSTRUCTIONS = {
    "as in training": 'Turn the order into one line of JSON with the keys "customer", "item", "quantity", "price" and '
    '"city".',
    "a flat object": 'Write the order as one flat JSON object on one line. It has exactly five keys: "customer" (the '
    'name of the person), "item" (the plural word for the goods), "quantity" (a number), "price" (a number, the price '
    'of one piece in euros) and "city". Do not nest objects. Do not use lists. Write nothing after the object.',
    "a form to fill in": 'Fill in this line with the facts of the order, and answer with this line only:\n{"customer": '
    '"NAME", "item": "ITEM", "quantity": NUMBER, "price": NUMBER, "city": "CITY"}',
    "a form, then the rules": 'Answer with one line of this form:\n{"customer": "...", "item": "...", "quantity": 0, '
    '"price": 0, "city": "..."}\nCopy the customer\'s first name, the item and the city from the order, letter by '
    "letter. Write quantity and price as numbers without quotation marks.",
    "a worked form": "Extract five facts from the order: who buys, what, how many, the price of one in euros, and the "
    'city. Answer with one line of JSON such as {"customer": "Nora", "item": "spoons", "quantity": 3, "price": 15, '
    '"city": "Oslo"}.',
}


def examples(count: int, seed: int) -> list[dict]:
    """The first ``count`` training rows of a draw, as turns of a chat. They are not chosen."""
    turns = []
    for row in extraction_rows(TASK, count, "train", seed) if count else []:
        turns += [row["prompt"][-1], {"role": "assistant", "content": row["answer"]}]
    return turns


def with_examples(turns: Sequence[dict]) -> Frame:
    """A prompt with turns before its last message."""
    return lambda prompt: [*prompt[:-1], *turns, prompt[-1]]


def instructed(instruction: str) -> Frame:
    """A prompt with another instruction above the order."""

    def framed(prompt: list[dict]) -> list[dict]:
        order = prompt[-1]["content"].partition("\n\n")[2]
        return [*prompt[:-1], {"role": "user", "content": f"{instruction}\n\n{order}"}]

    return framed
