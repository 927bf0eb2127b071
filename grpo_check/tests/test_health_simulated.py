"""Verdicts on simulated runs and on rebuilt real ones: no false alarm at any step, and each fault is named in time."""

import random

import pytest
from grpo_check.health.rules.rule import log_of
from health_logs import (
    BROKEN,
    COLLAPSE,
    CUT,
    LATE_HACK,
    NOTED,
    WELL,
    alarms,
    as_unsloth,
    bend,
    changed,
    check,
    codes,
    drawn,
    flat,
    healthy,
    paying,
    rescaled,
    simulate,
)

from grpo_check import diagnose


def lucky(*steps: int) -> list[dict]:
    """40 steps at the lowest reward, all tied and cut off, except for a few lucky prompts."""
    return log_of(
        40,
        grad_norm=0.1,
        reward=lambda step: 13.0 if step in steps else -7.5,
        reward_std=0.0,
        frac_reward_zero_std=lambda step: float(step not in steps),
        completions__clipped_ratio=lambda step: 0.5 if step in steps else 1.0,
    )


@pytest.mark.parametrize("steps", [(5, 11, 12, 13), (5, 11, 20, 29), (1, 2, 30, 31), (7, 8, 9, 10), (33,)])
def test_a_run_that_never_learned_has_not_collapsed(steps):
    said = [code for end in range(10, 41) for code in codes(lucky(*steps)[:end])]
    assert "mode_collapse" not in said
    assert codes(lucky(*steps))[0] == "all_truncated"


@pytest.mark.parametrize("plus", [0.0, -50.0, 50.0])
@pytest.mark.parametrize("to", [0.0, -1.0, 0.1])
def test_no_collapse_loses_more_than_everything(plus, to):
    log = rescaled(simulate(100, {"accuracy_reward": (1.0, lambda s: 0.8 if s < 50 else 0.02)}, seed=3), 1.0, plus)
    log = [e | {"reward": e["reward"] + to * (e["step"] > 50), "entropy": 0.4 if e["step"] < 50 else 3.0} for e in log]
    [lost] = [int(v.seen.partition("%")[0]) for v in diagnose(log) if "of the best reward is lost" in v.seen]
    assert 75 <= lost <= 100


def test_a_policy_that_collapses_in_its_first_step_has_collapsed():
    log = changed(
        flat(20), reward=lambda i: 0.9 * (i == 0), entropy=lambda i: 0.13 if i == 0 else min(4.5, 1.5 + i / 2)
    )
    assert codes(changed(log, completions__clipped_ratio=lambda i: 0.96 * (i > 0)))[0] == "mode_collapse"


@pytest.mark.parametrize("worth", [0.2, 1.0, 5.0, 50.0])
@pytest.mark.parametrize("plus", [0.0, -50.0])
def test_a_flat_reward_is_no_learning_whatever_a_right_answer_is_worth(worth, plus):
    log = rescaled(simulate(120, {"correctness_reward": (1.0, lambda s: 0.2)}, groups=2, seed=1), worth, plus)
    assert "no_learning" in codes(log) and "healthy" not in codes(log)


def test_a_mean_of_one_is_not_solved_where_five_is_paid():
    noise = random.Random(0)
    values = {"rewards/correctness_reward/mean": lambda i: noise.gauss(1.2, 0.3), "rewards/correctness_reward/std": 2.5}
    log = changed(flat(120), **{key.replace("/", "__"): value for key, value in values.items()})
    assert "no_learning" in codes(log)


def test_a_reward_far_below_its_best_is_not_solved():
    """Tied at 8 where 32 was seen: nothing is saturated."""
    log = log_of(
        40,
        reward=lambda step: 2.0 if step < 10 else 32.0 if step < 20 else 8.0,
        reward_std=lambda step: 3.0 if step < 20 else 0.0,
        frac_reward_zero_std=lambda step: 0.1 if step < 20 else 1.0,
    )
    assert "saturated" not in codes(log)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("earned", [60, 96])
