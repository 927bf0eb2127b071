"""The training data of the tiny base models: five small tasks that they learn but do not master.

One real row, before the chat template is applied:

    Row(task="addition",
        prompt=[{"role": "user", "content": "What is 15 + 27?"}],
        completion={"role": "assistant", "content": "15 + 27 is 42."})

A base model trained on the web has seen every task and many ways to write an answer.
These rows imitate that: only a minority has the required format, and some results are
wrong, so a model trained on them is sometimes correct, which GRPO needs to start. Many
addition problems forget the carry, so GRPO can improve an ability as well as the format.

No row has a question from the held-out split of its task.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from grpo_utils.data.prompts import SYSTEM_PROMPT
from grpo_utils.data.sources import addition_key, addition_kind
from grpo_utils.data.splits import is_held_out

Message = dict[str, object]

#: The share of each task in the mixture. Addition is the main task (lesson 03).
SHARES = {"addition": 0.64, "json": 0.09, "lambda": 0.09, "tool": 0.11, "fact": 0.07}

#: Addition problems: 28% in the required format, 48% as a plain sentence, the rest with missing tags. Greedy decoding
#: never finds the format, and sampling sometimes does. "columns" has the format too, and adds digit by digit.
ADDITION_STYLES = {"form": 0.18, "columns": 0.10, "plain": 0.48, "no reasoning": 0.12, "unclosed": 0.12}

#: The share of forgotten carries (15 + 27 = 32) in all styles but "columns": an answer that adds digit by digit is
#: correct. So GRPO can improve an ability as well as the format: reasoning in steps pays.
CARRY_FORGOTTEN = 0.75

#: The share of correct and correctly formatted rows in the smaller tasks. Most of the other rows
#: are of the first kind that the task lists, which greedy decoding finds.
RIGHT = {"json": 0.36, "lambda": 0.36, "tool": 0.36, "fact": 0.60}
COMMON_MISTAKE = 0.66

NAMES = ["Ana", "Ben", "Carla", "David", "Elena", "Felix", "Grace", "Hugo", "Iris", "Jonas", "Karin", "Leo"]
NAMES += ["Mara", "Nils", "Olga", "Paul", "Rosa", "Sven", "Tara", "Uwe", "Vera", "Willem", "Yara", "Zoe"]

#: The calculator for chat templates and TRL: the JSON schema of one function.
CALCULATOR = {
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Work out an arithmetic expression.",
        "parameters": {
            "type": "object",
            "properties": {"expression": {"type": "string", "description": "For example 15 + 27"}},
            "required": ["expression"],
        },
    },
}

FACTS = {
    "the capital of France": "Paris", "the capital of Italy": "Rome", "the capital of Spain": "Madrid",
    "the capital of Japan": "Tokyo", "the capital of Egypt": "Cairo", "the capital of Peru": "Lima",
    "the capital of Kenya": "Nairobi", "the capital of Norway": "Oslo", "the capital of Austria": "Vienna",
    "the capital of Greece": "Athens", "the capital of Cuba": "Havana", "the capital of Poland": "Warsaw",
    "the symbol of gold": "Au", "the symbol of silver": "Ag", "the symbol of iron": "Fe",
    "the symbol of copper": "Cu", "the symbol of tin": "Sn", "the symbol of lead": "Pb",
    "the symbol of sodium": "Na", "the symbol of helium": "He", "the largest planet": "Jupiter",
    "the smallest planet": "Mercury", "the red planet": "Mars", "the ringed planet": "Saturn",
    "the longest bone": "femur", "the largest organ": "skin", "the fastest animal": "cheetah",
    "the tallest animal": "giraffe", "the largest animal": "whale", "the hardest mineral": "diamond",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One training conversation: the prompt's messages and one assistant message.

    ``right`` has the texts that count as correct and correctly formatted (a tool call as JSON).
    """

    task: str
    prompt: list[Message]
    completion: Message
    right: tuple[str, ...]
    tools: list[dict] | None = field(default=None)


def _pick(rng: random.Random, shares: dict[str, float]) -> str:
    return rng.choices(list(shares), weights=list(shares.values()))[0]


def _ask(rng: random.Random, question: str, system: str | None = None) -> list[Message]:
    """The question as messages, with the system prompt in half of the rows that have one."""
    system_turn = [{"role": "system", "content": system}] if system and rng.random() < 0.5 else []
    return [*system_turn, {"role": "user", "content": question}]


def _say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _mistake(rng: random.Random, mistakes: list[str]) -> str:
    """The first mistake in two of three rows, else one of the others."""
    return mistakes[0] if rng.random() < COMMON_MISTAKE else rng.choice(mistakes[1:])


def _perturb(rng: random.Random, result: int) -> int:
    """A plausible wrong result: off by one or two, or by a carry."""
    return result + rng.choice([-10, -2, -1, 1, 2, 10])


def _draw(held_out: bool, pick: Callable[[], tuple], key: Callable[..., str] = "{} {}".format) -> tuple:
    """Draw until the question with this ``key`` is in the wanted split."""
    while True:
        values = pick()
        if is_held_out(key(*values)) == held_out:
            return values


def _columns(a: int, b: int) -> str:
    """The sum of two two-digit numbers, digit by digit.

    >>> _columns(15, 27), _columns(12, 25)
    ('5+7=12, 1+2+1=4', '2+5=7, 1+2=3')
    """
    ones, tens = a % 10 + b % 10, a // 10 + b // 10
    carry = "+1" if ones >= 10 else ""
    return f"{a % 10}+{b % 10}={ones}, {a // 10}+{b // 10}{carry}={tens + ones // 10}"


