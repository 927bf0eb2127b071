"""What went wrong with verdicts on real logs, each rebuilt from its description, and properties of all verdicts."""

import contextlib
import json
import random

import pytest
from health_logs import WELL, alarms, as_unsloth, bend, drawn, rescaled, run, simulate
from test_health import BROKEN, CUT, NOTED, changed, check, codes, flat, healthy

from grpo_check import Finding, diagnose, diagnose_file
from grpo_check.health.log import read_history
from grpo_utils.errors import CourseError


def lucky(*steps: int) -> list[dict]:
    """40 steps at the lowest reward, all tied and cut off, except for a few lucky prompts."""
    missed = {"reward": -7.5, "reward_std": 0.0, "frac_reward_zero_std": 1.0, "completions/clipped_ratio": 1.0}
    hit = {"reward": 13.0, "reward_std": 0.0, "frac_reward_zero_std": 0.0, "completions/clipped_ratio": 0.5}
    return [{"step": step, "grad_norm": 0.1} | (hit if step in steps else missed) for step in range(1, 41)]


@pytest.mark.parametrize("steps", [(5, 11, 12, 13), (5, 11, 20, 29), (1, 2, 30, 31), (7, 8, 9, 10), (33,)])
def test_a_run_that_never_learned_has_not_collapsed(steps):
    said = [code for end in range(10, 41) for code in codes(lucky(*steps)[:end])]
    assert "mode_collapse" not in said
    assert codes(lucky(*steps))[0] == "all_truncated"


@pytest.mark.parametrize("plus", [0.0, -50.0, 50.0])
@pytest.mark.parametrize("to", [0.0, -1.0, 0.1])
def test_no_collapse_loses_more_than_everything(plus, to):
    log = rescaled(run(100, {"accuracy_reward": (1.0, lambda s: 0.8 if s < 50 else 0.02)}, seed=3), 1.0, plus)
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
    log = rescaled(run(120, {"correctness_reward": (1.0, lambda s: 0.2)}, groups=2, seed=1), worth, plus)
    assert "no_learning" in codes(log) and "healthy" not in codes(log)


def test_a_mean_of_one_is_not_solved_where_five_is_paid():
    noise = random.Random(0)
    values = {"rewards/correctness_reward/mean": lambda i: noise.gauss(1.2, 0.3), "rewards/correctness_reward/std": 2.5}
    log = changed(flat(120), **{key.replace("/", "__"): value for key, value in values.items()})
    assert "no_learning" in codes(log)


def test_a_reward_far_below_its_best_is_not_solved():
    """Tied at 8 where 32 was seen: nothing is saturated."""
    log = [
        {"step": i, "reward": 2.0 if i < 10 else 32.0 if i < 20 else 8.0, "reward_std": 3.0 if i < 20 else 0.0}
        | {"frac_reward_zero_std": 0.1 if i < 20 else 1.0}
        for i in range(1, 41)
    ]
    assert "saturated" not in codes(log)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("earned", [60, 96])
def test_a_reward_that_is_earned_late_was_not_dead(seed, earned):
    rewards = {
        "check_answer": (3.0, bend(0.05, 0.6, 50, 20)),
        "match_format_approximately": (1.5, bend(0.2, 0.95, 40, 10)),
        "match_format_exactly": (3.0, lambda s: 0.0 if s < earned else min(0.9, (s - earned) / 20)),
    }
    assert alarms(run(150, rewards, groups=1, seed=seed), stride=2) == {}


def test_a_reward_that_is_never_earned_becomes_an_alarm():
    rewards = {
        "accuracy_reward": (1.0, lambda s: 0.4),
        "soft_format": (1.0, lambda s: 0.6),
        "strict_format": (1.0, lambda s: 0.0),
    }
    told = alarms(run(130, rewards, seed=2), stride=5)
    assert 100 <= told["dead_reward"] <= 125


@pytest.mark.parametrize("seed", range(3))
def test_a_form_that_is_never_earned_is_no_alarm_in_a_run_that_learned_and_leveled_off(seed):
    rewards = {
        "correctness_reward": (2.0, bend(0.1, 0.7, 40, 10)),
        "soft_format": (0.5, bend(0.1, 0.9, 30, 10)),
        "strict_format": (0.5, lambda s: 0.0),
    }
    log = run(300, rewards, groups=4, seed=seed)
    assert "dead_reward" in codes(log) and "dead_reward" not in alarms(log, stride=10)


def test_an_answer_that_is_never_right_stays_an_alarm_in_a_run_that_learned_a_form():
    rewards = {"correctness_reward": (2.0, lambda s: 0.0), "soft_format": (0.5, bend(0.1, 0.9, 30, 10))}
    assert "dead_reward" in alarms(run(300, rewards, groups=4), stride=10)


