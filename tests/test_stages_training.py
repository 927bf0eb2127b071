"""Stages trained for real: skipped, stopped, resumed to the last bit, and refused where a plan has changed.

Lesson 05, which tests/test_lesson05.py runs, kills a process and resumes it.
"""

import json
import shutil
from dataclasses import replace

import pytest

from grpo_utils import load_policy, load_rows, math_rewards, run_stages
from grpo_utils.errors import CourseError
from grpo_utils.profiles import CPU
from grpo_utils.rewards import AdaptiveReward, strict_format_reward
from grpo_utils.stages import Stage

pytestmark = pytest.mark.slow
BATCH = {"per_device_train_batch_size": 16}
ADAPTIVE = AdaptiveReward(*map(tuple, math_rewards()))


def new_policy(profile=CPU, seed=0, load_in_4bit=False):
    return load_policy("tiny-qwen3", profile=profile, backend="transformers", load_in_4bit=load_in_4bit, seed=seed)


def plan(**overrides) -> list[Stage]:
    rows = load_rows("addition", "train", 200)
    return [
        Stage("form", [strict_format_reward], [1.0], 4, rows, BATCH | overrides),
        Stage("sums", *math_rewards(), 4, rows, BATCH | overrides),
    ]


def run(stages, folder, save_every=2, profile=CPU, callbacks=list, seed=0, load_in_4bit=False):
    """Run a plan with a fresh policy: its logs, its adapter, and what was said."""
    said = []
    policy, tokenizer = new_policy(profile, seed, load_in_4bit)
    how = dict(profile=CPU, save_every=save_every, callbacks=callbacks, say=said.append)
    logs = run_stages(policy, tokenizer, stages, folder, **how)
    return logs, adapter(policy), said


def adapter(policy) -> dict:
    return {name: value.detach().clone() for name, value in policy.named_parameters() if value.requires_grad}


def largest_difference(one: dict, other: dict) -> float:
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one)


def figures(log: list[dict]) -> list[tuple]:
    return [(e["step"], e["reward"], e["loss"], e["grad_norm"]) for e in log if "reward" in e]


class Stop(Exception):
    """Ends a run from within, as the stop button of a notebook does."""


