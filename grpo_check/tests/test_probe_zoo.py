"""Faults that `probe` missed, sound rewards that it refused, and a zoo by an author who had not seen `probe`."""

import json
import re
import time

import pytest
import reward_zoo
from grpo_check.probes.judging.rules import RULES

from grpo_check import probe
from grpo_utils import completion_text as said
from grpo_utils import correctness_reward, extract_answer

pytestmark = pytest.mark.slow

GIVEN = dict(answers=["42", "7"])
SEVERITY = {rule.code: rule.severity for rule in RULES}


def by_answer(score):
    """A reward from the tagged answer (None if there is none) and the gold one."""

    def reward(completions, answer, **kwargs):
        return [score(extract_answer(said(c)), gold) for c, gold in zip(completions, answer)]

    return reward


def by_text(score):
    """A reward from the text alone."""

    def reward(completions, **kwargs):
        return [score(said(c)) for c in completions]

    return reward


def is_right(answer: str | None, gold: str) -> bool:
    return bool(answer) and answer == gold


# ---- Broken ------------------------------------------------------------------------------------------------


def hangs_on_tags(completions, answer, **kwargs):
    found = [re.match(r"(<[^>]*>|[^<]+)*<answer>(\d+)</answer>$", said(c)) for c in completions]
    return [1.0 if m and m[2] == gold else 0.0 for m, gold in zip(found, answer)]


def hangs_in_a_loop(completions, answer, **kwargs):
    for c in completions:
        while "((" in said(c) and "))" not in said(c):
            pass
    return correctness_reward(completions, answer)


def right_plus_length(completions, answer, **kwargs):
    lengths = by_text(lambda text: min(len(text) / 1000, 1))(completions)
    return [score + more for score, more in zip(by_answer(is_right)(completions, answer), lengths)]


def changes_answers(completions, answer, **kwargs):
    scores = correctness_reward(completions, list(answer))
    answer.reverse()
    return scores


SEEN = set()


def first_time_only(text: str | None, gold: str) -> float:
    score = 1.0 if is_right(text, gold) and gold not in SEEN else 0.0
    SEEN.add(gold if score else None)
    return score


def not_a_number_is_right(text: str | None, gold: str) -> float:
    try:
        return 0.0 if float(text) < float(gold) or float(text) > float(gold) else 1.0
    except (TypeError, ValueError):
        return 0.0


def praise_is_enough(completions, answer, **kwargs):
    right = by_answer(lambda a, g: (bool(a), a == g))(completions, answer)
    return [float(some and (same or "correct" in said(c))) for c, (some, same) in zip(completions, right)]


MISSED = {
    "a regular expression that hangs on tags": (hangs_on_tags, GIVEN, "unbounded_time"),
    "a loop without an end": (hangs_in_a_loop, GIVEN, "unbounded_time"),
    "not knowing costs nothing": (
        by_answer(lambda a, g: 0.0 if "don't know" in (a or "") else 1.0 if is_right(a, g) else -1.0),
        GIVEN,
        "pays_abstaining",
    ),
    "length in words, with a cap": (by_text(lambda text: min(len(text.split()) / 300, 1.0)), {}, "length_farm"),
    "length in lines, with a cap": (by_text(lambda text: min(text.count("\n") / 10, 1.0)), {}, "length_farm"),
    "length in steps, with a cap": (
        by_text(lambda text: min(len(re.findall(r"Step \d+", text)) / 8, 1.0)),
        {},
        "length_farm",
    ),
    "length beside correctness": (right_plus_length, GIVEN, "length_farm"),
    "answers changed": (changes_answers, GIVEN, "changes_inputs"),
    "a memory": (by_answer(first_time_only), GIVEN, "order_dependent"),
    "nothing is best": (by_text(lambda text: max(0.0, 1 - len(text) / 1000)), {}, "farmable"),
    "nan is right": (by_answer(not_a_number_is_right), GIVEN, "wrong_beats_right"),
    "a prefix of the answer": (
        by_answer(lambda a, g: 1.0 if a and g.startswith(a) else 0.0),
        dict(answers=["42", "1250"]),
        "wrong_beats_right",
    ),
    "praise for itself": (praise_is_enough, GIVEN, "wrong_beats_right"),
}


# ---- Sound -------------------------------------------------------------------------------------------------


def last_line(completion) -> str:
    return ([line.strip() for line in said(completion).splitlines() if line.strip()] or [""])[-1]


def matches(pattern: str):
    def reward(completions, answer, **kwargs):
        found = [re.fullmatch(pattern, last_line(c)) for c in completions]
        return [1.0 if m and m[1] == gold else 0.0 for m, gold in zip(found, answer)]

    return reward


def between_marks(completions, answer, **kwargs):
    ends = [said(c).partition("[[final]]")[2].partition("[[/final]]") for c in completions]
    return [1.0 if mark and a.strip() and a.strip() == g else 0.0 for (a, mark, _), g in zip(ends, answer)]


def read_json(text: str) -> dict:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def json_and_nothing_else(completions, answer, **kwargs):
    found = [read_json(said(c)).get("result") for c in completions]
    return [1.0 if a and str(a) == g else 0.0 for a, g in zip(found, answer)]


