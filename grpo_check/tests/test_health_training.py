"""Real runs of the tiny models, watched: ten healthy ones, and what the callback does and leaves undone."""

import json
import time
from types import SimpleNamespace

import pytest
from course import full_disk
from grpo_check.replay.page import is_replay, runs_of
from grpo_core.errors import CourseError
from tiny_trainer import healthy_trainer

from grpo_check import HealthCallback, diagnose, diagnose_file
from grpo_utils import load_policy, load_rows
from grpo_utils.profiles import CPU

pytestmark = pytest.mark.slow


def adapter(trainer) -> dict:
    return {name: value.detach().clone() for name, value in trainer.model.named_parameters() if value.requires_grad}


def same(one: dict, other: dict) -> bool:
    return all(bool((one[name] == other[name]).all()) for name in one)


RUNS = [(family, seed) for family in CPU.models for seed in range(5)]


@pytest.mark.parametrize(
    ("family", "seed"), [RUNS[0], *(pytest.param(*run, marks=pytest.mark.upgrade) for run in RUNS[1:])]
)
def test_healthy_runs_raise_no_alarm_at_any_step(tmp_path, family, seed):
    trainer = healthy_trainer(tmp_path, family, seed, max_steps=30)
    trainer.train()
    log = trainer.state.log_history
    for steps in range(10, 31):
        assert [verdict.code for verdict in diagnose(log[:steps])] == ["healthy"], steps


def test_a_watched_run_trains_as_an_unwatched_one(tmp_path):
    watcher = HealthCallback(load_rows("addition", "test", 16), every=2)
    watched = healthy_trainer(tmp_path / "a", callbacks=[watcher], max_steps=5)
    watched.train()
    alone = healthy_trainer(tmp_path / "b", max_steps=5)  # built now: a trainer seeds all random numbers
    alone.train()
    rewards = [[e["reward"] for e in t.state.log_history if "reward" in e] for t in (watched, alone)]
    assert rewards[0] == rewards[1]
    assert same(adapter(watched), adapter(alone))
    assert [finding.code for finding in diagnose_file(tmp_path)] == ["too_short"]  # without a checkpoint
    assert (tmp_path / "a" / "health" / "samples.txt").read_text().count("=== step") == 2
    lines = (tmp_path / "a" / "health" / "checks.csv").read_text().splitlines()
    assert lines[0] == "step,n,in_form,low,high,right,ended,distinct" and len(lines) == 3
    assert is_replay(tmp_path / "a" / "health" / "replay.html")


def test_what_hinders_the_files_of_a_diagnosis_does_not_end_the_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("grpo_check.health.watching.keep", full_disk)
    monkeypatch.setattr("grpo_check.health.watching.leave_page", lambda *run: "no room")
    watcher = HealthCallback(load_rows("addition", "test", 16), every=1)
    trainer = healthy_trainer(tmp_path, callbacks=[watcher], max_steps=2, log_completions=True)
    trainer.train()
    said = capsys.readouterr().out
    assert "could not be written: No space left on device" in said and "could not be written: no room" in said


def test_the_page_of_a_run_has_no_completions_of_an_earlier_one_in_its_folder(tmp_path):
    healthy_trainer(tmp_path, max_steps=3, log_completions=True).train()
    watcher = HealthCallback(load_rows("addition", "test", 4), every=1)
    healthy_trainer(tmp_path, callbacks=[watcher], max_steps=2).train()
    page = (tmp_path / "health" / "replay.html").read_text(encoding="utf-8")
    [run] = runs_of(page)
    assert run["heldOut"] and [step["step"] for step in run["steps"]] == [1, 2]


def checkpoints(folder) -> list[str]:
    return sorted(path.name for path in folder.glob("checkpoint-*"))


