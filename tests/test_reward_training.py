"""Rewards inside real training: weights adapt, and a resumed run has the same weights."""

import pytest
from reward_lists import RECIPES
from tiny_trainer import tiny_trainer

from grpo_utils.data.sources import addition_rows

pytestmark = pytest.mark.slow
RECIPE = RECIPES["adaptive_reward"]
REWARD, PARTS = RECIPE["adaptive_reward"], {reward.__name__: weight for reward, weight in RECIPE["PARTS"].items()}


def trained(folder, rewards: list, steps: int = 6, stop_at: int | None = None, resume: bool = False) -> list[dict]:
    """The log of a short real run; ``stop_at`` ends it early, ``resume`` goes on from its checkpoint."""
    from datasets import Dataset
    from transformers import TrainerCallback

    class Stop(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = state.global_step == stop_at

    sizes = dict(max_steps=steps, per_device_train_batch_size=16, save_strategy="steps", save_steps=3)
    trainer = tiny_trainer(folder, rewards, Dataset.from_list(addition_rows(40)), callbacks=[Stop()], **sizes)
    trainer.train(resume_from_checkpoint=resume)
    return [entry for entry in trainer.state.log_history if "reward" in entry]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("unbroken"), [REWARD])


def weights_in(log: list[dict]) -> list[list[float]]:
    return [[entry[f"weights/{name}"] for name in PARTS] for entry in log]


def test_the_weights_change_during_training_as_the_pure_function_says(unbroken):
    logged = weights_in(unbroken)
    assert logged[0] == pytest.approx(list(PARTS.values()))
    assert all(later != logged[0] for later in logged[1:])
    for step, weights in enumerate(logged):
        wanted = [RECIPE["weight_now"](*part, unbroken[:step]) for part in PARTS.items()]
        assert weights == pytest.approx(wanted, rel=1e-5)


def test_the_logged_reward_is_the_sum_with_these_weights(unbroken):
    for entry, weights in zip(unbroken, weights_in(unbroken)):
        parts = [entry[f"rewards/{name}/mean"] * weight for name, weight in zip(PARTS, weights)]
        assert entry["reward"] == pytest.approx(sum(parts), rel=1e-4)


def test_a_resumed_run_has_the_same_weights(unbroken, tmp_path):
    assert len(trained(tmp_path, [REWARD], stop_at=3)) == 3
    resumed = trained(tmp_path, [REWARD], resume=True)
    assert weights_in(resumed) == weights_in(unbroken)
    assert [entry["reward"] for entry in resumed] == [entry["reward"] for entry in unbroken]