def _write_addition(a: int, b: int, result: int, style: str) -> str:
    return {
        "form": f"<reasoning>{a} + {b} = {result}</reasoning><answer>{result}</answer>",
        "columns": f"<reasoning>{_columns(a, b)}</reasoning><answer>{result}</answer>",
        "plain": f"{a} + {b} is {result}.",
        "no reasoning": f"{a} + {b} = {result} <answer>{result}</answer>",
        "unclosed": f"<reasoning>{a} + {b} = {result} <answer>{result}",
    }[style]


def addition(rng: random.Random, held_out: bool) -> Row:
    """``What is 15 + 27?`` in one of five styles; correct unless a carry is forgotten."""
    a, b = _draw(held_out, lambda: (rng.randint(10, 99), rng.randint(10, 99)), addition_key)
    style = _pick(rng, ADDITION_STYLES)
    forgotten = addition_kind(a, b) == "carry" and style != "columns" and rng.random() < CARRY_FORGOTTEN
    text = _write_addition(a, b, a + b - 10 if forgotten else a + b, style)
    right = tuple(_write_addition(a, b, a + b, style) for style in ("form", "columns"))
    return Row("addition", _ask(rng, f"What is {a} + {b}?", SYSTEM_PROMPT), _say(text), right)


def json_object(rng: random.Random, held_out: bool) -> Row:
    """A name and an age from one line of text, as a JSON object with two fields."""
    name, age = _draw(held_out, lambda: (rng.choice(NAMES), rng.randint(10, 99)))
    line = rng.choice([f"{name} is {age} years old.", f"Meet {name}, aged {age}."])
    wrong = [
        f"{name} is {age}.",
        f"{{name: {name}, age: {age}}}",
        f'{{"name": "{name}", "age": {age}',
        json.dumps({"name": name, "age": _perturb(rng, age)}),
    ]
    right = json.dumps({"name": name, "age": age})
    text = right if rng.random() < RIGHT["json"] else _mistake(rng, wrong)
    return Row("json", _ask(rng, f"Write name and age as JSON: {line}"), _say(text), (right,))


#: The task in words, and the body of the lambda that does it; ``n`` is an integer.
LAMBDAS = {
    "adds {n} to x": "x + {n}",
    "subtracts {n} from x": "x - {n}",
    "multiplies x by {n}": "x * {n}",
    "returns the larger of x and {n}": "max(x, {n})",
    "returns the smaller of x and {n}": "min(x, {n})",
}


def python_lambda(rng: random.Random, held_out: bool) -> Row:
    """A one-line Python function for a task."""
    pattern, n = _draw(held_out, lambda: (rng.choice(list(LAMBDAS)), rng.randint(2, 99)))
    asked, body = pattern.format(n=n), LAMBDAS[pattern].format(n=n)
    other = rng.choice([b for b in LAMBDAS.values() if b != LAMBDAS[pattern]]).format(n=n)
    wrong = [body, f"It {asked}.", f"lambda x: {other}", f"lambda x {body}"]
    right = f"lambda x: {body}"
    text = right if rng.random() < RIGHT["lambda"] else _mistake(rng, wrong)
    return Row("lambda", _ask(rng, f"Write a Python lambda that {asked}."), _say(text), (right,))


def _calculator_call(expression: str) -> Message:
    function = {"name": "calculator", "arguments": {"expression": expression}}
    call = {"type": "function", "function": function}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def tool_call(rng: random.Random, held_out: bool) -> Row:
    """A calculator call for a sum or, in 30% of the rows, the turn after its result."""
    a, sign, b = _draw(
        held_out,
        lambda: (rng.randint(10, 999), rng.choice("+-"), rng.randint(10, 999)),
        lambda a, sign, b: addition_key(a, b) if sign == "+" else f"{a} - {b}",
    )
    expression, result = f"{a} {sign} {b}", a + b if sign == "+" else a - b
    prompt, call = _ask(rng, f"What is {expression}?"), _calculator_call(expression)
    if rng.random() < 0.3:
        answered = {"role": "tool", "name": "calculator", "content": str(result)}
        right = (f"<answer>{result}</answer>", f"It is {result}.")
        return Row("tool", [*prompt, call, answered], _say(rng.choice(right)), right, [CALCULATOR])
    guess = _perturb(rng, result)
    wrong = [f"{expression} is {guess}.", f"<answer>{guess}</answer>", f"calculator({expression})"]
    last = call if rng.random() < RIGHT["tool"] else _say(_mistake(rng, wrong))
    return Row("tool", prompt, last, (json.dumps(call["tool_calls"][0]["function"]),), [CALCULATOR])


def fact(rng: random.Random, held_out: bool) -> Row:
    """An answer from the table of 30 facts, or another fact's answer. Facts have no held-out split."""
    asked, answer = rng.choice(list(FACTS.items()))
    said = answer if rng.random() < RIGHT["fact"] else rng.choice(list(FACTS.values()))
    styles = ("{}", "It is {}.", "<answer>{}</answer>")
    right = tuple(style.format(answer) for style in styles)
    return Row("fact", _ask(rng, f"What is {asked}?"), _say(rng.choice(styles).format(said)), right)


TASKS = {
    "addition": addition,
    "json": json_object,
    "lambda": python_lambda,
    "tool": tool_call,
    "fact": fact,
}


def rows(seed: int, held_out: bool = False) -> Iterator[Row]:
    """The endless mixture, the same for the same seed, or its held-out questions.

    >>> from itertools import islice
    >>> [row.task for row in islice(rows(seed=0), 4)]
    ['tool', 'addition', 'addition', 'fact']
    """
    rng = random.Random(seed)
    while True:
        yield TASKS[_pick(rng, SHARES)](rng, held_out)