def test_a_reward_that_is_earned_late_was_not_dead(seed, earned):
    rewards = {
        "check_answer": (3.0, bend(0.05, 0.6, 50, 20)),
        "match_format_approximately": (1.5, bend(0.2, 0.95, 40, 10)),
        "match_format_exactly": (3.0, lambda s: 0.0 if s < earned else min(0.9, (s - earned) / 20)),
    }
    assert alarms(simulate(150, rewards, groups=1, seed=seed), stride=2) == {}


def test_a_reward_that_is_never_earned_becomes_an_alarm():
    rewards = {
        "accuracy_reward": (1.0, lambda s: 0.4),
        "soft_format": (1.0, lambda s: 0.6),
        "strict_format": (1.0, lambda s: 0.0),
    }
    told = alarms(simulate(130, rewards, seed=2), stride=5)
    assert 100 <= told["dead_reward"] <= 125


@pytest.mark.parametrize("seed", range(3))
def test_a_form_that_is_never_earned_is_no_alarm_in_a_run_that_learned_and_leveled_off(seed):
    rewards = {
        "correctness_reward": (2.0, bend(0.1, 0.7, 40, 10)),
        "soft_format": (0.5, bend(0.1, 0.9, 30, 10)),
        "strict_format": (0.5, lambda s: 0.0),
    }
    log = simulate(300, rewards, groups=4, seed=seed)
    assert "dead_reward" in codes(log) and "dead_reward" not in alarms(log, stride=10)


def test_an_answer_that_is_never_right_stays_an_alarm_in_a_run_that_learned_a_form():
    rewards = {"correctness_reward": (2.0, lambda s: 0.0), "soft_format": (0.5, bend(0.1, 0.9, 30, 10))}
    assert "dead_reward" in alarms(simulate(300, rewards, groups=4), stride=10)


@pytest.mark.parametrize("log", [flat(40), changed(healthy(60), rewards__correctness_reward__mean=1.0)])
def test_a_gradient_of_zero_is_not_told_as_tied_groups_or_as_saturated(log):
    said = {verdict.code: verdict.seen for verdict in diagnose(changed(log, grad_norm=0.0, frac_reward_zero_std=0.1))}
    assert said["no_gradient"].startswith("grad_norm is 0") and "tied" not in said["no_gradient"]
    assert "saturated" not in said


def small_change(before: float, after: float, rising: str) -> list[dict]:
    """Correctness moves hardly at all; another reward and the length change for certain."""
    other = {f"rewards__{rising}__mean": lambda step: 0.02 * step, f"rewards__{rising}__std": 0.3}
    return log_of(
        40,
        reward=lambda step: 0.02 * step,
        reward_std=0.5,
        completions__mean_length=lambda step: 200 - 4 * step,
        rewards__correctness_reward__mean=lambda step: before if step < 20 else after,
        rewards__correctness_reward__std=0.25,
        **other,
    )


@pytest.mark.parametrize("rising", ["soft_format_reward", "length_reward", "steps_reward"])
@pytest.mark.parametrize(("before", "after"), [(0.0375, -0.0375), (0.0667, 0.0)])
def test_a_change_that_is_small_for_the_reward_is_no_hack(before, after, rising):
    told = alarms(small_change(before, after, rising))
    assert "reward_hacking_suspected" not in told and "length_hacking" not in told


@pytest.mark.parametrize("seed", range(4))
def test_no_learning_does_not_flicker_in_a_run_that_rises(seed):
    log = simulate(300, {"accuracy_reward": (1.0, lambda s: 0.2 + 0.4 * s / 300)}, groups=2, seed=seed)
    assert "no_learning" not in alarms(log, stride=5)


@pytest.mark.parametrize(("code", "direction"), [("shrinking_completions", 0.2), ("growing_completions", 4.0)])
@pytest.mark.parametrize(("end", "word"), [(0.8, "rose"), (0.3, "held steady")])
def test_a_length_that_changes_gets_a_quiet_word_that_says_what_became_of_accuracy(code, direction, end, word):
    length = lambda s: 900 * (1 + (direction - 1) * s / 80)  # noqa: E731
    log = simulate(
        80,
        {"accuracy_reward": (1.0, bend(0.3, end, 30, 5)), "format_reward": (1.0, bend(0.1, 0.9, 20, 5))},
        length=length,
    )
    found = {verdict.code: verdict for verdict in diagnose(log)}
    assert code in found
    assert f"accuracy_reward {word} (" in found[code].seen
    assert "error" not in {verdict.severity for verdict in found.values()}