def test_a_lost_run_is_stopped_and_rotates_no_good_checkpoint_away(tmp_path, capsys):
    keep = dict(save_strategy="steps", save_steps=1, save_total_limit=1)
    lost = dict(max_steps=20, beta=0.04, learning_rate=0.05)
    trainer = healthy_trainer(tmp_path, callbacks=[HealthCallback()], **lost, **keep)
    trainer.train()
    kl = {e["step"]: e["kl"] for e in trainer.state.log_history if "kl" in e}
    assert trainer.state.global_step < 12
    good = max(step for step in kl if all(kl[earlier] < 2 for earlier in range(1, step + 1)))
    assert checkpoints(tmp_path) == [f"checkpoint-{good}"]
    folder = next(tmp_path.glob("lost-at-step-*"))
    assert (folder / "adapter_model.safetensors").exists() and (folder / "tokenizer.json").exists()
    log = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    assert [verdict.code for verdict in diagnose(log)] == ["kl_explosion"]
    assert capsys.readouterr().out.count("health: error   kl_explosion: ") == 1
    assert (tmp_path / "health" / "verdicts.txt").read_text().count("kl_explosion: ") == 1


def test_a_policy_that_drifts_and_loses_its_reward_only_later_is_stopped_then(tmp_path, capsys):
    """The verdict is told once, when the reward is still good; the run is stopped when the reward is lost."""
    watcher = HealthCallback()
    trainer = healthy_trainer(tmp_path, max_steps=20, callbacks=[watcher])
    control, state = trainer.control, trainer.state
    loader = SimpleNamespace(dataset=[{"prompt": [{"role": "user", "content": "1+1"}]}])
    model = dict(model=trainer.model, processing_class=trainer.processing_class)
    watcher.on_train_begin(trainer.args, state, control, train_dataloader=loader, **model)
    for step in range(1, 11):
        state.global_step = step
        state.log_history.append({"step": step, "reward": 0.5 if step < 7 else 0.1, "kl": 3.0})
        watcher.on_log(trainer.args, state, control, **model)
        assert control.should_training_stop == (step >= 7)
    said = capsys.readouterr().out
    assert said.count("health: error   kl_explosion: ") == 1 and said.count("training stopped") == 1
    assert [path.name for path in tmp_path.glob("lost-at-step-*")] == ["lost-at-step-7"]


def poison(trainer, at: int, spoil) -> None:
    """Let the first reward do something before it scores step ``at``."""
    from grpo_utils.rewards import correctness_reward

    def poisoned_reward(completions, trainer_state, **kwargs):
        if trainer_state.global_step == at:
            spoil()
        return correctness_reward(completions, **kwargs)

    trainer.reward_funcs[0] = poisoned_reward


def test_weights_that_are_no_number_stop_the_run_before_they_are_saved(tmp_path):
    """transformers' own logging_nan_inf_filter writes such a loss as 0.0, so the log alone does not show it.

    Nor does it show the accumulation, and a known fault of some releases is NaN with accumulation only.
    """
    import torch
    from safetensors.torch import load_file

    keep = dict(save_strategy="steps", save_steps=2, save_total_limit=1)
    batches = dict(per_device_train_batch_size=8, gradient_accumulation_steps=2)
    trainer = healthy_trainer(tmp_path, callbacks=[HealthCallback()], max_steps=12, **keep, **batches)
    trained = next(p for p in trainer.model.parameters() if p.requires_grad)
    poison(trainer, 3, lambda: trained.data.fill_(float("nan")))  # as an overflow would
    trainer.train()
    assert trainer.state.global_step == 4
    [verdict] = diagnose(trainer.state.log_history)
    assert verdict.code == "nan" and "gradient_accumulation_steps=2" in verdict.seen and "try 1" in verdict.fixes[0]
    assert (tmp_path / "lost-at-step-4" / "trainer_state.json").exists()
    assert checkpoints(tmp_path) == ["checkpoint-2"]
    kept = load_file(tmp_path / "checkpoint-2" / "adapter_model.safetensors")
    assert all(torch.isfinite(value).all() for value in kept.values())


def test_lost_weights_are_not_saved_at_the_end_of_an_epoch(tmp_path):
    """With one checkpoint per epoch, transformers asks for it after the step at which the run was stopped."""
    trainer = healthy_trainer(tmp_path, callbacks=[HealthCallback()], max_steps=4, save_strategy="epoch")
    trained = next(p for p in trainer.model.parameters() if p.requires_grad)
    poison(trainer, 1, lambda: trained.data.fill_(float("nan")))
    trainer.train()
    assert trainer.state.global_step == 2 and checkpoints(tmp_path) == []


