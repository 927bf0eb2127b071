"""Hostile completions that a policy may write, for timing and testing rewards."""

import random
from collections.abc import Iterator

#: The pieces of hostile completions: signs that patterns look for, and text around them. Keep the order of all tables,
#: because a seed draws by position.
PIECES = (
    "0", "1", "9", "42", ".", ",", "-", "+", "/", "*", "=", ":", ";", "!", "?", "%", "$", "#", "^", "(", ")", "[",
    "]", "{", "}", "<", ">", "|", "'", '"', "`", "~", "_", "a", "x", "A", "or", "not", "and", "the", "answer", "is",
    " ", "\n", "\t", "\0", "\ud800", "\u00a0", "\u0663", "\u4e2d", "\u00bd", "\u2212", "km", "1,000", "1/2", "0.5",
    "1 000",
    "<reasoning>", "</reasoning>", "<answer>", "</answer>", "<think>", "</think>", "####", "\\boxed{", "\\text{",
    "\\frac{", "}{", "\\sqrt{", "\\pi", "\\left(", "\\right)", "\\cdot", "^{2}", "**", "```", "```python\n",
    '{"a": ', "lambda x:",
)  # fmt: skip
#: The units of runs: one or two pieces that repeat.
UNITS = (
    "1", "0.", "1 ", " ", "\n", ".", ",", "1,", "1,111,", "1/", "-", "--", "(", ")", "()", "[", "{", "}", "{}", "<",
    "<>", "$", "#", "a", "a ", "a.", "a,", "1 1 1 ", "a1", "A) ", "'a", "a'", "\\", "\\frac{1}", "\\boxed{",
    "\\text{", "<answer>", "</answer>", "<think>", "</think>", "<reasoning>", "**", "*", "`", "```\n", '"', '{"a":',
    "[1,", "^", "=", "x=", "%", "_", "\u00bd", "\u00a0", "e1", "or ",
)  # fmt: skip
#: The ends of runs, which force a pattern to backtrack.
ENDS = ("", "#", "\u4e2d", "x", "1", "}", "</answer>", "\n", "!")
FRAMES = (
    "{}",
    "<answer>{}</answer>",
    "<reasoning>a</reasoning><answer>{}</answer>",
    "<think>a</think>{}",
    "\\boxed{{{}}}",
    "#### {}",
)


def runs(length: int) -> Iterator[str]:
    """Runs of about this many characters, of every unit and with every end."""
    for unit in UNITS:
        for end in ENDS:
            yield (unit * (length // len(unit) + 1))[:length] + end


def completions(count: int, seed: int = 0) -> Iterator[str]:
    """Random hostile completions: pieces, or a run of up to 2,000 characters, mostly inside a format of rewards."""
    rng = random.Random(seed)
    for _ in range(count):
        if rng.random() < 0.6:
            text = "".join(rng.choices(PIECES, k=rng.randrange(1, 25)))
        else:
            unit, length = rng.choice(UNITS), int(2_000 ** rng.random())
            text = rng.choice(PIECES) + unit * (length // len(unit)) + rng.choice(ENDS)
        yield rng.choice(FRAMES).format(text)


ATOMS = ("x", "y", "n", "a", "i", "e", "2", "3", "7", "0", "12", "0.5", "99999", "10", "1,000", "\\pi", "\\infty", "-1")
SHAPES = (
    "{}+{}", "{}-{}", "{}{}", "{} {}", "{}/{}", "\\frac{{{}}}{{{}}}", "\\sqrt{{{}}}", "\\sqrt[3]{{{}}}", "({})",
    "({})^{{2}}", "({})^4({})", "({})^n", "({},{})", "\\{{{},{},{}\\}}", "[{},{})", "{}\\cup{}", "{}\\cap{}",
    "|{}|", "{}<{}", "\\left({}\\right)", "{}\\cdot {}", "{},{}", "{}\\pm{}", "[{}]", "{{{}}}", "(1,{})", "-({})",
    "({})({})", "2^{{99}}{}", "({})^{{-3}}",
)  # fmt: skip


def expression(rng: random.Random, depth: int) -> str:
    """A random expression, mostly one that math-verify evaluates."""
    if depth <= 0 or rng.random() < 0.15:
        return rng.choice(ATOMS)
    shape = rng.choice(SHAPES)
    return shape.format(*(expression(rng, depth - 1) for _ in range(3)))


def expression_pairs(count: int, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Random pairs of expressions of up to 100 characters, some of them equal, and nested brackets."""
    rng = random.Random(seed)
    while count:
        said = expression(rng, rng.randrange(1, 6))
        if rng.random() < 0.2:
            shape, said = rng.choice([s for s in SHAPES if s.count("{}") == 1]), rng.choice(ATOMS)
            for _ in range(rng.randrange(1, 12)):
                said = shape.format(said)
        gold = rng.choice([said + "+1", said, said + "*2", said.replace("x", "(x+1)"), expression(rng, 3)])
        if max(len(said), len(gold)) <= 100:
            count -= 1
            yield said, gold