@pytest.mark.parametrize("log", [flat(40), changed(healthy(60), rewards__correctness_reward__mean=1.0)])
def test_a_gradient_of_zero_is_not_told_as_tied_groups_or_as_saturated(log):
    said = {verdict.code: verdict.seen for verdict in diagnose(changed(log, grad_norm=0.0, frac_reward_zero_std=0.1))}
    assert said["no_gradient"].startswith("grad_norm is 0") and "tied" not in said["no_gradient"]
    assert "saturated" not in said


def small_change(before: float, after: float, rising: str) -> list[dict]:
    """Correctness moves hardly at all; another reward and the length change for certain."""
    spreads = {"reward_std": 0.5, "rewards/correctness_reward/std": 0.25, f"rewards/{rising}/std": 0.3}
    return [
        {"step": i, "reward": 0.02 * i, "completions/mean_length": 200 - 4 * i, **spreads}
        | {"rewards/correctness_reward/mean": before if i < 20 else after, f"rewards/{rising}/mean": 0.02 * i}
        for i in range(1, 41)
    ]


@pytest.mark.parametrize("rising", ["soft_format_reward", "length_reward", "steps_reward"])
@pytest.mark.parametrize(("before", "after"), [(0.0375, -0.0375), (0.0667, 0.0)])
def test_a_change_that_is_small_for_the_reward_is_no_hack(before, after, rising):
    told = alarms(small_change(before, after, rising))
    assert "reward_hacking_suspected" not in told and "length_hacking" not in told


@pytest.mark.parametrize("seed", range(4))
def test_no_learning_does_not_flicker_in_a_run_that_rises(seed):
    log = run(300, {"accuracy_reward": (1.0, lambda s: 0.2 + 0.4 * s / 300)}, groups=2, seed=seed)
    assert "no_learning" not in alarms(log, stride=5)


@pytest.mark.parametrize(("code", "direction"), [("shrinking_completions", 0.2), ("growing_completions", 4.0)])
@pytest.mark.parametrize(("end", "word"), [(0.8, "rose"), (0.3, "held steady")])
def test_a_length_that_changes_gets_a_quiet_word_that_says_what_became_of_accuracy(code, direction, end, word):
    length = lambda s: 900 * (1 + (direction - 1) * s / 80)  # noqa: E731
    log = run(
        80,
        {"accuracy_reward": (1.0, bend(0.3, end, 30, 5)), "format_reward": (1.0, bend(0.1, 0.9, 20, 5))},
        length=length,
    )
    found = {verdict.code: verdict for verdict in diagnose(log)}
    assert code in found
    assert f"accuracy_reward {word} (" in found[code].seen
    assert "error" not in {verdict.severity for verdict in found.values()}


COLLAPSE = simulate(
    100,
    lambda s: bend(0.05, 0.85, 20, 6)(s) if s < 60 else 0.03,
    form=lambda s: 0.95 if s < 60 else 0.02,
    entropy=lambda s: 0.4 if s < 60 else 2.5,
)
SINKING = [
    e | {"reward": 11 * min(1, e["step"] / 40) - 3 if e["step"] < 60 else -3.0}
    for e in simulate(100, bend(0.2, 0.8, 20, 6), entropy=lambda s: 0.4 if s < 60 else 1.8)
]
LATE_HACK = simulate(
    280,
    lambda s: min(0.7, 0.3 + s / 350),
    length=lambda s: 200 if s < 200 else 200 + 12 * (s - 200),
    extra={"length_reward": lambda s: 0.2 if s < 200 else min(1.0, 0.2 + (s - 200) / 80)},
)
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