def test_a_lost_policy_that_cannot_be_saved_is_a_message(tmp_path, monkeypatch, capsys):
    """On a full disk, the Rust code of a tokenizer raises a bare Exception."""

    def full(folder):
        raise Exception("No space left on device (os error 28)")

    trainer = healthy_trainer(tmp_path, callbacks=[HealthCallback()], max_steps=4)
    trained = next(p for p in trainer.model.parameters() if p.requires_grad)
    poison(trainer, 1, lambda: trained.data.fill_(float("nan")))
    monkeypatch.setattr(trainer.processing_class, "save_pretrained", full)
    trainer.train()
    said = capsys.readouterr().out
    assert trainer.state.global_step == 2 and "could not be saved" in said and "after 2 steps: nan" in said
    assert (tmp_path / "lost-at-step-2" / "trainer_state.json").exists()


def test_nothing_of_the_watching_kills_a_training(tmp_path):
    """Rows without an answer, rewards that apply to nothing at first, and a callback that is used twice."""

    def late(completions, trainer_state, **kwargs):
        return [None if trainer_state.global_step == 0 else 0.0 for _ in completions]

    rows = [{"prompt": [{"role": "user", "content": "Think in <think></think>. What is 1 + 1?"}]}]
    watcher = HealthCallback(rows, every=2)
    for name in "ab":
        only = dict(functions=[late], reward_weights=[1.0])
        healthy_trainer(tmp_path / name, callbacks=[watcher], max_steps=13, **only).train()
        said = (tmp_path / name / "health" / "verdicts.txt").read_text()
        assert said.count("dead_reward: ") == 1  # reported in each of the two training runs
        samples = (tmp_path / name / "health" / "samples.txt").read_text()
        assert "gold" not in samples and "formatted" not in samples  # no other format than the course's is checked


@pytest.mark.parametrize(
    ("rows", "message"), [([], "empty list of held-out rows"), ([{"question": "?"}], "has no 'prompt'")]
)
def test_bad_held_out_rows_are_refused_before_the_training(rows, message):
    with pytest.raises(CourseError, match=message):
        HealthCallback(rows)


def test_prompts_that_hold_the_template_already_are_no_bare_strings():
    from grpo_check.prompts import lacks_template
    from transformers import AutoTokenizer

    from grpo_utils.models import model_path

    tokenizer = AutoTokenizer.from_pretrained(model_path("tiny-qwen3"))
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert lacks_template("What is 1 + 1?", tokenizer, "Qwen3-0.6B")
    assert not lacks_template("What is 1 + 1?", tokenizer, "Qwen3-0.6B-Base")
    assert not lacks_template(rendered, tokenizer, "") and not lacks_template([{"role": "user"}], tokenizer, "")


def test_a_resumed_run_adds_to_its_files_and_does_not_repeat_an_old_stall(tmp_path, capsys):
    rows = load_rows("addition", "test", 4)
    keep = dict(save_strategy="steps", save_steps=2)
    healthy_trainer(tmp_path, callbacks=[HealthCallback(rows, every=2)], max_steps=2, **keep).train()
    file = tmp_path / "checkpoint-2" / "trainer_state.json"
    state = json.loads(file.read_text())
    state["log_history"].append({"step": 2, "health/stalled": 312.0})
    file.write_text(json.dumps(state))
    capsys.readouterr()
    trainer = healthy_trainer(tmp_path, callbacks=[HealthCallback(rows, every=2)], max_steps=4, **keep)
    trainer.train(resume_from_checkpoint=True)
    steps = [line.split(",")[0] for line in (tmp_path / "health" / "checks.csv").read_text().splitlines()]
    assert steps == ["step", "2", "4"]
    assert [e["step"] for e in trainer.state.log_history if "health/distinct" in e] == [2, 4]
    assert "stalled" in [verdict.code for verdict in diagnose(trainer.state.log_history)]
    assert "health: stalled:" not in capsys.readouterr().out


