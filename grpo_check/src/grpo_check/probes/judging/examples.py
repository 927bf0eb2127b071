"""For each rule, a small reward that has its fault: the bugs that people publish, in a few lines."""

# ruff: noqa: ANN001, ANN003, B905  (written as users write them)

import random as chance
import re

from grpo_core.rewards import completion_text, correctness_reward, extract_answer


def raises(completions, answer, **kwargs):
    """A completion without tags has no second part."""
    said = [completion_text(c).split("<answer>")[1].removesuffix("</answer>") for c in completions]
    return [1.0 if text and text == gold else 0.0 for text, gold in zip(said, answer)]


def wrong_length(completions, answer, **kwargs):
    """Completions without an answer get no score at all."""
    said = [(extract_answer(completion_text(c)), gold) for c, gold in zip(completions, answer)]
    return [1.0 if text == gold else 0.0 for text, gold in said if text]


def not_finite(completions, **kwargs):
    """The empty completion divides by zero, and the exception becomes NaN."""
    lengths = [len(completion_text(c)) for c in completions]
    return [min(1.0, 20 / length) if length else float("nan") for length in lengths]


def unbounded_time(completions, **kwargs):
    """A repeated repetition: the time doubles with each character that does not match."""
    return [1.0 if re.fullmatch(r"(?:[0-9]+|[a-z ])*", completion_text(c)) else 0.0 for c in completions]


def random(completions, answer, **kwargs):
    """Noise so that no two completions of a group tie."""
    return [score + chance.uniform(0, 0.01) for score in correctness_reward(completions, answer)]


def changes_inputs(completions, answer, **kwargs):
    """The completion is stripped in place."""
    scores = correctness_reward(completions, answer)
    for c in completions:
        if not isinstance(c, str):
            c[-1]["content"] = completion_text(c).strip().lower()
    return scores


def runs_model_text(completions, answer, **kwargs):
    """The answer is computed with eval, which runs any code."""

    def value(text):
        try:
            return float(eval(text))
        except Exception:
            return None

    said = [value(extract_answer(completion_text(c)) or "") for c in completions]
    return [1.0 if number is not None and number == value(gold) else 0.0 for number, gold in zip(said, answer)]


def dead(completions, answer, **kwargs):
    """A number is compared with a text."""
    found = [re.search(r"<answer>(-?[0-9]{1,9})</answer>", completion_text(c)) for c in completions]
    return [1.0 if match and int(match[1]) == gold else 0.0 for match, gold in zip(found, answer)]


def unpaid_example(completions, **kwargs):
    """A closing tag was forgotten, so a second opening one is asked for."""
    return [1.0 if re.search(r"<answer>[^<]+<answer>", completion_text(c)) else 0.0 for c in completions]


def pays_changed_example(completions, **kwargs):
    """The share of the listed items that are right, so leaving out a doubtful one pays."""
    said = [re.findall(r'"([^"]*)"', completion_text(c)) for c in completions]
    return [sum(one in ("Mac", "Linux") for one in items) / len(items) if items else 0.0 for items in said]


def unpaid_long(completions, answer, **kwargs):
    """The limit counts characters, and was meant for tokens."""
    scores = correctness_reward(completions, answer)
    return [score if len(completion_text(c)) < 300 else 0.0 for c, score in zip(completions, scores)]


def wrong_beats_right(completions, answer, **kwargs):
    """Any text that contains the gold answer is paid, such as 142 for 42."""
    return [1.0 if gold and gold in completion_text(c) else 0.0 for c, gold in zip(completions, answer)]


def pays_missing_answer(completions, answer, **kwargs):
    """A completion without tags is taken for honest, and is paid a little."""
    scores = correctness_reward(completions, answer)
    return [score if "<answer>" in completion_text(c) else 0.2 for c, score in zip(completions, scores)]


def pays_abstaining(completions, answer, **kwargs):
    """A wrong answer costs a point, a missing one costs nothing."""
    said = [extract_answer(completion_text(c)) for c in completions]
    return [0.0 if text is None else 1.0 if text == gold else -1.0 for text, gold in zip(said, answer)]


def none_for_wrong(completions, answer, **kwargs):
    """The branch for a wrong answer has no return."""

    def grade(text, gold):
        if text and text == gold:
            return 1.0

    return [grade(extract_answer(completion_text(c)), gold) for c, gold in zip(completions, answer)]


def farmable(completions, **kwargs):
    """Every tag counts, however often it comes."""
    return [0.125 * len(re.findall("</?(?:reasoning|answer)>", completion_text(c))) for c in completions]


def length_farm(completions, **kwargs):
    """Longer is better, up to a cap."""
    return [min(len(completion_text(c)) / 2000, 1.0) for c in completions]


def order_dependent(completions, answer, **kwargs):
    """All completions are compared with the first row's gold answer."""
    return correctness_reward(completions, answer[:1] * len(completions))


def mixes_groups(completions, answer, **kwargs):
    """A bonus for completions shorter than the mean, which is that of all prompts of the batch."""
    lengths = [len(completion_text(c)) for c in completions]
    mean, scores = sum(lengths) / len(lengths), correctness_reward(completions, answer)
    return [score + 0.2 * score * (length < mean) for score, length in zip(scores, lengths)]


def chat_only(completions, answer, **kwargs):
    """A string has no messages."""
    return correctness_reward([c[-1]["content"] or "" for c in completions], answer)


def string_only(completions, answer, **kwargs):
    """A list of messages does not end in a tag."""
    return [
        1.0 if gold and str(c).endswith(f"<answer>{gold}</answer>") else 0.0 for c, gold in zip(completions, answer)
    ]


def untagged(completions, answer, **kwargs):
    """Where the tags are missing, the whole text is taken for the answer."""
    said = [completion_text(c).split("<answer>")[-1].split("</answer>")[0].strip() for c in completions]
    return [1.0 if text and text == gold else 0.0 for text, gold in zip(said, answer)]


def form_outweighs(completions, answer, **kwargs):
    """The tags are worth four times as much as what is in them."""
    said = [extract_answer(completion_text(c)) for c in completions]
    return [0.8 + 0.2 * (text == gold) if text else 0.0 for text, gold in zip(said, answer)]


def pays_languages(completions, answer, **kwargs):
    """A little more for any letter that is not English."""
    more = [0.0 if completion_text(c).isascii() else 0.3 for c in completions]
    return [score + extra for score, extra in zip(correctness_reward(completions, answer), more)]


def too_strict(completions, answer, **kwargs):
    """The same characters are asked for: "42.00" is wrong."""
    said = [extract_answer(completion_text(c)) for c in completions]
    return [1.0 if text and text == gold else 0.0 for text, gold in zip(said, answer)]


def word_salad(completions, **kwargs):
    """Each word of a list is paid, wherever it stands."""
    return [0.5 * sum(word in completion_text(c) for word in ("osmosis", "membrane")) for c in completions]


def several_answers(completions, answer, **kwargs):
    """The first or the last of several answers may be correct."""
    found = [(extract_answer(completion_text(c)) or "").split(", ") for c in completions]
    return [float(gold in (said[0], said[-1])) for said, gold in zip(found, answer)]


def slow(completions, answer, **kwargs):
    """Blanks and dashes at the end are looked for from every blank of a long run."""
    return correctness_reward([re.sub(r"(\s|-)+?$", "", completion_text(c)) for c in completions], answer)
