"""Real runs of the tiny models, watched: ten healthy ones, and what the callback does and leaves undone."""

import json
import time

import pytest

from grpo_utils import (
    HealthCallback,
    diagnose,
    keep_trainable_fp32,
    load_policy,
    load_rows,
    math_rewards,
    training_arguments,
)
from grpo_utils.profiles import CPU

pytestmark = pytest.mark.slow
FAMILIES = {"qwen": "tiny-qwen3", "gemma": "tiny-gemma3"}


def trainer_of(folder, family="qwen", seed=0, callbacks=(), **changes):
    """The healthy run of lesson 04, with changes."""
    from transformers.trainer_callback import PrinterCallback
    from trl import GRPOConfig, GRPOTrainer

    policy, tokenizer = load_policy(
        FAMILIES[family], profile=CPU, backend="transformers", load_in_4bit=False, seed=seed
    )
    rewards, weights = math_rewards()
    usual = dict(
        output_dir=str(folder), learning_rate=1e-3, lr_scheduler_type="constant", seed=seed, reward_weights=weights
    )
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(CPU, **{**usual, **changes})),
        train_dataset=load_rows("addition", "train", 2000, seed),
        reward_funcs=rewards,
        callbacks=list(callbacks),
    )
    keep_trainable_fp32(policy)
    trainer.remove_callback(PrinterCallback)
    return trainer


def adapter(trainer) -> dict:
    return {name: value.detach().clone() for name, value in trainer.model.named_parameters() if value.requires_grad}


def same(one: dict, other: dict) -> bool:
    return all(bool((one[name] == other[name]).all()) for name in one)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("family", FAMILIES)
def test_healthy_runs_raise_no_alarm_at_any_step(tmp_path, family, seed):
    trainer = trainer_of(tmp_path, family, seed, max_steps=30)
    trainer.train()
    log = trainer.state.log_history
    for steps in range(10, 31):
        assert [verdict.code for verdict in diagnose(log[:steps])] == ["healthy"], steps


def test_a_watched_run_trains_as_an_unwatched_one(tmp_path):
    watcher = HealthCallback(load_rows("addition", "test", 16), every=2)
    watched = trainer_of(tmp_path / "a", callbacks=[watcher], max_steps=5)
    watched.train()
    alone = trainer_of(tmp_path / "b", max_steps=5)  # built now: a trainer seeds all random numbers
    alone.train()
    rewards = [[e["reward"] for e in t.state.log_history if "reward" in e] for t in (watched, alone)]
    assert rewards[0] == rewards[1]
    assert same(adapter(watched), adapter(alone))
    assert (tmp_path / "a" / "health" / "samples.txt").read_text().count("=== step") == 2
    lines = (tmp_path / "a" / "health" / "checks.csv").read_text().splitlines()
    assert lines[0] == "step,n,in_form,low,high,right,ended,distinct" and len(lines) == 3


def test_a_lost_run_is_saved_beside_its_checkpoints_and_stopped(tmp_path, capsys):
    trainer = trainer_of(
        tmp_path,
        callbacks=[HealthCallback()],
        max_steps=20,
        beta=0.04,
        learning_rate=0.05,
        save_strategy="steps",
        save_steps=2,
        save_total_limit=1,
    )
    trainer.train()
    assert trainer.state.global_step < 12
    lost = next(tmp_path.glob("lost-at-step-*"))
    assert (lost / "adapter_model.safetensors").exists() and (lost / "tokenizer.json").exists()
    log = json.loads((lost / "trainer_state.json").read_text())["log_history"]
    assert [verdict.code for verdict in diagnose(log)] == ["kl_explosion"]
    assert list(tmp_path.glob("checkpoint-*"))
    said = capsys.readouterr().out
    assert said.count("health: kl_explosion") == 1 and "Earlier checkpoints are untouched" in said
    assert said.count("health: kl_explosion") == (tmp_path / "health" / "verdicts.txt").read_text().count(
        "kl_explosion: the"
    )


def test_a_nan_stops_the_run_unless_told_not_to(tmp_path):
    import torch

    from grpo_utils.rewards import correctness_reward

    def poisoned(completions, trainer_state, **kwargs):
        """At step 3 something puts NaN into the adapter, as an overflow would."""
        if trainer_state.global_step == 3:
            with torch.no_grad():
                next(p for p in trainer.model.parameters() if p.requires_grad).fill_(float("nan"))
        return correctness_reward(completions, **kwargs)

    trainer = trainer_of(tmp_path, callbacks=[HealthCallback()], max_steps=12)
    trainer.reward_funcs[0] = poisoned
    trainer.train()
    assert trainer.state.global_step == 4
    assert [verdict.code for verdict in diagnose(trainer.state.log_history)] == ["nan"]
    assert (tmp_path / "lost-at-step-4" / "trainer_state.json").exists()


def test_a_resumed_run_adds_to_its_files(tmp_path):
    rows = load_rows("addition", "test", 4)
    keep = dict(save_strategy="steps", save_steps=2)
    trainer_of(tmp_path, callbacks=[HealthCallback(rows, every=2)], max_steps=2, **keep).train()
    trainer = trainer_of(tmp_path, callbacks=[HealthCallback(rows, every=2)], max_steps=4, **keep)
    trainer.train(resume_from_checkpoint=True)
    steps = [line.split(",")[0] for line in (tmp_path / "health" / "checks.csv").read_text().splitlines()]
    assert steps == ["step", "2", "4"]
    assert [e["step"] for e in trainer.state.log_history if "health/distinct" in e] == [2, 4]


def test_the_callback_costs_under_one_percent_of_a_training(tmp_path):
    """Its own seconds a step, with one sampling in the usual hundred steps; the best of three on a busy machine."""

    class Timed(HealthCallback):
        logging, sampling = 0.0, 0.0

        def on_log(self, *args, **kwargs):
            started = time.perf_counter()
            super().on_log(*args, **kwargs)
            self.logging += time.perf_counter() - started

        def on_step_end(self, *args, **kwargs):
            started = time.perf_counter()
            super().on_step_end(*args, **kwargs)
            self.sampling += time.perf_counter() - started

    usual, steps = HealthCallback().every, 30
    for attempt in range(3):
        watcher = Timed(load_rows("addition", "test", 64), every=steps)
        trainer = trainer_of(tmp_path / str(attempt), callbacks=[watcher], max_steps=steps)
        started = time.perf_counter()
        trainer.train()
        a_step = (time.perf_counter() - started) / steps
        share = (watcher.logging / steps + watcher.sampling / usual) / a_step
        assert (tmp_path / str(attempt) / "health" / "samples.txt").exists()
        if share < 0.01:
            break
    assert share < 0.01
