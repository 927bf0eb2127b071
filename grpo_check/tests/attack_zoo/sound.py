"""Fifteen rewards that pay a correct completion more than any wrong one, each in a shape of its own.

Several look suspicious and are not: scores that are never above zero, partial credit, a distance, a score relative to
the group. Like `broken.py`, the file imports nothing of this package.
"""

import ast
import json
import re
from collections import defaultdict
from itertools import combinations

from rapidfuzz.distance import Levenshtein


def _texts(completions):
    return [completion[-1]["content"] or "" for completion in completions]


# ---- Sums --------------------------------------------------------------------------------------------------


def _tagged(text):
    """What stands in the only pair of tags, or None."""
    if text.count("<answer>") != 1 or text.count("</answer>") != 1:
        return None
    rest = text.partition("<answer>")[2]
    return rest.partition("</answer>")[0].strip() if "</answer>" in rest else None


def right_and_short(completions, answer, **kwargs):
    """One point for the right number, less up to 0.3 for more than 30 words; a wrong number earns nothing."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        extra = max(len(text.split()) - 30, 0)
        rewards.append(1.0 - min(0.3, 0.003 * extra) if _tagged(text) == gold else 0.0)
    return rewards


def form_then_number(completions, answer, **kwargs):
    """0.1 for a number in the tags, and 1.0 if it is the right one, so that a beginner finds the form first."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        said = _tagged(text)
        rewards.append(1.0 if said == gold else 0.1 if said and re.fullmatch(r"-?[0-9]+", said) else 0.0)
    return rewards


def above_the_group(completions, answer, prompts, **kwargs):
    """Right or wrong, less the mean of the group; among the right ones, the shortest gets a little more."""
    right = [float(_tagged(text) == gold) for text, gold in zip(_texts(completions), answer)]
    lengths = [len(text) for text in _texts(completions)]
    groups = defaultdict(list)
    for i, prompt in enumerate(prompts):
        groups[json.dumps(prompt)].append(i)
    rewards = [0.0] * len(right)
    for places in groups.values():
        mean = sum(right[i] for i in places) / len(places)
        shortest = min((lengths[i] for i in places if right[i]), default=0)
        for i in places:
            rewards[i] = right[i] - mean + 0.1 * (right[i] > 0 and lengths[i] == shortest)
    return rewards


# ---- Problems ----------------------------------------------------------------------------------------------


def _after_hashes(text):
    """The integer of the last line, if only that line has hashes; otherwise None."""
    match = re.fullmatch(r"####\s*(-?[0-9]{1,9})", text.strip().rpartition("\n")[2].strip())
    return int(match[1]) if match and text.count("####") == 1 else None


def closer_is_better(completions, answer, **kwargs):
    """One point for the right total, and at most a quarter for one that is near, to give a weak model a slope."""
    rewards = []
    for text, solution in zip(_texts(completions), answer):
        said, gold = _after_hashes(text), int(solution.rpartition("####")[2])
        if said is None:
            rewards.append(0.0)
        else:
            rewards.append(1.0 if said == gold else 0.25 / (1 + abs(said - gold)))
    return rewards


def only_penalties(completions, answer, **kwargs):
    """Nothing is paid; a wrong total costs 0.5, a missing one 1.0, and a long text a little more."""
    rewards = []
    for text, solution in zip(_texts(completions), answer):
        said, gold = _after_hashes(text), int(solution.rpartition("####")[2])
        cost = 1.0 if said is None else 0.5 * (said != gold)
        rewards.append(-cost - min(len(text), 4000) / 40_000)
    return rewards


# ---- Orders ----------------------------------------------------------------------------------------------


def _object(text):
    """The pairs of a JSON object that is the whole completion, or an empty list."""
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        return []
    flat = isinstance(pairs, list) and all(isinstance(pair, tuple) for pair in pairs)
    return pairs if flat else []


def fields_of_the_order(completions, order, **kwargs):
    """Up to 0.4 for the fields that are right, and 1.0 for the whole order and nothing else."""
    rewards = []
    for text, gold in zip(_texts(completions), order):
        expected, pairs = json.loads(gold), _object(text)
        right = {name for name, value in pairs if type(value) is type(expected.get(name)) and value == expected[name]}
        if len(right) == len(expected) == len(pairs):
            rewards.append(1.0)
        else:
            rewards.append(0.4 * len(right) / max(len(expected), len(pairs)))
    return rewards


# ---- Sentiment, cities ---------------------------------------------------------------------------------------


class LabelReward:
    """A reward with settings, as a class: the label alone, and a small loss for a word that is no label."""

    __name__ = "label_alone"

    def __init__(self, labels, unknown):
        self.labels, self.unknown = labels, unknown

    def __call__(self, completions, label, **kwargs):
        said = [text.strip().removesuffix(".").lower() for text in _texts(completions)]
        return [float(one == gold) if one in self.labels else self.unknown for one, gold in zip(said, label)]


label_alone = LabelReward(("positive", "negative", "neutral"), unknown=-0.2)


