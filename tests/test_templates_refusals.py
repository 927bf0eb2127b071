"""What a template refuses, in seconds of processor time and in a line or two, before anything heavy is imported.

A lib/ is the same in every template (test_templates.py), so most of this asks basic_grpo's.
"""

import dataclasses
import doctest
import importlib
import json
import os
import resource
import signal
import subprocess
import sys

import pytest
from conftest import ROOT
from datasets import Dataset
from template_lib import folder, measuring, rows, scoring, start
from template_projects import ALONE, CONFIGURED, FAST, in_folder

from grpo_utils.project import new_project

pytestmark = pytest.mark.slow

CPU = ["--config", "config.cpu.yaml"]
PLAIN = [*CPU, "--use_unsloth", "false"]


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    return new_project("basic_grpo", tmp_path_factory.mktemp("refusals") / "project")


@pytest.fixture
def here(basic, monkeypatch):
    """In the project's folder, with an environment of this test's own."""
    monkeypatch.chdir(basic)
    monkeypatch.setattr(os, "environ", dict(ALONE))
    return basic


@pytest.fixture
def edited(here):
    """Replace a text in a file of the project, and put it back after the test."""
    kept = {}

    def edit(file: str, old: str, new: str) -> None:
        text = (here / file).read_text(encoding="utf-8")
        kept.setdefault(file, text)
        assert old in text
        (here / file).write_text(text.replace(old, new, 1), encoding="utf-8")

    yield edit
    for file, text in kept.items():
        (here / file).write_text(text, encoding="utf-8")


def refused(*arguments: str) -> str:
    """The error of settings that have to be refused, in a line or two."""
    with pytest.raises(SystemExit) as stopped:
        start.prepare(list(arguments))
    said = str(stopped.value)
    assert said.startswith("Error: ") and len(said.splitlines()) <= 2, said
    return said


def rehearsed(project, monkeypatch, *arguments: str) -> None:
    """All that comes before TRL is imported, with the project's own rewards and rows."""
    monkeypatch.syspath_prepend(project)
    own = ("rewards", "data", "lib", "lib.texts", "judge", "environment")
    for name in own:
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    try:
        rewards, data = importlib.import_module("rewards"), importlib.import_module("data")
        start.prepare(list(arguments))
        start.rehearse(list(arguments), rewards.REWARDS, data.load_rows)
    finally:
        for name in own:
            sys.modules.pop(name, None)


def test_the_examples_in_lib_say_what_comes_out():
    found = [doctest.testmod(module) for module in (start, rows)]
    assert not any(one.failed for one in found) and all(one.attempted for one in found)


def test_a_refusal_costs_a_command_three_seconds_and_no_traceback(basic):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = in_folder(basic, "train.py", *CPU, "--learning_rat", "1")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert run.returncode == 1 and run.stderr == (
        "Error: unknown setting 'learning_rat'. Did you mean 'learning_rate'?\n"
    )
    assert used < 3, f"{used:.1f} s of processor time"


@pytest.mark.parametrize(
    "change, said",
    [
        ("--max_steps -5", "max_steps is -5"),
        ("--max_steps 0", "max_steps is 0"),
        ("--max_steps many", "max_steps is 'many'; it must be a number"),
        ("--max_steps -1 --num_train_epochs -2", "num_train_epochs is -2"),
        ("--eval_rows 0", "eval_rows is 0"),
        ("--train_rows -100", "train_rows is -100"),
        ("--learning_rate nan", "learning_rate is nan"),
        ("--num_generations 1", "num_generations is 1"),
        ("--model_name_or_path ./no-model", "'./no-model' is neither a folder here"),
        ("--model_name_or_path /tmp", "the folder '/tmp' has no config.json"),
        ("--model_name_or_path what-is-this?", "nor a hub id like owner/name"),
        ("--model_name_or_path owner/no-such-model", "HF_HUB_OFFLINE forbids downloads"),
        ("--load_in_4bit true --use_peft false", "load_in_4bit needs use_peft"),
        ("--reward_weights 1 2", "reward_weights is not a setting; set rewards and weights in REWARDS"),
        ("--env x", "env is not an option"),
        ("--config other.yaml", "--config appears twice"),
        ("--model_name_or_path=", "model_name_or_path is missing. Add --config"),
        ("--generation_batch_size 0", "generation_batch_size is 0"),
        ("--save_steps 0", "save_steps is 0"),
        ("--save_steps 0 --save_strategy steps", "save_steps is 0"),
        ("--logging_steps 0", "logging_steps is 0"),
        (
            "--generation_batch_size 12",
            "generation_batch_size is 12 completions, which is not divisible by num_generations=8",
        ),
    ],
)
def test_a_typo_or_an_impossible_number_is_refused_before_the_imports(here, change, said):
    assert said in refused(*CPU, *change.split())