FORMS = {
    f"{name}_reward": (0.5, bend(begin, 0.97, middle, middle / 3))
    for name, begin, middle in (
        ("int", 0.2, 25),
        ("strict_format", 0.02, 60),
        ("soft_format", 0.05, 50),
        ("xmlcount", 0.4, 20),
    )
}
#: Runs as they are published, as the arguments of `run`.
PUBLISHED = {
    "GSM8K with 0.5B, one group per step": dict(
        steps=300, rewards={"correctness_reward": (2.0, lambda s: 0.1 + 0.25 * s / 300), **FORMS}, groups=1
    ),
    "slowly, one group per step": dict(
        steps=300,
        rewards={"accuracy_reward": (1.0, lambda s: 0.3 + s / 1000), "format_reward": (1.0, lambda s: 0.95)},
        groups=1,
    ),
    "countdown": dict(
        steps=300,
        rewards={"equation_reward": (1.0, bend(0.02, 0.6, 150, 30)), "format_reward": (1.0, bend(0.1, 0.95, 25, 8))},
        groups=2,
        length=lambda s: 250 - 2 * min(s, 50) + max(0, s - 150),
    ),
    "with a KL": dict(
        steps=150,
        rewards={"accuracy_reward": (1.0, bend(0.2, 0.6, 60, 20)), "format_reward": (1.0, bend(0.3, 0.95, 30, 10))},
        groups=2,
        kl=lambda s: 0.001 + 0.3 * min(1, s / 80),
    ),
    "cut off at first, and soon no more": dict(
        steps=120,
        rewards={"accuracy_reward": (1.0, bend(0.02, 0.6, 50, 12)), "format_reward": (1.0, bend(0.05, 0.95, 30, 8))},
        groups=4,
        clipped=bend(0.97, 0.05, 20, 5),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", PUBLISHED)
def test_no_published_kind_of_run_is_called_ill_at_any_step(name, seed):
    log = rescaled(run(**PUBLISHED[name], seed=seed), *((1, 0), (5, -7.5))[seed])
    assert alarms(log, stride=6) == {}


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


# --- logs that are damaged


def test_a_resumed_run_keeps_what_was_before_and_drops_what_was_repeated():
    log = healthy(40)
    lost = [entry | {"loss": float("nan")} for entry in log[24:30]]
    assert codes([*log[:24], *lost, *log[24:]]) == ["healthy"]
    assert read_history([*log[:24], *lost, *log[24:]]).entries == read_history(log).entries


def test_steps_out_of_order_or_doubled_are_put_in_order():
    log = healthy(40)
    shuffled = random.Random(0).sample(log, k=40)
    assert [v.seen for v in diagnose(shuffled)] == [v.seen for v in diagnose(log)]
    doubled = [entry for entry in log for _ in range(2)]
    assert [v.seen for v in diagnose(doubled)] == [v.seen for v in diagnose(log)]


JUNK = [
    None,
    "",
    "NaN",
    "inf",
    "-inf",
    "text",
    "1.2.3",
    "1e400",
    float("nan"),
    float("inf"),
    -1e308,
    1e308,
    10**400,
    True,
]
JUNK += [[], {}, [1.0], {"a": 1}, -1, 0, 1e-320, "０", "١", b"x", object()]


def damaged(log: list[dict], noise: random.Random) -> list:
    """A log with random damage: values, keys, entries, order."""
    log = [dict(entry) for entry in log[: noise.randint(0, len(log))]]
    keys = [
        *healthy(1)[0],
        "kl",
        "rewards/f",
        "completion_length",
        "health/distinct",
        "eval_reward",
        7,
        None,
        ("a",),
        "",
    ]
    for _ in range(noise.randint(0, 40)):
        if not log:
            break
        at, entry = noise.randrange(len(log)), noise.choice(log)
        damage = noise.randrange(7)
        if damage < 3:
            entry[noise.choice(keys)] = noise.choice(JUNK)
        elif damage == 3:
            entry.pop(noise.choice(list(entry)), None) if entry else None
        elif damage == 4:
            log.insert(at, dict(entry))
        elif damage == 5:
            log.append(log.pop(at))
        else:
            key, value = noise.choice(keys), noise.choice(JUNK)
            log = [e | {key: value} for e in log]
    return log


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_damaged_log_gets_a_verdict_or_a_clear_error(seed):
    noise, logs = random.Random(seed), [*BROKEN.values(), *NOTED.values(), healthy(25)]
    for _ in range(300):
        log = damaged(noise.choice(logs), noise)
        try:
            verdicts = diagnose(log)
        except CourseError:
            continue
        assert verdicts and all(isinstance(verdict, Finding) and str(verdict) for verdict in verdicts)


@pytest.mark.parametrize("log", [None, 3, "text", {"log_history": []}, ["reward"], [None], iter([])])
def test_what_is_no_list_of_entries_is_a_clear_error(log):
    with pytest.raises(CourseError, match="a list of dicts"):
        diagnose(log)


@pytest.mark.parametrize("seed", range(2))
def test_a_damaged_file_gets_a_verdict_or_a_clear_error(seed, tmp_path):
    noise, text = random.Random(seed), json.dumps({"global_step": 12, "log_history": healthy(12)})
    file = tmp_path / "trainer_state.json"
    for _ in range(250):
        at, piece = (
            noise.randrange(len(text)),
            noise.choice(["", "{", "]", "NaN", '"', ",", "\x00", "9" * 5000, "[" * 3000, "é", "null"]),
        )
        file.write_text(
            text[:at] + piece + text[at + noise.choice([0, 0, 1, 30]) :][: noise.choice([10**6, 50])], encoding="utf-8"
        )
        for path in (file, tmp_path):
            with contextlib.suppress(CourseError):
                assert diagnose_file(path)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"global_step": 1e999, "log_history": 3}', "9" * 5000, "null", '"a"', "[1]"]
)
def test_json_that_is_no_log_is_a_clear_error(text, tmp_path):
    (tmp_path / "trainer_state.json").write_text(text)
    for path in (tmp_path, tmp_path / "trainer_state.json"):
        with pytest.raises(CourseError):
            diagnose_file(path)