def stopper(step: int, stage: str):
    """Makes callbacks that end the named stage within a step."""
    from transformers import TrainerCallback

    class Stopper(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == step and args.output_dir.endswith(stage):
                raise Stop

    return lambda: [Stopper()]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unbroken")
    return folder, *run(plan(), folder)


def test_stages_carry_the_adapter_and_leave_their_files(unbroken):
    folder, logs, weights, said = unbroken
    assert said == ["Stage 1-form: begins, 4 steps.", "Stage 2-sums: begins, 4 steps."]
    assert [len(figures(log)) for log in logs.values()] == [4, 4]
    for stage in ("1-form", "2-sums"):
        assert {"start", "adapter", "settings.json", "finished.json"} <= {p.name for p in (folder / stage).iterdir()}
    passed = [
        (folder / place / "adapter_model.safetensors").read_bytes() for place in ("1-form/adapter", "2-sums/start")
    ]
    assert passed[0] == passed[1]
    assert max(value.abs().max().item() for value in weights.values()) > 0


def test_a_finished_plan_is_skipped_and_its_adapter_is_there(unbroken, tmp_path):
    folder, logs, weights, _ = unbroken
    shutil.copytree(folder, tmp_path / "again")
    again, loaded, said = run(plan(), tmp_path / "again")
    assert [figures(log) for log in again.values()] == [figures(log) for log in logs.values()]
    assert largest_difference(loaded, weights) == 0.0
    assert all("finished before" in text for text in said)


@pytest.mark.parametrize(("stage", "step"), [("form", 1), ("sums", 0), ("sums", 3)])
def test_a_run_that_was_cut_off_ends_as_the_unbroken_one(unbroken, tmp_path, stage, step):
    _, logs, weights, _ = unbroken
    with pytest.raises(Stop):
        run(plan(), tmp_path, callbacks=stopper(step, stage))
    resumed, loaded, said = run(plan(), tmp_path, seed=7)  # another fresh adapter: the kept start counts
    assert [figures(log) for log in resumed.values()] == [figures(log) for log in logs.values()]
    assert largest_difference(loaded, weights) == 0.0
    assert (f"resumes after step {step // 2 * 2} of 4" in said[-1 if stage == "sums" else 0]) == (step >= 2)


def test_a_policy_whose_cell_was_stopped_can_be_used_again(tmp_path, unbroken):
    _, logs, weights, _ = unbroken
    policy, tokenizer = new_policy()
    with pytest.raises(Stop):
        run_stages(policy, tokenizer, plan(), tmp_path, profile=CPU, save_every=2, callbacks=stopper(1, "form"))
    resumed = run_stages(policy, tokenizer, plan(), tmp_path, profile=CPU, save_every=2)
    assert figures(resumed["sums"]) == figures(logs["sums"])
    assert largest_difference(adapter(policy), weights) == 0.0


def test_a_half_written_checkpoint_is_passed_over_and_the_result_is_the_same(unbroken, tmp_path):
    folder, logs, weights, _ = unbroken
    shutil.copytree(folder, tmp_path / "half")
    stage = tmp_path / "half" / "2-sums"
    (stage / "finished.json").unlink()
    optimizer = stage / "checkpoint-4" / "optimizer.pt"
    optimizer.write_bytes(optimizer.read_bytes()[:1000])
    resumed, loaded, said = run(plan(), tmp_path / "half")
    assert said[1:] == [
        "checkpoint-4 is skipped: optimizer.pt is cut off or damaged.",
        "Stage 2-sums: resumes after step 2 of 4 steps.",
    ]
    assert figures(resumed["sums"]) == figures(logs["sums"]) and largest_difference(loaded, weights) == 0.0


def test_a_stage_cut_off_between_its_last_step_and_its_mark_trains_no_step_more(unbroken, tmp_path):
    folder, logs, weights, _ = unbroken
    shutil.copytree(folder, tmp_path / "late")
    for name in ("finished.json", "trainer_state.json"):
        (tmp_path / "late" / "2-sums" / name).unlink()
    resumed, loaded, said = run(plan(), tmp_path / "late")
    assert "resumes after step 4 of 4" in said[1]
    assert figures(resumed["sums"]) == figures(logs["sums"]) and largest_difference(loaded, weights) == 0.0


@pytest.mark.parametrize(
    ("overrides", "load_in_4bit"),
    [
        ({"beta": 0.04}, False),
        ({"num_iterations": 2}, False),
        ({"gradient_accumulation_steps": 2, "lr_scheduler_type": "cosine"}, False),
        ({}, True),
    ],
    ids=["reference", "reuse", "accumulation", "4 bits"],
)
def test_it_is_exact_with_other_arguments_too(tmp_path, overrides, load_in_4bit):
    whole, weights, _ = run(plan(**overrides), tmp_path / "a", load_in_4bit=load_in_4bit)
    with pytest.raises(Stop):
        run(plan(**overrides), tmp_path / "b", callbacks=stopper(3, "sums"), load_in_4bit=load_in_4bit)
    resumed, loaded, _ = run(plan(**overrides), tmp_path / "b", load_in_4bit=load_in_4bit)
    assert [figures(log) for log in resumed.values()] == [figures(log) for log in whole.values()]
    assert largest_difference(loaded, weights) == 0.0
    assert {str(value.dtype) for value in loaded.values()} == {"torch.float32"}


def small_trainer(folder, **changes):
    """A trainer of a run of two steps, saved at each, of which the newest is kept."""
    from trl import GRPOConfig, GRPOTrainer

    from grpo_utils.arguments import training_arguments

    policy, tokenizer = new_policy(seed=changes.pop("policy_seed", 0))
    usual = dict(output_dir=str(folder), max_steps=2, save_strategy="steps", save_steps=1, save_total_limit=1, **BATCH)
    return GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        args=GRPOConfig(**training_arguments(CPU, **usual | changes)),
        train_dataset=load_rows("addition", "train", 4),
        reward_funcs=[strict_format_reward],
    )


