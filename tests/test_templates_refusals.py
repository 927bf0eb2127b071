"""What a template refuses, in seconds of processor time and in a line or two, before anything heavy is imported."""

import ast
import dataclasses
import json
import resource
import signal
import subprocess
import sys

import pytest
from conftest import ROOT
from template_projects import ALONE, FAST, in_folder

from grpo_utils.project import new_project, template_names

CPU = ["--config", "config.cpu.yaml"]


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    return new_project("basic_grpo", tmp_path_factory.mktemp("refusals") / "project")


@pytest.fixture
def edited(basic):
    """Replace a text in a file of the project, and put it back after the test."""
    kept = {}

    def edit(file: str, old: str, new: str) -> None:
        text = (basic / file).read_text(encoding="utf-8")
        kept.setdefault(file, text)
        assert old in text
        (basic / file).write_text(text.replace(old, new, 1), encoding="utf-8")

    yield edit
    for file, text in kept.items():
        (basic / file).write_text(text, encoding="utf-8")


def refused(folder, *arguments: str) -> str:
    """The error of a command that has to be refused within three seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = in_folder(folder, "train.py", *arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert run.returncode == 1 and "Traceback" not in run.stderr, run.stderr[-2000:]
    assert used < 3, f"{used:.1f} s of processor time"
    return run.stderr.strip()


@pytest.mark.parametrize(
    "change, said",
    [
        (["--learning_rat", "1"], "unknown setting 'learning_rat'. Did you mean 'learning_rate'?"),
        (["--max_steps", "-5"], "max_steps is -5"),
        (["--max_steps", "0"], "max_steps is 0"),
        (["--max_steps", "many"], "max_steps is 'many'; it should be a number"),
        (["--max_steps", "-1", "--num_train_epochs", "-2"], "num_train_epochs is -2"),
        (["--eval_rows", "0"], "eval_rows is 0"),
        (["--train_rows", "-100"], "train_rows is -100"),
        (["--learning_rate", "nan"], "learning_rate is nan"),
        (["--num_generations", "1"], "num_generations is 1"),
        (["--model_name_or_path", "./no-model"], "there is no folder './no-model'"),
        (["--model_name_or_path", "/tmp"], "the folder '/tmp' has no config.json"),
        (["--model_name_or_path", "what is this"], "a hub id looks like owner/name"),
        (["--model_name_or_path", "owner/no-such-model"], "HF_HUB_OFFLINE forbids downloads"),
        (["--load_in_4bit", "true", "--use_peft", "false"], "load_in_4bit needs use_peft"),
        (["--reward_weights", "1", "2"], "reward_weights has 2 numbers, and there are 3 rewards"),
        (["--env", "x"], "env is not an option"),
        (["--generation_batch_size", "0"], "generation_batch_size is 0"),
        (["--save_steps", "0"], "save_steps is 0"),
        (["--save_steps", "0", "--save_strategy", "steps"], "save_steps is 0"),
        (["--logging_steps", "0"], "logging_steps is 0"),
        (["--generation_batch_size", "64", "--steps_per_generation", "1"], "set the same number; delete one"),
    ],
)
def test_a_typo_or_an_impossible_number_is_refused_before_the_imports(basic, change, said):
    assert said in refused(basic, *CPU, *change)


def test_a_batch_that_is_not_divisible_names_the_users_own_settings(basic):
    said = refused(basic, *CPU, "--per_device_train_batch_size", "60")
    names = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_generations")
    assert all(name in said for name in names) and "generation_batch_size" not in said, said


@pytest.mark.parametrize("batch, at_once", [("8", "12"), ("64", "8"), ("6", "16")])
def test_a_generation_batch_of_broken_groups_or_batches_is_refused(basic, batch, at_once):
    said = refused(basic, *CPU, "--per_device_train_batch_size", batch, "--generation_batch_size", at_once)
    assert f"generation_batch_size is {at_once}" in said and "num_generations (8)" in said, said
    assert f"per_device_train_batch_size x processes ({batch})" in said


def not_refused(folder, *arguments: str) -> None:
    """All that is checked before the imports, on these settings."""
    code = "import settings, sys; settings.prepare(sys.argv[1:]); print('through')"
    run = in_folder(folder, "-c", code, *arguments, "--use_unsloth", "false")
    assert run.returncode == 0 and "through" in run.stdout, run.stderr[-2000:]


@pytest.mark.parametrize(
    "change",
    [
        ["--save_strategy", "no", "--save_steps", "0"],
        ["--logging_strategy", "epoch", "--logging_steps", "0"],
        ["--max_steps", "5", "--num_train_epochs", "0"],
        ["--per_device_train_batch_size", "8", "--generation_batch_size", "16"],
    ],
)
def test_a_setting_that_is_not_used_is_not_refused(basic, change):
    not_refused(basic, *CPU, *change, "--output_dir", "outputs/unused")


NULLS = "max_steps: 40\ngeneration_batch_size: null\nsteps_per_generation: null\ntop_k: ~\nreward_model: null"


def test_an_explicit_null_is_the_default(basic, edited):
    """Two that TRL accepts were refused, and train_rows: null ended in a TypeError."""
    edited("config.cpu.yaml", "max_steps: 40", NULLS)
    edited("config.cpu.yaml", "train_rows: 2000", "train_rows: null")
    not_refused(basic, *CPU, "--output_dir", "outputs/null")
    code = "import settings; print(settings.parse(['--config', 'config.cpu.yaml'])[0].train_rows)"
    assert in_folder(basic, "-c", code).stdout.splitlines()[-1:] == ["2000"]


CACHES = [
    {"HF_HOME": "{cache}/huggingface"},
    {"HF_HUB_CACHE": "{cache}/huggingface/hub"},
    {"XDG_CACHE_HOME": "{cache}"},
    {"HOME": "{cache}", "HF_HUB_CACHE": "~/huggingface/hub"},
]


@pytest.mark.parametrize("variables", CACHES, ids=lambda variables: "-".join(variables))
@pytest.mark.parametrize("place", ["config", "shell"])
def test_a_model_in_a_cache_that_the_config_or_the_shell_names_is_found(
    basic, edited, tmp_path, monkeypatch, variables, place
):
    (tmp_path / "huggingface" / "hub" / "models--owner--cached-model").mkdir(parents=True)
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delitem(ALONE, name, raising=False)
    said = {name: value.format(cache=tmp_path) for name, value in variables.items()}
    if place == "config":
        edited("config.cpu.yaml", "env:\n", "env:\n" + "".join(f"  {k}: {v}\n" for k, v in said.items()))
    else:
        for name, value in said.items():
            monkeypatch.setitem(ALONE, name, value)
    not_refused(basic, *CPU, "--model_name_or_path", "owner/cached-model", "--output_dir", "outputs/cached")
    assert "not in the cache" in refused(basic, *CPU, "--model_name_or_path", "owner/other-model")


@pytest.mark.parametrize("name", template_names())
def test_help_lists_every_setting_and_asks_for_nothing(name):
    """It said that the model is missing."""
    run = in_folder(ROOT / "templates" / name, "train.py", "--help")
    assert run.returncode == 0, run.stderr[-2000:]
    assert "--max_prompt_tokens" in run.stdout and "--num_generations" in run.stdout and "--lora_r" in run.stdout


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("max_steps: 40", "max_steps: 40\nlearning_rate: 1.0e-5", "'learning_rate' is set twice, in lines 30 and 31"),
        ("env:\n", "env:\nthings:\n", "'env' has no value"),
        ("max_steps: 40", "max_steps:", "'max_steps' has no value"),
        ("max_steps: 40", "max_steps: null", "max_steps is null"),
        ("env:\n", "env: 7\nold_env:\n", "env is 7"),
        ("  OMP_NUM_THREADS", "\tOMP_NUM_THREADS", "Indent with spaces, not with tabs."),
        ("max_steps: 40", "max_steps = 100", "is not valid YAML"),
    ],
)
def test_a_config_that_says_two_things_or_nothing_is_refused_with_its_line(basic, edited, old, new, said):
    edited("config.cpu.yaml", old, new)
    error = refused(basic, *CPU)
    assert said in error and "config.cpu.yaml" in error and len(error.splitlines()) <= 2, error


NEW_REWARD = "def new_reward(completions, **kwargs):\n    {}\n\n\n#: What"
BAD_OUTPUTS = {
    "texts": ("return ['1.0' for _ in completions]", "'1.0' (str)"),
    "one number": ("return 0.5", "0.5 (float); it should give a list"),
    "too few": ("return [1.0]", "1 scores for"),
    "NaN": ("return [float('nan') for _ in completions]", "nan (float)"),
    "infinity": ("return [float('inf') for _ in completions]", "inf (float)"),
    "nothing": ("pass", "None (NoneType)"),
    "an error": ("return [c[0]['contents'] for c in completions]", "raised"),
}


@pytest.mark.parametrize("name", BAD_OUTPUTS)
def test_what_a_reward_gives_back_is_checked_before_a_model_is_loaded(basic, edited, name):
    body, said = BAD_OUTPUTS[name]
    edited("rewards.py", "#: What", NEW_REWARD.format(body))
    edited("rewards.py", "REWARDS = [", "REWARDS = [new_reward, ")
    run = in_folder(basic, "train.py", *CPU, "--rewards", "new_reward", "--reward_weights", "1")
    assert run.returncode and "new_reward" in run.stderr and said in run.stderr and "Loading" not in run.stderr, (
        run.stderr
    )


def test_a_bare_no_in_a_config_is_refused_with_the_quotes_it_needs(basic, edited):
    edited("config.cpu.yaml", "save_strategy: steps", "save_strategy: no")
    assert 'Write save_strategy: "no"' in refused(basic, *CPU)


PROMPTS_FIRST = "def new_reward(prompts, completions, **kwargs):\n    return [{} for _ in completions]\n\n\n#: What"


def test_a_reward_that_takes_the_prompts_first_as_trl_documents_it_is_called_by_name(basic, edited):
    """The completions were given as its prompts, and it was said to raise."""
    edited("rewards.py", "#: What", PROMPTS_FIRST.format("float(len(completions) == len(prompts))"))
    edited("rewards.py", "REWARDS = [", "REWARDS = [new_reward, ")
    given = ["--rewards", "new_reward", "--reward_weights", "1", "--output_dir", "outputs/prompts"]
    not_refused(basic, *CPU, *given)


def test_a_reward_that_takes_the_prompts_first_and_raises_names_the_row(basic, edited):
    edited("rewards.py", "#: What", PROMPTS_FIRST.format("1 / len(completions[0][0]['content'])"))
    edited("rewards.py", "REWARDS = [", "REWARDS = [new_reward, ")
    run = in_folder(basic, "train.py", *CPU, "--rewards", "new_reward", "--reward_weights", "1")
    assert "new_reward raised.\nRow: {" in run.stderr and "Completion: [{'role': 'assistant', 'content': ''}]" in (
        run.stderr
    )


@pytest.mark.parametrize("name", template_names())
def test_every_reward_of_a_template_takes_its_completions_by_name(name):
    code = "import inspect, rewards; print([list(inspect.signature(r).parameters)[0] for r in rewards.REWARDS])"
    run = in_folder(ROOT / "templates" / name, "-c", code)
    assert set(ast.literal_eval(run.stdout)) == {"completions"}, run.stderr


def test_a_reward_that_gives_none_for_everything_is_noted(basic, edited):
    edited("rewards.py", "#: What", NEW_REWARD.format("return [None for _ in completions]"))
    edited("rewards.py", "REWARDS = [", "REWARDS = [new_reward, ")
    given = ["--rewards", "new_reward", "correctness_reward", "--reward_weights", "1", "1", "--max_steps", "1"]
    run = in_folder(basic, "train.py", *FAST, *given, "--output_dir", "outputs/none")
    assert run.returncode == 0 and run.stderr.count("Note: new_reward gave None for all completions") == 1, run.stderr


def test_a_reward_that_turns_infinite_while_it_trains_names_itself(basic, edited):
    """Training went on with loss 0.0."""
    body = "return [float('inf') if kwargs['trainer_state'].global_step else 0.0 for _ in completions]"
    edited("rewards.py", "#: What", NEW_REWARD.format(body))
    edited("rewards.py", "REWARDS = [", "REWARDS = [new_reward, ")
    given = ["--rewards", "new_reward", "--reward_weights", "1", "--max_steps", "3", "--output_dir", "outputs/inf"]
    run = in_folder(basic, "train.py", *FAST, *given)
    assert run.returncode and "new_reward gave back inf" in run.stderr and "checkpoints stay" in run.stderr, run.stderr


def test_a_reward_that_the_config_forgets_is_named(basic, edited):
    edited("rewards.py", "#: What", NEW_REWARD.format("return [0.0 for _ in completions]"))
    edited("rewards.py", "REWARDS = [", "REWARDS = [new_reward, ")
    said = refused(basic, *CPU)
    assert "REWARDS in rewards.py has 'new_reward'" in said and "add it there, with a weight" in said


def test_a_file_that_holds_out_one_row_is_refused_and_says_how_to_go_on(basic):
    lines = [json.dumps({"question": f"What is {n} + 1?", "answer": str(n + 1)}) for n in range(20)]
    (basic / "few.jsonl").write_text("\n".join(lines))
    said = refused(basic, *CPU, "--dataset_name", "few.jsonl")
    assert "few.jsonl holds out" in said and "fewer than 10" in said and "--eval_rows" in said


def test_fewer_rows_than_a_step_takes_are_refused(basic):
    said = refused(basic, *CPU, "--train_rows", "3")
    assert "3 rows to train on, and each step takes 8 different prompts" in said


@pytest.mark.parametrize("answer", ["n/a", "N/A", "N.A.", "TBD", "(none)", "null", "NaN", "To do", "unknown"])
def test_a_placeholder_is_not_an_experts_answer(tmp_path, answer):
    (tmp_path / "mine.csv").write_text(f"question,answer\nWho is it?,{answer}\n")
    run = in_folder(ROOT / "templates" / "own_data", "data.py", str(tmp_path / "mine.csv"))
    assert run.returncode and "line 2" in run.stderr and repr(answer) in run.stderr, run.stderr


def test_an_experts_answer_may_be_the_word_none_if_its_key_says_so(tmp_path):
    (tmp_path / "mine.csv").write_text("question,answer,key\nHow many moons has Venus?,None.,none\n")
    run = in_folder(ROOT / "templates" / "own_data", "data.py", str(tmp_path / "mine.csv"))
    assert "line 2" not in run.stderr and "rows for" in run.stderr, run.stderr  # only too few of them


def test_the_names_and_defaults_read_from_trls_source_are_those_of_its_dataclasses():
    from trl import GRPOConfig, ModelConfig

    code = "import early, json; print(json.dumps([sorted(early.trl_fields()), early.BATCH]))"
    found, batch = json.loads(in_folder(ROOT / "templates" / "basic_grpo", "-c", code).stdout)
    names = {field.name for each in (GRPOConfig, ModelConfig) for field in dataclasses.fields(each)}
    assert {name for name in found if not name.startswith("_")} == names
    assert batch == {name: GRPOConfig.__dataclass_fields__[name].default for name in batch}


def test_the_examples_of_the_settings_are_true():
    for file in ("early.py", "settings.py"):
        run = in_folder(ROOT / "templates" / "basic_grpo", "-m", "doctest", file)
        assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("name", template_names())
def test_a_template_says_its_own_name_and_folder(name):
    """All seven said "new basic_grpo FOLDER", and four sent evaluate.py to a folder of another template."""
    folder = ROOT / "templates" / name
    said = in_folder(folder, "train.py", *CPU).stderr
    assert f"python -m grpo_utils new {name} FOLDER" in said, said
    text = (folder / "evaluate.py").read_text(encoding="utf-8")
    config = (folder / "config.cpu.yaml").read_text(encoding="utf-8")
    assert all(f"output_dir: {word.strip(chr(34))}" in config for word in text.split() if word.startswith("outputs/"))


def test_evaluate_names_a_folder_that_is_there(tmp_path):
    folder = new_project("code_reward", tmp_path / "project")
    (folder / "outputs" / "code").mkdir(parents=True)
    (folder / "outputs" / "code" / "report.json").write_text("{}")
    assert "python evaluate.py outputs/code" in in_folder(folder, "evaluate.py").stderr


@pytest.fixture
def running(basic):
    """A run that has taken its first step, in outputs/busy."""
    long = [*FAST, "--max_steps", "500", "--logging_steps", "1", "--output_dir", "outputs/busy"]
    process = subprocess.Popen(
        [sys.executable, "train.py", *long], cwd=basic, env=ALONE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    next(line for line in process.stdout if line.startswith("step"))
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


@pytest.mark.slow
def test_a_second_run_in_one_folder_is_refused_until_the_first_is_killed(basic, running):
    said = refused(basic, *CPU, "--output_dir", "outputs/busy")
    assert f"in use by process {running.pid} on " in said and "started 20" in said
    running.send_signal(signal.SIGKILL)
    running.wait()
    after = in_folder(basic, "train.py", *FAST, "--max_steps", "1", "--output_dir", "outputs/busy")
    assert after.returncode == 0, after.stderr[-2000:]


HOLD = "import folder; from pathlib import Path; [folder.hold(Path({!r})) for _ in range({})]; print('went on')"


def test_a_lock_file_that_cannot_be_written_is_noted_and_the_run_goes_on():
    """It ended with a traceback where output_dir is a mounted disk in a parent that only root may write."""
    run = in_folder(ROOT / "templates" / "basic_grpo", "-c", HOLD.format("/proc/self/outputs", 1))  # also for root
    assert "outputs.lock cannot be written" in run.stdout and "do not start two runs" in run.stdout, run.stderr
    assert "went on" in run.stdout


def test_a_process_that_starts_twice_is_not_refused_by_its_own_lock(tmp_path):
    """%run train.py twice in one notebook was "in use by" the notebook itself."""
    run = in_folder(ROOT / "templates" / "basic_grpo", "-c", HOLD.format(str(tmp_path / "outputs" / "mine"), 2))
    assert run.stdout == "went on\n", run.stderr


@pytest.mark.parametrize("begun", [True, False])
def test_a_run_that_was_refused_before_it_began_leaves_no_lock_and_no_folder(tmp_path, begun):
    place = tmp_path / "outputs" / "mine"
    if begun:
        place.mkdir(parents=True)
    in_folder(ROOT / "templates" / "basic_grpo", "-c", HOLD.format(str(place), 1))
    assert (tmp_path / "outputs").exists() == begun == (tmp_path / "outputs" / "mine.lock").exists()


BEGIN = """
import settings, sys
from folder import begin
from pathlib import Path

