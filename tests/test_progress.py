"""The progress bar of the lessons shows what TRL logs, and survives what it does not know."""

from transformers import TrainerControl, TrainerState

from grpo_utils.progress import ProgressBar


def test_a_reward_that_scored_nothing_is_left_out_and_the_training_goes_on(capsys):
    """TRL logs None for a reward that returned None for every completion since the last log."""
    bar, state, control = ProgressBar(), TrainerState(max_steps=2, global_step=1), TrainerControl()
    bar.on_train_begin(None, state, control)
    bar.on_log(None, state, control, logs={"reward": 0.5, "rewards/correctness_reward/mean": None})
    bar.on_train_end(None, state, control)
    shown = capsys.readouterr().out
    assert "reward=0.50" in shown
    assert "correct=" not in shown
