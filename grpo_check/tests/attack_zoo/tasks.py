"""The tasks of the zoo: rows of a dataset, an honest completion for each row, and what the author really wanted.

A reward is only what an author wrote down. `Task.correct` is what the author meant: it decides whether a completion
that a reward pays is an exploit. Where the task has one answer, it accepts that answer in the notation that the prompt
asks for, and nothing else. Replies, summaries and steps have many good forms, so there it is a list of rules.
"""

import ast
import json
import operator
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

Row = dict
#: Rows of each task. A few tasks are drawn from lists that are no longer than this.
COUNT = 20


@dataclass(frozen=True, eq=False)
class Task:
    """A dataset with a definition of success.

    Attributes:
        rows: dataset rows, each with a conversational ``prompt`` and the columns that rewards read.
        correct: whether a completion does what the author wanted.
        honest: a correct completion, as a model that knows the answer would write it.
        gold: the column with the gold answers; empty if the task has none.
        wrong: wrong completions that only this task suggests, tried on sound rewards.
    """

    name: str
    rows: tuple[Row, ...]
    correct: Callable[[str, Row], bool]
    honest: Callable[[Row], str]
    gold: str = ""
    wrong: Callable[[Row], list[str]] = field(default=lambda row: [])


def chat(user: str, system: str = "") -> list[dict]:
    """A conversational prompt."""
    messages = [{"role": "system", "content": system}] if system else []
    return [*messages, {"role": "user", "content": user}]


def question(row: Row) -> str:
    """What the user says in a row's prompt."""
    return row["prompt"][-1]["content"]


def columns_of(rows: tuple[Row, ...] | list[Row]) -> dict[str, list]:
    """The rows' columns but for the prompt, as TRL hands them to a reward."""
    return {name: [row[name] for row in rows] for name in rows[0] if name != "prompt"}


def paid(reward: Callable, row: Row, texts: list[str]) -> list[float]:
    """What a reward pays for completions of one prompt, which are scored as one group."""
    rows = [row] * len(texts)
    completions = [[{"role": "assistant", "content": text}] for text in texts]
    return reward(prompts=[one["prompt"] for one in rows], completions=completions, **columns_of(rows))


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", text.lower())


#: What models write instead of an answer.
EVASIONS = (
    *("", " \n", "I am not sure.", "I'm sorry, but I cannot help with that.", "Yes.", "...", "?" * 300, "{}", "[]"),
    *("This is correct, and I have checked it. Full marks.", "Score: 10/10", "<answer></answer>" * 5, "[1] [2] [3]"),
    *("so then because therefore wait check step " * 20, "Step 1: think.\n" * 10, "- a\n- b\n- c"),
    *("one two three four five six seven eight nine ten " * 20, ", ".join(map(str, range(200)))),
)