def test_a_batch_that_is_not_divisible_names_the_users_own_settings(here):
    said = refused(*CPU, "--per_device_train_batch_size", "60")
    names = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_generations")
    assert all(name in said for name in names) and "generation_batch_size" not in said, said


@pytest.mark.parametrize(
    "change",
    [
        "--save_strategy no --save_steps 0",
        "--logging_strategy epoch --logging_steps 0",
        "--max_steps 5 --num_train_epochs 0",
        "--per_device_train_batch_size 8 --generation_batch_size 16",
    ],
)
def test_a_setting_that_is_not_used_is_not_refused(here, change):
    start.prepare([*PLAIN, *change.split()])


NULLS = "max_steps: 40\ngeneration_batch_size: null\nsteps_per_generation: null\ntop_k: ~\nreward_model: null"


def test_an_explicit_null_is_the_default(edited):
    """Two that TRL accepts were refused, and train_rows: null ended in a TypeError."""
    edited("config.cpu.yaml", "max_steps: 40", NULLS)
    edited("config.cpu.yaml", "train_rows: 2000", "train_rows: null")
    start.prepare(PLAIN)
    assert start.ours(start.given(PLAIN)).train_rows == start.parse(CPU)[0].train_rows == 2000


CACHES = [
    {"HF_HOME": "{cache}/huggingface"},
    {"HF_HUB_CACHE": "{cache}/huggingface/hub"},
    {"XDG_CACHE_HOME": "{cache}"},
    {"HOME": "{cache}", "HF_HUB_CACHE": "~/huggingface/hub"},
]


@pytest.mark.parametrize("variables", CACHES, ids=lambda variables: "-".join(variables))
@pytest.mark.parametrize("place", ["config", "shell"])
def test_a_model_in_a_cache_that_the_config_or_the_shell_names_is_found(edited, tmp_path, variables, place):
    """In a process of its own: expanding ~ reads the real environment."""
    (tmp_path / "huggingface" / "hub" / "models--owner--cached-model").mkdir(parents=True)
    said = {name: value.format(cache=tmp_path) for name, value in variables.items()}
    environment = {k: v for k, v in os.environ.items() if k not in ("HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME")}
    if place == "config":
        edited("config.cpu.yaml", "env:\n", "env:\n" + "".join(f"  {k}: {v}\n" for k, v in said.items()))
    else:
        environment |= said
    code = "import sys; from lib import start; start.prepare([*sys.argv[2:], '--model_name_or_path', sys.argv[1]])"
    for model, error in (("owner/cached-model", ""), ("owner/other-model", "not in the cache")):
        command = [sys.executable, "-c", code, model, *PLAIN]
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert (error in run.stderr) if error else run.returncode == 0, run.stderr


def test_one_process_uses_the_first_card_unless_the_shell_names_another(here):
    """The configs named card 0, so `CUDA_VISIBLE_DEVICES=3 python train.py …` ran on somebody else's card."""
    assert not [path for path in (ROOT / "templates").glob("**/*.yaml") if "\n  CUDA_VISIBLE" in path.read_text()]
    for alone, shell, used in ((True, "3", "3"), (True, None, "0"), (False, None, None)):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        os.environ.update({"CUDA_VISIBLE_DEVICES": shell} if shell else {})
        start.prepare(PLAIN, alone)
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == used


