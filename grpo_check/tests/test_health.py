"""Verdicts from logs written by hand; `test_health_training.py` has real runs."""

import json
import math
import random
import re
from time import process_time

import pytest
from grpo_check.health import limits
from grpo_check.health.diagnosis import diagnose, diagnose_error, diagnose_file, subjects_of
from grpo_check.health.rules import NOTES, PROBLEMS, RULES
from grpo_check.health.rules.rule import LOST
from grpo_check.health.rules.setup import expected_weight
from grpo_check.health.trends import share_right
from grpo_check.logs.files import read_log
from grpo_check.logs.log import read_history
from grpo_core.errors import CourseError
from health_logs import BROKEN, CUT, NOTED, bend, changed, check, codes, flat, healthy, simulate
from hypothesis import given
from hypothesis import strategies as st
from places import HERE

from grpo_check import Finding


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("steps", [10, 20, 40, 150])
def test_a_run_that_learns_is_healthy(seed, steps):
    assert codes(healthy(steps, seed)) == ["healthy"]


@pytest.mark.parametrize("code", BROKEN)
def test_each_fault_is_named_with_numbers_why_what_to_try_and_where_to_read_more(code):
    verdict = diagnose(BROKEN[code])[0]
    assert verdict.code == code
    assert re.search(r"\d", verdict.seen) or code == "nan"
    assert f"(step {sum('reward' in e for e in BROKEN[code])})" in verdict.what
    assert verdict.why and verdict.fixes and verdict.link == f"grpo-check explain {code}"
    assert all(part in str(verdict) for part in (verdict.seen, verdict.why, *verdict.fixes))


LATER = {"saturated", "slow_steps", "no_learning", "stalled", "gain_without_answers"}


@pytest.mark.parametrize("code", sorted(set(BROKEN) - LATER))
def test_it_is_named_within_twenty_steps_of_its_cause(code):
    causes = {"nan": 11, "mode_collapse": 4, "reward_hacking_suspected": 16, "falling_reward": 30}
    log, cause = BROKEN[code], causes.get(code, 0)
    seen = [n for n in range(1, len(log) + 1) if code in codes(log[:n])]
    assert min(seen) - cause <= 20