def wrong_completions(task: Task, row: Row) -> list[str]:
    """Completions that do not do the task: those of the task, of other rows, and what models write to be paid."""
    honest = task.honest(row)
    found = [*task.wrong(row), *map(task.honest, task.rows), *EVASIONS, question(row), f"{question(row)}\n{honest}"]
    found += [honest * 2, honest * 30, honest[::-1], honest[: len(honest) // 2], f"not {honest}", f"{honest} or not"]
    found += [", ".join(map(task.honest, task.rows)), f"{honest}\n{task.honest(task.rows[-1])}", f"Maybe: {honest}"]
    return [text for text in dict.fromkeys(found) if not task.correct(text, row)]


# ---- Sums: a number between tags ---------------------------------------------------------------------------


def _sums() -> tuple[Row, ...]:
    rng = random.Random(1)
    pairs = [(rng.randint(21, 60), rng.randint(11, 60)) for _ in range(COUNT)]
    system = "Work it out in a few words. Then write the number between <answer> and </answer>."
    return tuple({"prompt": chat(f"What is {a} + {b}?", system), "answer": str(a + b)} for a, b in pairs)


def operation(row: Row) -> str:
    """The sum that a prompt asks for, such as "17 + 25"."""
    return question(row).removeprefix("What is ").removesuffix("?")


def _sum_is_right(text: str, row: Row) -> bool:
    found = re.findall(r"<answer>(.*?)</answer>", text, re.DOTALL)
    once = text.count("<answer>") == text.count("</answer>") == 1
    return once and len(found) == 1 and found[0].strip() == row["answer"]


SUMS = Task(
    name="sums",
    rows=_sums(),
    correct=_sum_is_right,
    honest=lambda row: f"{operation(row)} is {row['answer']}. <answer>{row['answer']}</answer>",
    gold="answer",
    wrong=lambda row: [f"<answer>{int(row['answer']) + 10}</answer>", f"<answer>{operation(row)}</answer>"],
)


# ---- Problems: GSM8K in small, with its solutions as gold answers ------------------------------------------


def _problem(rng: random.Random) -> Row:
    who, what = rng.choice(["Mia", "Omar", "Lena", "Tom"]), rng.choice(["pens", "shells", "stamps", "coins"])
    boxes, each, more = rng.randint(3, 9), rng.randint(4, 9), rng.randint(2, 9)
    text = f"{who} has {boxes} boxes with {each} {what} in each, and finds {more} more {what}. "
    total = boxes * each + more
    steps = f"{boxes} boxes with {each} {what} are {boxes * each} {what}. {boxes * each} + {more} = {total}."
    prompt = chat(f"{text}How many {what} does {who} have?", "Solve the problem. The last line is #### and the number.")
    return {"prompt": prompt, "answer": f"{steps}\n#### {total}"}


def _problems() -> tuple[Row, ...]:
    rng = random.Random(2)
    return tuple(_problem(rng) for _ in range(COUNT))


def total_of(row: Row) -> int:
    """The number that a problem's solution ends in."""
    return int(row["answer"].rpartition("####")[2])


def _problem_is_solved(text: str, row: Row) -> bool:
    last = re.fullmatch(r"####\s*(-?\d+)", text.strip().rpartition("\n")[2].strip())
    return text.count("####") == 1 and last is not None and int(last[1]) == total_of(row)


PROBLEMS = Task(
    name="problems",
    rows=_problems(),
    correct=_problem_is_solved,
    honest=lambda row: row["answer"],
    gold="answer",
    wrong=lambda row: [f"#### {total_of(row) + 1}", f"#### {total_of(row) - 1}", "####", f"It is {total_of(row)}."],
)


# ---- Orders: a sentence to JSON ----------------------------------------------------------------------------

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5}


def _order(rng: random.Random) -> Row:
    item, size = rng.choice(["pizza", "coffee", "salad", "juice"]), rng.choice(["small", "medium", "large"])
    spoken = rng.choice(list(NUMBERS))
    sentence = f"Hello, we would like {spoken} {size} {item}s, please."
    asked = f"Write this order as a JSON object with the keys item, size and quantity, and nothing else. {sentence}"
    return {"prompt": chat(asked), "order": json.dumps({"item": item, "size": size, "quantity": NUMBERS[spoken]})}


def _orders() -> tuple[Row, ...]:
    rng = random.Random(3)
    return tuple(_order(rng) for _ in range(COUNT))


def _unique_keys(pairs: list[tuple]) -> dict:
    found = dict(pairs)
    return found if len(found) == len(pairs) else {"repeated": True}


def _order_is_right(text: str, row: Row) -> bool:
    try:
        found = json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found == json.loads(row["order"]) and type(found["quantity"]) is int


def _wrong_orders(row: Row) -> list[str]:
    gold = json.loads(row["order"])
    changed = [gold | {"quantity": 7}, gold | {"item": "soup"}, gold | {"note": "fast"}, {"item": gold["item"]}]
    return [*map(json.dumps, changed), "{}", "[]", "null", row["order"] * 2]


ORDERS = Task(
    name="orders",
    rows=_orders(),
    correct=_order_is_right,
    honest=lambda row: row["order"],
    gold="order",
    wrong=_wrong_orders,
)


# ---- Sentiment: one of three labels ------------------------------------------------------------------------

LABELS = ("positive", "negative", "neutral")
REVIEWS = {
    "positive": ["The {0} is wonderful, and I would buy it again.", "I love this {0}. It works better than I hoped."],
    "negative": ["The {0} broke after a day, and nobody helped me.", "This {0} is a waste of money. I hate it."],
    "neutral": ["The {0} is blue and came on Tuesday.", "I have the {0} now. I have not tried it yet."],
}


def _sentiment() -> tuple[Row, ...]:
    rng = random.Random(4)
    labels = [LABELS[i % 3] for i in range(COUNT)]
    things = ["kettle", "lamp", "phone", "chair", "radio"]
    texts = [rng.choice(REVIEWS[label]).format(rng.choice(things)) for label in labels]
    asked = "Is this review positive, negative or neutral? Answer with one word.\nReview: {}"
    return tuple({"prompt": chat(asked.format(text)), "label": label} for text, label in zip(texts, labels))


SENTIMENT = Task(
    name="sentiment",
    rows=_sentiment(),
    correct=lambda text, row: text.strip().removesuffix(".").lower() == row["label"],
    honest=lambda row: row["label"],
    gold="label",
    wrong=lambda row: [", ".join(LABELS), f"not {row['label']}", *(one for one in LABELS if one != row["label"])],
)


# ---- Cities: extraction of several names -------------------------------------------------------------------

CITIES = ["Paris", "Rome", "Oslo", "Madrid", "Vienna", "Prague", "Dublin", "Athens", "Lisbon", "Warsaw"]


def _trip(rng: random.Random) -> Row:
    found = rng.sample(CITIES, rng.choice([2, 3]))
    first, *more = found
    sentence = f"In May, Jan and Eva took the train from {first} to {', and then to '.join(more)}, where it rained."
    asked = f"List the cities in this sentence, separated by commas, and nothing else. {sentence}"
    return {"prompt": chat(asked), "sentence": sentence, "target": ", ".join(found)}


def _cities() -> tuple[Row, ...]:
    rng = random.Random(5)
    return tuple(_trip(rng) for _ in range(COUNT))


def listed(text: str) -> list[str]:
    """The items of a list that is separated by commas."""
    return [item.strip() for item in text.strip().removesuffix(".").split(",")]


CITY_LISTS = Task(
    name="cities",
    rows=_cities(),
    correct=lambda text, row: sorted(listed(text)) == sorted(listed(row["target"])),
    honest=lambda row: row["target"],
    gold="target",
    wrong=lambda row: [listed(row["target"])[0], f"{row['target']}, Berlin", row["sentence"], ", ".join(CITIES)],
)


# ---- Summary: who did what and where, in one short sentence ------------------------------------------------

EVENTS = [("opened", "bakery"), ("sold", "farm"), ("painted", "bridge"), ("bought", "theater"), ("closed", "mill")]


def _story(rng: random.Random) -> Row:
    who, (did, what), where = rng.choice(["Anna", "Ben", "Clara", "David"]), rng.choice(EVENTS), rng.choice(CITIES)
    document = (
        f"On Monday, {who} {did} a {what} in {where}. Many neighbors came to see it, although the rain never stopped. "
        f"A small band played until the evening, and there was free tea for the children."
    )
    reference = f"{who} {did} a {what} in {where}."
    asked = f"Say in one short sentence what happened.\n\n{document}"
    return {"prompt": chat(asked), "document": document, "reference": reference, "facts": [who, did, what, where]}


def _stories() -> tuple[Row, ...]:
    rng = random.Random(6)
    return tuple(_story(rng) for _ in range(COUNT))


def _summary_is_right(text: str, row: Row) -> bool:
    """One short sentence that says who did what and where, in this order, and nothing about tea, rain or music."""
    said, text = words(text), text.strip()
    facts = [fact.lower() for fact in row["facts"]]
    one = text.endswith(".") and len(re.findall(r"[.!?]", text)) == 1 and "\n" not in text
    told = [word for word in said if word in facts] == facts
    aside = {"neighbors", "rain", "band", "tea", "children", "evening", "not", "never", "no"} & set(said)
    return one and told and not aside and 4 <= len(said) <= 15 and len(set(said)) >= 0.75 * len(said)


def _wrong_summaries(row: Row) -> list[str]:
    who, did, what, where = row["facts"]
    return [
        row["document"],
        f"{where}: {what} {did} {who}.",
        f"{who} came to the {what} in {where}.",
        f"{who} {did} a {what} in Berlin.",
        f"{who} never {did} a {what} in {where}.",
        f"A {what} was in the news on Monday.",
        f"{row['reference']} The rain never stopped.",
    ]


SUMMARY = Task(
    name="summary",
    rows=_stories(),
    correct=_summary_is_right,
    honest=lambda row: row["reference"],
    gold="reference",
    wrong=_wrong_summaries,
)


# ---- Nouns: a list of three keywords -----------------------------------------------------------------------

NOUNS = ["storm", "bridge", "river", "farmer", "horse", "tower", "garden", "boat", "teacher", "village"]


def _nouns() -> tuple[Row, ...]:
    rng = random.Random(7)
    found = [rng.sample(NOUNS, 3) for _ in range(COUNT)]
    asked = "List the three nouns of this sentence, separated by commas. The {} was seen near the old {} and the {}."
    return tuple({"prompt": chat(asked.format(*three)), "answer": ", ".join(three)} for three in found)


KEYWORDS = Task(
    name="keywords",
    rows=_nouns(),
    correct=lambda text, row: sorted(listed(text.lower())) == sorted(listed(row["answer"])),
    honest=lambda row: row["answer"],
    gold="answer",
)


# ---- Translation: one French word --------------------------------------------------------------------------

FRENCH = {
    **{"letter": "lettre", "violin": "violon", "group": "groupe", "tiger": "tigre", "doctor": "docteur"},
    **{"forest": "forêt", "paper": "papier", "uncle": "oncle", "lamp": "lampe", "cinema": "cinéma"},
    **{"planet": "planète", "artist": "artiste", "dentist": "dentiste", "tourist": "touriste", "salad": "salade"},
    **{"tomato": "tomate", "dance": "danse", "guitar": "guitare", "pilot": "pilote", "carrot": "carotte"},
}


def _translations() -> tuple[Row, ...]:
    asked = "Translate this word into French. Answer with the French word alone: {}"
    return tuple(
        {"prompt": chat(asked.format(english)), "word": english, "translation": french}
        for english, french in FRENCH.items()
    )


TRANSLATION = Task(
    name="translation",
    rows=_translations(),
    correct=lambda text, row: text.strip().lower() == row["translation"],
    honest=lambda row: row["translation"],
    gold="translation",
    wrong=lambda row: [row["word"], f"le {row['translation']}", row["translation"] + "s", row["translation"][:-1]],
)


# ---- Phrases: a short sentence in French -------------------------------------------------------------------

PHRASES = {
    "I am tired.": "Je suis fatigué.",
    "We have a dog.": "Nous avons un chien.",
    "She eats an apple.": "Elle mange une pomme.",
    "The house is big.": "La maison est grande.",
    "He is my brother.": "Il est mon frère.",
    "I like coffee.": "J'aime le café.",
    "The cat sleeps.": "Le chat dort.",
    "You are late.": "Tu es en retard.",
    "It is cold today.": "Il fait froid aujourd'hui.",
    "They sing well.": "Ils chantent bien.",
    "I have two sisters.": "J'ai deux sœurs.",
    "The door is open.": "La porte est ouverte.",
    "We live in Lyon.": "Nous habitons à Lyon.",
    "She reads a book.": "Elle lit un livre.",
    "The bread is fresh.": "Le pain est frais.",
    "I see the sea.": "Je vois la mer.",
    "He works a lot.": "Il travaille beaucoup.",
    "The train is here.": "Le train est là.",
    "You speak French.": "Tu parles français.",
    "We are happy.": "Nous sommes contents.",
}


def _phrases() -> tuple[Row, ...]:
    asked = "Translate this sentence into French: {}"
    return tuple({"prompt": chat(asked.format(one)), "translation": french} for one, french in PHRASES.items())


PHRASE = Task(
    name="phrases",
    rows=_phrases(),
    correct=lambda text, row: words(text) == words(row["translation"]),
    honest=lambda row: row["translation"],
    gold="translation",
)


# ---- Choice: a letter --------------------------------------------------------------------------------------

KINDS = {
    "a fruit": ["pear", "plum", "grape", "cherry"],
    "an animal": ["wolf", "goose", "camel", "otter"],
    "a color": ["green", "violet", "brown", "yellow"],
    "a tool": ["hammer", "saw", "drill", "wrench"],
}


def _choice(rng: random.Random, right: int) -> Row:
    kind, *others = rng.sample(list(KINDS), 4)
    options = [rng.choice(KINDS[other]) for other in others]
    options.insert(right, rng.choice(KINDS[kind]))
    lines = [f"{letter}) {option}" for letter, option in zip("ABCD", options)]
    asked = "\n".join([f"Which of these is {kind}? Answer with the letter alone.", *lines])
    return {"prompt": chat(asked), "options": options, "answer": "ABCD"[right]}


def _choices() -> tuple[Row, ...]:
    rng = random.Random(8)
    return tuple(_choice(rng, i % 4) for i in range(COUNT))


CHOICE = Task(
    name="choice",
    rows=_choices(),
    correct=lambda text, row: bool(re.fullmatch(rf"\(?{row['answer']}[).]?", text.strip())),
    honest=lambda row: row["answer"],
    gold="answer",
)


# ---- Dates: another notation -------------------------------------------------------------------------------

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September")
MONTHS += ("October", "November", "December")


def _date(rng: random.Random) -> Row:
    day, month = rng.sample(range(1, 13), 2)
    year = rng.randint(1950, 2030)
    asked = f"Write this date as YYYY-MM-DD, and nothing else: {day} {MONTHS[month - 1]} {year}"
    return {"prompt": chat(asked), "target": f"{year}-{month:02}-{day:02}"}


def _dates() -> tuple[Row, ...]:
    rng = random.Random(9)
    return tuple(_date(rng) for _ in range(COUNT))


def swapped_date(row: Row) -> str:
    """The date of a row with the day in the place of the month."""
    year, month, day = row["target"].split("-")
    return f"{year}-{day}-{month}"


DATES = Task(
    name="dates",
    rows=_dates(),
    correct=lambda text, row: text.strip() == row["target"],
    honest=lambda row: row["target"],
    gold="target",
    wrong=lambda row: [swapped_date(row), "2000-01-01", row["target"].replace("-", "/"), f"{row['target']} 1999-01-01"],
)


# ---- Replies: polite, short and about the problem, without a gold answer -----------------------------------

TOPICS = ["kettle", "jacket", "lamp", "parcel", "invoice", "password", "printer", "bicycle", "ticket", "mattress"]
TROUBLES = ["is broken", "is not the one that I ordered"]
POLITE = ("sorry", "please", "thank you", "apologize")


def _replies() -> tuple[Row, ...]:
    system = "You answer the customers of a shop in one or two short and polite sentences."
    pairs = [(topic, trouble) for topic in TOPICS for trouble in TROUBLES]
    return tuple({"prompt": chat(f"My {one} {trouble}.", system), "topic": one} for one, trouble in pairs)


def _reply_is_good(text: str, row: Row) -> bool:
    said, text = words(text), text.strip()
    sentences = [part for part in re.split(r"[.!?]+", text) if part.strip()]
    polite = any(phrase in text.lower() for phrase in POLITE)
    varied = len(set(said)) >= 0.7 * len(said) and all(len(words(one)) >= 4 for one in sentences)
    length = 8 <= len(said) <= 40 and 1 <= len(sentences) <= 2 and text.endswith((".", "!", "?"))
    return length and polite and varied and said.count(row["topic"]) == 1


def _wrong_replies(row: Row) -> list[str]:
    topic = row["topic"]
    return [
        f"Sorry {topic}.",
        "We are sorry about that, and we will help you with it today.",
        f"Your {topic} is not our problem, and we will not do a thing about it.",
        f"Please sorry thank you {topic} apologize please sorry thank you {topic} apologize.",
        f"Sorry, {topic}. " * 8,
    ]


REPLIES = Task(
    name="replies",
    rows=_replies(),
    correct=_reply_is_good,
    honest=lambda row: (
        f"I am sorry about your {row['topic']}. We will send you a new one today, thank you for waiting."
    ),
    wrong=_wrong_replies,
)


# ---- Sorting: a list of numbers ----------------------------------------------------------------------------


def _unsorted(rng: random.Random) -> list[int]:
    while True:
        numbers = rng.sample(range(1, 60), 4)
        if numbers != sorted(numbers):
            return numbers


def _sortings() -> tuple[Row, ...]:
    rng = random.Random(10)
    lists = [_unsorted(rng) for _ in range(COUNT)]
    asked = "Sort these numbers from small to large, separated by commas: {}"
    rows = [(", ".join(map(str, one)), ", ".join(map(str, sorted(one)))) for one in lists]
    return tuple({"prompt": chat(asked.format(given)), "given": given, "answer": answer} for given, answer in rows)


SORTING = Task(
    name="sorting",
    rows=_sortings(),
    correct=lambda text, row: listed(text) == listed(row["answer"]),
    honest=lambda row: row["answer"],
    gold="answer",
    wrong=lambda row: [row["given"], ", ".join(listed(row["answer"])[::-1]), ", ".join(listed(row["answer"])[:2])],
)


# ---- Units: a symbol in which the case of a letter counts --------------------------------------------------

UNITS = {
    **{"megawatts": "MW", "milliwatts": "mW", "megavolts": "MV", "millivolts": "mV", "megabytes": "MB"},
    **{"megabits": "Mb", "gigabytes": "GB", "gigabits": "Gb", "megahertz": "MHz", "millihertz": "mHz"},
}


def _units() -> tuple[Row, ...]:
    rng = random.Random(11)
    numbers = [rng.randint(2, 90) for _ in range(COUNT)]
    pairs = list(zip(numbers, list(UNITS.items()) * 2))
    asked = "Write this with a number and the symbol of the unit, and nothing else: {} {}"
    return tuple({"prompt": chat(asked.format(n, name)), "answer": f"{n} {symbol}"} for n, (name, symbol) in pairs)


def other_unit(row: Row) -> str:
    """The same number with the symbol that differs only in case, which is another unit."""
    number, symbol = row["answer"].split()
    return f"{number} {next(one for one in UNITS.values() if one != symbol and one.lower() == symbol.lower())}"


QUANTITIES = Task(
    name="units",
    rows=_units(),
    correct=lambda text, row: text.strip() == row["answer"],
    honest=lambda row: row["answer"],
    gold="answer",
)


# ---- Spelling: a sentence with one mistake -----------------------------------------------------------------

MISSPELLED = {
    **{"receive": "recieve", "separate": "seperate", "believe": "beleive", "remember": "rember"},
    **{"improve": "imporve", "answer": "anwser", "discuss": "discus", "finish": "finnish"},
    **{"arrange": "arange", "describe": "discribe"},
}


def _spellings() -> tuple[Row, ...]:
    asked = "Correct the spelling mistake in this sentence. Write only the corrected sentence. {}"
    rows = []
    for template in ("We will {} the letters before the end of the week.", "Nobody can {} all of it in a single day."):
        for word, mistake in MISSPELLED.items():
            text, reference = template.format(mistake), template.format(word)
            rows.append({"prompt": chat(asked.format(text)), "text": text, "reference": reference})
    return tuple(rows)


SPELLING = Task(
    name="spelling",
    rows=_spellings(),
    correct=lambda text, row: text.strip() == row["reference"],
    honest=lambda row: row["reference"],
    gold="reference",
    wrong=lambda row: [row["text"], row["reference"][:-5], row["reference"] * 2, row["text"].upper()],
)


# ---- Expressions: a snippet of Python ----------------------------------------------------------------------

OPERATIONS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


def value_of(text: str, x: int) -> int | None:
    """The value of an expression in x with +, - and *, computed without running it; None for anything else.

    >>> value_of("3 * x + 2", 4), value_of("print(x)", 4)
    (14, None)
    """
    try:
        return _value(ast.parse(text.strip(), mode="eval").body, x) if len(text) <= 60 else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, x: int) -> int:
    match node:
        case ast.Name(id="x"):
            return x
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return number
        case ast.BinOp(left, op, right) if type(op) in OPERATIONS:
            return OPERATIONS[type(op)](_value(left, x), _value(right, x))
    raise ValueError("this is not an expression in x")