@pytest.mark.upgrade
def test_transformers_forgets_the_adapter_where_there_is_a_reference(tmp_path):
    """The reason for `train_or_resume`. When this fails, transformers loads it again: drop that part."""
    from transformers import TrainerCallback

    from grpo_utils.stages import train_or_resume

    class Begin(TrainerCallback):
        def on_train_begin(self, args, state, control, **kwargs):
            raise Stop  # the checkpoint is loaded, and nothing trained yet

    def trainer(steps: int):
        return small_trainer(tmp_path, max_steps=steps, beta=0.04)

    first = trainer(2)
    first.train()
    trained = adapter(first.model)
    differences = {}
    for name, resume in (("plain", lambda t: t.train(resume_from_checkpoint=True)), ("ours", train_or_resume)):
        resumed = trainer(3)  # one step is left
        resumed.add_callback(Begin())
        with pytest.raises(Stop):
            resume(resumed)
        differences[name] = largest_difference(adapter(resumed.model), trained)
    assert differences["ours"] == 0.0 and differences["plain"] > 0.0


@pytest.mark.parametrize("changes", [{}, {"beta": 0.04}, {"max_steps": -1, "num_train_epochs": 1}])
def test_a_finished_run_is_loaded_and_not_trained_one_step_more(tmp_path, changes):
    from grpo_utils.stages import train_or_resume

    first = small_trainer(tmp_path, **changes)
    train_or_resume(first)
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    said = []
    again = small_trainer(tmp_path, policy_seed=1, **changes)
    assert train_or_resume(again, said.append).name == "checkpoint-2"
    assert said == ["checkpoint-2: all steps were done; it is loaded, and nothing is trained."]
    assert again.state.global_step == 2 and figures(again.state.log_history) == figures(first.state.log_history)
    mine, trained = ({n: v for n, v in adapter(t.model).items() if ".ref." not in n} for t in (again, first))
    assert largest_difference(mine, trained) == 0.0
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == files


@pytest.mark.parametrize("changes", [{"max_steps": 3}, {"max_steps": -1, "num_train_epochs": 2}])
def test_a_finished_run_that_was_given_more_steps_is_trained_on(tmp_path, changes):
    from grpo_utils.stages import train_or_resume

    train_or_resume(small_trainer(tmp_path, **{"max_steps": -1, "num_train_epochs": 1}))
    longer = small_trainer(tmp_path, **changes)
    train_or_resume(longer)
    assert longer.state.global_step == (3 if changes["max_steps"] == 3 else 4)


@pytest.mark.parametrize(
    ("change", "how", "said"),
    [
        (dict(weights=[2.0]), {}, "rewards was '1.0 x strict_format_reward', is '2.0 x"),
        (dict(overrides=BATCH | {"learning_rate": 0.5}), {}, "learning_rate was 0.002, is 0.5"),
        (dict(steps=8), {}, "max_steps was 4, is 8"),
        (dict(rows=load_rows("addition", "train", 100)), {}, "rows was '200 rows"),
        (dict(rewards=[ADAPTIVE]), {}, r"rewards was '1.0 x strict_format_reward', is '1.0 x AdaptiveReward\(.*0.25\)"),
        (dict(name="other"), {}, "holds the stage '1-form', and this plan has 1-other, 2-sums"),
        ({}, {"profile": replace(CPU, lora_rank=4)}, "LoRA rank was 16, is 4. Use those"),
        ({}, {"load_in_4bit": True}, "number types was 'float32', is 'float32, uint8'"),
    ],
)
def test_a_folder_of_another_plan_or_policy_is_refused_and_says_what_differs(unbroken, change, how, said):
    first, second = plan()
    with pytest.raises(CourseError, match=said):
        run([replace(first, **change), second], unbroken[0], **how)


