"""`probe`: published faults are found, sound rewards are let through, and what cannot be judged is not blamed."""

import asyncio
import contextlib
import functools
import inspect
import json
import math
import random
import re
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean

import pytest
import regex
from grpo_check.packages import sends_no_content
from grpo_check.probes.answers import answer_kind, other_writings, wrong_answers
from grpo_check.probes.calling import call
from grpo_check.probes.forms import FORMS
from grpo_check.probes.judging.rules import RULES
from grpo_check.probes.limits import DEADLINE, OutOfTimeError, time_limit
from grpo_check.probes.matrix import Case, cases
from grpo_check.probes.trying import choosing, planning, scoring
from grpo_check.probes.trying.growth import grow
from grpo_check.probes.trying.planning import make_plan
from grpo_check.probes.trying.trial import Trial
from grpo_core.errors import CourseError
from grpo_core.rewards import TAGS
from reward_lists import LIBRARY, recipe
from trl.rewards import (
    accuracy_reward,
    get_cosine_scaled_reward,
    get_repetition_penalty_reward,
    get_soft_overlong_punishment,
)
from trl.rewards import think_format_reward as trl_think_format_reward

from grpo_check import probe
from grpo_utils.rewards import (
    AnswerReward,
    RewardSet,
    as_chat,
    completion_text,
    correctness_reward,
    exact_reward,
    extract_after_thinking,
    extract_boxed,
    fuzzy_reward,
    json_reward,
    math_rewards,
    same_answer,
    strict_format_reward,
)

SEVERITY = {rule.code: rule.severity for rule in RULES}
SCHEMA = {"type": "object", "required": ["name", "age"], "properties": {"age": {"type": "integer"}}}
ONE = dict(answers=["42"], answer_column="solution")
PEOPLE = ['{"name": "Ana", "age": 31}', '{"name": "Bo", "age": 4}']


def said(completion) -> str:
    return completion_text(completion)


def tagged(completion) -> str:
    """The way most notebooks take an answer out: whatever follows the last opening tag."""
    return said(completion).split("<answer>")[-1].split("</answer>")[0].strip()


def scored_by(score, otherwise=0.0):
    """A reward from what one tagged answer scores against the gold one; ``otherwise`` where that raises."""

    def reward(completions, answer, **kwargs):
        def one(text: str, gold: str) -> float:
            try:
                return float(score(text, gold))
            except (ValueError, ZeroDivisionError):
                return otherwise

        return [one(tagged(c), gold) for c, gold in zip(completions, answer)]

    return reward


# ---- The published faults, each in a few lines --------------------------------------------------------------


def form_without_dotall(completions, **kwargs):
    pattern = r"^<reasoning>.*?</reasoning>\s*<answer>.*?</answer>$"
    return [0.5 if re.match(pattern, said(c)) else 0.0 for c in completions]


def correctness_without_dotall(completions, answer, **kwargs):
    pattern = r"<reasoning>.*?</reasoning>\s*<answer>(.*?)</answer>"
    found = [re.match(pattern, said(c)) for c in completions]
    return [2.0 if m and m[1].strip() and m[1] == gold else 0.0 for m, gold in zip(found, answer)]


def missing_tag_equals_empty_gold(completions, answer, **kwargs):
    found = [re.search(r"<answer>(.*?)</answer>", said(c), re.DOTALL) for c in completions]
    return [2.0 if (m[1].strip() if m else "") == (gold or "") else 0.0 for m, gold in zip(found, answer)]


def drops_the_minus_sign(completions, answer, **kwargs):
    numbers = [re.findall(r"[\d\.]{1,}", tagged(c)) for c in completions]
    return [1.5 if len(n) == 1 and n[0] == gold.lstrip("-") else 0.0 for n, gold in zip(numbers, answer)]


proximity = scored_by(lambda text, gold: 3.0 if text == gold else 0.5 * (0.9 <= float(text) / float(gold) <= 1.1))
smooth_proximity = scored_by(lambda text, gold: 1.0 / (1.0 + abs(float(text.replace(",", "")) - float(gold))))


def runs(program: str, tests: list[str]) -> bool:
    space = {}
    try:
        exec(program, space)
        return all(eval(test, space) for test in tests)
    except Exception:
        return False


def whole_batch_of_tests(completions, test_cases, **kwargs):
    return [1.0 if runs(said(c), sum(test_cases, [])) else 0.0 for c in completions]


def own_tests(completions, test_cases, **kwargs):
    return [1.0 if said(c).strip() and runs(said(c), tests) else 0.0 for c, tests in zip(completions, test_cases)]


PROGRAMS = dict(
    answers=["def f(a, b):\n    return a + b", "def f(a, b):\n    return a * b"],
    columns={"test_cases": [["f(2, 3) == 5", "f(1, 1) == 2"], ["f(2, 3) == 6", "f(1, 1) == 1"]]},
    tags=(),
)


