"""Completions of the real model's task, and what each has to earn."""

GOLD = '{"customer": "Omar", "item": "keys", "quantity": 3, "price": 8, "city": "Lagos"}'
NESTED = '{"customer": {"name": "Omar", "item": "keys"}, "quantity": 3, "price": 8, "city": "Lagos"}'
#: Completions, and what each earns for correctness, fields, keys and being alone.
COMPLETIONS = [
    (GOLD, 1.0, 1.0, 1.0, 1.0),
    (GOLD.replace(", ", ",\n  "), 1.0, 1.0, 1.0, 1.0),
    (GOLD.replace("8", "8.00"), 1.0, 1.0, 1.0, 1.0),
    (GOLD.replace("Omar", "omar"), 0.0, 0.8, 1.0, 1.0),
    (GOLD.replace("keys", " keys"), 0.0, 0.8, 1.0, 1.0),
    (GOLD.replace("3", '"3"'), 0.0, 0.8, 1.0, 1.0),
    (f"{GOLD}\nIs there anything else?", 0.0, 1.0, 1.0, 0.0),
    (f"{GOLD} {GOLD}", 0.0, 1.0, 1.0, 0.0),
    (GOLD.replace("}", ', "note": "x"}'), 0.0, 1.0, 0.0, 1.0),
    (GOLD.replace("}", ', "item": "hats"}'), 0.0, 0.0, 0.0, 0.0),  # two answers in one
    (GOLD.replace(', "item": "keys"', ""), 0.0, 0.8, 0.0, 1.0),  # a key less costs more than a wrong value
    (NESTED, 0.0, 0.2, 0.0, 0.0),
    ("{}", 0.0, 0.0, 0.0, 0.0),
    ("[1, 2]", 0.0, 0.0, 0.0, 0.0),
    ("Omar from Lagos ordered 3 keys at 8 euros each.", 0.0, 0.0, 0.0, 0.0),
    ("", 0.0, 0.0, 0.0, 0.0),
]


def earned_by(rewards, text: str) -> list[float]:
    """What a completion earns for correctness, fields, keys and being alone."""
    chat = [[{"role": "assistant", "content": text}]]
    with_gold = (rewards.correctness_reward, rewards.fields_reward, rewards.keys_reward)
    return [*(reward(chat, answer=[GOLD])[0] for reward in with_gold), rewards.alone_reward(chat)[0]]