TIED = dict(frac_reward_zero_std=1.0)
NO_END = [{"step": 20, "eval_reward": 0.1, "eval_loss": math.nan}, {"step": 40, "train_loss": math.nan}]
OLD = [{"step": i, "reward": 0.25, "rewards/f/mean": 0.25, "rewards/f/std": 0.0} for i in range(12)]
OLD = changed(OLD, reward_std=0.0, kl=0.0)
#: Logs, and all that is said of them.
SAID = {
    "nine steps are too few": (healthy(9), ["too_short"]),
    "a collapse, and not what follows from it": (BROKEN["mode_collapse"], ["mode_collapse"]),
    "equal completions to different prompts": ([*healthy(), check(distinct=0.06)], ["mode_collapse"]),
    "plain strings": ([*flat(), check(string_prompts=1.0)], ["string_prompt"]),
    "and not the rewards that die of them": ([*BROKEN["dead_reward"], check(string_prompts=1.0)], ["string_prompt"]),
    "a loss that rises": (changed(healthy(), loss=lambda i: 0.5 * i), ["healthy"]),
    "a loss of zero": (changed(healthy(), loss=0.0), ["healthy"]),
    "a small KL": (changed(healthy(), kl=0.4), ["healthy"]),
    "one outlier of the KL's estimator": (changed(healthy(), kl=lambda i: 1e6 if i == 20 else 0.1), ["healthy"]),
    "always right from the first step": (
        changed(flat(12), rewards__correctness_reward__mean=1.0, rewards__correctness_reward__std=0.0, **TIED),
        ["saturated"],
    ),
    "half of the prompts solved, half never": (
        changed(flat(12), rewards__correctness_reward__mean=0.5, rewards__correctness_reward__std=0.5, **TIED),
        ["no_gradient"],
    ),
    "single steps of an fp16 scaler": (
        changed(healthy(), grad_norm=lambda i: math.inf if i in (0, 1, 7) else 0.1),
        ["healthy"],
    ),
    "three of them in a row": (changed(healthy(), grad_norm=lambda i: math.nan if i > 36 else 0.1), ["nan"]),
    "None, as TRL logs it for a reward that never applied": (
        changed(healthy(), rewards__other__mean=None, rewards__other__std=None),
        ["healthy", "unpaid_reward"],
    ),
    "a burst of other work on the machine": (
        changed(healthy(), step_time=lambda i: 5.0 if 31 < i < 38 else 0.3),
        ["healthy"],
    ),
    "cut off; the log alone cannot tell why": (CUT, ["all_truncated", "no_eos"]),
    "cut off by a short limit": ([*CUT, check(ended_with_room=0.95)], ["all_truncated"]),
    "cut off for want of an end": ([*CUT, check(ended_with_room=0.0)], ["no_eos"]),
    "several runs, of which the last counts": ([*BROKEN["nan"], *healthy()], ["healthy", "begun_again"]),
    "entries of evaluation and the summary": ([*healthy(), *NO_END], ["healthy"]),
    "before TRL 0.18 a reward_std of zero": (OLD, ["dead_reward", "no_gradient"]),
    "held-out completions that are never in form": (
        [*healthy(), check(heldout_format=0.0), check(heldout_format=0.0)],
        ["format_ignored"],
    ),
    "tools that are never called": (changed(healthy(), tools__call_frequency=0.0), ["tools_not_called"]),
    "tools that are called once": (changed(healthy(), tools__call_frequency=lambda i: 0.02 * (i == 30)), ["healthy"]),
    "vLLM's weights, most of them lost": (
        changed(healthy(), sampling__importance_sampling_ratio__mean=0.05),
        ["low_importance_weight"],
    ),
    "vLLM's weights, as trl#5814 measured them": (
        changed(healthy(), sampling__importance_sampling_ratio__mean=0.57),
        ["healthy"],
    ),
    "nine of ten groups tied for sixty steps": (changed(flat(60), frac_reward_zero_std=0.9), ["no_gradient"]),
    "nine of ten groups tied for forty steps": (changed(flat(40), frac_reward_zero_std=0.9), ["no_learning"]),
    "a penalty that is never triggered": (
        changed(healthy(), rewards__overlong_penalty__mean=0.0, rewards__overlong_penalty__std=0.0),
        ["healthy", "unpaid_reward"],
    ),
    "the same in a run that learns nothing": (
        changed(flat(), rewards__overlong_penalty__mean=0.0, rewards__overlong_penalty__std=0.0),
        ["no_learning"],
    ),
    "completions that shrink": (NOTED["shrinking_completions"], ["healthy", "shrinking_completions"]),
}


@pytest.mark.parametrize(("log", "said"), SAID.values(), ids=SAID)
def test_all_that_is_said_of_a_log(log, said):
    assert codes(log) == said


def severities(log: list[dict]) -> list[tuple[str, str]]:
    return [(finding.code, finding.severity) for finding in diagnose(log)]


def test_what_every_completion_satisfies_is_no_fault_and_the_fault_comes_first():
    rewards = {"strategy": (10.0, lambda s: 0.7 if s <= 24 else 0.3)}
    constraints = dict(rewards__works__mean=1.0, rewards__works__std=0.0, rewards__no_cheating__mean=1.0)
    log = changed(simulate(60, rewards, groups=2, seed=3), **constraints)
    assert severities(log) == [("falling_reward", "error"), ("constant_reward", "note")]
    assert "works = 1, no_cheating = 1" in diagnose(log)[1].seen


def test_a_constant_reward_that_is_the_only_one_or_pays_less_than_nothing_is_dead():
    alone = changed(flat(25), reward=1.0, reward_std=0.0, frac_reward_zero_std=1.0)
    alone = [{key: value for key, value in entry.items() if not key.startswith("rewards/")} for entry in alone]
    assert severities(changed(alone, rewards__works__mean=1.0, rewards__works__std=0.0))[0] == ("dead_reward", "error")
    assert "dead_reward" in codes(changed(healthy(), rewards__works__mean=-0.5, rewards__works__std=0.0))


def test_a_correctness_reward_that_pays_every_completion_may_be_right():
    log = changed(healthy(40), rewards__check_answer__mean=2.0, rewards__check_answer__std=0.0)
    assert severities(log) == [("dead_reward", "warning")]


#: A run whose language reward rises, with a reward for correct answers.
def without_answers(steps: int, **metrics) -> list[dict]:
    log = simulate(steps, {"language_reward": (5.0, bend(0.1, 0.9, 40, 15))}, groups=4, seed=7)
    return changed(log, rewards__check_answer__std=0.0, **metrics)


