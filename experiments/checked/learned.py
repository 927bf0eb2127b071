"""What needs no model on a task that was trained, and what kind of answer each arm got right there."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from benches import NOT_YET

from .arms import SAMPLED_PROMPTS, SEED, WRITTEN
from .programs import BY_CITY, CONDITIONS, is_right
from .reading import percent, row_of
from .spelling import words
from .tasks import TASKS, held_out, training_rows

SHOWN = 8  # words


def on_query(rows: list[dict]) -> str:
    """What needs no model on *query*, and what kind of condition each arm got right, in held-out prompts."""
    prompts = held_out("query")
    by_city = [right_with(row, BY_CITY) for row in prompts]
    lines = [
        f"- a loop over all conditions on a city or an age: {loop()} of {len(prompts)}",
        f"- a rule, the city of the first wanted person: {rule()}",
        f"- one query for all prompts, `{best_constant()}`, the best on the training prompts: {constant()}",
    ]
    for arm in (row for row in rows if row["task"] == "query" and "arm" in row):
        right = [digit == "1" for digit in arm["greedy"]]
        with_city = sum(one and city for one, city in zip(right, by_city, strict=True))
        lines.append(
            f"- {arm['arm']}: {sum(right)}, {with_city} of them among the {sum(by_city)} that a city can answer"
        )
    if row_of(rows, "query", "GRPO"):
        lines.append(
            f"- GRPO's condition is on a city in {cities(rows)} answers, and follows the rule in {followed(rows)}"
        )
    return "\n".join(lines)


def query_without_a_model() -> dict[str, str]:
    """The accuracy on *query* of a fixed query, of a rule and of a loop, by name."""
    found = dict(query_constant=constant(), query_rule=rule(), query_loop=loop())
    return {name: percent(count / len(held_out("query"))) for name, count in found.items()}


@cache
def constant() -> int:
    """How many held-out prompts one condition answers, the best on the training prompts."""
    condition = best_constant()
    return sum(is_right(row, condition) for row in held_out("query"))


@cache
def rule() -> int:
    """How many held-out prompts a condition on the city of the first wanted person answers."""
    return sum(is_right(row, city_of_first(row)) for row in held_out("query"))


@cache
def loop() -> int:
    """How many held-out prompts some condition answers, so that a loop over all finds it."""
    return sum(right_with(row, CONDITIONS) for row in held_out("query"))


def followed(rows: Sequence[dict]) -> str:
    """In how many answers to *query* GRPO's condition is on the city of the first wanted person."""
    if not (found := row_of(rows, "query", "GRPO")):
        return NOT_YET
    return str(sum(city_of_first(row) in text for row, text in zip(held_out("query"), found["texts"], strict=True)))


def cities(rows: Sequence[dict]) -> str:
    """In how many answers to *query* GRPO's condition is on a city."""
    found = row_of(rows, "query", "GRPO")
    return str(sum("city = '" in text for text in found["texts"])) if found else NOT_YET


def city_of_first(row: dict) -> str:
    """The rule that GRPO comes near, as a condition."""
    city = next(city for name, city, _ in row["drawn"]["people"] if name == row["drawn"]["wanted"][0])
    return f"city = '{city}'"


@cache
def best_constant() -> str:
    """The condition that is right for the most training prompts of one run."""
    prompts = training_rows("query", SAMPLED_PROMPTS, SEED)
    return max(CONDITIONS, key=lambda condition: sum(is_right(row, condition) for row in prompts))


def right_with(row: dict, conditions: Iterable[str]) -> bool:
    """Whether one of the conditions answers a prompt of *query*."""
    return any(is_right(row, condition) for condition in conditions)


def on_letter(rows: list[dict]) -> str:
    """What needs no model on *letter*, and what the words of the best arms are, in held-out prompts."""
    prompts = held_out("letter")
    solved = round(repeated_letters() * len(prompts))
    first = f"- a line of code that writes no words, such as `{without_words(prompts[0])}`: {solved} of {len(prompts)}"
    found = row_of(rows, "letter", "GRPO")
    if not found:
        return f"{first}\n- GRPO: {NOT_YET}"
    arms = [(arm, one) for arm in (WRITTEN, "GRPO") if (one := row_of(rows, "letter", arm))]
    lists, unknown = correct_lists(found), set(found["unknown_words"])
    counts = Counter(word for said in lists for word in said)
    trained = {row["drawn"]["letters"] for row in training_rows("letter", SAMPLED_PROMPTS, SEED)}
    new = {n: row["drawn"]["letters"] for n, row in enumerate(prompts) if row["drawn"]["letters"] not in trained}
    right = sum(found["greedy"][n] == "1" for n in new)
    turned = sum(pair[::-1] in trained for pair in set(new.values()))
    often = ", ".join(f"`{word}` ({count})" for word, count in counts.most_common(SHOWN))
    invented = [word for word, _ in counts.most_common() if word in unknown]
    shown = ", ".join(f"`{word}`" for word in invented[:SHOWN])
    return "\n".join(
        [
            first,
            *(
                f"- {arm}: {len(correct_lists(one))}, and {len(all_known(one))} if each word must be in a dictionary "
                "(Hunspell, American English)"
                for arm, one in arms
            ),
            f"- GRPO on the prompts with {len(set(new.values()))} pairs of letters that no training prompt had in this "
            f"order: {right} of {len(new)} ({turned} of the pairs were trained in the other order; the other prompts "
            "differ from a training prompt only in the least length)",
            f"- the {len(counts)} different words in GRPO's correct answers; most often {often}",
            f"- {len(invented)} of these words are not in it, such as {shown}",
        ]
    )


def letter_run(rows: Sequence[dict], steps: int) -> dict[str, str]:
    """Of *letter*: correct lists, those of known words, and the share of GRPO's batches, at most early and at last."""
    counts = ("letter_correct", "letter_known", "letter_own_correct", "letter_own_known")
    found, written = (row_of(rows, "letter", arm) for arm in ("GRPO", WRITTEN))
    if not (found and written):
        return dict.fromkeys((*counts, "letter_early", "letter_last"), NOT_YET)
    lists = [count(one) for one in (found, written) for count in (correct_lists, all_known)]
    return dict(
        zip(counts, (str(len(some)) for some in lists), strict=True),
        letter_early=f"{max(found['curves']['correct'][:steps]):.0%}",
        letter_last=f"{found['curves']['correct'][-1]:.0%}",
    )


def correct_lists(found: dict) -> list[list[str]]:
    """The words of each correct greedy answer of a row of *letter*."""
    return [words(text) for text, digit in zip(found["texts"], found["greedy"], strict=True) if digit == "1"]


def all_known(found: dict) -> list[list[str]]:
    """The correct lists of which the dictionary has every word."""
    return [said for said in correct_lists(found) if not set(found["unknown_words"]) & set(said)]


def repeated_letters() -> float:
    """The accuracy on *letter* of answers that only repeat letters."""
    right = [all(TASKS["letter"].parts(without_words(row), row["drawn"]).values()) for row in held_out("letter")]
    return sum(right) / len(right)


def without_words(row: dict) -> str:
    """An answer to a prompt of *letter* that only repeats letters, which the check accepts.

    >>> without_words(dict(drawn=dict(letters="ec", least=4)))
    'eeee, eeeee, cccc, ccccc'
    """
    letters, least = row["drawn"]["letters"], row["drawn"]["least"]
    return ", ".join(letter * length for letter in letters for length in (least, least + 1))