def keys_of_json(completions, **kwargs):
    return [1.0 if set(read_json(said(c))) == {"name", "city"} else 0.0 for c in completions]


def own_column(completions, target, **kwargs):
    return correctness_reward(completions, target)


def last_number(completions, answer, **kwargs):
    found = [re.findall(r"-?\d+(?:\.\d+)?", said(c)) for c in completions]
    return [1.0 if numbers and numbers[-1] == gold else 0.0 for numbers, gold in zip(found, answer)]


class FromKeywords:
    def __call__(self, completions, **columns):
        golds = columns.get("answer") or [None] * len(completions)
        return [5.0 * is_right(extract_answer(said(c)), gold) for c, gold in zip(completions, golds)]


SIGNED = dict(answers=["42", "-5", "1250"])
ACCEPTED = {
    "Answer: N on the last line": (matches(r"Answer:\s*(-?\d+)"), SIGNED),
    "Answer: N, without answers": (matches(r"Answer:\s*(-?\d+)"), {}),
    "**Answer:** N": (matches(r"\*\*Answer:\*\*\s*(-?\d+)"), SIGNED),
    "another word": (matches(r"Endergebnis\s*=\s*(-?\d+)"), SIGNED),
    "The answer is N.": (matches(r".*[Tt]he answer is (-?\d+)\."), SIGNED),
    "the number on the last line": (matches(r"(-?\d+)"), SIGNED),
    "the last number": (last_number, SIGNED),
    "marks of its own": (between_marks, SIGNED),
    "JSON and nothing else": (json_and_nothing_else, SIGNED),
    "the keys of a JSON object": (keys_of_json, {}),
    "a column of its own": (own_column, dict(columns={"target": ["42", "7"]})),
    "right is 0, all else -1": (by_answer(lambda a, g: is_right(a, g) - 1.0), GIVEN),
    "silence costs more than a wrong answer": (
        by_answer(lambda a, g: -1.0 if a is None else 2.0 if a == g else -0.5),
        GIVEN,
    ),
    "too long costs": (by_text(lambda text: -max(0.0, min(1.0, (len(text) - 4000) / 2000))), {}),
    "an object that reads its keywords": (FromKeywords(), {}),
}


# ---- The zoo -----------------------------------------------------------------------------------------------


#: Which faults are only a warning: one kind of completion, or a right answer in another writing.
ONLY_WARNED = {"b20_messages_only", "b21_str_of_completion", "b23_unsigned_hash_number"}


def test_of_thirty_broken_rewards_at_least_28_are_flagged():
    flagged = {}
    for reward, given, _ in reward_zoo.BROKEN:
        report = probe(reward, **given)
        flagged[reward.__name__] = bool(report.findings) if reward.__name__ in ONLY_WARNED else not report.ok
    assert len(flagged) == 30 and sum(flagged.values()) >= 28, [name for name, found in flagged.items() if not found]


def of_the_zoo(*groups: list) -> list:
    return [pytest.param(*case, id=case[0].__name__) for group in groups for case in group]


NOT_REFUSED = [pytest.param(*case, name, id=name) for name, case in ACCEPTED.items()]
NOT_REFUSED += of_the_zoo(reward_zoo.SOUND, reward_zoo.IDIOMATIC)
FOUND = [pytest.param(*case, id=name) for name, case in MISSED.items()] + of_the_zoo(reward_zoo.ACCEPTED_BEFORE)


@pytest.mark.parametrize(("reward", "given", "note"), NOT_REFUSED)
def test_a_sound_or_idiomatic_reward_is_not_refused(reward, given, note):
    report = probe(reward, **given)
    assert report.ok, f"{note}: {report}"


@pytest.mark.parametrize(("reward", "given", "code"), FOUND)
def test_a_fault_that_was_missed_or_accepted_is_found(reward, given, code):
    report = probe(reward, **given)
    assert code in report.codes, str(report)
    assert report.ok == (SEVERITY[code] == "warning")


def test_a_reward_that_prints_does_not_fill_the_report(capsys):
    def debug(completions, answer, **kwargs):
        print(completions)
        return correctness_reward(completions, answer)

    assert probe(debug, **GIVEN).ok and capsys.readouterr().out == ""


PROSE_BEFORE_HASHES = re.compile(r"(?:[^#]+)+####\s*(-?\d+)")


def test_a_reward_that_hangs_on_ordinary_prose_is_named_in_seconds():
    def steps_then_hashes(completions, answer, **kwargs):
        found = [PROSE_BEFORE_HASHES.match(said(c)) for c in completions]
        return [1.0 if f and f[1] == a else 0.0 for f, a in zip(found, answer)]

    started = time.process_time()
    assert "unbounded_time" in probe(steps_then_hashes, **GIVEN).codes
    assert time.process_time() - started < 20


def test_an_async_reward_that_hangs_does_not_hang_the_lab():
    async def hangs(completions, answer, **kwargs):
        return [1.0 if re.fullmatch(r"(?:a+|b)*c", said(c)) else 0.0 for c in completions]

    assert "unbounded_time" in probe(hangs, **GIVEN).codes
