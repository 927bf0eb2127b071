"""Plans of stages, whole and half checkpoints: what is refused, what is passed over, what is said."""

import json
import shutil
from dataclasses import dataclass, replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils.errors import CourseError
from grpo_utils.rewards import AdaptiveReward, correctness_reward, strict_format_reward
from grpo_utils.run.folder import checkpoint_problem, newest_checkpoint
from grpo_utils.stages import Stage, check_save_steps, check_stages, describe, load_saved_adapter

FORM = Stage("form", [strict_format_reward], [1.0], steps=4, rows=[{"prompt": "?", "answer": "1"}])


def test_a_sound_plan_passes():
    check_stages([FORM, replace(FORM, name="sums", rewards=[correctness_reward])])


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([], "no stages to train"),
        ([FORM, FORM], "Two stages are called 'form'"),
        ([replace(FORM, name="a/b")], "becomes a folder"),
        ([replace(FORM, name="")], "becomes a folder"),
        ([replace(FORM, rewards=[], weights=[])], "no rewards"),
        ([replace(FORM, weights=[1.0, 2.0])], "1 rewards and 2 weights"),
        ([replace(FORM, steps=0)], "steps=0"),
        ([replace(FORM, rows=[])], "no rows"),
        ([replace(FORM, overrides={"max_steps": 9})], "overrides 'max_steps', which is set by steps"),
        ([replace(FORM, overrides={"reward_weights": [1.0]})], "set by weights"),
        ([replace(FORM, overrides={"save_only_model": True})], "set by run_stages. Leave it out"),
        ([replace(FORM, overrides={"save_strategy": "epoch"})], "'save_strategy', which is set by save_every"),
    ],
)
def test_a_slip_in_a_plan_is_named(stages, said):
    with pytest.raises(CourseError, match=said):
        check_stages(stages)


ADAPTIVE = AdaptiveReward((correctness_reward, strict_format_reward), (2.0, 1.0))


@dataclass(frozen=True)
class Listed:
    """A reward with settings of every kind."""

    words: object = frozenset({"b", "a"})
    key: object = len

    def __call__(self, completions, **columns):
        return [0.0 for _ in completions]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (ADAPTIVE, replace(ADAPTIVE, floor=0.5)),
        (ADAPTIVE, replace(ADAPTIVE, window=5)),
        (ADAPTIVE, replace(ADAPTIVE, weights=(2.0, 0.5))),
        (ADAPTIVE, replace(ADAPTIVE, rewards=(correctness_reward, Listed()))),
        (partial(correctness_reward, limit=1), partial(correctness_reward, limit=2)),
        (partial(correctness_reward, 1), partial(correctness_reward, 2)),
        (Listed(), Listed(frozenset({"b"}))),
        (Listed({"a": 1}), Listed({"a": 2})),
        (Listed(), Listed(key=str.lower)),
    ],
)
def test_a_reward_with_other_settings_is_another_reward(one, other):
    assert describe(one) != describe(other)


def test_a_reward_is_described_without_a_place_in_memory():
    reward = Listed(words=[{"x"}, partial(correctness_reward, key=object())], key=lambda text: text)
    assert "0x" not in describe(reward) and "partial(correctness_reward, key=<object object>)" in describe(reward)
    assert describe(Listed()) == "Listed(words=frozenset({'a', 'b'}), key=<built-in function len>)"
    assert describe(correctness_reward) == "correctness_reward"


