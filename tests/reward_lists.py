"""The rewards that tests go through: those of the library, and the recipes and the table of docs/rewards.md."""

import re
from importlib import import_module
from pkgutil import iter_modules

from course import ROOT
from grpo_core import rewards

MODULES = [import_module(f"{rewards.__name__}.{module.name}") for module in iter_modules(rewards.__path__)]
#: The rewards of the library: every function whose name ends in ``_reward``.
LIBRARY = {
    name: reward
    for module in MODULES
    for name, reward in vars(module).items()
    if name.endswith("_reward") and reward.__module__ == module.__name__
}
PAGE = (ROOT / "docs" / "rewards.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    """The text of docs/rewards.md below a heading."""
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def run(block):
    """The names that a block of code defines."""
    names = {"__name__": "recipe"}
    exec(compile(block, "docs/rewards.md", "exec"), names)
    return names


BLOCKS = [code for _, code in re.findall(r"^(`{3,4})python\n(.*?)^\1$", section("Recipes"), re.DOTALL | re.MULTILINE)]
#: What each block defines, by the name of its reward: the last one that ends in ``_reward`` or ``_penalty``.
RECIPES = {[name for name in names if name.endswith(("_reward", "_penalty"))][-1]: names for names in map(run, BLOCKS)}


def recipe(name, **settings):
    """A reward of the page, with other values for the names in capital letters."""
    names = run(BLOCKS[list(RECIPES).index(name)])
    names.update(settings)
    return names[name]


CELLS = [
    line.strip("| ").split(" | ") for line in section("What counts as an answer").splitlines() if line[:3] == "| `"
]
#: The rows of the page's table of answers: an answer, the gold answer, and whether the answer counts.
TABLE = [(said.strip("`"), gold.strip("`"), verdict == "accepted") for said, gold, verdict, *_ in CELLS]
