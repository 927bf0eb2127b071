"""The check of the assignment finds rewards that do not pay as required, and the unchanged template fails it."""

import check_assignment
import pytest
from check_assignment import faults, sentence
from conftest import ROOT
from template_projects import imported

ROW = {"prompt": [{"role": "user", "content": "What is 15 + 27?"}], "answer": "42"}
OLD = "<reasoning>15 + 27</reasoning><answer>42</answer>"


def pays(**scores: float):
    """A reward that knows the texts of one question."""
    texts = {"right": sentence(15, 27), "wrong": "15 + 27 is 32.", "alone": "42", "old": OLD}
    table = {texts[name]: score for name, score in scores.items()}

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


def test_the_rewards_of_the_template_are_not_a_solution():
    with imported(ROOT / "templates" / "basic_grpo", "rewards") as [rewards]:
        assert "pays for the old format" in faults(rewards.REWARDS, [ROW])


def test_every_criterion_must_be_met(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(check_assignment, "check", lambda: [(True, "tests"), (False, "rewards")])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        check_assignment.main(tmp_path)
    assert stop.value.code and capsys.readouterr().out.splitlines() == ["ok      tests", "not yet rewards"]
