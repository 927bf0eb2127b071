"""Verdicts on logs as others have them: no false alarm at any step, and faults that come late."""

import pytest
from health_logs import WELL, alarms, bend, simulate
from test_health_faults import COLLAPSE, LATE_HACK

from grpo_check.health import diagnose

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WELL)
def test_no_run_that_is_well_is_called_ill_at_any_step(name, seed):
    assert alarms(simulate(**WELL[name], seed=seed), stride=5) == {}


def test_a_run_that_stays_flat_is_an_alarm_only_after_a_hundred_steps():
    told = alarms(simulate(200, lambda s: 0.4, form=lambda s: 0.5), stride=5)
    assert set(told) == {"no_learning"} and 100 <= told["no_learning"] <= 110


@pytest.mark.parametrize("every", [1, 5, 10])
def test_a_fault_is_named_within_twenty_steps_however_often_is_logged(every):
    log = simulate(60, bend(0.3, 0.7, 30, 10), every=every)
    for code, change in {
        "dead_reward": {"rewards/format_reward/mean": 0.0, "rewards/format_reward/std": 0.0},
        "no_gradient": {"frac_reward_zero_std": 1.0},
        "all_truncated": {"completions/clipped_ratio": 0.95},
        "no_eos": {"completions/clipped_ratio": 1.0, "completions/max_terminated_length": 0.0},
    }.items():
        assert alarms([entry | change for entry in log]).get(code, 99) <= 20, code


@pytest.mark.parametrize(
    ("log", "code", "between"),
    [(LATE_HACK, "length_hacking", (200, 240)), (COLLAPSE, "mode_collapse", (60, 72))],
    ids=["hack", "collapse"],
)
def test_a_fault_that_comes_late(log, code, between):
    told = alarms(log, stride=2)
    assert set(told) == {code} and between[0] < told[code] <= between[1]


def test_a_judge_that_dies_in_the_middle_of_a_run():
    log = simulate(80, bend(0.3, 0.7, 20, 8), extra={"judge_reward": lambda s: 0.5 + 0.1 * (s % 2) if s < 40 else 0.0})
    log = [e | {"rewards/judge_reward/std": 0.2 if e["step"] < 40 else 0.0} for e in log]
    told = alarms(log)
    assert 40 < told["dead_reward"] <= 60


def test_an_entropy_that_vanishes_while_nothing_is_gained():
    log = simulate(80, lambda s: 0.3, form=lambda s: 0.5, entropy=lambda s: 0.5 if s < 30 else 0.002)
    assert "mode_collapse" in alarms(log)


def test_a_first_batch_that_was_lucky_is_no_collapse():
    log = simulate(60, lambda s: 0.06, form=lambda s: 0.05)
    lucky = {"reward": 2.0, "reward_std": 0.0, "rewards/accuracy_reward/mean": 1.0, "rewards/format_reward/mean": 1.0}
    assert "mode_collapse" not in alarms([log[0] | lucky, *log[1:]])


def test_a_constant_partial_credit_is_no_solved_task():
    """All tied at 0.5 in 'accuracy': nothing is known to be right."""
    log = simulate(40, lambda s: 0.5)
    stuck = {"rewards/accuracy_reward/mean": 0.5, "rewards/accuracy_reward/std": 0.0, "frac_reward_zero_std": 1.0}
    assert {"dead_reward", "no_gradient"} <= set(alarms([e | stuck for e in log]))


def test_a_kl_that_exploded_once_stays_known():
    log = simulate(200, bend(0.3, 0.7, 60, 20))
    log = [e | {"kl": 50.0 if 100 < e["step"] < 110 else 0.2} for e in log]
    assert diagnose(log)[0].code == "kl_explosion" and "up to step" in diagnose(log)[0].seen


def test_w_and_b_names_and_numbers_as_text_are_read():
    log = simulate(40, bend(0.3, 0.7, 15, 5))
    exported = [{f"train/{k}" if k != "step" else "train/global_step": str(v) for k, v in e.items()} for e in log]
    assert [v.code for v in diagnose(exported)] == [v.code for v in diagnose(log)] == ["healthy"]