def test_a_reward_that_rises_while_no_answer_is_ever_correct_is_an_error():
    log = without_answers(100, rewards__check_answer__mean=-2.0)
    assert severities(log) == [("dead_reward", "error"), ("gain_without_answers", "error")]
    assert "language_reward" in diagnose(log)[1].seen and "check_answer = -2" in diagnose(log)[1].seen


def test_a_young_run_may_learn_the_language_first():
    assert "gain_without_answers" not in codes(without_answers(90, rewards__check_answer__mean=-2.0))


@pytest.mark.parametrize("steps", range(100, 301, 40))
def test_a_reward_that_rises_with_its_answers_is_no_gain_without_answers(steps):
    rewards = {"check_answer": (2.0, lambda s: 0.05 + s / 600), "language_reward": (5.0, bend(0.1, 0.9, 40, 15))}
    assert "gain_without_answers" not in codes(simulate(steps, rewards, groups=4, seed=steps))


def test_right_samples_speak_against_a_gain_without_answers():
    log = without_answers(120, rewards__check_answer__mean=-2.0)
    sampled = check(heldout_right=14.0, heldout_sampled=16.0) | {"step": 120}
    assert "gain_without_answers" in codes(log) and "gain_without_answers" not in codes([*log, sampled])


def test_a_reward_that_rose_and_lost_its_gain_has_fallen():
    rise_and_fall = {"stage_reward": (1.0, lambda s: 0.4 if s < 60 else 0.7 if s < 160 else 0.4)}
    verdict = diagnose(simulate(200, rise_and_fall, groups=4, seed=5))[0]
    assert (verdict.code, verdict.severity) == ("falling_reward", "error") and "up to step" in verdict.seen


@pytest.mark.parametrize("seed", range(20))
def test_noise_is_no_fall(seed):
    log = simulate(150, {"stage_reward": (1.0, lambda s: 0.5)}, groups=1, seed=seed)
    assert ("falling_reward", "error") not in severities(log)


def test_weights_of_zero_without_a_difference_are_those_of_a_run_without_vllm():
    """Unsloth logs all of vLLM's metrics as 0 then."""
    none = dict(sampling__importance_sampling_ratio__mean=0.0, sampling__sampling_logp_difference__mean=0.0)
    assert codes(changed(healthy(), **none)) == ["healthy"]


def test_a_correctness_reward_without_its_spread_is_not_called_high():
    """TRL logged none until 0.16, so nothing shows what the reward can pay; the total rises by its format alone."""
    log = simulate(60, {"correctness_reward": (1.0, lambda s: 0.3), "xml": (2.0, bend(0.1, 0.9, 20, 5))}, seed=2)
    log = [{key: value for key, value in entry.items() if "/std" not in key} for entry in log]
    assert codes(log) == ["no_gain_shown"]


def test_errors_come_before_warnings():
    log = changed(BROKEN["reward_hacking_suspected"], rewards__strict__mean=0.0, rewards__strict__std=0.0)
    order = ["error", "warning", "note"]
    assert [order.index(severity) for _, severity in severities(log)] == sorted(
        order.index(severity) for _, severity in severities(log)
    )
    assert {"reward_hacking_suspected", "dead_reward"} <= {*codes(log)}


def test_a_dead_reward_that_was_told_is_not_told_again_when_others_come_alive():
    one = changed(healthy(12), rewards__a__mean=0.0, rewards__a__std=0.0)
    two = changed(one, rewards__b__mean=0.0, rewards__b__std=0.0)
    one, two = (subjects_of(diagnose(log)[0], read_history(log)) for log in (one, two))
    assert one == {"dead_reward a"} and two == {"dead_reward a", "dead_reward b"}


def test_a_code_has_one_rule_and_hides_only_codes_that_there_are():
    known = [rule.code for rule in RULES]
    assert len(known) == len(set(known))
    assert {code for rule in RULES for code in rule.hides} <= {*known, *LOST}
    assert {rule.symptom for rule in RULES} == {"", *LOST}


#: What a lost policy does not explain.
OF_OTHER_CAUSES = {"string_prompt", "tools_not_called", "low_importance_weight", "nan", "kl_explosion", "saturated"}
OF_OTHER_CAUSES |= {"begun_again", "reward_at_top", "slow_steps", "stalled", "unpaid_reward", "constant_reward"}


