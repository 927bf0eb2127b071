"""The cells of the table: an arm with a seed. The most telling come first.

Each cell is one JSON file in ``cells/``, written when the cell ends. What it needs until then, and adapters, are in
outputs/free/, which git ignores.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benches import measured_on

from . import clock
from .measuring import WORK, Answerer, measure, number_format

STORED = Path(__file__).parent / "cells"


@dataclass(frozen=True)
class Cell:
    """An arm with a seed. ``choice`` is what development rows compare: a rate or an instruction."""

    arm: str
    seed: int = 0
    choice: str = ""

    @property
    def split(self) -> str:
        return "dev" if self.choice else "test"

    @property
    def name(self) -> str:
        """What its files are called.

        >>> Cell("SFT on 50 answers", 1).name, Cell("SFT on 200 answers", choice="2e-4").name
        ('sft-on-50-answers-seed1', 'sft-on-200-answers-seed0-dev-2e-4')
        """
        parts = [self.arm, f"seed{self.seed}", *(["dev", self.choice] if self.choice else [])]
        return re.sub(r"\W+", "-", " ".join(parts).lower())

    @property
    def stored(self) -> Path:
        return STORED / f"{self.name}.json"

    @property
    def work(self) -> Path:
        return WORK / self.name


@dataclass(frozen=True)
class Arm:
    """A row of the table: ``make`` trains what it needs, and says what then answers the prompts.

    ``minutes`` are estimates of a cell on two idle cores without fast bf16.
    """

    what: str
    make: Callable[[Cell], Answerer]
    minutes: int


def finished(cell: Cell) -> dict | None:
    """What a cell stored; nothing if it has not ended."""
    return json.loads(cell.stored.read_text(encoding="utf-8")) if cell.stored.exists() else None


def run(cell: Cell, arm: Arm) -> dict:
    """Train what a cell needs, measure it, and store it."""
    with clock.timed(cell.work / "making.json"):
        answerer = arm.make(cell)
    with clock.timed(cell.work / "measuring.json"):
        found = measure(answerer, cell.work, cell.split, cell.seed)
    times = {f"{what}_time": clock.summary(cell.work / f"{what}.json") for what in ("making", "measuring")}
    about = dict(arm=cell.arm, seed=cell.seed, choice=cell.choice, split=cell.split)
    about |= measured_on() | dict(format=number_format())
    about |= dict(imitated=answerer.imitated, checked=answerer.checked) | answerer.about
    clock.write(cell.stored, about | times | found)
    return found