@pytest.fixture
def impatient(monkeypatch):
    """Half a second is a stall, instead of half a minute, and four steps are, instead of ten."""
    from grpo_check.health import limits

    monkeypatch.setattr(limits, "STALLED_SECONDS", 0.5)
    monkeypatch.setattr(limits, "STALLED", 4.0)


def test_a_step_that_does_not_end_is_told_while_it_hangs(tmp_path, capsys, impatient):
    """A reward that really blocks: the watchdog says where, once, stops nothing, and is gone afterwards."""
    import threading

    told, page = threading.Event(), tmp_path / "health" / "verdicts.txt"

    class Watching(HealthCallback):
        def _tell_stall(self, *said):
            super()._tell_stall(*said)
            told.set()

    def slow_reward():
        assert told.wait(timeout=300)  # hangs until the watchdog has spoken
        time.sleep(2)  # once for each stall

    trainer = healthy_trainer(tmp_path, callbacks=[Watching()], max_steps=7)
    poison(trainer, 5, slow_reward)
    trainer.train()
    assert trainer.state.global_step == 7
    said = capsys.readouterr().out
    assert said.count("health: stalled: the current step has run for") == 1 and "in slow_reward" in said
    assert "in slow_reward" in page.read_text()
    assert diagnose(trainer.state.log_history)[0].code == "stalled"
    assert sum("health/stalled" in entry for entry in trainer.state.log_history) == 1
    assert not any(thread.is_alive() for thread in waited_for())


def waited_for() -> list:
    """The watchdogs, after the second that one takes to end."""
    import threading

    watchdogs = [thread for thread in threading.enumerate() if thread.name == "health-watchdog"]
    for thread in watchdogs:
        assert thread.daemon
        thread.join(timeout=60)
    return watchdogs


def test_after_an_evaluation_and_an_error_no_watchdog_is_left(tmp_path, capsys):
    def fail():
        raise ValueError("no judge")

    trainer = healthy_trainer(tmp_path, callbacks=[HealthCallback()], max_steps=8)
    trainer.evaluate(load_rows("addition", "test", 1))
    poison(trainer, 5, fail)
    with pytest.raises(ValueError, match="no judge"):
        trainer.train()
    assert not any(thread.is_alive() for thread in waited_for())
    assert "stalled" not in capsys.readouterr().out