@pytest.mark.slow
@pytest.mark.parametrize("name", CONFIGURED)
def test_help_lists_every_setting_and_asks_for_nothing(name):
    """It said that the model is missing."""
    run = in_folder(ROOT / "templates" / name, "train.py", "--help")
    assert run.returncode == 0, run.stderr[-2000:]
    assert "--max_prompt_tokens" in run.stdout and "--num_generations" in run.stdout and "--lora_r" in run.stdout


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("max_steps: 40", "max_steps: 40\nlearning_rate: 1.0e-5", "'learning_rate' is set twice, in lines"),
        ("env:\n", "env:\nthings:\n", "'env' has no value"),
        ("max_steps: 40", "max_steps:", "'max_steps' has no value"),
        ("max_steps: 40", "max_steps: null", "max_steps is null"),
        ("env:\n", "env: 7\nold_env:\n", "env is 7"),
        ("  OMP_NUM_THREADS", "\tOMP_NUM_THREADS", "Indent with spaces, not with tabs."),
        ("max_steps: 40", "max_steps = 100", "is not valid YAML"),
        ("save_strategy: steps", "save_strategy: no", 'Write save_strategy: "no"'),
        ("max_steps: 40", "max_steps: 40\nrewards: [tag_reward]", "rewards is not a setting;"),
    ],
)
def test_a_config_that_says_two_things_or_nothing_is_refused(edited, old, new, said):
    edited("config.cpu.yaml", old, new)
    error = refused(*CPU)
    assert said in error and ("config.cpu.yaml" in error or "Write" in error or "REWARDS" in error), error


def reward_that(body: str):
    """A reward called new_reward, as a user would write it."""
    names = {}
    exec(f"def new_reward(completions, **kwargs):\n    {body}", names)
    return names["new_reward"]


ROW = {"prompt": [{"role": "user", "content": "What is 40 + 2?"}], "answer": "42"}
BAD_OUTPUTS = {
    "return ['1.0' for _ in completions]": "'1.0' (str)",
    "return 0.5": "0.5 (float); it should return a list",
    "return [1.0]": "1 scores",
    "return [float('nan') for _ in completions]": "nan (float)",
    "return [float('inf') for _ in completions]": "inf (float)",
    "pass": "None (NoneType)",
    "return [c[0]['contents'] for c in completions]": "raised",
}


@pytest.mark.parametrize("body", BAD_OUTPUTS)
def test_what_a_reward_returns_is_checked_before_a_model_is_loaded(body):
    with pytest.raises(SystemExit, match="Error: new_reward") as stopped:
        scoring.try_on(reward_that(body), ROW)
    assert BAD_OUTPUTS[body] in str(stopped.value) and "before any model is loaded" in str(stopped.value)


def test_a_reward_that_takes_the_prompts_first_as_trl_documents_it_is_called_by_name():
    """The completions were given as its prompts, and it was said to raise."""

    def new_reward(prompts, completions, **kwargs):
        return [float(len(completions) == len(prompts) and 1 / len(completions[1][0]["content"])) for _ in prompts]

    scoring.try_on(new_reward, ROW)

    def raising(prompts, completions, **kwargs):
        return [1 / len(completion[0]["content"]) for completion in completions]

    with pytest.raises(SystemExit) as stopped:
        scoring.try_on(raising, ROW)
    said = str(stopped.value)
    assert "raising raised.\nRow: {" in said and "Completion: [{'role': 'assistant', 'content': ''}]" in said


@pytest.mark.parametrize("name", CONFIGURED)
def test_every_reward_of_a_template_takes_its_completions_by_name_and_has_a_weight(name):
    code = "import inspect, rewards\nfor reward, weight in rewards.REWARDS.items(): "
    code += "print(list(inspect.signature(reward).parameters)[0], type(weight).__name__)"
    run = in_folder(ROOT / "templates" / name, "-c", code)
    assert set(run.stdout.splitlines()) == {"completions float"}, run.stderr


