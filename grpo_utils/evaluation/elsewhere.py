"""Questions that a training run on addition problems did not ask, to find what else it changed."""

import json
import random
import re
from collections.abc import Callable, Sequence
from importlib.resources import files
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from grpo_core.rewards import is_strictly_right

from ..data.prompts import SYSTEM_PROMPT, chat_prompt

if TYPE_CHECKING:
    from datasets import Dataset


class OtherTask(NamedTuple):
    """Prompts with their gold answers, and the function that compares a completion with a gold answer."""

    prompts: list[list[dict]]
    golds: list
    is_correct: Callable

    def scores(self, texts: Sequence[Sequence[str]]) -> list[float]:
        """For each prompt, the share of its completions that are correct; ``texts`` has the shape (prompts, samples).

        >>> OtherTask([], ["42"], str.__eq__).scores([["42", "41", "42", "40"]])
        [0.5]
        """
        pairs = zip(texts, self.golds, strict=True)
        return [fmean(self.is_correct(text, gold) for text in said) for said, gold in pairs]


def other_tasks(rows: "Dataset", seed: int = 0) -> dict[str, OtherTask]:
    """Six sets of questions, by name, for the tiny models.

    Three sets ask the addition problems of ``rows`` without the system prompt or in other words. One has as many sums
    of three digits, drawn with ``seed``. The last two are tasks that the tiny models learned earlier: a name and an
    age as JSON, and thirty facts.

    >>> from grpo_utils import load_rows
    >>> tasks = other_tasks(load_rows("addition", "test", 2, 0))
    >>> [len(task.prompts) for task in tasks.values()], tasks["facts"].prompts[0][-1]["content"]
    ([2, 2, 2, 2, 100, 30], 'What is the capital of Poland?')
    """
    pairs = [sorted(re.findall(r"\d+", prompt[-1]["content"])) for prompt in rows["prompt"]]
    draw = random.Random(seed)
    long = [[draw.randint(100, 999) for _ in "ab"] for _ in pairs]
    return {
        "no system prompt": _additions("What is {} + {}?", pairs, None),
        "'Compute 1 + 2.'": _additions("Compute {} + {}.", pairs, SYSTEM_PROMPT),
        "'the sum of'": _additions("What is the sum of {} and {}?", pairs, SYSTEM_PROMPT),
        "three digits": _additions("What is {} + {}?", long, SYSTEM_PROMPT),
        "JSON": _tiny_questions("json"),
        "facts": _tiny_questions("fact"),
    }


def _additions(words: str, pairs: list, system: str | None) -> OtherTask:
    golds = [str(sum(map(int, pair))) for pair in pairs]
    return OtherTask([chat_prompt(words.format(*pair), system) for pair in pairs], golds, is_strictly_right)


def _tiny_questions(task: str) -> OtherTask:
    """Questions that ship with the tiny models; each has a list of all answers that are correct."""
    lines = (files("grpo_utils.tiny") / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["task"] == task]
    prompts = [chat_prompt(row["question"], None) for row in rows]
    return OtherTask(prompts, [row["right"] for row in rows], lambda text, golds: text in golds)
