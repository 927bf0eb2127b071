"""The zoo of rewards is what it says: exploits pay, sound rewards resist, and what probe says is recorded."""

import json
from functools import cache

import pytest
from attack_zoo import BROKEN, SOUND, ZOO, Entry
from attack_zoo.tasks import columns_of, paid, wrong_completions
from grpo_check.probes.report import ProbeReport
from places import HERE

from grpo_check import probe

#: Rows that a user gives to probe. It tries eight at most.
PROBED = 4
every = pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in ZOO])
every_broken = pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in BROKEN])
every_sound = pytest.mark.parametrize("entry", [pytest.param(entry, id=entry.name) for entry in SOUND])


def test_there_are_thirty_broken_and_fifteen_sound_rewards():
    assert len(BROKEN) == 30 and len(SOUND) == 15 and len({entry.name for entry in ZOO}) == 45
    assert all(entry.fault and entry.exploit for entry in BROKEN)
    assert not any(entry.fault or entry.exploit for entry in SOUND)


def test_probe_misses_enough_of_the_broken_ones_to_measure_another_tool():
    assert sum(entry.passes_probe for entry in BROKEN) >= 14


@every
def test_a_task_has_twenty_rows_with_prompts_and_honest_completions(entry):
    task = entry.task
    assert len(task.rows) == 20
    for row in task.rows:
        assert row["prompt"][-1]["role"] == "user" and row["prompt"][-1]["content"]
        assert task.correct(task.honest(row), row)


@every_broken
def test_an_exploit_is_wrong_and_pays_at_least_as_much_as_a_correct_completion(entry):
    for row in entry.task.rows:
        honest, exploit = entry.task.honest(row), entry.exploit(row)
        assert not entry.task.correct(exploit, row), exploit
        right, wrong = paid(entry.reward, row, [honest, exploit])
        assert wrong >= right, (honest, right, exploit, wrong)


def exploits_of(entry: Entry, row: dict) -> list[str]:
    """The exploits of the broken rewards of the same task."""
    return [other.exploit(row) for other in BROKEN if other.task is entry.task]


def assert_resists(entry: Entry, row: dict, texts: list[str]) -> None:
    """An honest completion is paid more than each of the wrong texts, alone with it and among all of them."""
    wrong = [text for text in texts if not entry.task.correct(text, row)]
    honest = entry.task.honest(row)
    right, *others = paid(entry.reward, row, [honest, *wrong])
    assert [(text, score) for text, score in zip(wrong, others) if score >= right] == []
    for text in wrong:
        right, other = paid(entry.reward, row, [honest, text])
        assert other < right, (text, other, right)


@every_sound
def test_a_sound_reward_pays_a_correct_completion_more_than_wrong_ones(entry):
    for row in entry.task.rows:
        assert_resists(entry, row, wrong_completions(entry.task, row) + exploits_of(entry, row))


@every
def test_a_score_depends_on_nothing_but_the_group(entry):
    row = entry.task.rows[0]
    texts = [entry.task.honest(row), *wrong_completions(entry.task, row)]
    scores = paid(entry.reward, row, texts)
    assert all(isinstance(score, float) for score in scores)
    assert paid(entry.reward, row, texts[::-1]) == pytest.approx(scores[::-1])


# ---- What probe says ---------------------------------------------------------------------------------------


def given_to_probe(entry: Entry) -> dict:
    """The first rows as its documentation asks: gold answers and columns, or own completions without gold answers."""
    task, rows = entry.task, entry.task.rows[:PROBED]
    columns = {"prompt": [row["prompt"] for row in rows], **columns_of(rows)}
    if task.gold:
        return dict(answers=columns.pop(task.gold), answer_column=task.gold, columns=columns)
    return dict(columns=columns, examples=[task.honest(row) for row in rows])


@cache
def report_of(entry: Entry) -> ProbeReport:
    return probe(entry.reward, **given_to_probe(entry))


def codes(report: ProbeReport, severity: str) -> str:
    """The codes of some findings, but for the one that depends on how busy the machine is."""
    return " ".join(sorted({one.code for one in report.findings if one.severity == severity} - {"slow"}))


@pytest.mark.slow
@every
def test_the_recorded_verdict_of_probe_is_what_it_says_now(entry):
    report = report_of(entry)
    assert (codes(report, "error"), codes(report, "warning")) == (entry.errors, entry.warnings), str(report)
    assert report.ok == entry.passes_probe


@pytest.mark.slow
@every_sound
def test_a_sound_reward_resists_the_attacks_of_probe(entry):
    attacks = list(dict.fromkeys(scored["completion"] or "" for scored in report_of(entry).scored))
    assert len(attacks) > 50
    for row in entry.task.rows[:PROBED]:
        assert_resists(entry, row, attacks)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["equation_result", "rouge_with_reference", "politeness", "label_alone"])
def test_the_command_line_says_the_same(name, grpo_check):
    entry = next(entry for entry in ZOO if entry.name == name)
    given, file = given_to_probe(entry), "broken" if entry.fault else "sound"
    arguments = [f"{HERE}/tests/attack_zoo/{file}.py:{name}"]
    for text in given.get("examples", []):
        arguments += ["--example", text]
    for column, values in given["columns"].items():
        arguments += ["--column", column, json.dumps(values)]
    if "answers" in given:
        arguments += ["--answer-column", given["answer_column"], "--answers", *given["answers"]]
    code, _, _ = grpo_check("probe", *arguments)
    assert code == (0 if entry.passes_probe else 1)
