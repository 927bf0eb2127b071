"""The rewards. No sampled answer is correct at first, so three of four rewards give partial credit."""

import json
import re

from grpo_core.rewards.structured import parse_json, same_json
from grpo_core.training.texts import completion_text

OBJECT = re.compile(r"\{[^{}]*\}")  # a flat one: SmolLM2 likes to nest
LONGEST = 4000  # characters; a longer completion is not parsed


def first_object(text: str) -> dict:
    """The first flat JSON object in the text; an empty one if there is none."""
    found = OBJECT.search(text[:LONGEST])
    try:
        return parse_json(found[0]) if found else {}
    except ValueError:
        return {}


def correctness_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """1.0 if the whole text is the gold object, in any order and spacing; inside a value, case and blanks count."""
    return [float(same_json(completion_text(c), gold)) for c, gold in zip(completions, answer, strict=True)]


def fields_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """The share of the gold object's fields that are right in the first flat object."""
    pairs = [(first_object(completion_text(c)), json.loads(gold)) for c, gold in zip(completions, answer, strict=True)]
    dumps = json.dumps  # 3 is neither "3" nor true
    return [sum(k in said and dumps(said[k]) == dumps(gold[k]) for k in gold) / len(gold) for said, gold in pairs]


def keys_reward(completions: list, answer: list[str], **kwargs) -> list[float]:
    """1.0 if the first flat object has exactly the gold object's keys, whatever their values.

    In one run without it, the policy learned to leave out the field that it got wrong most often, and then never tried
    it again. In another, a reward for the share of right keys did not prevent that: one key less cost too little.
    """
    pairs = [(first_object(completion_text(c)), json.loads(gold)) for c, gold in zip(completions, answer, strict=True)]
    return [float(said.keys() == gold.keys()) for said, gold in pairs]


def alone_reward(completions: list, **kwargs) -> list[float]:
    """1.0 for one flat object and nothing else. Without it, nothing pays for ending the answer."""
    return [float(is_in_form(completion_text(c))) for c in completions]


#: The rewards that `train.py` uses, with their weights.
REWARDS = {correctness_reward: 1.0, fields_reward: 1.0, keys_reward: 0.5, alone_reward: 0.5}


def is_right(text: str, row: dict) -> bool:
    """Whether the report counts a text as accurate: it is the gold object."""
    return same_json(text, row["answer"])


def is_in_form(text: str) -> bool:
    """Whether the report counts a text as correctly formatted: one flat JSON object, and nothing else."""
    return OBJECT.fullmatch(text.strip()) is not None and first_object(text.strip()) != {}


def gold_text(row: dict) -> str:
    """The gold answer as the model should write it, for the checks before training: it must count as correct."""
    return row["answer"]
