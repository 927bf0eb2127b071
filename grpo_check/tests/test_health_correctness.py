"""What a verdict may say about correctness, on logs drawn after runs of the tiny model with faulty rewards.

The rewards were named `score`. True accuracy afterwards, on 100 held-out prompts: tags 0, inverted 0, noisy 85.
"""

import random
from types import SimpleNamespace

import pytest
from grpo_check.health import watching
from grpo_check.health.diagnosis import judge, urgent
from grpo_check.health.rules.rule import log_of
from grpo_check.logs.log import read_history
from health_logs import bend, check, codes, healthy

from grpo_check import HealthCallback, diagnose, diagnose_file
from grpo_utils.data.prompts import SYSTEM_PROMPT, chat_prompt


def scored(steps: int, reward, spread: float, tied=lambda step: 0.0, **metrics) -> list[dict]:
    """A log with one reward of an unknown name, and the noise of 64 completions."""
    noise = random.Random(0)
    spreads = [spread * (1 - tied(step)) for step in range(1, steps + 1)]
    means = [reward(step) + noise.gauss(0, varies / 8) for step, varies in enumerate(spreads, start=1)]
    score = dict(rewards__score__mean=lambda step: means[step - 1], rewards__score__std=lambda step: spreads[step - 1])
    return log_of(
        steps,
        reward=lambda step: means[step - 1],
        reward_std=lambda step: spreads[step - 1],
        frac_reward_zero_std=tied,
        loss=0.0,
        grad_norm=lambda step: 0.0 if tied(step) == 1 else 0.1,
        entropy=0.1,
        **score,
        **metrics,
    )


#: One point per tag: the policy writes tags up to the limit. As measured: all completions are cut off from step 20 on.
TAGS = scored(
    60,
    bend(1.8, 32.0, 18, 1.0),
    1.5,
    tied=lambda step: 0.0 if step < 20 else 0.75 if step < 35 else 1.0,
    completions__mean_length=bend(16.0, 32.0, 16, 2.0),
    completions__max_length=32.0,
    completions__clipped_ratio=bend(0.0, 1.0, 18, 1.0),
    completions__max_terminated_length=lambda step: 24.0 if step < 19 else 0.0,
)
#: Wrong answers pay 1; every group ties from step 12 on.
INVERTED = scored(40, bend(0.7, 1.0, 5, 1.0), 0.4, tied=lambda step: min(1.0, step / 12))
#: A reward that is noise in four of ten cases.
NOISY = scored(60, bend(0.33, 0.69, 8, 2.0), 0.47)


def sampled(right: int, step: int) -> dict:
    return check(heldout_right=float(right), heldout_sampled=16.0) | {"step": step}


def as_correctness(log: list[dict]) -> list[dict]:
    return [{key.replace("/score/", "/correctness_reward/"): value for key, value in e.items()} for e in log]


@pytest.mark.parametrize("log", [TAGS, INVERTED, NOISY], ids=["tags", "inverted", "noisy"])
def test_without_evidence_no_step_is_called_healthy_or_solved(log):
    told = {code for steps in range(10, len(log) + 1) for code in codes(log[:steps])}
    assert "unchecked" in told and not told & {"healthy", "saturated"}


def test_tags_up_to_the_limit_are_a_hack_and_the_advice_is_not_a_higher_limit():
    told = {code for steps in range(10, len(TAGS) + 1) for code in codes(TAGS[:steps])}
    assert "length_hacking" in told and not told & {"all_truncated", "no_eos", "reward_at_top"}
    assert not any(fix.startswith("raise max_completion_length") for fix in diagnose(TAGS)[0].fixes)


def test_answers_that_grow_into_the_limit_while_correctness_rises_need_a_higher_limit():
    assert "length_hacking" not in codes(as_correctness(TAGS))


#: Evidence that is added to a log, and what is then said of it.
SHOWN = {
    "tied at the top, nothing else": (INVERTED, ["reward_at_top"]),
    "tied at the top, wrong samples": ([*INVERTED, sampled(0, 40)], ["reward_hacking_suspected"]),
    "tied at the top, correct samples": ([*INVERTED, sampled(15, 40)], ["saturated"]),
    "tied at the top, samples in between": ([*INVERTED, sampled(10, 40)], ["reward_at_top"]),
    "tied at the top, old samples": ([*INVERTED, sampled(0, 10)], ["reward_at_top"]),
    "a correctness reward at its top": (as_correctness(INVERTED), ["saturated"]),
    "one that samples contradict": ([*as_correctness(INVERTED), sampled(1, 40)], ["reward_hacking_suspected"]),
    "it rises, nothing else": (NOISY, ["unchecked"]),
    "it rises, samples": ([*NOISY, sampled(11, 60)], ["healthy"]),
    "it rises, old samples": ([*NOISY, sampled(11, 20)], ["unchecked"]),
    "a correctness reward rises": (as_correctness(NOISY), ["healthy"]),
    "broken counts": ([*NOISY, sampled(20, 60)], ["unchecked"]),
}


@pytest.mark.parametrize(("log", "said"), SHOWN.values(), ids=SHOWN)
def test_what_is_said_depends_on_what_was_looked_at(log, said):
    assert codes(log) == said


def test_a_declared_correctness_reward_is_evidence():
    assert [verdict.code for verdict in diagnose(NOISY, correctness=["score"])] == ["healthy"]