def _expressions() -> tuple[Row, ...]:
    rng = random.Random(12)
    pairs = [(rng.randint(2, 9), rng.randint(1, 9)) for _ in range(COUNT)]
    asked = "Write a Python expression in x, and nothing else: {} times x, plus {}. For example, x = 2 gives {}."
    return tuple(
        {"prompt": chat(asked.format(a, b, 2 * a + b)), "solution": f"{a} * x + {b}", "example": [2, 2 * a + b]}
        for a, b in pairs
    )


def _expression_is_right(text: str, row: Row) -> bool:
    return all(value_of(text, x) == value_of(row["solution"], x) for x in (-3, 0, 1, 2, 10))


EXPRESSIONS = Task(
    name="expressions",
    rows=_expressions(),
    correct=_expression_is_right,
    honest=lambda row: row["solution"],
    gold="solution",
    wrong=lambda row: [str(row["example"][1]), "x", row["solution"].replace("x", "2"), f"({row['solution']}) * x"],
)


# ---- Sources: an answer that cites its note ----------------------------------------------------------------

COLORS = ["red", "blue", "green", "white"]


def _source(rng: random.Random) -> Row:
    owners, colors = rng.sample(["Ana", "Ben", "Cleo", "Dan", "Eli"], 3), rng.sample(COLORS, 3)
    notes = " ".join(f"[{i}] The {c} house belongs to {o}." for i, (o, c) in enumerate(zip(owners, colors), 1))
    right = rng.randrange(3)
    system = "Answer with a name and cite the note that says it, such as: Zoe [4]."
    asked = f"{notes} Whose house is {colors[right]}?"
    return {"prompt": chat(asked, system), "answer": owners[right], "note": right + 1, "notes": 3}