def city_f1(completions, target, **kwargs):
    """F1 of the listed cities; one that is listed twice counts as one that is wrong."""
    rewards = []
    for text, gold in zip(_texts(completions), target):
        said = [city.strip() for city in text.strip().removesuffix(".").split(",")]
        wanted = [city.strip() for city in gold.split(",")]
        hits = len(set(said) & set(wanted))
        rewards.append(2 * hits / (len(said) + len(wanted)))
    return rewards


# ---- Summary -------------------------------------------------------------------------------------------------


def who_did_what_where(completions, facts, document, **kwargs):
    """One short sentence with the four facts in their order, and no word of the document's other sentences."""
    rewards = []
    for text, told, full in zip(_texts(completions), facts, document):
        said = re.findall(r"[a-z]+", text.lower())
        wanted = [fact.lower() for fact in told]
        first, _, rest = full.lower().partition(". ")
        aside = set(re.findall(r"[a-z]{4,}", rest)) - set(re.findall(r"[a-z]+", first)) | {"not", "no", "never"}
        short = 4 <= len(said) <= 15 and text.strip().count(".") == 1 and text.strip().endswith(".")
        clean = short and not re.search(r"[!?\n]", text.strip()) and not aside & set(said)
        varied = len(set(said)) >= 0.75 * len(said)
        rewards.append(float(clean and varied and [word for word in said if word in wanted] == wanted))
    return rewards


# ---- Translation, dates --------------------------------------------------------------------------------------

PLAIN = str.maketrans("éèêàâîôûç", "eeeaaiouc")


def word_and_accents(completions, translation, **kwargs):
    """One point for the French word, and 0.4 if only its accents are missing."""
    rewards = []
    for text, gold in zip(_texts(completions), translation):
        said = text.strip().lower()
        rewards.append(1.0 if said == gold else 0.4 if said == gold.translate(PLAIN) else 0.0)
    return rewards


def date_parts(completions, target, **kwargs):
    """0.2 for each part of an ISO date in its place, and the rest of the point for the whole date."""
    rewards = []
    for text, gold in zip(_texts(completions), target):
        match = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", text.strip())
        parts = sum(said == part for said, part in zip(match.groups(), gold.split("-"))) if match else 0
        rewards.append(1.0 if parts == 3 else 0.2 * parts)
    return rewards


# ---- Replies -------------------------------------------------------------------------------------------------


def every_rule_of_a_reply(completions, topic, **kwargs):
    """A product, so that no rule can be bought with another one: polite, about the problem, short, varied, complete."""
    rewards = []
    for text, about in zip(_texts(completions), topic):
        said = re.findall(r"[a-z]+(?:'[a-z]+)?", text.lower())
        sentences = [one for one in re.split(r"[.!?]+", text.strip()) if one.strip()]
        polite = re.search(r"sorry|please|thank you|apologize", text.lower()) is not None
        short = 8 <= len(said) <= 40 and 1 <= len(sentences) <= 2
        whole = text.strip().endswith((".", "!", "?")) and all(
            len(re.findall(r"[a-z']+", s.lower())) >= 4 for s in sentences
        )
        varied = len(set(said)) >= 0.7 * len(said)
        rewards.append(float(polite * short * whole * varied * (said.count(about) == 1)))
    return rewards


# ---- Sorting, spelling, expressions --------------------------------------------------------------------------


def pairs_in_order(completions, answer, **kwargs):
    """For the same numbers as asked, the share of pairs that are in order, squared; anything else earns nothing."""
    rewards = []
    for text, gold in zip(_texts(completions), answer):
        said, wanted = [item.strip() for item in text.strip().removesuffix(".").split(",")], gold.split(", ")
        if sorted(said) != sorted(wanted):
            rewards.append(0.0)
            continue
        pairs = list(combinations(map(int, said), 2))
        rewards.append((sum(one < other for one, other in pairs) / len(pairs)) ** 2)
    return rewards


def edits_left(completions, reference, text, **kwargs):
    """Minus the edits that are left, in units of the edits that the mistake needs: 0 is perfect, -1 is no change."""
    rewards = []
    for said, gold, given in zip(_texts(completions), reference, text):
        rewards.append(-min(Levenshtein.distance(said.strip()[:500], gold) / Levenshtein.distance(given, gold), 10.0))
    return rewards


def _term(node, x):
    """The value of a parsed expression, computed node by node, because the text of a model is never run."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
        left, right = _term(node.left, x), _term(node.right, x)
        return {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(node.op)]
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id == "x":
        return x
    raise ValueError("not an expression in x")


def _curve(text, points=(-7, -3, 0, 1, 2, 5, 10)):
    """The values at some points, or None for what is no expression."""
    try:
        tree = ast.parse(text.strip() if len(text) <= 60 else "", mode="eval").body
        return [_term(tree, x) for x in points]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def hidden_points(completions, solution, **kwargs):
    """The same values as the solution, at points that the prompt does not show."""
    return [float(_curve(text) == _curve(gold)) for text, gold in zip(_texts(completions), solution)]