@pytest.mark.parametrize(
    "rule", [rule for rule in (*PROBLEMS, *NOTES) if isinstance(rule.example, list)], ids=lambda rule: rule.code
)
def test_a_symptom_is_not_listed_with_a_lost_policy(rule):
    listed = rule.code in codes(changed(rule.example, kl=5.0))
    assert listed == (rule.code in OF_OTHER_CAUSES), f"{rule.code}: give it symptom=…, or name it in OF_OTHER_CAUSES"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_finds_the_problem_in_its_example(rule):
    log = rule.example
    findings = [diagnose_error(log)] if isinstance(log, str) else diagnose(log)
    assert rule.code in [finding.code for finding in findings]


def test_every_limit_is_used():
    rules = "".join(path.read_text() for path in (HERE / "src" / "grpo_check" / "health").rglob("*.py"))
    for name in filter(str.isupper, vars(limits)):
        assert f"limits.{name}" in rules, name


#: Logs with a finding that is an error only when it is sure.
SURE = {
    "tools, in a young run": (changed(healthy(12), tools__call_frequency=0.0), "warning"),
    "tools": (changed(healthy(20), tools__call_frequency=0.0), "error"),
    "half of the weight": (changed(healthy(), sampling__importance_sampling_ratio__mean=0.45), "warning"),
    "nearly no weight": (changed(healthy(), sampling__importance_sampling_ratio__mean=0.05), "error"),
    "few groups teach": (changed(healthy(60), frac_reward_zero_std=0.9), "warning"),
    "few groups, and nothing is learned": (changed(flat(60), frac_reward_zero_std=0.9), "error"),
}


@pytest.mark.parametrize(("log", "severity"), SURE.values(), ids=SURE)
def test_what_may_be_no_fault_is_a_warning(log, severity):
    assert diagnose(log)[0].severity == severity


def test_nine_of_ten_groups_tied_at_the_top_is_no_fault():
    log = changed(BROKEN["saturated"], frac_reward_zero_std=0.9)
    assert codes(log) == ["saturated"]


def test_a_reward_that_is_never_paid_is_no_alarm_where_correctness_rose():
    log = changed(healthy(150), rewards__int_reward__mean=0.0, rewards__int_reward__std=0.0)
    assert [(finding.code, finding.severity) for finding in diagnose(log)] == [("dead_reward", "warning")]


def test_the_weight_that_differences_of_chance_leave_is_that_of_trl_s_mask():
    """TRL: the ratio of a completion is exp of the summed differences, and 0 if it is above 3."""
    noise, difference, tokens = random.Random(0), 0.03, 900
    spread = difference * math.sqrt(math.pi / 2)

    def ratio() -> float:
        return math.exp(sum(noise.gauss(-(spread**2) / 2, spread) for _ in range(tokens)))

    ratios = [ratio() for _ in range(1000)]
    kept = [one if one <= 3 else 0.0 for one in ratios]
    assert sum(kept) / len(kept) == pytest.approx(expected_weight(difference, tokens), abs=0.06)


def test_reward_std_does_not_hide_tied_groups():
    """The popular rule 'reward_std above 0.1 is fine' misses it: groups tie, and differ from each other."""
    verdict = diagnose(BROKEN["no_gradient"])[0]
    assert verdict.code == "no_gradient" and "reward_std over the batch is 0.49" in verdict.seen


def logged(log: list[dict], steps: int) -> list[dict]:
    """The log with `logging_steps`: each entry has the means of its steps, and the gradient of the last one.

    TRL also logs what is left when training ends, so the last entry may be the mean of fewer steps.
    """
    parts = [log[at : at + steps] for at in range(0, len(log), steps)]
    means = [{key: sum(e[key] for e in part) / len(part) for key in part[0]} for part in parts]
    kept = ("step", "grad_norm")
    return [mean | {key: part[-1][key] for key in kept} for mean, part in zip(means, parts, strict=True)]


def tied_in(log: list[dict], *steps: int) -> list[dict]:
    """The log with all groups tied in some steps."""
    return changed(
        log,
        frac_reward_zero_std=lambda i: 1.0 if i + 1 in steps else 0.3,
        grad_norm=lambda i: 0.0 if i + 1 in steps else 0.1,
    )