begin(Path("outputs/begun"), settings.identity(sys.argv[1:]))
"""


@pytest.fixture
def begun(tmp_path):
    """A project with a run at its first checkpoint, in outputs/begun; nothing was trained for it."""
    folder = new_project("basic_grpo", tmp_path / "project")
    run = in_folder(folder, "-c", BEGIN, *FAST, "--output_dir", "outputs/begun")
    assert run.returncode == 0, run.stderr
    (folder / "outputs" / "begun" / "checkpoint-1").mkdir()
    return folder


@pytest.mark.parametrize("name", ["train.py", "policy.py", "trainer.py", "generation.py", "rewards.py", "data.py"])
def test_an_edit_to_what_training_uses_is_found_before_the_imports(begun, name):
    """An edit to what is imported late was found only after the model was loaded, and one to train.py never."""
    (begun / name).write_text((begun / name).read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    assert f"{name} was edited" in refused(begun, *FAST, "--output_dir", "outputs/begun")


def test_an_edit_to_what_comes_after_training_does_not_refuse_a_resume(begun):
    for name in ("report.py", "rates.py", "evaluate.py", "test_rewards.py"):
        (begun / name).write_text((begun / name).read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    not_refused(begun, *FAST, "--output_dir", "outputs/begun")


def test_a_half_written_run_file_is_named(begun):
    mark = begun / "outputs" / "begun" / "run.json"
    mark.write_text(mark.read_text(encoding="utf-8")[:100], encoding="utf-8")
    said = refused(begun, *FAST, "--output_dir", "outputs/begun")
    assert "outputs/begun/run.json is not valid JSON" in said and len(said.splitlines()) == 1
    mark.write_text("{}")
    not_refused(begun, *FAST, "--output_dir", "outputs/begun", "--accept_changes", "true")


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A project whose run was ended after its checkpoint at step 4."""
    folder = new_project("basic_grpo", tmp_path_factory.mktemp("stopped") / "project")
    run = in_folder(folder, "train.py", *FAST, *STEPS)
    assert run.returncode == 0, run.stderr[-2000:]
    (folder / "outputs" / "cut" / "report.json").unlink()
    return folder