SINKING = [
    e | {"reward": 11 * min(1, e["step"] / 40) - 3 if e["step"] < 60 else -3.0}
    for e in simulate(100, paying(bend(0.2, 0.8, 20, 6)), entropy=lambda s: 0.4 if s < 60 else 1.8)
]
#: Logs of runs that fail: the code, and the step at which it was first named when rewards were judged by raw means.
FAILING = {
    "nan": (BROKEN["nan"], "nan", 12),
    "kl": (BROKEN["kl_explosion"], "kl_explosion", 7),
    "collapse at once": (BROKEN["mode_collapse"], "mode_collapse", 10),
    "collapse after a rise": (COLLAPSE, "mode_collapse", 63),
    "collapse of negative rewards": (SINKING, "mode_collapse", 63),
    "no end": (CUT, "no_eos", 10),
    "cut off": (BROKEN["all_truncated"], "all_truncated", 10),
    "dead": (BROKEN["dead_reward"], "dead_reward", 10),
    "tied": (BROKEN["no_gradient"], "no_gradient", 10),
    "solved": (BROKEN["saturated"], "saturated", 49),
    "paid for length": (BROKEN["length_hacking"], "length_hacking", 10),
    "paid for length late": (LATE_HACK, "length_hacking", 211),
    "hacked": (BROKEN["reward_hacking_suspected"], "reward_hacking_suspected", 22),
    "no form": (BROKEN["format_ignored"], "format_ignored", 20),
    "flat": (BROKEN["no_learning"], "no_learning", 20),
    "slow": (BROKEN["slow_steps"], "slow_steps", 28),
}
SCALES = {"as they are": (1, 0), "times 10": (10, 0), "minus 50": (1, -50), "times 10, minus 50": (10, -50)}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", FAILING)
def test_a_run_that_fails_is_named_on_any_scale_and_in_any_trainers_log(name, scale):
    log, code, before = FAILING[name]
    log = rescaled(log, *SCALES[scale])
    for written in (log, as_unsloth(log)):
        assert any(code in codes(written[:end]) for end in range(before, before + 11))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_a_run_that_learns_raises_no_alarm_at_any_step_on_any_scale(seed):
    log = rescaled(drawn(seed), *((1, 0), (10, -50))[seed // 2 % 2])
    assert alarms(as_unsloth(log) if seed % 2 else log, stride=max(1, len(log) // 40)) == {}


@pytest.mark.parametrize("name", [*BROKEN, *NOTED, *WELL])
def test_a_log_of_unsloths_own_trainer_gets_the_same_verdicts(name):
    log = (BROKEN | NOTED).get(name) or simulate(**WELL[name])
    assert codes(as_unsloth(log)) == codes(log)


def test_a_kl_of_zero_pulls_nothing_so_a_gradient_of_zero_means_tied_groups():
    log = changed(flat(12), grad_norm=0.0, kl=0.0)
    log = [{key: value for key, value in entry.items() if key != "frac_reward_zero_std"} for entry in log]
    assert "no_gradient" in codes(log)


def test_nan_with_accumulation_is_advised_to_try_without():
    log = BROKEN["nan"]
    assert "accumulation" not in diagnose(log)[0].fixes[0]
    verdict = diagnose([*log, check(accumulation=4.0)])[0]
    assert verdict.code == "nan" and "gradient_accumulation_steps=4" in verdict.seen
    assert verdict.fixes[0].startswith("if gradient_accumulation_steps is above 1, try 1")
    assert len(verdict.fixes) == len(set(verdict.fixes))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", WELL)
def test_no_run_that_is_well_is_called_ill_at_any_step(name, seed):
    log = rescaled(simulate(**WELL[name], seed=seed), *((1, 0), (5, 0))[seed])
    assert alarms(log, stride=5) == {}


@pytest.mark.slow
def test_a_run_that_stays_flat_is_an_alarm_only_after_a_hundred_steps():
    told = alarms(simulate(200, paying(lambda s: 0.4, form=lambda s: 0.5)), stride=5)
    assert set(told) == {"no_learning"} and 100 <= told["no_learning"] <= 110


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 5, 10])
def test_a_fault_is_named_within_twenty_steps_however_often_is_logged(every):
    """In a flat run, as a dead format is only a warning while a run rises; noise alone looks so in one of ten seeds."""
    log = simulate(60, paying(lambda s: 0.3), every=every, seed=1)
    for code, change in {
        "dead_reward": {"rewards/format_reward/mean": 0.0, "rewards/format_reward/std": 0.0},
        "no_gradient": {"frac_reward_zero_std": 1.0},
        "all_truncated": {"completions/clipped_ratio": 0.95},
        "no_eos": {"completions/clipped_ratio": 1.0, "completions/max_terminated_length": 0.0},
    }.items():
        assert alarms([entry | change for entry in log]).get(code, 99) <= 20, code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "code", "between"),
    [(LATE_HACK, "length_hacking", (200, 240)), (COLLAPSE, "mode_collapse", (60, 72))],
    ids=["hack", "collapse"],
)
def test_a_fault_that_comes_late(log, code, between):
    told = alarms(log, stride=2)
    assert set(told) == {code} and between[0] < told[code] <= between[1]