@pytest.mark.parametrize("run", [healthy, flat])
@pytest.mark.parametrize(
    ("steps", "tied"), [(60, range(51, 61)), (61, [61]), (65, range(61, 66)), (60, [30, 40, 50, 60])]
)
def test_one_entry_of_ten_tied_steps_is_no_tied_run(run, steps, tied):
    """The last entry, or what is left at the end, or the steps whose gradient is logged."""
    assert "no_gradient" not in codes(logged(tied_in(run(steps), *tied), 10))


@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize("tied", [range(7, 61), [n for n in range(1, 61) if n % 10], range(41, 61)])
def test_a_run_without_gradient_is_an_error_however_often_is_logged(steps, tied):
    """54 of 60 steps: at the end or spread over the run; or the last twenty."""
    finding = diagnose(logged(tied_in(flat(60), *tied), steps))[0]
    assert (finding.code, finding.severity) == ("no_gradient", "error")


@pytest.mark.parametrize("steps", [1, 10])
def test_a_gradient_of_zero_in_every_entry_is_an_error_however_often_is_logged(steps):
    finding = diagnose(logged(changed(flat(60), grad_norm=0.0), steps))[0]
    assert finding.code == "no_gradient" and finding.seen.startswith("grad_norm is 0")


def test_steps_of_which_most_have_no_gradient_are_a_warning():
    """With one group per step, a gradient of exactly zero is a step that was wasted."""
    rows = changed(
        flat(80), grad_norm=lambda i: 0.0 if i % 5 else 0.1, frac_reward_zero_std=lambda i: float(i % 5 > 0) / 2
    )
    finding = diagnose(rows)[0]
    assert (finding.code, finding.severity) == ("no_gradient", "warning") and "in 64 of 80 entries" in finding.seen
    assert "no_gradient" not in codes(changed(rows, grad_norm=lambda i: 0.0 if i % 2 else 0.1))


def constant_in(steps: int, **mean) -> list[dict]:
    """A run with a reward that gives all completions of a step the same score."""
    return changed(healthy(steps), rewards__f__std=0.0, **mean)


def test_one_entry_of_ten_steps_does_not_show_a_dead_reward():
    """Its mean hides that all completions score 1.0 in two of the steps, and 0.0 in the others."""
    log = constant_in(10, rewards__f__mean=lambda i: float(i in (2, 5)))
    assert "dead_reward" not in codes(logged(log, 10)) + codes(log)


def test_a_reward_that_scored_completions_only_in_the_last_entry_is_not_dead_yet():
    [*unscored, last] = logged(constant_in(25, rewards__f__mean=0.0), 10)
    log = [*changed(unscored, rewards__f__mean=None, rewards__f__std=None), last]
    assert "dead_reward" not in codes(log)


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_a_dead_reward_is_found_within_twenty_steps_however_often_is_logged(steps):
    assert "dead_reward" in codes(logged(constant_in(20, rewards__f__mean=0.0), steps))


def test_a_solved_task_is_no_alarm():
    assert diagnose(BROKEN["saturated"])[0].severity == "note"


def test_longer_answers_that_are_also_righter_are_no_hack():
    verdicts = diagnose(NOTED["growing_completions"])
    assert [verdict.code for verdict in verdicts] == ["healthy", "growing_completions"]
    assert {verdict.severity for verdict in verdicts} == {"note"}


def test_where_the_truth_is_not_logged_nobody_is_accused():
    """Length and reward that grow together are what R1-Zero looks like, too."""
    log = [{k: v for k, v in e.items() if "correct" not in k} for e in BROKEN["length_hacking"]]
    assert "length_hacking" not in codes(log)


def test_a_truth_of_another_name_can_be_named():
    log = [{k.replace("correctness_reward", "stage"): v for k, v in e.items()} for e in BROKEN["length_hacking"]]
    assert "length_hacking" not in codes(log)
    assert "length_hacking" in [verdict.code for verdict in diagnose(log, correctness=["stage"])]


def test_longer_completions_may_take_longer():
    log = changed(
        healthy(), step_time=lambda i: 0.3 * (1 + i / 10), completions__max_length=lambda i: 19.0 * (1 + i / 10)
    )
    assert "slow_steps" not in codes(log)


# --- logs of other versions, and of other people


def old(log: list[dict], version: str) -> list[dict]:
    """The same log as an older TRL would have written it."""
    gone = {"0.17": r"frac_|entropy|step_time", "0.19": r"entropy|step_time", "0.25": r"step_time"}[version]
    return [{k: v for k, v in e.items() if not re.search(gone, k)} for e in log]