STEPS = ["--max_steps", "4", "--save_steps", "2", "--logging_steps", "1", "--output_dir", "outputs/cut"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "file, change, said",
    [
        ("", ["--learning_rate", "1e-4"], "learning_rate was 0.002, is 0.0001"),
        ("", ["--top_p", "0.9"], "top_p was None, is 0.9"),
        ("", ["--temperature", "0.7"], "temperature was 1.0, is 0.7"),
        ("rewards.py", [], "rewards.py was edited"),
        ("data.py", [], "data.py was edited"),
    ],
)
def test_going_on_after_an_edit_says_what_changed_and_since_when(stopped, file, change, said):
    """It went on in silence: one run with two rewards."""
    text = (stopped / (file or "rewards.py")).read_text(encoding="utf-8")
    if file:
        (stopped / file).write_text(text + "\n# another reward\n", encoding="utf-8")
    error = refused(stopped, *FAST, *STEPS, *change)
    (stopped / (file or "rewards.py")).write_text(text, encoding="utf-8")
    assert said in error and "trained to checkpoint-4" in error and "--accept_changes true" in error
    assert (stopped / "outputs" / "cut" / "checkpoint-4").is_dir()


@pytest.mark.slow
def test_accepted_changes_go_on_and_are_in_the_report_with_the_time_of_all_pieces(stopped):
    state = json.loads((stopped / "outputs" / "cut" / "checkpoint-4" / "trainer_state.json").read_text())
    first = state["stateful_callbacks"]["Clock"]["seconds"]
    longer = [*STEPS, "--max_steps", "5", "--save_steps", "3", "--learning_rate", "1e-4", "--accept_changes", "true"]
    run = in_folder(stopped, "train.py", *FAST, *longer)
    assert run.returncode == 0 and "Going on from" in run.stdout, run.stderr[-2000:]
    report = json.loads((stopped / "outputs" / "cut" / "report.json").read_text())
    [change] = report["changes"]
    assert change.startswith("after checkpoint-4: ") and "learning_rate was 0.002, is 0.0001" in change
    assert "max_steps was 4.0, is 5.0" in change and report["steps"] == 5
    assert report["train_seconds"] > first > 0