@pytest.mark.slow
def test_a_judge_that_dies_in_the_middle_of_a_run():
    judge = dict(rewards__judge_reward__mean=lambda s: 0.5 + 0.1 * (s % 2) if s < 40 else 0.0)
    judge |= dict(rewards__judge_reward__std=lambda s: 0.2 if s < 40 else 0.0)
    log = simulate(80, paying(bend(0.3, 0.7, 20, 8)), **judge)
    told = alarms(log)
    assert 40 < told["dead_reward"] <= 60


@pytest.mark.slow
def test_an_entropy_that_vanishes_while_nothing_is_gained():
    log = simulate(80, paying(lambda s: 0.3, form=lambda s: 0.5), entropy=lambda s: 0.5 if s < 30 else 0.002)
    assert "mode_collapse" in alarms(log)


@pytest.mark.slow
def test_a_first_batch_that_was_lucky_is_no_collapse():
    log = simulate(60, paying(lambda s: 0.06, form=lambda s: 0.05))
    lucky = {"reward": 2.0, "reward_std": 0.0, "rewards/accuracy_reward/mean": 1.0, "rewards/format_reward/mean": 1.0}
    assert "mode_collapse" not in alarms([log[0] | lucky, *log[1:]])


@pytest.mark.slow
def test_a_constant_partial_credit_is_no_solved_task():
    """All tied at 0.5 in 'accuracy': nothing is known to be right."""
    log = simulate(40, paying(lambda s: 0.5))
    stuck = {"rewards/accuracy_reward/mean": 0.5, "rewards/accuracy_reward/std": 0.0, "frac_reward_zero_std": 1.0}
    assert {"dead_reward", "no_gradient"} <= set(alarms([e | stuck for e in log]))


@pytest.mark.slow
def test_a_kl_that_exploded_once_stays_known():
    log = simulate(200, paying(bend(0.3, 0.7, 60, 20)))
    log = [e | {"kl": 50.0 if 100 < e["step"] < 110 else 0.2} for e in log]
    assert diagnose(log)[0].code == "kl_explosion" and "up to step" in diagnose(log)[0].seen


@pytest.mark.slow
def test_w_and_b_names_and_numbers_as_text_are_read():
    log = simulate(40, paying(bend(0.3, 0.7, 15, 5)))
    exported = [{f"train/{k}" if k != "step" else "train/global_step": str(v) for k, v in e.items()} for e in log]
    assert [v.code for v in diagnose(exported)] == [v.code for v in diagnose(log)] == ["healthy"]