@pytest.mark.parametrize("version", ["0.17", "0.19", "0.25"])
def test_older_logs_are_read(version):
    assert codes(old(healthy(), version)) == ["healthy"]
    for code in ("nan", "kl_explosion", "length_hacking", "reward_hacking_suspected", "dead_reward", "no_learning"):
        assert code in codes(old(BROKEN[code], version)), code


@pytest.mark.parametrize("log", [[], [{"loss": 1.0, "step": 1}], [{"train_runtime": 3.0}]])
def test_a_log_without_a_reward_is_an_error(log):
    with pytest.raises(CourseError, match="no GRPO step in this log"):
        diagnose(log)


KEYS = [*healthy(1)[0], "kl", "rewards/f", "completion_length", "health/distinct", "something/else"]
KEYS += ["tools/call_frequency", "sampling/importance_sampling_ratio/mean", "sampling/sampling_logp_difference/mean"]
NUMBERS = st.one_of(st.none(), st.floats(), st.integers(-5, 500), st.sampled_from(["NaN", "inf", "text"]))


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), NUMBERS), max_size=30))
def test_no_log_makes_it_raise_anything_but_a_course_error(log):
    try:
        verdicts = diagnose(log)
    except CourseError:
        return
    assert verdicts and all(isinstance(verdict, Finding) and str(verdict) for verdict in verdicts)


@given(st.floats(0.05, 1.0), st.floats(0.1, 10.0))
def test_the_share_of_right_answers_does_not_depend_on_what_one_is_worth(p, worth):
    assert share_right([worth * p], [worth * math.sqrt(p * (1 - p))]) == pytest.approx(p, abs=1e-6)


# --- errors


@pytest.mark.parametrize(
    "text",
    [
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 14.56 GiB",
        "HIP out of memory. Tried to allocate 1.00 GiB",
        "[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 8",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ],
)
def test_a_lack_of_memory_is_recognised(text):
    verdict = diagnose_error(RuntimeError(text), step=7)
    assert verdict.code == "out_of_memory" and "(step 7)" in verdict.what
    assert "per_device_train_batch_size" in verdict.fixes[0]


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("accuracy_reward() missing 1 required positional argument: 'solution'", "the column 'solution'"),
        ("Judge.__call__() missing 2 required keyword-only arguments: 'a' and 'b'", "the columns 'a', 'b'"),
    ],
)
def test_a_column_that_a_reward_lacks_is_named(text, needed):
    finding = diagnose_error(TypeError(text))
    assert finding.code == "missing_column" and needed in finding.what and text.partition("(")[0] in finding.what


@pytest.mark.parametrize("name", ["completions", "old_hidden_states"])
def test_an_argument_that_no_column_provides_is_no_missing_column(name):
    assert diagnose_error(TypeError(f"f() missing 1 required positional argument: '{name}'")) is None


def test_a_trainer_without_its_arguments_misses_no_column():
    error = "GRPOTrainer.__init__() missing 2 required positional arguments: 'model' and 'reward_funcs'"
    assert diagnose_error(TypeError(error)) is None


def test_vllm_without_room_for_its_cache_needs_a_larger_share():
    verdict = diagnose_error(ValueError("No available memory for the cache blocks. Try increasing the share."))
    assert verdict.code == "out_of_memory"
    assert "raise vllm_gpu_memory_utilization" in verdict.fixes[0]


def test_pythons_own_memory_error_is_one_too_and_others_are_not_explained_away():
    assert diagnose_error(MemoryError()).code == "out_of_memory"
    assert diagnose_error(ValueError("no such column")) is None


# --- files and the terminal


def state(log: list[dict]) -> str:
    return json.dumps({"global_step": len(log), "log_history": log})


def test_a_trainer_state_a_folder_a_list_and_lines_are_read(tmp_path):
    log = healthy()
    (tmp_path / "checkpoint-40").mkdir()
    file = tmp_path / "checkpoint-40" / "trainer_state.json"
    file.write_text(state(log))
    (tmp_path / "list.json").write_text(json.dumps(log))
    (tmp_path / "lines.jsonl").write_text("\n".join(json.dumps(e) for e in log))
    (tmp_path / "blank-lines.jsonl").write_text("\n\n".join(json.dumps(e) for e in log) + "\n \n")
    names = ("list.json", "lines.jsonl", "blank-lines.jsonl")
    for path in (file, tmp_path, *(tmp_path / name for name in names)):
        assert read_log(path) == log


