"""Plans of stages, whole and half checkpoints: what is refused, what is passed over, what is said."""

import json
import shutil
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grpo_utils.errors import CourseError
from grpo_utils.rewards import correctness_reward, strict_format_reward
from grpo_utils.training import Stage, check_save_steps, check_stages, checkpoint_problem, newest_checkpoint

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
    ],
)
def test_a_slip_in_a_plan_is_named(stages, said):
    with pytest.raises(CourseError, match=said):
        check_stages(stages)


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


FILES = ("adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")


def test_the_newest_is_by_number_and_not_by_name(run):
    shutil.copytree(run / "checkpoint-2", run / "checkpoint-9")
    (run / "checkpoint-x").mkdir()
    assert newest_checkpoint(run).name == "checkpoint-10"


@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_missing_file_is_passed_over(run, name):
    (run / "checkpoint-10" / name).unlink()
    said = []
    assert newest_checkpoint(run, said.append).name == "checkpoint-2"
    assert len(said) == 1 and said[0].startswith("checkpoint-10 is passed over: it has no ")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("name", FILES)
def test_a_checkpoint_with_a_file_cut_off_is_passed_over(run, name, share):
    path = run / "checkpoint-10" / name
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    said = []
    assert newest_checkpoint(run, said.append).name == "checkpoint-2"
    assert said == [f"checkpoint-10 is passed over: {name} is cut off or damaged."]


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