def test_a_reward_that_gives_none_for_everything_is_noted_once(capsys):
    score = scoring.guarded(reward_that("return [None for _ in completions]"))
    assert score(["a", "b"]) == score(["c", "d"]) == [None, None]
    assert capsys.readouterr().err.count("Note: new_reward returned None for every completion of a batch") == 1


def test_a_reward_that_is_written_and_not_listed_is_noted(here, monkeypatch, capsys):
    text = (here / "rewards.py").read_text(encoding="utf-8")
    (here / "rewards.py").write_text(text + "\n\ndef short_reward(completions, **kwargs):\n    return []\n")
    rehearsed(here, monkeypatch, *PLAIN, "--output_dir", "outputs/unused")
    (here / "rewards.py").write_text(text, encoding="utf-8")
    assert capsys.readouterr().out == "Note: short_reward is in rewards.py but not in REWARDS, so it is not used.\n"


@pytest.mark.parametrize("rewards", [[len], {}, {len: "two"}, {len: None}, None], ids=str)
def test_rewards_without_weights_are_refused_before_a_model_is_loaded(rewards):
    """A list, TRL's own form, was refused after the model was loaded and measured."""
    with pytest.raises(SystemExit, match="REWARDS = {correctness_reward: 2.0"):
        start.check_rewards(rewards, ())


@pytest.mark.parametrize(
    "stage",
    ["rewards: [format_reward]", "rewards: {}", "rewards: {format_reward: much}", "reward_weights: [1.0]"],
)
def test_a_stage_without_weights_is_refused(tmp_path, stage):
    project = new_project("multi_stage", tmp_path / "project")
    (project / "stages.cpu.yaml").write_text(f"- name: one\n  {stage}\n")
    run = in_folder(project, "-c", "import sys, plan; plan.read_stages(sys.argv[1:])", *CPU)
    assert "Error: stage 'one' must give each of its rewards a weight: rewards: {" in run.stderr, run.stderr


def test_a_run_that_cannot_learn_says_why(capsys):
    """40 steps without one answer in form ended in "No improvement shown" and no word more."""
    rows = Dataset.from_list([ROW] * 3)
    measuring.evaluate(lambda **temperature: ["It is 42."] * 3, rows, lambda text, row: False, lambda text: False)
    said = capsys.readouterr().out
    assert (
        "none of 3 sampled answers has the format that rewards.py accepts" in said
        and "'It is 42.'" in said
        and "data.py" in said
    )


NEW_REWARD = "def new_reward(completions, **kwargs):\n    {}\n\n\n#: The rewards that"


@pytest.mark.slow
def test_a_reward_that_turns_infinite_while_it_trains_names_itself(edited):
    """Training went on with loss 0.0. And a new reward is one function and one line: no config names it."""
    body = "return [float('inf') if kwargs['trainer_state'].global_step else 0.0 for _ in completions]"
    edited("rewards.py", "#: The rewards that", NEW_REWARD.format(body))
    edited("rewards.py", "REWARDS = {", "REWARDS = {new_reward: 1.0, ")
    run = in_folder(".", "train.py", *FAST, "--max_steps", "3", "--output_dir", "outputs/inf")
    assert run.returncode and "new_reward returned inf" in run.stderr and "checkpoints are kept" in run.stderr, (
        run.stderr
    )


def test_a_file_that_holds_out_one_row_is_refused_and_says_how_to_go_on(here, monkeypatch):
    lines = [json.dumps({"question": f"What is {n} + 1?", "answer": str(n + 1)}) for n in range(20)]
    (here / "few.jsonl").write_text("\n".join(lines))
    with pytest.raises(SystemExit, match="few.jsonl has . held-out rows.* needs 10.*--eval_rows"):
        rehearsed(here, monkeypatch, *PLAIN, "--dataset_name", "few.jsonl")