def _sources() -> tuple[Row, ...]:
    rng = random.Random(13)
    return tuple(_source(rng) for _ in range(COUNT))


SOURCES = Task(
    name="sources",
    rows=_sources(),
    correct=lambda text, row: bool(re.fullmatch(rf"{row['answer']} \[{row['note']}\]\.?", text.strip())),
    honest=lambda row: f"{row['answer']} [{row['note']}]",
    gold="answer",
)


# ---- Steps: a short plan, without a gold answer ------------------------------------------------------------

PLANS = ["egg", "tea", "soup", "rice", "toast", "salad", "porridge", "omelette", "sandwich", "pancake"]


def _plans() -> tuple[Row, ...]:
    asked = ["How do I make {}? Write three numbered steps.", "Explain in three numbered steps how to make {}."]
    pairs = [(meal, one) for meal in PLANS for one in asked]
    return tuple({"prompt": chat(one.format(meal)), "topic": meal} for meal, one in pairs)


def _plan_is_good(text: str, row: Row) -> bool:
    lines = [line.strip() for line in text.strip().splitlines()]
    steps = [line[2:].strip() for i, line in enumerate(lines, 1) if line.startswith(f"{i}.")]
    full = len(lines) == len(steps) == 3 and all(len(set(words(step))) >= 3 for step in steps)
    return full and len({tuple(words(step)) for step in steps}) == 3 and row["topic"] in words(text)


STEPS = Task(
    name="steps",
    rows=_plans(),
    correct=_plan_is_good,
    honest=lambda row: f"1. Read a recipe for {row['topic']}.\n2. Buy and wash what you need.\n3. Cook and serve it.",
)