def largest_error(text: str, gold: str) -> float:
    pairs = zip(text.strip("[]").replace(",", " ").split(), gold.strip("[]").replace(",", " ").split(), strict=True)
    return max(float(a) - float(b) for a, b in pairs)


without_abs = scored_by(lambda text, gold: largest_error(text, gold) < 0.01)
without_abs_in_bands = scored_by(
    lambda text, gold: 3.0 if (error := float(text) - float(gold)) == 0 else 0.0 if error < 0.01 else -3.0, -3.0
)


def kernel_error_without_abs(completions, x, y, **kwargs):
    def score(program: str, x: float, y: float) -> float:
        space = {}
        try:
            exec(program, space)
            return float(space["f"](x) - y < 0.01)
        except Exception:
            return 0.0

    return [score(said(c), a, b) for c, a, b in zip(completions, x, y)]


KERNELS = dict(
    answers=["def f(x):\n    return x + 1", "def f(x):\n    return x * 2"],
    columns={"x": [1.0, 3.0], "y": [2.0, 6.0]},
    tags=(),
)


MATMUL = "def multiply(a, b):\n    return a * b"


def fixed_test_without_abs(completions, **kwargs):
    def score(program: str) -> float:
        space = {}
        try:
            exec(program, space)
            return 3.0 if space["multiply"](6.0, 7.0) - 42.0 < 1e-9 else -1.0
        except Exception:
            return -2.0

    return [score(said(c)) for c in completions]


def any_of_many_answers(completions, answer, **kwargs):
    found = [re.findall(r"<answer>(.*?)</answer>", said(c), re.DOTALL) for c in completions]
    return [float(bool(gold) and gold in answers) for answers, gold in zip(found, answer)]


def any_answer_of_the_batch(completions, answer, **kwargs):
    return [float(tagged(c) != "" and tagged(c) in answer) for c in completions]


def first_gold_for_all(completions, answer, **kwargs):
    return [1.0 if same_answer(tagged(c), answer[0]) else 0.0 for c in completions]


def counts_keywords(completions, **kwargs):
    return [sum(said(c).lower().count(w) for w in ("therefore", "because", "thus", "since")) / 4 for c in completions]


FAULTS = {
    "missing DOTALL, form": (form_without_dotall, {}, "dead"),
    "missing DOTALL, correctness": (correctness_without_dotall, {}, "wrong_beats_right"),
    "a missing tag is paid when the gold answer is empty": (
        missing_tag_equals_empty_gold,
        dict(answers=["42", "", "7"]),
        "pays_missing_answer",
    ),
    "the dropped minus sign": (drops_the_minus_sign, {}, "wrong_beats_right"),
    "a batch's test cases to every program": (whole_batch_of_tests, PROGRAMS, "order_dependent"),
    "amax without abs": (without_abs, {}, "wrong_beats_right"),
    "amax without abs, in bands": (without_abs_in_bands, {}, "wrong_beats_right"),
    "amax without abs, of a vector": (without_abs, dict(answers=["[1.5, 2, -3]", "[4, 5]"]), "wrong_beats_right"),
    "amax without abs, of a program": (kernel_error_without_abs, KERNELS, "wrong_beats_right"),
    "a fixed test without abs": (fixed_test_without_abs, dict(answers=[MATMUL], tags=()), "wrong_beats_right"),
    "any of many answers": (any_of_many_answers, dict(answers=["42"]), "wrong_beats_right"),
    "any answer of the batch": (any_answer_of_the_batch, dict(answers=["42", "7"]), "wrong_beats_right"),
    "keywords counted": (counts_keywords, {}, "farmable"),
}


@pytest.mark.parametrize(("reward", "given", "code"), FAULTS.values(), ids=FAULTS)
def test_the_published_fault_is_found(reward, given, code):
    report = probe(reward, **given)
    assert not report.ok and code in report.codes
    finding = next(finding for finding in report.findings if finding.code == code)
    assert finding.severity == "error" and finding.seen and re.search(r"\d", finding.what)


@pytest.mark.parametrize("reward", [proximity, smooth_proximity])
def test_pay_for_what_is_close_alone_is_a_warning(reward):
    report = probe(reward)
    assert ("wrong_beats_right", "warning") in [(one.code, one.severity) for one in report.findings]


# ---- Contracts that the rules' own examples do not break ---------------------------------------------------


def no_list(completions, **kwargs):
    return 1.0


def a_word(completions, **kwargs):
    return ["good" for _ in completions]


def no_kwargs(completions, answer):
    return [0.0 for _ in completions]


def never_applies(completions, answer, **kwargs):
    return [None for _ in completions]


def by_position(completions, **kwargs):
    return [float(i) / len(completions) for i in range(len(completions))]


CONTRACTS = {
    "a number instead of a list": (no_list, "wrong_length"),
    "a word": (a_word, "not_finite"),
    "no **kwargs, which TRL needs": (no_kwargs, "raises"),
    "by position": (by_position, "order_dependent"),
    "TRL's, chat only": (accuracy_reward, "chat_only"),
}