@given(accumulation=st.integers(1, 8), uses=st.integers(1, 8), iterations=st.integers(1, 4), save=st.integers(1, 60))
def test_a_checkpoint_never_falls_between_two_uses_of_a_batch(accumulation, uses, iterations, save):
    arguments = dict(
        save_steps=save,
        gradient_accumulation_steps=accumulation,
        steps_per_generation=uses,
        num_iterations=iterations,
    )
    fresh = save * accumulation % (uses * iterations) == 0  # new completions are due at that very micro-batch
    if fresh:
        check_save_steps(arguments)
    else:
        with pytest.raises(CourseError, match="Use a multiple of"):
            check_save_steps(arguments)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """What a trainer saves, in small."""
    import numpy
    import torch
    from safetensors.numpy import save_file

    folder = tmp_path_factory.mktemp("run") / "checkpoint-2"
    folder.mkdir()
    save_file({"a": numpy.zeros(64, numpy.float32)}, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text("{}")
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        torch.save({"state": torch.zeros(64)}, folder / name)
    (folder / "trainer_state.json").write_text(json.dumps({"global_step": 2, "log_history": []}))
    return folder


@pytest.fixture
def run(saved, tmp_path):
    """A run with two whole checkpoints."""
    for step in (2, 10):
        shutil.copytree(saved, tmp_path / f"checkpoint-{step}")
    return tmp_path


FILES = (
    "adapter_model.safetensors",
    "adapter_config.json",
    "optimizer.pt",
    "scheduler.pt",
    "rng_state.pth",
    "trainer_state.json",
)


def test_the_newest_is_by_number_and_not_by_name(run):
    shutil.copytree(run / "checkpoint-2", run / "checkpoint-9")
    (run / "checkpoint-x").mkdir()
    assert newest_checkpoint(run).name == "checkpoint-10"


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_missing_file_is_passed_over(run, name):
    (run / "checkpoint-10" / name).unlink()
    said = []
    assert newest_checkpoint(run, said.append).name == "checkpoint-2"
    assert len(said) == 1 and said[0].startswith("checkpoint-10 is skipped: it has no ")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_file_cut_off_is_passed_over(run, name, share):
    path = run / "checkpoint-10" / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    said = []
    assert newest_checkpoint(run, said.append).name == "checkpoint-2"
    assert said == [f"checkpoint-10 is skipped: {name} is cut off or damaged."]


def test_a_flipped_byte_in_the_optimizer_is_seen(run):
    path = run / "checkpoint-10" / "optimizer.pt"
    content = bytearray(path.read_bytes())
    place = content.index(bytes(200))  # within the tensor's zeros
    content[place + 100] = 7
    path.write_bytes(content)
    assert checkpoint_problem(run / "checkpoint-10") == "optimizer.pt is cut off or damaged"


def test_no_whole_checkpoint_is_none_and_not_an_error(run):
    for step in (2, 10):
        (run / f"checkpoint-{step}" / "trainer_state.json").unlink()
    said = []
    assert newest_checkpoint(run, said.append) is None and len(said) == 2


def test_an_adapter_without_its_config_is_not_lost_silently(run):
    """Beside TRL's copy for the reference, transformers would load that one alone."""
    newest = run / "checkpoint-10"
    (newest / "ref").mkdir()
    for name in ("adapter_model.safetensors", "adapter_config.json"):
        shutil.copy(newest / name, newest / "ref" / name)
    (newest / "adapter_config.json").unlink()
    assert checkpoint_problem(newest) == "it has no adapter_config.json"


def test_a_checkpoint_of_a_whole_model_needs_no_adapter_config(run):
    newest = run / "checkpoint-10"
    (newest / "adapter_model.safetensors").rename(newest / "model.safetensors")
    (newest / "adapter_config.json").unlink()
    assert checkpoint_problem(newest) == ""


@pytest.mark.parametrize(("share", "said"), [(None, "is missing"), (0.0, "is damaged"), (0.9, "is damaged")])
def test_an_adapter_that_is_not_there_is_not_looked_for_on_the_hub(run, share, said):
    path = run / "checkpoint-10" / "adapter_model.safetensors"
    content = path.read_bytes()
    path.unlink()
    if share is not None:
        path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CourseError, match=f"{said}: not synchronized yet, or lost"):
        load_saved_adapter(None, path.parent)
