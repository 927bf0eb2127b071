"""Training ends by the clock: when, what it says, and that a run stopped by it is complete."""

from types import SimpleNamespace

import pytest
from grpo_core.training import time_limit
from tiny_trainer import healthy_trainer

from grpo_utils import TimeLimit


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a test moves it."""
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(time_limit.time, "monotonic", lambda: clock.now)
    return clock


def steps_done(limit, clock, seconds, save="no"):
    """The steps of a run whose steps take these ``seconds``, and what the callback asked for at its end."""
    state = SimpleNamespace(global_step=0, max_steps=len(seconds), is_world_process_zero=True)
    args, control = SimpleNamespace(save_strategy=save), SimpleNamespace(should_training_stop=False, should_save=False)
    limit.on_train_begin(args, state, control)
    for step in seconds:
        clock.now += step
        state.global_step += 1
        limit.on_step_end(args, state, control)
        if control.should_training_stop:
            break
    limit.on_train_end(args, state, control)
    return state.global_step, control


def test_the_last_step_ends_before_the_limit(clock):
    limit = TimeLimit(30)
    done, _ = steps_done(limit, clock, [60] * 60)
    assert done == 30 and "after 30 of 60 steps" in limit.note and "limit of 30 minutes" in limit.note


def test_a_first_step_that_compiles_is_no_measure_of_the_others(clock):
    done, _ = steps_done(TimeLimit(10), clock, [400, *[20] * 30])
    assert done == 11  # 400 + 10 x 20 = 600 s


def test_a_step_that_would_end_later_is_not_begun(clock):
    assert steps_done(TimeLimit(10), clock, [10, 250, 250, 250])[0] == 3  # a fourth would end after 760 s


def test_a_run_that_ends_in_time_says_nothing(clock, capsys):
    limit = TimeLimit(30)
    assert steps_done(limit, clock, [60] * 30)[0] == 30 and limit.note == "" and capsys.readouterr().out == ""


def test_no_limit_is_no_limit(clock):
    assert steps_done(TimeLimit(0), clock, [3600] * 9)[0] == 9


@pytest.mark.parametrize(("save", "asked"), [("no", False), ("steps", True)])
def test_a_stopped_run_is_saved_if_runs_are_saved(clock, capsys, save, asked):
    limit = TimeLimit(1)
    _, control = steps_done(limit, clock, [40, 40, 40], save)
    assert control.should_save is asked and capsys.readouterr().out == limit.note + "\n"


@pytest.mark.parametrize("minutes", [-1, float("nan"), float("inf"), "30", None, True])
def test_a_limit_that_is_no_time_is_refused(minutes):
    with pytest.raises(ValueError, match="it must be a number above 0, or 0 for no limit"):
        TimeLimit(minutes)


@pytest.mark.slow
def test_a_real_run_stops_and_can_be_resumed(tmp_path):
    limit = TimeLimit(0.001)
    saved = dict(max_steps=4, save_strategy="steps", save_steps=25)
    healthy_trainer(tmp_path, callbacks=[limit], **saved).train()
    assert limit.note and [path.name for path in tmp_path.glob("checkpoint-*")] == ["checkpoint-1"]
    resumed = healthy_trainer(tmp_path, callbacks=[TimeLimit(30)], **saved)
    resumed.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    assert resumed.state.global_step == 4