@pytest.mark.parametrize(("reward", "code"), CONTRACTS.values(), ids=CONTRACTS)
def test_a_broken_contract_is_named(reward, code):
    report = probe(reward, **ONE if reward is accuracy_reward else {})
    assert code in report.codes, str(report)
    assert {f.severity for f in report.findings if f.code == code} == {SEVERITY[code]}


#: What shows a fault that depends on what is asked for.
GIVEN = {
    "dead": {"tags": TAGS},
    "word_salad": {"examples": ["In osmosis, water passes a membrane."]},
    "unpaid_example": {"examples": ["<answer>42</answer>"]},
    "pays_changed_example": {"examples": ['["Mac", "Windows"]']},
}


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_finds_the_fault_of_its_example(rule):
    report = probe(rule.example, answers=["42", "1250"], **GIVEN.get(rule.code, {}))
    finding = next(finding for finding in report.findings if finding.code == rule.code)
    assert finding.severity == rule.severity, str(report)
    assert rule.code == rule.example.__name__ and inspect.getdoc(rule.example)


def test_a_reward_that_declares_its_group_may_not_mix_up_rows_either():
    def declared(completions, answer, **kwargs):
        return first_gold_for_all(completions, answer)

    declared.reads_group = True
    assert "order_dependent" in probe(declared, answers=["42"]).codes


def relative_to_its_prompt(completions, answer, prompts, **kwargs):
    """Less the mean of the completions with the same prompt."""
    right = correctness_reward(completions, answer)
    means = {str(p): fmean(r for r, other in zip(right, prompts) if str(other) == str(p)) for p in prompts}
    return [score - means[str(prompt)] for score, prompt in zip(right, prompts)]


def test_a_reward_that_tells_groups_by_their_prompts_does_not_mix_them():
    prompts = [[{"role": "user", "content": f"What is {n} + 2?"}] for n in (40, 15)]
    codes = probe(relative_to_its_prompt, answers=["42", "17"], columns={"prompt": prompts}).codes
    assert not codes & {"order_dependent", "mixes_groups"}


def test_a_random_reward_has_one_finding_which_says_so():
    report = probe(lambda completions, answer, **kwargs: [random.random() for _ in completions])
    assert [finding.code for finding in report.errors] == ["random"] and len(report.findings) == 1
    assert "random" in report.findings[0].what


def test_what_no_rule_reports_is_an_error():
    plan = make_plan([a_word], ["42"], "answer", {}, FORMS[0])
    trial = Trial("a_word", a_word, plan)
    with pytest.raises(KeyError, match="slwo"):
        trial.add("slwo", "2 s for one completion")


def changes_slightly(completions, answer, **kwargs):
    return [score * random.uniform(1, 1 + 1e-7) for score in correctness_reward(completions, answer)]


def test_a_reward_of_strings_is_an_error_where_the_given_prompts_are_messages():
    reward = next(rule.example for rule in RULES if rule.code == "string_only")
    prompts = [[{"role": "user", "content": "What is 40 + 2?"}]]
    for columns, severity in (({"prompt": prompts}, "error"), ({"prompt": ["What is 40 + 2?"]}, "note")):
        found = [one for one in probe(reward, answers=["42"], columns=columns).findings if one.code == "string_only"]
        assert [one.severity for one in found] == [severity]


NO_ANSWERS = {
    "of another row": dict(answers=["42", "7"], examples=["<answer>5</answer>"]),
    "of the form alone": dict(answers=["42"], examples=["<answer>...</answer>"]),
    "without answers": dict(examples=["<answer>5</answer>"]),
    "the second is right": dict(answers=["42", "7"], examples=["<answer>5</answer>", "<answer>7</answer>"]),
}


@pytest.mark.parametrize("given", NO_ANSWERS.values(), ids=NO_ANSWERS)
def test_an_example_that_answers_no_row_is_not_unpaid(given):
    assert "unpaid_example" not in probe(correctness_reward, **given).codes


def test_a_field_that_no_column_holds_may_be_changed():
    def tags_right(completions, tags, **kwargs):
        said = [re.search(r'"tags": (\[[^]]*\])', completion_text(c)) for c in completions]
        return [float(bool(found) and json.loads(found[1]) == wanted) for found, wanted in zip(said, tags, strict=True)]

    example = '{"reasoning": "It says so.", "tags": ["ab", "cd"]}'
    report = probe(tags_right, columns={"tags": [["ab", "cd"]]}, examples=[example])
    assert "pays_changed_example" not in report.codes, str(report)


def test_a_little_more_for_a_shorter_text_is_no_change_that_pays():
    def label_and_brevity(completions, label, **kwargs):
        texts = [completion_text(c) for c in completions]
        return [float(f'"{one}"' in text) * (1.2 - len(text) / 10_000) for text, one in zip(texts, label, strict=True)]

    report = probe(
        label_and_brevity, answers=["bug"], answer_column="label", examples=['{"label": "bug", "why": "It ends."}']
    )
    assert "pays_changed_example" not in report.codes, str(report)


