"""The check of the assignment finds rewards that do not pay as required, and the unchanged template fails it."""

import re
import shutil
import subprocess
import sys
from itertools import islice

import check_assignment
import pytest
from check_assignment import faults, sentence
from course import ROOT
from template_projects import imported

ROW = {"prompt": [{"role": "user", "content": "What is 15 + 27?"}], "answer": "42"}
OLD = "<reasoning>15 + 27</reasoning><answer>42</answer>"


def pays(**scores: float):
    """A reward that knows the texts of one question."""
    texts = {"right": [sentence(15, 27)], "wrong": ["15 + 27 is 32.", "15 + 27 is 43."], "alone": ["42"], "old": [OLD]}
    table = {text: score for name, score in scores.items() for text in texts[name]}

    def reward(completions, prompts, answer, **columns):
        assert answer == ["42"] and prompts == [ROW["prompt"]] and not columns
        return [table.get(completion[0]["content"], 0.0) for completion in completions]

    return reward


def test_rewards_that_pay_as_required_have_no_faults():
    assert faults({pays(right=1.0): 2.0, pays(right=1.0, wrong=1.0): 0.5}, [ROW]) == []


@pytest.mark.parametrize(
    ("scores", "fault"),
    [
        (dict(right=1.0), "0 for a wrong sum and 1 for the correct one"),
        (dict(right=1.0, wrong=0.75), "0.75 for a wrong sum and 1 for the correct one"),
        (dict(right=1.0, wrong=0.5, alone=0.1), "pays for the sum alone"),
        (dict(right=1.0, wrong=0.5, old=1.0), "pays for the old format"),
    ],
)
def test_a_fault_is_named(scores, fault):
    assert faults({pays(**scores): 1.0}, [ROW]) == [fault]


def reads(pattern: str, right=lambda total, claimed: claimed == total):
    """A reward that pays 1 for the correct sum in a text of this pattern, and 0.4 for another."""

    def reward(completions, answer, **columns):
        found = [re.fullmatch(pattern, completion[0]["content"]) for completion in completions]
        return [
            (1.0 if right(int(total), int(match[1])) else 0.4) if match else 0.0
            for match, total in zip(found, answer, strict=True)
        ]

    return reward


FORM = r"15 \+ 27 is (\d+)\."


def test_a_reward_that_reads_the_whole_sentence_has_no_faults():
    assert faults({reads(FORM): 1.0}, [ROW]) == []


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        (r"(?:15 \+ 27|27 \+ 15) is (\d+)\.", "pays for the numbers in the other order"),
        (f"(?:.*: )?{FORM}", "pays for text before the sentence"),
        (r"15 \+ 27 is (\d+)\.?", "pays for a sentence without its period"),
        (r"15 \+ 27 is (\d+)[.!]", "pays for an exclamation mark"),
        (r"15 \+ 27 (?:is|equals) (\d+)\.", "pays for another verb"),
        (f"(?i){FORM}", "pays for capital letters"),
    ],
)
def test_a_reward_that_reads_other_sentences_too_is_found(pattern, fault):
    assert faults({reads(pattern): 1.0}, [ROW]) == [fault]


def test_a_wrong_sum_must_earn_something_whichever_digit_is_wrong():
    last_digit = reads(FORM, lambda total, claimed: claimed % 10 == total % 10)
    assert faults({last_digit: 0.5, reads(FORM): 0.5}, [ROW]) == ["0.7 for a wrong sum and 1 for the correct one"]
    assert faults({last_digit: 1.0}, [ROW]) == ["1 for a wrong sum and 1 for the correct one"]


def test_the_rewards_of_the_template_are_not_a_solution():
    with imported(ROOT / "templates" / "basic_grpo", "rewards") as [rewards]:
        assert "pays for the old format" in faults(rewards.REWARDS, [ROW])


def test_every_criterion_must_be_met(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(check_assignment, "check", lambda: [(True, "tests"), (False, "rewards")])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rewards.py").touch()
    with pytest.raises(SystemExit) as stop:
        check_assignment.main(tmp_path)
    assert stop.value.code and capsys.readouterr().out.splitlines() == ["ok      tests", "not yet rewards"]


def test_what_is_missing_comes_first(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    [(met, model), (other, base)] = islice(check_assignment.check(), 2)
    assert not met and not other
    assert "no model in outputs/basic/model" in model and "no folder tiny-model" in base
    check_assignment.BASE.mkdir()
    assert len(check_assignment.missing()) == 1


def checked(folder) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "scripts" / "check_assignment.py"), str(folder)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("\ndef reward(:\n", "rewards.py: line {last}, SyntaxError: "),
        ("\nREWARDS = {lambda completions, **kwargs: [1 / 0]: 1.0}\n", "rewards.py: line {last}, ZeroDivisionError: "),
        ("\nREWARDS = {lambda completions, **kwargs: None: 1.0}\n", "rewards.py: its rewards, TypeError: "),
    ],
    ids=["no Python", "a division by 0", "no list"],
)
def test_an_error_in_the_code_that_was_handed_in_is_a_sentence(tmp_path, code, said):
    project = tmp_path / "handed-in"
    shutil.copytree(ROOT / "templates" / "basic_grpo", project)
    for folder in (check_assignment.MODEL, check_assignment.BASE):
        (project / folder).mkdir(parents=True)
    (project / "test_rewards.py").write_text("import rewards\n\n\ndef test_it():\n    assert rewards.REWARDS\n")
    rewards = project / "rewards.py"
    rewards.write_text(rewards.read_text(encoding="utf-8") + code, encoding="utf-8")
    done = checked(project)
    last = rewards.read_text(encoding="utf-8").count("\n")
    tests, line = done.stdout.splitlines()
    assert done.returncode == 1 and not done.stderr and "tests: " in tests
    assert line.startswith(f"not yet rewards: {said.format(last=last)}")


def test_a_folder_without_rewards_is_named(tmp_path):
    with pytest.raises(SystemExit, match="nope"):
        check_assignment.main(tmp_path / "nope")