def test_of_two_logs_of_the_same_step_the_longer_one_is_read(tmp_path):
    for folder, log in (("checkpoint-40", healthy()), ("health", [*healthy(), check(stalled=312.0)])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "trainer_state.json").write_text(json.dumps({"global_step": 40, "log_history": log}))
    assert [finding.code for finding in diagnose_file(tmp_path)] == ["stalled"]


def test_nan_survives_the_file(tmp_path):
    (tmp_path / "trainer_state.json").write_text(state(BROKEN["nan"]))
    assert [v.code for v in diagnose_file(tmp_path)] == ["nan"]


BAD_FILES = {
    "gone.json": (None, "There is no file"),
    "empty.json": ("", "contains no log"),
    "cut.json": ('{"log_history": [{"reward": 1.0}, {"rew', "may be incomplete"),
    "other.json": ('{"a": 1}', "contains no log"),
    "number.json": ("3", "contains no log"),
    "sft.json": ('{"log_history": [{"loss": 1.0, "step": 1}]}', "no entry has a 'reward' (found: loss, step)"),
    "words.txt": ("it does not work\nplease help", "Its last line is 'please help'"),
    "note.log": ("the GPU was out of memory once\nKeyError: 'answer'", "Its last line is \"KeyError: 'answer'\""),
    "table.csv": ("name,size\na,1", "Its last line is 'a,1'"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_a_clear_error(tmp_path, name):
    text, message = BAD_FILES[name]
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(CourseError, match=re.escape(message)):
        diagnose_file(tmp_path / name)


def test_a_folder_without_a_log_and_a_file_that_is_no_text(tmp_path):
    with pytest.raises(CourseError, match="no trainer_state.json in"):
        diagnose_file(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x89\x00\xfe\x81")
    with pytest.raises(CourseError, match="is not text"):
        diagnose_file(tmp_path / "model.safetensors")


def test_from_the_terminal(grpo_check, tmp_path):
    file = tmp_path / "log.json"
    file.write_text(state(healthy()))
    code, said, _ = grpo_check("health", file)
    assert code == 0 and said.startswith("note    healthy: ")
    file.write_text(state(BROKEN["dead_reward"]))
    code, said, _ = grpo_check("health", file)
    assert code == 0 and said.startswith("warning dead_reward") and "strict_format_reward = 0" in said
    file.write_text("{")
    code, _, said = grpo_check("health", file)
    assert code == 2 and said.startswith("Error: ")


def test_a_traceback_from_the_terminal(grpo_check, tmp_path):
    file = tmp_path / "error.txt"
    file.write_text("Traceback …\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB")
    code, said, _ = grpo_check("health", file)
    assert code == 1 and said.startswith("error   out_of_memory: ")
    file.write_text("[rank0]: TypeError: accuracy_reward() missing 1 required positional argument: 'solution'")
    code, said, _ = grpo_check("health", file)
    assert code == 1 and said.startswith("error   missing_column: accuracy_reward needs the column 'solution'")


def test_trl_misses_ties_of_rewards_that_float32_rounds():
    """grpo_check/docs/checks.md tells readers to choose rewards in multiples of 0.25."""
    import torch
    from trl.trainer.grpo_trainer import nanstd

    def share_tied(reward: float) -> float:
        spread = nanstd(torch.full((8, 8), reward), dim=1)
        return torch.isclose(spread, torch.zeros_like(spread)).float().mean().item()

    assert [share_tied(reward) for reward in (0.25, 0.5, 1.0, 3.0)] == [1.0] * 4
    assert share_tied(1.2) == share_tied(0.2) == 0.0


def test_the_time_grows_no_faster_than_the_log():
    """A log is judged again and again while it grows, so a long run must not wait for its own diagnosis."""

    def seconds(steps: int) -> float:
        started = process_time()
        diagnose(
            [{"step": step, "loss": 0.1, "reward": step / steps, "reward_std": 0.2} for step in range(1, steps + 1)]
        )
        return process_time() - started

    short, long = (min(seconds(steps) for _ in range(2)) for steps in (1000, 4000))
    assert long < 10 * short + 0.2, (short, long)