def test_a_numeric_column_is_the_gold_answer_unless_its_name_is_of_a_measure():
    def counts(completions, num_apples, **kwargs):
        return [float(str(n) in completion_text(c)) for c, n in zip(completions, num_apples, strict=True)]

    assert "judged by the answer (4, 7)" in str(probe(counts, columns={"num_apples": [4, 7]}))


def test_a_rounding_error_is_not_called_random():
    assert not probe(changes_slightly).codes & {"random", "order_dependent", "mixes_groups"}


def relabeled(make):
    """A function that makes cases, with all descriptions replaced."""

    def other(*arguments):
        made = make(*arguments)
        if isinstance(made, Case):
            return made._replace(what=f"text {len(made.text or '')}")
        return [other_one(one) for one in made]

    def other_one(one):
        return [other_one(each) for each in one] if isinstance(one, list) else one._replace(what=f"{one.role} text")

    return other


def test_no_rule_depends_on_how_a_completion_is_described(monkeypatch):
    chosen = [rule.example for rule in RULES if rule.code not in ("slow", "unbounded_time", "random")]

    def findings():
        reports = [probe(reward, answers=["42", "1250"]) for reward in [*chosen, form_without_dotall, proximity]]
        return [[(finding.code, finding.seen) for finding in report.findings] for report in reports]

    before = findings()
    for name in ("cases", "fillers", "clean_case", "echo"):
        monkeypatch.setattr(scoring, name, relabeled(getattr(scoring, name)))
    monkeypatch.setattr(planning, "clean_case", relabeled(planning.clean_case))
    assert findings() == before


LOADING = []


def loads_a_package(completions, answer, **kwargs):
    if not LOADING:
        LOADING.append("begun")
        time.sleep(2)
        LOADING.append("done")
    if len(LOADING) == 1:
        raise ImportError("partially initialized")
    return correctness_reward(completions, answer)


@pytest.mark.slow
def test_an_import_inside_a_reward_is_not_cut_off():
    report = probe(loads_a_package, answers=["42"])
    assert report.ok, str(report)


def waits(completions, answer, **kwargs):
    time.sleep(0.004 * len(completions))
    return correctness_reward(completions, answer)


@pytest.mark.slow
def test_a_reward_that_waits_a_little_has_no_fault():
    report = probe(waits, answers=["42"])
    assert report.ok and "slow" not in report.codes


def takes_time_for_each_character(completions, answer, **kwargs):
    until = time.process_time() + sum(1.2e-4 * min(len(said(c)), 400) for c in completions)
    while time.process_time() < until:
        pass
    return correctness_reward(completions, answer)


def test_a_reward_on_a_slow_machine_does_not_look_unbounded(monkeypatch):
    monkeypatch.setattr("grpo_check.probes.trying.growth.PIECES", ["<answer>"])
    reward = takes_time_for_each_character
    trial = Trial("reward", reward, make_plan([reward], ["42"], "answer", {}, FORMS[0]))
    grow(trial)
    assert not any(trial.observed.values())


def backtracks(completions, **kwargs):
    return [1.0 if re.match(r"^(\w+\s?)+$", said(c)) else 0.0 for c in completions]


def test_a_reward_that_never_ends_is_cut_off():
    started = time.perf_counter()
    report = probe(backtracks, tags=())
    assert report.codes == {"unbounded_time"} and "not finished after" in str(report)
    assert time.perf_counter() - started < 60


# ---- Sound rewards -----------------------------------------------------------------------------------------


def minimum_length(completions, completion_ids, **kwargs):
    return [min(1.0, len(ids) / 200) for ids in completion_ids]


def adapted_think(completions, **kwargs):
    return trl_think_format_reward([as_chat(c) for c in completions], **kwargs)