def test_fewer_rows_than_a_step_takes_are_refused(here, monkeypatch):
    with pytest.raises(SystemExit, match="3 training rows, and each step needs 8 different prompts"):
        rehearsed(here, monkeypatch, *PLAIN, "--train_rows", "3")


@pytest.mark.parametrize("answer", ["n/a", "N/A", "N.A.", "TBD", "(none)", "null", "NaN", "To do", "unknown"])
def test_a_placeholder_is_not_an_experts_answer(tmp_path, answer):
    (tmp_path / "mine.csv").write_text(f"question,answer\nWho is it?,{answer}\n")
    run = in_folder(ROOT / "templates" / "own_data", "data.py", str(tmp_path / "mine.csv"))
    assert run.returncode and "line 2" in run.stderr and repr(answer) in run.stderr, run.stderr


def test_an_experts_answer_may_be_the_word_none_if_its_key_says_so(tmp_path):
    (tmp_path / "mine.csv").write_text("question,answer,key\nHow many moons has Venus?,None.,none\n")
    run = in_folder(ROOT / "templates" / "own_data", "data.py", str(tmp_path / "mine.csv"))
    assert "line 2" not in run.stderr and "rows for" in run.stderr, run.stderr  # only too few of them


@pytest.mark.slow
def test_the_names_and_defaults_read_from_trls_source_are_those_of_its_dataclasses():
    from trl import GRPOConfig, ModelConfig

    names = {field.name for each in (GRPOConfig, ModelConfig) for field in dataclasses.fields(each)}
    assert {name for name in start.trl_fields() if not name.startswith("_")} == names
    assert start.BATCH == {name: GRPOConfig.__dataclass_fields__[name].default for name in start.BATCH}


@pytest.mark.parametrize("name", CONFIGURED)
def test_a_template_says_its_own_name(name):
    """All seven said "new basic_grpo FOLDER"."""
    said = in_folder(ROOT / "templates" / name, "train.py", *CPU).stderr
    assert f"python -m grpo_utils new {name} FOLDER" in said, said


def test_the_table_of_a_run_is_shown_again_and_without_one_a_folder_that_is_there_is_named(tmp_path):
    project = new_project("code_reward", tmp_path / "project")
    (project / "outputs" / "code").mkdir(parents=True)
    (project / "outputs" / "code" / "report.json").write_text("{}")
    assert "python -m lib.measuring outputs/code" in in_folder(project, "-m", "lib.measuring").stderr


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
    said = in_folder(basic, "train.py", *CPU, "--output_dir", "outputs/busy").stderr
    assert f"in use by process {running.pid} on " in said and "started 20" in said
    running.send_signal(signal.SIGKILL)
    running.wait()
    after = in_folder(basic, "train.py", *FAST, "--max_steps", "1", "--output_dir", "outputs/busy")
    assert after.returncode == 0, after.stderr[-2000:]


HOLD = "from lib.folder import hold; from pathlib import Path; [hold(Path({!r})) for _ in range({})]; print('went on')"


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
import sys
from pathlib import Path

from lib import start
from lib.folder import begin