def test_a_folder_begun_on_another_base_is_refused(unbroken, tmp_path):
    folder = shutil.copytree(unbroken[0], tmp_path / "moved")
    settings = json.loads((folder / "1-form" / "settings.json").read_text())
    assert settings["model"].endswith("tiny-qwen3") and "output_dir" not in settings
    elsewhere = {**settings, "model": "outputs/other/" + settings["model"].rpartition("/")[2]}  # the same last name
    (folder / "1-form" / "settings.json").write_text(json.dumps(elsewhere))
    with pytest.raises(CourseError, match="model was 'outputs/other/tiny-qwen3'.*If it was merely moved"):
        run(plan(), folder)


@pytest.mark.parametrize(
    ("name", "size", "finished"),
    [
        ("adapter/adapter_model.safetensors", 1000, True),
        ("adapter/adapter_model.safetensors", 0, True),
        ("trainer_state.json", 0, True),
        ("settings.json", 100, True),
        ("start/adapter_model.safetensors", 0, False),
    ],
)
def test_a_stage_that_is_not_synchronized_is_said_to_be_so(unbroken, tmp_path, name, size, finished):
    """``size``: what is left of the file; 0: it is missing."""
    stage = shutil.copytree(unbroken[0], tmp_path / "drive") / "2-sums"
    content = (stage / name).read_bytes()
    (stage / name).unlink()
    if size:
        (stage / name).write_bytes(content[:size])
    if not finished:
        (stage / "finished.json").unlink()
    with pytest.raises(CourseError, match="not synchronized yet, or lost"):
        run(plan(), tmp_path / "drive")


def test_a_folder_that_was_moved_is_the_same_run(unbroken, tmp_path):
    moved = shutil.copytree(unbroken[0], tmp_path / "elsewhere" / "run")
    assert all("finished before" in text for text in run(plan(), moved)[2])


def test_the_bar_stands_once_and_with_the_last_rewards(tmp_path, capsys):
    from grpo_check import HealthCallback

    logs, _, _ = run(plan()[:1], tmp_path, callbacks=lambda: [HealthCallback()])
    printed = capsys.readouterr().out
    lines = [line.rpartition("\r")[2] for line in printed.split("\n") if "GRPO" in line]
    assert len(lines) == 1 and "4/4" in lines[0]
    assert f"reward={figures(logs['form'])[-1][1]:.2f}" in lines[0]
    assert "health: at the end" in printed[printed.index(lines[0]) :]


def test_files_and_logs_may_change_when_a_run_goes_on(unbroken):
    first, second = plan()
    first = replace(first, overrides=BATCH | {"save_total_limit": 5, "logging_steps": 2})
    assert "finished before" in run([first, second], unbroken[0], save_every=1)[2][0]


def test_a_later_stage_without_the_one_before_it_is_refused(unbroken, tmp_path):
    shutil.copytree(unbroken[0], tmp_path / "gap")
    (tmp_path / "gap" / "1-form" / "finished.json").unlink()
    with pytest.raises(CourseError, match="'1-form' before it is not finished"):
        run(plan(), tmp_path / "gap")


def test_a_stage_may_be_added_at_the_end(unbroken, tmp_path):
    shutil.copytree(unbroken[0], tmp_path / "more")
    logs, _, said = run([*plan(), replace(plan()[1], name="more", steps=1)], tmp_path / "more")
    assert list(logs) == ["form", "sums", "more"] and said[-1] == "Stage 3-more: begins, 1 steps."


def test_a_stage_that_a_callback_stops_is_not_finished(tmp_path):
    from transformers import TrainerCallback

    class Enough(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_training_stop = state.global_step == 1

    with pytest.raises(CourseError, match="'form' was stopped at step 1 of 4"):
        run(plan(), tmp_path, callbacks=lambda: [Enough()])
    assert not (tmp_path / "1-form" / "finished.json").exists() and not (tmp_path / "2-sums").exists()


def test_a_policy_without_an_adapter_is_refused(tmp_path):
    how = dict(profile=CPU, backend="transformers", load_in_4bit=False, full_finetuning=True)
    policy, tokenizer = load_policy("tiny-qwen3", **how)
    with pytest.raises(CourseError, match="has none"):
        run_stages(policy, tokenizer, plan(), tmp_path, profile=CPU)