def test_healthy_says_what_was_looked_at():
    seen = diagnose([*healthy(40), sampled(12, 40)])[0].seen
    assert "correctness_reward 0." in seen and "12 of 16 sampled held-out answers correct" in seen


def watched(log: list[dict], right: int, folder, monkeypatch) -> list[int]:
    """Give a log to the callback step by step; sampled answers are correct in so many of 16 cases. Where it sampled."""
    import torch
    from transformers import TrainerState

    same = dict(in_form=True, ended=True)
    found = [dict(prompt=str(n), gold=str(n), text=str(n), right=n < right, answers=n < right) for n in range(16)]
    samples = [one | same for one in found]
    monkeypatch.setattr(watching, "take_samples", lambda *args: samples)
    state = TrainerState()
    args = SimpleNamespace(
        output_dir=str(folder), deepspeed=None, fsdp=None, gradient_accumulation_steps=1, fp16=False,
        max_completion_length=32, per_device_train_batch_size=8, chat_template_kwargs=None,
    )  # fmt: skip
    rows = [{"prompt": chat_prompt(f"{n}?", SYSTEM_PROMPT), "answer": str(n)} for n in range(16)]
    how = dict(model=torch.nn.Linear(1, 1), processing_class=SimpleNamespace(chat_template="", name_or_path="tiny"))
    watcher, control = HealthCallback(rows, every=1000), SimpleNamespace(should_save=False)
    watcher.on_train_begin(args, state, control, train_dataloader=SimpleNamespace(dataset=rows), **how)
    for entry in log:
        state.global_step = entry["step"]
        state.log_history.append(entry)
        watcher.on_log(args, state, control, **how)
    watcher.on_train_end(args, state, control, **how)
    return [entry["step"] for entry in state.log_history if "health/heldout_right" in entry]


@pytest.mark.parametrize(
    ("log", "right", "steps", "code"),
    [
        (INVERTED, 0, [10, 40], "reward_hacking_suspected"),
        (INVERTED, 16, [10, 40], "saturated"),
        (NOISY, 11, [60], "healthy"),
    ],
)
def test_the_callback_samples_at_the_top_and_at_the_end(log, right, steps, code, tmp_path, monkeypatch, capsys):
    assert watched(log, right, tmp_path / "checkpoints", monkeypatch) == steps
    said = capsys.readouterr().out
    assert diagnose_file(tmp_path)[0].code == code  # the folder of a run without checkpoints
    assert f"after {log[-1]['step']} steps: {code} (" in said and f"{right} of 16 sampled" in said
    assert ("saturated" in said) == (code == "saturated")


def test_a_few_entries_of_many_steps_each_are_not_judged_as_a_run():
    """Three entries of 10 steps show neither what was correct at first nor that the reward rose."""
    tied = {"reward": 1.0, "frac_reward_zero_std": 1.0, "loss": 0.1, "grad_norm": 0.1}
    log = read_history([{"step": step} | tied for step in (410, 420, 430)], ())
    assert judge(log) and urgent(log) == []
    lost = read_history([{"step": step} | tied | {"loss": float("nan")} for step in (410, 420, 430)], ())
    assert [finding.code for finding in urgent(lost)] == ["nan"]


@pytest.mark.slow
def test_the_callback_samples_before_it_judges_a_reward_at_its_top(tmp_path, capsys):
    """An inverted reward: before, the callback called this run saturated, with nearly all answers correct."""
    from tiny_trainer import healthy_trainer

    from grpo_utils import completion_text, load_rows
    from grpo_utils.rewards import is_strictly_right

    def score(completions, answer, **kwargs):
        texts = map(completion_text, completions)
        return [1.0 - is_strictly_right(text, gold) for text, gold in zip(texts, answer, strict=True)]

    watcher = HealthCallback(load_rows("addition", "test", 16))
    how = dict(functions=[score], reward_weights=[1.0], learning_rate=2e-3, max_steps=16)
    healthy_trainer(tmp_path, callbacks=[watcher], **how).train()
    said = capsys.readouterr().out
    assert "health: error   reward_hacking_suspected: " in said
    assert "saturated" not in said and "healthy" not in said


def truth_of(mean) -> list[dict]:
    """Forty entries in which a correctness reward has these means, with noise, and the total reward rises."""
    return log_of(
        40,
        reward=lambda step: 0.2 + 0.01 * step + 0.01 * (-1) ** step,
        reward_std=0.4,
        frac_reward_zero_std=0.1,
        rewards__accuracy_reward__mean=lambda step: mean(step) + 0.01 * (-1) ** step,
        rewards__accuracy_reward__std=0.3,
        loss=0.0,
        grad_norm=0.5,
    )


RISING = truth_of(lambda step: 0.19 + 0.01 * step)


def test_a_run_whose_correctness_does_not_rise_is_not_healthy():
    flat, high = truth_of(lambda step: 0.03), truth_of(lambda step: 0.7)
    assert "healthy" not in codes(flat) and codes(flat)
    assert "healthy" in codes(RISING) and "healthy" in codes(high)


def test_wrong_samples_veto_healthy():
    assert "healthy" not in codes([*RISING, sampled(0, 40)]) and "healthy" in codes([*RISING, sampled(14, 40)])