def test_an_evaluation_a_checkpoint_or_samples_that_take_long_are_no_stall(tmp_path, capsys, impatient):
    from transformers import TrainerCallback

    from grpo_utils.rewards import correctness_reward

    waited = []

    def wait(what):
        time.sleep(2.2 * watcher.watchdog.patience() + 0.5)  # C code speaks after twice the patience
        waited.append(what)

    class Slow(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            control.should_evaluate = control.should_save = state.global_step == 4

        def on_save(self, args, state, control, **kwargs):
            wait("checkpoint")

    class Sampling(HealthCallback):
        def _sample(self, *args):
            wait("samples")

    def slow_in_evaluation(completions, **kwargs):
        if not trainer.model.training:
            wait("evaluation")
        return correctness_reward(completions, **kwargs)

    watcher = Sampling(load_rows("addition", "test", 4), every=4)
    trainer = healthy_trainer(tmp_path, callbacks=[Slow(), watcher], max_steps=5)
    trainer.eval_dataset = load_rows("addition", "test", 1)
    trainer.reward_funcs[0] = slow_in_evaluation
    trainer.train()
    assert set(waited) == {"checkpoint", "samples", "evaluation"}
    assert "stalled" not in capsys.readouterr().out
    assert "thread" not in (tmp_path / "health" / "verdicts.txt").read_text().lower()  # nor stacks from C


def test_steps_that_have_become_slower_are_called_stalled_once_and_not_each(tmp_path, impatient):
    from grpo_check.health.stalling import Watchdog

    class Training(Watchdog):
        def _is_training(self):  # no trainer is needed here
            return True

    said = []
    watchdog = Training(lambda text, *stacks: said.append(text), tmp_path / "verdicts.txt")
    for seconds in (0.0, 0.0, 0.0, 1.2, 1.2):
        watchdog.step_began()
        time.sleep(seconds)
        watchdog.step_ended()
    watchdog.stop()
    assert len(said) == 1 and watchdog.longest_stall > 0.5


def test_a_stall_is_logged_once_and_not_at_every_later_step(tmp_path):
    import torch
    from grpo_check.health.stalling import Watchdog
    from transformers import TrainerState

    callback, state = HealthCallback(), TrainerState()
    callback.watchdog = Watchdog(lambda *said: None, tmp_path / "verdicts.txt")
    callback.watched = torch.zeros(1)
    for stall in (0.0, 9.0, 0.0, 0.0):
        callback.on_step_begin(None, state, None)
        callback.watchdog.longest_stall += stall  # as the watchdog's thread would
        callback.on_step_end(None, state, None)
    callback.watchdog.stop()
    assert state.log_history == [{"step": 0, "health/stalled": 9.0}]


def test_a_watchdog_without_room_for_its_file_is_a_message(tmp_path, capsys):
    import torch
    from transformers import TrainerState

    callback, state = HealthCallback(), TrainerState()
    callback.folder, callback.watched = tmp_path, torch.zeros(1)
    callback.watchdog = SimpleNamespace(step_ended=full_disk, longest_stall=0.0)
    callback.on_step_end(None, state, None)
    assert "could not be written: No space left on device" in capsys.readouterr().out


HANGING = """
import re, sys, time
from pathlib import Path
from grpo_check.health import limits
from grpo_check.health.stalling import Watchdog
from transformers import Trainer

limits.STALLED_SECONDS = 0.2

def hanging_reward():
    re.fullmatch("(a+)+b", "a" * 60)

watchdog = Watchdog(lambda *said: None, Path(sys.argv[1]))
for _ in range(4):
    watchdog.step_began()
    watchdog.step_ended()
watchdog.step_began()
print("ready", flush=True)
hanging_reward()
"""


def test_a_regular_expression_that_lets_no_other_thread_run_is_named_in_the_file(tmp_path):
    """Python's own threads stand still then, so C code writes the stacks."""
    import subprocess
    import sys

    page = tmp_path / "health" / "verdicts.txt"
    process = subprocess.Popen([sys.executable, "-c", HANGING, str(page)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        for _ in range(600):
            if page.exists() and "hanging_reward" in page.read_text():
                break
            time.sleep(0.2)
        assert "in hanging_reward" in page.read_text()
        assert process.poll() is None  # it was not killed
    finally:
        process.kill()
        process.wait()


CHECKPOINTING = """
from grpo_check import HealthCallback
from grpo_utils import evaluate, load_policy, load_rows
from grpo_core.training.generating import generate
from grpo_check.health.samples import take_samples
from grpo_utils.profiles import CPU, prepare_machine

prepare_machine(CPU)
model, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="unsloth", load_in_4bit=False)
rows = load_rows("addition", "test", 4)
modes = lambda: sorted({m.gradient_checkpointing for m in model.modules() if hasattr(m, "gradient_checkpointing")})
for checkpointing in (True, False):
    model.for_training(use_gradient_checkpointing=checkpointing)
    generate(model, tokenizer, rows["prompt"], max_new_tokens=4)
    print("modes", modes(), model.training)
    take_samples(model, tokenizer, list(rows), 4, 4)
    print("modes", modes(), model.training)
"""


def test_sampling_leaves_unsloths_gradient_checkpointing_as_it_was():
    import subprocess
    import sys

    result = subprocess.run([sys.executable, "-c", CHECKPOINTING], capture_output=True, text=True)
    said = [line for line in result.stdout.splitlines() if line.startswith("modes")]
    assert said == ["modes [True] True"] * 2 + ["modes [False] True"] * 2, result.stderr[-2000:]


def test_samples_are_taken_as_trl_samples_without_a_penalty_of_the_models_own():
    """The fault: the samples took the repetition penalty of the model's generation config, which training sets to 1."""
    from grpo_check.health.samples import take_samples

    policy, tokenizer = load_policy("tiny-qwen3", profile=CPU, backend="transformers", load_in_4bit=False)
    rows = list(load_rows("addition", "test", 4))
    before = take_samples(policy, tokenizer, rows, 8, 4)
    policy.generation_config.repetition_penalty = 5.0
    assert take_samples(policy, tokenizer, rows, 8, 4) == before