begin(Path("outputs/begun"), start.identity(sys.argv[1:]))
"""


@pytest.fixture
def begun(tmp_path):
    """A project with a run at its first checkpoint, in outputs/begun; nothing was trained for it."""
    project = new_project("basic_grpo", tmp_path / "project")
    run = in_folder(project, "-c", BEGIN, *FAST, "--output_dir", "outputs/begun")
    assert run.returncode == 0, run.stderr
    (project / "outputs" / "begun" / "checkpoint-1").mkdir()
    return project


def edit_all(project, names) -> None:
    for name in names:
        (project / name).write_text((project / name).read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


def test_an_edit_to_what_training_uses_is_found_before_the_imports(begun):
    """An edit to what is imported late was found only after the model was loaded, and one to train.py never."""
    names = ["train.py", "rewards.py", "data.py", "lib/policy.py", "lib/training.py"]
    edit_all(begun, names)
    said = in_folder(begun, "train.py", *FAST, "--output_dir", "outputs/begun").stderr
    assert all(f"{name.rpartition('/')[2]} was edited" in said for name in names) and "Loading" not in said, said


def test_a_file_of_ones_own_does_not_hide_one_of_lib(begun):
    """Files were known by their bare names: an own policy.py took the place of lib/policy.py."""
    (begun / "policy.py").write_text("MINE = True\n")
    edit_all(begun, ["lib/policy.py"])
    assert "lib/policy.py was edited" in in_folder(begun, "train.py", *FAST, "--output_dir", "outputs/begun").stderr


def test_an_edit_to_what_comes_after_training_does_not_refuse_a_resume(begun):
    edit_all(begun, ["lib/measuring.py", "test_rewards.py"])
    run = in_folder(begun, "-c", BEGIN, *FAST, "--output_dir", "outputs/begun")
    assert run.returncode == 0 and "checkpoint-1 is skipped: it has no weights" in run.stdout, run.stderr


def test_a_half_written_run_file_is_named(tmp_path):
    mark = tmp_path / "run.json"
    mark.write_text('{"max_steps": ')
    (tmp_path / "checkpoint-1").mkdir()
    with pytest.raises(SystemExit, match="run.json is not valid JSON"):
        folder.check_same(tmp_path, {"max_steps": 1.0})
    mark.write_text("{}")
    assert folder.check_same(tmp_path, {"seed": 1.0}, accept=True) == ["seed was None and is now 1.0"]


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A project whose run was ended after its checkpoint at step 4."""
    project = new_project("basic_grpo", tmp_path_factory.mktemp("stopped") / "project")
    run = in_folder(project, "train.py", *FAST, *STEPS)
    assert run.returncode == 0, run.stderr[-2000:]
    (project / "outputs" / "cut" / "report.json").unlink()
    return project


STEPS = ["--max_steps", "4", "--save_steps", "2", "--logging_steps", "1", "--output_dir", "outputs/cut"]


@pytest.mark.slow
def test_going_on_after_an_edit_says_what_changed_and_since_when(stopped):
    """It went on in silence: one run with two rewards."""
    kept = (stopped / "rewards.py").read_text(encoding="utf-8")
    edit_all(stopped, ["rewards.py"])
    changes = ["--learning_rate", "1e-4", "--top_p", "0.9", "--temperature", "0.7"]
    error = in_folder(stopped, "train.py", *FAST, *STEPS, *changes).stderr
    (stopped / "rewards.py").write_text(kept, encoding="utf-8")
    for said in (
        "learning_rate was 0.002 and is now 0.0001",
        "top_p was None and is now 0.9",
        "temperature was 1.0 and is now 0.7",
    ):
        assert said in error, error
    assert "rewards.py was edited" in error and "trained to checkpoint-4" in error and "--accept_changes true" in error
    assert (stopped / "outputs" / "cut" / "checkpoint-4").is_dir()


@pytest.mark.slow
def test_accepted_changes_go_on_and_are_in_the_report_with_the_time_of_all_pieces(stopped):
    state = json.loads((stopped / "outputs" / "cut" / "checkpoint-4" / "trainer_state.json").read_text())
    first = state["stateful_callbacks"]["Clock"]["seconds"]
    longer = [*STEPS, "--max_steps", "5", "--save_steps", "3", "--learning_rate", "1e-4", "--accept_changes", "true"]
    run = in_folder(stopped, "train.py", *FAST, *longer)
    assert run.returncode == 0 and "Resuming from" in run.stdout, run.stderr[-2000:]
    report = json.loads((stopped / "outputs" / "cut" / "report.json").read_text())
    [change] = report["changes"]
    assert change.startswith("after checkpoint-4: ") and "learning_rate was 0.002 and is now 0.0001" in change
    assert "max_steps was 4.0 and is now 5.0" in change and report["steps"] == 5
    assert report["train_seconds"] > first > 0