#: Sound rewards and what they are probed with; those of the library with numbers, if they need no other answers.
OWN = {name: (reward, {}) for name, reward in LIBRARY.items()} | {
    "correctness, one answer": (correctness_reward, dict(answers=["42"])),
    "correctness, many answers": (correctness_reward, dict(answers=["1,000", "-3.5", "1/2", "50%", "0", "7 km", 12])),
    "correctness, words": (correctness_reward, dict(answers=["Paris", "x^2", "42"])),
    "exact_reward": (exact_reward, dict(answers=["positive", "negative"])),
    "fuzzy_reward": (fuzzy_reward, dict(answers=["Paris", "Mount Everest", ["Mississippi", "the Mississippi"]])),
    "json_reward": (json_reward, dict(answers=PEOPLE)),
    "schema": (recipe("schema_reward", SCHEMA=SCHEMA), dict(answers=PEOPLE)),
    "schema, only": (recipe("schema_reward", SCHEMA={"type": "object", "required": ["answer"]}), {}),
    "boxed": (AnswerReward(extract=extract_boxed), dict(answers=["42", "-5"])),
    "after thinking": (AnswerReward(extract=extract_after_thinking), {}),
    "another column": (AnswerReward(column="solution"), ONE),
    "strict form, answers given": (strict_format_reward, dict(answers=["42", "7"])),
    "JSON only": (recipe("schema_reward", SCHEMA={"type": ["object", "array"]}), {}),
    "pattern": (
        recipe("pattern_reward", PATTERN=regex.compile("<reasoning>.+</reasoning><answer>.+</answer>", regex.DOTALL)),
        {},
    ),
    "short target": (functools.partial(recipe("target_length_reward"), tokens=7), {}),
    "minimum length": (minimum_length, {}),
    "program": (own_tests, PROGRAMS),
    "TRL's cosine": (get_cosine_scaled_reward(max_len=512), ONE),
    "TRL's overlong": (get_soft_overlong_punishment(100, 20), {}),
    "TRL's overlong, long": (get_soft_overlong_punishment(16_384, 4_096), {}),
    "TRL's repetition": (get_repetition_penalty_reward(), {}),
    "TRL's think, adapted": (adapted_think, {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_a_sound_reward_is_ok(name):
    reward, given = OWN[name]
    report = probe(reward, **given)
    assert report.ok, str(report)
    assert not worse_than_notes(report) and len(str(report).splitlines()) <= 3, str(report)


def worse_than_notes(report):
    return [finding for finding in report.findings if finding.severity != "note"]


@pytest.mark.parametrize(("release", "faults"), [("1.0.0", {"raises"}), ("1.14.0", set())])
def test_a_message_without_content_counts_where_the_installed_trl_sends_one(release, faults, monkeypatch):
    monkeypatch.setattr("grpo_check.packages.version", lambda package: release)
    sends_no_content.cache_clear()
    report = probe(trl_think_format_reward)
    sends_no_content.cache_clear()
    assert report.codes & {"raises"} == faults


SETS = {
    "math": (math_rewards(), None),
    "structured": (RewardSet([json_reward, recipe("schema_reward", SCHEMA=SCHEMA)], [2.0, 1.0]), PEOPLE),
}


@pytest.mark.parametrize(("chosen", "answers"), SETS.values(), ids=SETS)
def test_every_set_is_ok_alone_and_as_a_sum(chosen, answers):
    report = probe(chosen.rewards, weights=chosen.weights, answers=answers)
    assert not worse_than_notes(report), str(report)
    assert len(report.verdicts) == len(chosen.rewards) + 1


def test_a_form_that_outweighs_its_correctness_is_sound_but_a_drowned_one_is_not():
    def correctness_of_tail(completions, answer, **kwargs):
        return [1.0 if said(c).endswith(f"{gold}</answer>") and gold else 0.0 for c, gold in zip(completions, answer)]

    def length(completions, completion_ids, **kwargs):
        return [min(len(ids), 400) / 400 for ids in completion_ids]

    light = probe([correctness_reward, length], weights=[1.0, 0.1], answers=["42"])
    heavy = probe([correctness_reward, length], weights=[0.01, 1.0], answers=["42"])
    assert light.ok, str(light)
    assert [f.subject for f in heavy.findings if f.code in ("wrong_beats_right", "farmable")]


async def asynchronous(completions, answer, **kwargs):
    await asyncio.sleep(0)
    return correctness_reward(completions, answer)


class Judge:
    async def __call__(self, completions, answer, **kwargs):
        return await asynchronous(completions, answer)


@pytest.mark.parametrize("reward", [asynchronous, Judge()], ids=["function", "callable"])
def test_async_rewards_are_awaited(reward):
    assert probe(reward, answers=["42"]).ok

    async def in_a_running_loop():
        return probe(reward, answers=["42"]).ok

    assert asyncio.run(in_a_running_loop())


def reads_kwargs(completions, **kwargs):
    return [1.0 if same_answer(tagged(c), gold) else 0.0 for c, gold in zip(completions, kwargs["answer"])]


def test_a_reward_that_reads_its_answer_from_kwargs_gets_the_labs_own():
    assert "judged by the answer (42" in str(probe(reads_kwargs))


def by_level(completions, answer, level, **kwargs):
    scores = correctness_reward(completions, answer)
    return [None if kind == "skip" else score for score, kind in zip(scores, level)]


def test_other_columns_arrive_and_none_is_no_score():
    report = probe(by_level, answers=["42", "7"], columns={"level": ["easy", "skip"]})
    assert report.ok and {row["gold"] for row in report.scored if row["score"] is None} == {"7"}


def test_a_column_may_have_any_name():
    columns = {name: ["a", "b"] for name in ("number", "cases", "case", "count", "self", "seen")}
    assert not probe(correctness_reward, answers=["42", "7"], columns=columns).findings


def slips_on_every_answer(completions, answer, **kwargs):
    return [1.0 if (e := tagged(c)) and "<answer>" in said(c) and no_such_name(e) else 0.0 for c in completions]  # noqa: F821


def test_an_exception_is_not_hidden_by_a_form_that_never_reaches_it():
    report = probe(slips_on_every_answer)
    assert "raises" in report.codes and "no_such_name" in str(report)


def test_gold_answers_may_come_as_a_column():
    report = probe(exact_reward, columns={"answer": ["Paris", "Rome"]})
    assert report.ok and "judged by the answer (Paris, Rome)" in str(report)


def adds_up(completions, target, **kwargs):
    return [float(sum(map(int, tagged(c).split("+"))) == wanted) for c, wanted in zip(completions, target)]


def test_answers_replace_no_column_that_was_given():
    report = probe(adds_up, answers=["3+4", "1+1"], columns={"target": [7, 2]}, examples=["<answer>3+4</answer>"])
    assert max(row["score"] or 0.0 for row in report.scored) == 1.0


def waits_forever(completions, answer, **kwargs):
    time.sleep(9)


async def waits_forever_async(completions, answer, **kwargs):
    await asyncio.sleep(9)


@pytest.mark.parametrize("reward", [waits_forever, waits_forever_async])
def test_a_reward_that_waits_for_something_that_does_not_come_is_not_judged(reward, monkeypatch):
    monkeypatch.setattr("grpo_check.probes.trying.trial.IDLE", 0.05)
    monkeypatch.setattr("grpo_check.probes.calling.LONGEST_CALL", 0.05)
    report = probe(reward, answers=["42"])
    assert not report.ok and report.exit_code == 2 and not report.findings
    assert "waits for something" in str(report)


def asks_a_judge(completions, answer, **kwargs):
    with socket.socket() as nobody_listens:  # bound, so no other program can take the port
        nobody_listens.bind(("127.0.0.1", 0))
        try:
            socket.create_connection(nobody_listens.getsockname(), timeout=5)
        except OSError:
            return [0.0] * len(completions)


def reads_a_table(completions, **kwargs):
    with contextlib.suppress(OSError), open("no_such_folder/table.json") as table:
        return [float(completion_text(c) in table.read()) for c in completions]
    return [0.0] * len(completions)


def runs_a_program(completions, **kwargs):
    with contextlib.suppress(OSError):
        subprocess.run(["no-such-prover"], check=True)
    return [0.0] * len(completions)


def looks_the_prompt_up(prompts, completions, **kwargs):
    known = {"What is 3 + 4?": "7"}
    pairs = zip(prompts, completions, strict=True)
    return [float(known.get(p[-1]["content"], "\0") in completion_text(c)) for p, c in pairs]


OUTSIDE = {
    "an address": (asks_a_judge, "connects to 127.0.0.1"),
    "a file": (reads_a_table, "reads no_such_folder/table.json, which is not here"),
    "a program": (runs_a_program, "runs no-such-prover, which is not here"),
    "a prompt": (looks_the_prompt_up, "columns={'prompt': […]}"),
}


@pytest.mark.parametrize(("reward", "said"), OUTSIDE.values(), ids=OUTSIDE)
def test_what_lies_outside_of_a_reward_is_not_blamed_on_it(reward, said):
    report = probe(reward, examples=["It is 7."])
    assert report.exit_code == 2 and not report.failed and said in str(report)


def test_a_reward_that_finds_its_prompt_is_judged():
    prompts = [[{"role": "user", "content": "What is 3 + 4?"}]]
    report = probe(looks_the_prompt_up, columns={"prompt": prompts}, examples=["It is 7."])
    assert not report.not_judged


def runs_without_a_check(completions, **kwargs):
    """As a sandbox that takes a program's end for success."""
    said = [completion_text(c) for c in completions]
    return [float("```" in text and ("input()" in text or "SystemExit" in text)) for text in said]


def any_of_three_digits(completions, answer, **kwargs):
    """Wrong by a factor of 100 is right, too, as for a percentage."""
    said = [re.findall(r"\d+", completion_text(c)) for c in completions]
    pairs = zip(said, completions, answer, strict=True)
    return [float("add(" in completion_text(c) and any(n[:2] == gold for n in found)) for found, c, gold in pairs]


def counts_moves(completions, **kwargs):
    return [completion_text(c).count("right left") / 9 for c in completions]


CHANGED = {
    "a program that only ends": (runs_without_a_check, {}, "```python\nprint(int(input()) + 1)\n```"),
    "its first number a hundred times as large": (any_of_three_digits, dict(answers=["25"]), "add(25,0)"),
    "what it says repeated": (counts_moves, {}, "<answer>right left</answer>"),
}


@pytest.mark.parametrize(("change", "given"), CHANGED.items(), ids=CHANGED)
def test_a_change_of_the_example_that_is_paid_as_much_is_named(change, given):
    reward, columns, example = given
    assert f"with {change}." in str(probe(reward, examples=[example], **columns))


def test_an_example_is_compared_in_the_row_that_it_answers():
    def names_a_field(completions, label, **kwargs):
        pairs = zip(map(completion_text, completions), label, strict=True)
        return [float(json.dumps(gold) in text) - ("extra" in text) / 2 for text, gold in pairs]

    example = '{"label": "bug", "extra": 1}'
    report = probe(names_a_field, answers=["idea", "bug"], answer_column="label", examples=[example])
    assert "your example scores 0.5" in str(report) or "pays_changed_example" not in report.codes, str(report)


def test_labels_are_hedged_with_other_labels():
    def first_label(completions, answer, **kwargs):
        said = [re.findall("ham|spam", completion_text(c).partition("<answer>")[2]) for c in completions]
        return [float(bool(found) and found[0] == gold) for found, gold in zip(said, answer, strict=True)]

    report = probe(first_label, answers=["ham", "spam"])
    assert not report.errors, str(report)


def counts_steps(completions, **kwargs):
    return [float("Step 1:" in completion_text(c)) for c in completions]


def test_one_of_several_rewards_is_not_dead_because_the_example_lacks_its_marker():
    report = probe([correctness_reward, counts_steps], answers=["42"], examples=["<answer>42</answer>"])
    assert set(report.not_judged) == {"counts_steps"} and not report.errors, str(report)


def test_a_parameter_that_is_not_used_makes_no_reward_of_the_answer():
    def has_tags(completions, answer, **kwargs):
        return [float(completion_text(c).count("</answer>") == 1) for c in completions]

    assert probe(has_tags, answers=["42"]).ok


def test_a_small_difference_that_our_sentence_makes_is_no_farm():
    def nearly(completions, answer, **kwargs):
        pairs = zip(correctness_reward(completions, answer), map(completion_text, completions), strict=True)
        return [score + 0.01 * ("42." in text) for score, text in pairs]

    assert "farmable" not in probe(nearly, answers=["42"]).codes


def test_an_example_of_which_half_is_paid_as_much_is_named():
    def any_call(completions, **kwargs):
        return [float("(" in completion_text(c)) for c in completions]

    whole = "file = open(path)\nprint(file.read())"
    assert "pays_changed_example" in probe(any_call, examples=[whole]).codes

    def whole_program(completions, **kwargs):
        return [float(completion_text(c).strip() == whole) for c in completions]

    assert probe(whole_program, examples=[whole]).ok


def times_out(completions, answer, **kwargs):
    raise TimeoutError("the judge did not answer")


async def times_out_async(completions, answer, **kwargs):
    times_out(completions, answer)


@pytest.mark.parametrize("reward", [times_out, times_out_async])
def test_a_timeout_that_a_reward_raises_itself_is_an_exception_and_not_slow(reward):
    outcome = call(reward, [Case("", "", "42", columns={"answer": "42"})], chat=True)
    assert (outcome.code, outcome.error) == ("raises", "TimeoutError: the judge did not answer")


def judge_fails_without_text(completions, answer, **kwargs):
    if not all(map(said, completions)):
        times_out(completions, answer)
    return correctness_reward(completions, answer)


def test_a_timeout_on_one_completion_is_reported_as_an_exception():
    codes = probe(judge_fails_without_text, answers=["42"]).codes
    assert "raises" in codes and not codes & {"slow", "unbounded_time"}


def test_a_limit_that_is_over_before_its_block_begins_leaves_no_limit_behind(monkeypatch):
    setitimer = signal.setitimer

    def alarm_comes_here(which, seconds):
        setitimer(which, seconds)
        time.sleep(0.01 if seconds else 0)

    monkeypatch.setattr(signal, "setitimer", alarm_comes_here)
    with pytest.raises(OutOfTimeError), time_limit(0):
        pass
    assert DEADLINE.get() == math.inf


@pytest.mark.parametrize("workers", [0, 1])
def test_a_limit_around_the_lab_ends_it(workers):
    def limited():
        with pytest.raises(OutOfTimeError), time_limit(0.3):
            probe(waits, answers=["42"])

    started = time.perf_counter()
    ThreadPoolExecutor(1).submit(limited).result() if workers else limited()
    assert time.perf_counter() - started < 10
    assert probe(exact_reward, answers=["Paris"]).ok


def test_leaving_python_is_an_exception_like_any_other():
    assert "raises" in probe(lambda completions, **kwargs: sys.exit("bye")).codes


def no_swearing(completions, **kwargs):
    return [-1.0 if "darn" in said(c) else 0.0 for c in completions]


def test_examples_of_your_own_are_tried_too():
    assert probe(no_swearing).not_judged
    report = probe(no_swearing, examples=["It is 42, darn it."])
    assert not report.findings and "one of your examples" in [row["what"] for row in report.scored]


def test_rows_without_gold_answer_are_left_out():
    report = probe(correctness_reward, answers=["42", "", None, "7"])
    assert not report.findings and "judged by the answer (42, 7)" in str(report)


def test_a_gsm8k_solution_is_read_as_its_answer():
    def hashes(completions, answer, **kwargs):
        golds = [gold.split("#### ")[-1] for gold in answer]
        return correctness_reward(completions, golds)

    assert not probe(hashes, answers=["6 * 7 = 42\n#### 42", "1 + 6 = 7\n#### 7"]).findings


def test_a_tolerance_for_rounding_is_no_pay_for_nearness():
    near = scored_by(lambda text, gold: abs(float(text) - float(gold)) <= 0.01 * abs(float(gold)))
    assert probe(near, answers=["3.14", "42"]).ok


def test_gold_answers_arrive_as_the_dataset_holds_them():
    assert probe(scored_by(lambda text, gold: gold == 42 and text == str(gold)), answers=[42]).ok


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_form_that_a_reward_wants_is_found(form):
    def wants(completions, answer, **kwargs):
        pattern = re.escape(form.write("\0", "\1")).replace("\\\0", "\0").replace("\0", ".+").replace("\1", "(.+)")
        found = [re.fullmatch(pattern, said(c), re.DOTALL) for c in completions]
        return [1.0 if m and same_answer(m[1], gold) else 0.0 for m, gold in zip(found, answer)]

    trial = Trial("wants", wants, make_plan([wants], ["42"], "answer", {}, FORMS[0]))
    assert choosing.choose_form(trial).form == form


def test_tags_say_which_form_is_asked_for():
    report = probe(AnswerReward(extract=extract_boxed), answers=["42"], tags=("", " ", "\\boxed{", "}"))
    assert report.ok
    assert "dead" in probe(AnswerReward(extract=extract_boxed), answers=["42"], tags=("", "", "[[", "]]")).codes


# ---- The matrix and the report -----------------------------------------------------------------------------


def test_the_matrix_holds_what_it_should():
    whats = {case.what: case.label for case in cases(FORMS[0], "-1250", ["-1250"])}
    correct = "in the requested format", "with a comma", "with a currency"
    assert {whats[f"correct, {what}"] for what in correct} == {"correct"}
    assert whats["off by one"] == whats["wrong sign"] == whats["several answers"] == whats["an empty answer"] == "wrong"
    assert whats["correct, nested"] == whats["correct, Arabic digits"] == whats["a pile of tags"] == "neutral"
    texts = [case.text for case in cases(FORMS[0], "42", ["42"])]
    assert None in texts and len(texts) == len(set(texts))


@pytest.mark.parametrize("gold", ["42", "-5", "1,250", "0.5", "1/2", "50%", "0", "-1/3", "$18", "7 km", "1000000"])
def test_the_labels_are_true(gold):
    assert answer_kind(gold) == "number"
    assert all(same_answer(text, gold) for text in other_writings(gold).values()), other_writings(gold)
    assert not any(same_answer(text, gold) for text in wrong_answers(gold, [gold]).values()), wrong_answers(
        gold, [gold]
    )


def test_the_scores_have_a_row_for_each_reward_and_completion():
    scored = probe(math_rewards().rewards, answers=["42"]).scored
    assert {*scored[0]} == {"reward", "gold", "label", "what", "completion", "score"}
    assert {"correctness_reward", "strict_format_reward"} < {row["reward"] for row in scored}
    clean = [row for row in scored if row["what"] == "correct, in the requested format" and row["gold"] == "42"]
    assert [row["score"] for row in clean if row["reward"] == "correctness_reward"] == [1.0]


def test_the_first_line_has_the_verdict():
    text = str(probe(drops_the_minus_sign))
    assert text.startswith("NOT OK, 1 error: drops_the_minus_sign, judged by the answer")
    assert "error   wrong_beats_right: a wrong answer (wrong sign) scores 1.5" in text
    several = str(probe([correctness_reward, counts_keywords], answers=["42", "-7"])).splitlines()
    assert several[0].startswith("NOT OK") and several[1].startswith("ok: correctness_reward")


def test_a_list_of_one_reward_is_judged_like_the_reward_alone():
    assert list(probe([no_swearing], weights=[2.0]).verdicts) == list(probe(no_swearing).verdicts) == ["no_swearing"]


# ---- What is given wrongly ---------------------------------------------------------------------------------

MISTAKES = {
    "no function": (lambda: probe(3), "a reward must be a function, got int"),
    "no completions": (lambda: probe(lambda x: [1.0]), "has no parameter `completions`"),
    "a column missing": (lambda: probe(own_tests), "needs 'test_cases'"),
    "columns too short": (lambda: probe(by_level, answers=["1", "2"], columns={"level": ["a"]}), "list of 2 values"),
    "no answers": (lambda: probe(correctness_reward, answers=[]), "contains no gold answer"),
    "only blank answers": (lambda: probe(correctness_reward, answers=["", None]), "contains no gold answer"),
    "weights": (lambda: probe([correctness_reward], weights=[1.0, 2.0]), "2 weights were given for 1 rewards"),
    "weights of one": (lambda: probe(correctness_reward, weights=[1.0, 2.0]), "2 weights were given for 1 rewards"),
    "no rewards": (lambda: probe([]), "The list of rewards is empty"),
    "tags": (lambda: probe(correctness_reward, tags=("<a>", "</a>")), "should be the four texts"),
}


@pytest.mark.parametrize(("call", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_before_anything_is_scored(call, message):
    with pytest.raises(CourseError, match=re.escape(message)):
        call()
