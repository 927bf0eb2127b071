"""What a template refuses, in a line or two, before a model is loaded, and mostly before torch is imported.

What a run works with is the same in every template (`grpo_run`), so most of this asks basic_grpo's.
"""

import json
import os
from pathlib import Path

import pytest
import yaml
from course import ROOT
from datasets import Dataset
from grpo_run import checking, evaluating, folder, loading, scoring, start
from template_projects import ALONE, FAST, OWN_REWARDS, imported, in_folder

from grpo_utils.models import model_path
from grpo_utils.project import new_project

slow = pytest.mark.slow

PLAIN = ["--config", "config.cpu.yaml", "--use_unsloth", "false"]


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    return new_project("basic_grpo", tmp_path_factory.mktemp("refusals") / "project")


@pytest.fixture
def here(basic, monkeypatch):
    """In the project's folder, with an environment of this test's own."""
    monkeypatch.chdir(basic)
    monkeypatch.setattr(os, "environ", dict(ALONE))
    (basic / "empty").mkdir(exist_ok=True)
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
        start.read([*PLAIN, *arguments])
    said = str(stopped.value)
    assert said.startswith("Error: ") and len(said.splitlines()) <= 2, said
    return said


def rehearsed(project, *arguments: str) -> None:
    """All that comes before torch is imported, with the project's own rewards and rows."""
    with imported(project, "rewards", "data") as (rewards, data):
        own = (rewards.REWARDS, rewards.is_right, rewards.is_in_form, rewards.gold_text)
        checking.rows_and_rewards(start.read([*PLAIN, *arguments]), data.load_rows, *own)


@slow
def test_a_command_with_a_typo_ends_in_one_line(basic):
    run = in_folder(basic, "train.py", *PLAIN, "--learning_rat", "1")
    assert run.returncode == 1 and run.stderr == (
        "Error: unknown setting 'learning_rat'. Did you mean 'learning_rate'?\n"
    )


@pytest.mark.parametrize(
    "change, said",
    [
        ("--max_steps -5", "max_steps is -5"),
        ("--max_steps 0", "max_steps is 0"),
        ("--max_steps many", "--max_steps is many; it must be an integer"),
        ("--max_steps -1 --num_train_epochs -2", "num_train_epochs is -2"),
        ("--max_steps 3 --max-steps=4", "--max_steps is given twice"),
        ("--max_steps 5 6", "unknown setting '6'"),
        ("--eval_rows 0", "eval_rows is 0"),
        ("--train_rows -100", "train_rows is -100"),
        ("--learning_rate nan", "learning_rate is nan"),
        ("--num_generations 1", "num_generations is 1"),
        ("--model_name_or_path ./no-model", "there is no model in ./no-model"),
        ("--load_in_4bit true --use_peft false", "load_in_4bit needs use_peft"),
        ("--reward_weights 1 2", "set them in REWARDS"),
        ("--env x", "unknown setting 'env'"),
        ("--config other.yaml", "--config is given twice"),
        ("--model_name_or_path=", "model_name_or_path is missing. Add --config"),
        ("--generation_batch_size 0", "generation_batch_size is 0"),
        ("--save_steps 0", "save_steps is 0"),
        ("--save_steps 0 --save_strategy steps", "save_steps is 0"),
        ("--logging_steps 0", "logging_steps is 0"),
        ("--generation_batch_size 12", "num_generations is 8, and a step has 12 completions"),
        ("--scale_rewards false", "scale_rewards is 'false'; it must be group, batch or none"),
        ("--held_out 20", "held_out is 20.0; it must be a share"),
        ("--use_peft maybe", "--use_peft is maybe; it must be true or false"),
        ("--learning_rate fast", "--learning_rate is fast; it must be a number, such as 1.0e-6"),
        ("--report_to wandbb", "report_to is wandbb. Did you mean wandb?"),
        ("--model_name_or_path tiny-modle", "there is no such folder. Did you mean ./tiny-model?"),
        ("--model_name_or_path outputs/basic-sft", "there is no model in outputs/basic-sft. Run sft.py first."),
        ("--model_name_or_path empty", "empty has no model: no config.json or adapter_config.json"),
        ("--model_name_or_path owner/none", "HF_HUB_OFFLINE is 1 (in config.cpu.yaml, under env)"),
        ("--use_dora true", "use_dora is True, but the templates do not use this setting"),
        ("--model_revision v2", "model_revision is v2, but the templates do not use this setting"),
        ("--load_in_8bit true", "load_in_8bit is True, but"),
        ("--lora_modules_to_save lm_head", "lora_modules_to_save is ['lm_head'], but"),
    ],
)
def test_a_typo_or_an_impossible_number_is_refused(here, change, said):
    assert said in refused(*change.split())


def test_a_batch_that_is_not_divisible_names_the_users_own_settings(here):
    said = refused("--per_device_train_batch_size", "60")
    names = ("per_device_train_batch_size", "gradient_accumulation_steps", "num_generations")
    assert all(name in said for name in names) and "a step has 60 completions" in said, said


@pytest.mark.parametrize(
    "change, fixes",
    [
        ("--per_device_train_batch_size 60", ["--num_generations 6", "--per_device_train_batch_size 64"]),
        ("--per_device_train_batch_size 5 --gradient_accumulation_steps 3", ["--num_generations 5"]),
        ("--per_device_train_batch_size 1", ["--per_device_train_batch_size 8"]),
        ("--per_device_train_batch_size 8 --generation_batch_size 20", ["--generation_batch_size 16"]),
        ("--num_generations 1", ["--num_generations 2"]),
    ],
)
def test_a_batch_that_is_not_divisible_comes_with_numbers_that_are(here, change, fixes):
    said, words = refused(*change.split()), change.split()
    for fix in fixes:
        name, number = fix.split()
        assert f"{name[2:]}: {number}" in said, said
        settings = dict(zip(words[::2], words[1::2])) | {name: number}
        start.read([*PLAIN, *(word for pair in settings.items() for word in pair)])  # accepted


@slow
def test_what_only_trl_knows_is_refused_too(here):
    with pytest.raises(SystemExit, match="fp16 and bf16"):
        start.parse([*PLAIN, "--fp16", "true", "--bf16", "true"])


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
    start.read([*PLAIN, *change.split()])


NULLS = "max_steps: 40\ngeneration_batch_size: null\nsteps_per_generation: null\ntop_k: ~\nreward_model: null"


def test_an_explicit_null_is_the_default(edited):
    """Two that TRL accepts were refused, and train_rows: null ended in a TypeError."""
    edited("config.cpu.yaml", "max_steps: 40", NULLS)
    edited("config.cpu.yaml", "train_rows: 2000", "train_rows: null")
    assert start.read(PLAIN)["train_rows"] == 2000


@slow
def test_a_number_is_the_same_from_the_config_and_from_an_option(edited):
    """A run would not resume otherwise: YAML reads 2e-3 as a text, and save_steps: 20 as a whole number."""
    from_option = folder.identity(start.parse([*PLAIN, "--learning_rate", "0.002", "--top_k", "1"]).values)
    edited("config.cpu.yaml", "learning_rate: 2.0e-3", "top_k: 1\nlearning_rate: 2e-3")
    assert folder.identity(start.parse(PLAIN).values) == from_option


def test_a_model_that_cannot_be_loaded_is_named_whoever_loads_it():
    """Unsloth wraps the error of transformers in one of its own."""

    def unsloth(name):
        raise RuntimeError("Unsloth: No config file found") from OSError("it is not in the cache\nmore")

    def transformers(name):
        raise OSError("it is not in the cache\nmore")

    for load in (unsloth, transformers):
        with pytest.raises(SystemExit, match="Error: owner/model could not be loaded: it is not in the cache$"):
            loading.load_or_exit("owner/model", load)


@slow
def test_the_tokenizer_of_an_adapters_folder_replaces_that_of_its_base():
    own = loading.load_or_exit("base", lambda name: (None, None), tokenizer_of=model_path("tiny-qwen3"))[1]
    assert own.chat_template and own.pad_token


def test_one_process_uses_the_first_card_unless_the_shell_names_another(here):
    """The configs named card 0, so `CUDA_VISIBLE_DEVICES=3 python train.py …` ran on somebody else's card."""
    assert not [path for path in (ROOT / "templates").glob("**/*.yaml") if "\n  CUDA_VISIBLE" in path.read_text()]
    for alone, shell, used in ((True, "3", "3"), (True, None, "0"), (False, None, None)):
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
        os.environ.update({"CUDA_VISIBLE_DEVICES": shell} if shell else {})
        start.read(PLAIN, alone=alone)
        assert os.environ.get("CUDA_VISIBLE_DEVICES") == used


@slow
def test_help_lists_every_setting_and_asks_for_nothing():
    """It said that the model is missing."""
    run = in_folder(ROOT / "templates" / "basic_grpo", "train.py", "--help")
    assert run.returncode == 0, run.stderr[-2000:]
    assert "--max_prompt_tokens" in run.stdout and "--num_generations" in run.stdout and "--lora_r" in run.stdout
    assert "--config" in run.stdout


@slow
@pytest.mark.parametrize("option, alone", [("--no_use_unsloth", True), ("", False)])
def test_unsloth_is_not_imported_for_a_run_without_it_or_in_several_processes(here, option, alone):
    """--no_use_unsloth imported it, and scale_out asked to install it before its own error could be printed."""
    code = f"import sys; from grpo_run import start; settings = start.parse(sys.argv[1:], alone={alone}); "
    code += "print('unsloth' in sys.modules, settings.run.use_unsloth)"
    run = in_folder(here, "-c", code, "--config", "config.cpu.yaml", *option.split())
    assert run.stdout.splitlines()[-1] == f"False {not alone}", run.stderr


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("max_steps: 40", "max_steps: 40\nlearning_rate: 1.0e-5", "'learning_rate' is set twice, in lines"),
        ("env:\n", "env:\nthings:\n", "has no value"),
        ("max_steps: 40", "max_steps:", "has no value"),
        (
            "max_steps: 40",
            "max_steps: 4.5",
            "config.cpu.yaml, line 25: max_steps is 4.5; it must be an integer, such as",
        ),
        ("env:\n", "env: 7\nold_env:\n", "under env"),
        ("max_steps: 40", "max_steps: [40]", "max_steps is [40]"),
        ("max_steps: 40", "max_steps: 40\nrewards: [tag_reward]", "set them in REWARDS"),
        ("max_steps: 40", "max-steps: 40", "unknown setting 'max-steps'. Did you mean 'max_steps'?"),
        ("max_steps: 40", "max_steps: true", "max_steps is True"),
    ],
)
def test_a_config_that_says_two_things_or_nothing_is_refused(edited, old, new, said):
    edited("config.cpu.yaml", old, new)
    assert said in refused()


def test_a_config_that_is_not_yaml_is_named_with_the_line(edited):
    edited("config.cpu.yaml", "  OMP_NUM_THREADS", "\tOMP_NUM_THREADS")
    with pytest.raises(SystemExit, match=r"config.cpu.yaml: (.|\n)*line 5"):
        start.read(PLAIN)


def test_a_config_that_is_not_there_is_named_with_the_nearest(here):
    with pytest.raises(SystemExit, match="there is no file confg.cpu.yaml. Did you mean config.cpu.yaml?"):
        start.read(["--config", "confg.cpu.yaml"])


@slow
def test_no_without_quotes_is_no(edited):
    """YAML reads it as false."""
    edited("config.cpu.yaml", "save_strategy: steps", "save_strategy: no")
    assert start.parse(PLAIN).training.save_strategy == "no"


@slow
@pytest.mark.parametrize("value, kept", [("false", "none"), ("true", "group"), ("batch", "batch")])
def test_a_boolean_of_the_config_stays_one(edited, value, kept):
    """It became the text "False", which TRL rejects in its first step."""
    edited("config.cpu.yaml", "max_steps: 40", f"max_steps: 40\nscale_rewards: {value}")
    assert start.parse(PLAIN).training.scale_rewards == kept


def reward_that(body: str):
    """A reward called new_reward, as a user would write it."""
    names = {}
    exec(f"def new_reward(completions, **kwargs):\n    {body}", names)
    return names["new_reward"]


ROW = {"prompt": [{"role": "user", "content": "What is 40 + 2?"}], "answer": "42"}
TEXTS = scoring.trial_texts(ROW, "42")
BAD_OUTPUTS = {
    "return ['1.0' for _ in completions]": "'1.0' (str)",
    "return 0.5": "0.5 (float); it should return a list",
    "return [1.0]": "1 score (list)",
    "return [float('nan') for _ in completions]": "nan (float)",
    "return [float('inf') for _ in completions]": "inf (float)",
    "pass": "None (NoneType)",
    "return [c[0]['contents'] for c in completions]": "raised",
}


@pytest.mark.parametrize("body", BAD_OUTPUTS)
def test_what_a_reward_returns_is_checked_before_a_model_is_loaded(body):
    with pytest.raises(SystemExit, match="Error: new_reward") as stopped:
        scoring.try_on(reward_that(body), ROW, TEXTS)
    assert BAD_OUTPUTS[body] in str(stopped.value) and "before any model is loaded" in str(stopped.value)


def test_a_reward_that_takes_the_prompts_first_as_trl_documents_it_is_called_by_name():
    """The completions were given as its prompts, and it was said to raise."""

    def new_reward(prompts, completions, **kwargs):
        return [float(len(completions) == len(prompts) and 1 / len(completions[1][0]["content"])) for _ in prompts]

    scoring.try_on(new_reward, ROW, TEXTS)

    def raising(prompts, completions, **kwargs):
        return [1 / len(completion[0]["content"]) for completion in completions]

    with pytest.raises(SystemExit) as stopped:
        scoring.try_on(raising, ROW, TEXTS)
    said = str(stopped.value)
    assert "raising raised.\nRow: {" in said and "Completion: [{'role': 'assistant', 'content': ''}]" in said


@pytest.mark.parametrize("parameters", ["completions, answer", "completions, gold, **kwargs"])
def test_a_reward_with_other_parameters_is_told_the_columns(parameters):
    names = {}
    exec(f"def new_reward({parameters}):\n    return [0.0 for _ in completions]", names)
    with pytest.raises(SystemExit, match=r"new_reward raised. It cannot be called as TRL does: .*\*\*kwargs"):
        scoring.try_on(names["new_reward"], ROW, TEXTS)


def test_a_reward_that_raises_names_the_first_row_and_completion_on_which_it_does():
    def new_reward(completions, answer, **kwargs):
        return [1 / (int(gold) % 7) for gold in answer]

    with pytest.raises(scoring.RewardError) as raised:
        scoring.guarded(new_reward)(["It is 15.", "It is 42.", "It is 49."], answer=["15", "42", "49"])
    assert str(raised.value).startswith("new_reward raised.\nRow: {'answer': '42'}\nCompletion: 'It is 42.'\n")
    assert "ZeroDivisionError" in str(raised.value)


@slow
@pytest.mark.parametrize("name", OWN_REWARDS)
def test_every_reward_of_a_template_takes_its_completions_by_name_and_has_a_weight(name):
    code = "import inspect, rewards\nfor reward, weight in rewards.REWARDS.items(): "
    code += "print(list(inspect.signature(reward).parameters)[0], type(weight).__name__)"
    run = in_folder(ROOT / "templates" / name, "-c", code)
    assert set(run.stdout.splitlines()) == {"completions float"}, run.stderr


def test_a_reward_that_gives_none_for_everything_is_noted_once(capsys):
    """The batch was said to teach nothing although other rewards taught."""
    score = scoring.guarded(reward_that("return [None for _ in completions]"))
    assert score(["a", "b"]) == score(["c", "d"]) == [None, None]
    said = capsys.readouterr().err
    assert said.count("Note: new_reward returned None for every completion of a batch") == 1
    assert "teaches nothing" not in said


def test_a_reward_that_is_written_and_not_listed_is_noted(here, capsys):
    text = (here / "rewards.py").read_text(encoding="utf-8")
    (here / "rewards.py").write_text(text + "\n\ndef short_reward(completions, **kwargs):\n    return []\n")
    rehearsed(here, "--output_dir", "outputs/unused")
    (here / "rewards.py").write_text(text, encoding="utf-8")
    assert capsys.readouterr().out == "Note: short_reward is in rewards.py but not in REWARDS, so it is not used.\n"


@pytest.mark.parametrize("rewards", [[len], {}, {len: "two"}, {len: None}, None], ids=str)
def test_rewards_without_weights_are_refused_before_a_model_is_loaded(rewards):
    """A list, TRL's own form, was refused after the model was loaded and measured."""
    with pytest.raises(SystemExit, match="REWARDS = {correctness_reward: 2.0"):
        scoring.check_rewards(rewards)


WEIGHTS = "Error: stage 'one' must give each of its rewards a weight: rewards: {"


@pytest.mark.parametrize(
    "profile, stage, said",
    [
        ("config.cpu", "rewards: [format_reward]", WEIGHTS),
        ("config.cpu", "rewards: {}", WEIGHTS),
        ("config.cpu", "rewards: {format_reward: much}", WEIGHTS),
        ("config.cpu", "reward_weights: [1.0]", WEIGHTS),
        ("config.cpu", "eval_rows: 5", "stage 'one' changes eval_rows, which all stages share"),
        ("config.cpu", "lora-r: 4", "stage 'one' changes lora_r, which all stages share"),
        ("mine", "max_steps: 5", "name the config config.yaml or config.NAME.yaml"),
    ],
)
def test_a_stage_without_weights_or_effect_and_a_config_without_a_plan_are_refused(
    tmp_path, monkeypatch, profile, stage, said
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stages.cpu.yaml").write_text(f"- name: one\n  {stage}\n")
    with imported(ROOT / "templates" / "multi_stage", "plan") as [plan], pytest.raises(SystemExit, match=said):
        plan.read_stages(profile)


def test_an_option_that_each_stage_replaces_is_refused_and_one_that_some_replace_is_noted(capsys):
    """`--max_steps 1` was ignored without a word, and the stages trained all their steps."""
    stages = [{"name": "form", "max-steps": 15, "beta": 0.1}, {"name": "answers", "max_steps": 30}]
    options, _ = start.read_options(["--max-steps=1", "--beta", "0", "--no_use_unsloth"], start.known_settings())
    with imported(ROOT / "templates" / "multi_stage", "plan") as [plan]:
        with pytest.raises(SystemExit) as stopped:
            plan.check_options(options, stages, "config.cpu")
        assert str(stopped.value) == (
            "Error: --max_steps has no effect, because stages.cpu.yaml sets it in stages 'form', 'answers'. "
            "Change it there."
        )
        capsys.readouterr()
        plan.check_options({"beta": "0", "use_unsloth": False}, stages, "config.cpu")
    assert capsys.readouterr().out == (
        "Note: --beta has no effect in stage 'form', because stages.cpu.yaml sets it there.\n"
    )


@slow
def test_a_stage_may_have_the_yaml_that_a_config_may_have(here):
    """It became the options `--save_strategy False --scale_rewards False --vllm_mode None`, which were refused."""
    stage = yaml.safe_load("{name: one, save_strategy: no, scale_rewards: false, vllm_mode: null, use_vllm: no}")
    with imported(ROOT / "templates" / "multi_stage", "plan") as [plan]:
        training = start.parse(PLAIN, plan.options_of(stage, 1, Path("outputs"))).training
    assert training.save_strategy == "no" and training.scale_rewards == "none"
    assert training.vllm_mode == start.parse(PLAIN).training.vllm_mode and training.use_vllm is False


@slow
def test_the_rows_of_every_stage_are_counted_with_its_own_settings(tmp_path):
    project = new_project("multi_stage", tmp_path / "project")
    plan = "- name: one\n  max_steps: 1\n- name: two\n  train_rows: 3\n  per_device_train_batch_size: 32\n"
    (project / "stages.cpu.yaml").write_text(plan)
    run = in_folder(project, "train.py", *FAST)
    assert "has 3 training rows, and each step needs 4 different prompts" in run.stderr, run.stderr


def test_a_run_that_cannot_learn_says_why(capsys):
    """40 steps without one answer in form ended in "No improvement shown" and no word more."""
    rows = Dataset.from_list([ROW] * 3)
    evaluating.evaluate(lambda **temperature: ["It is 42."] * 3, rows, lambda text, row: False, lambda text: False)
    said = capsys.readouterr().out
    assert (
        "none of 3 sampled answers has the format that rewards.py accepts" in said
        and "'It is 42.'" in said
        and "data.py" in said
    )


NEW_REWARD = "def new_reward(completions, **kwargs):\n    {}\n\n\n#: The rewards that"


@slow
def test_a_reward_that_turns_infinite_while_it_trains_names_itself(edited):
    """Training went on with loss 0.0. And a new reward is one function and one line: no config names it."""
    body = "return [float('inf') if kwargs['trainer_state'].global_step else 0.0 for _ in completions]"
    edited("rewards.py", "#: The rewards that", NEW_REWARD.format(body))
    edited("rewards.py", "REWARDS = {", "REWARDS = {new_reward: 1.0, ")
    run = in_folder(".", "train.py", *FAST, "--max_steps", "3", "--output_dir", "outputs/inf")
    assert run.returncode and "new_reward returned inf" in run.stderr and "checkpoints are kept" in run.stderr, (
        run.stderr
    )


def test_a_file_that_holds_out_one_row_is_refused_and_says_how_to_go_on(here):
    lines = [json.dumps({"question": f"What is {n} + 1?", "answer": str(n + 1)}) for n in range(20)]
    (here / "few.jsonl").write_text("\n".join(lines))
    said = "few.jsonl has 1. training rows and . held-out ones .held_out=0.2 .* needs 10.* split .*--eval_rows"
    with pytest.raises(SystemExit, match=said):
        rehearsed(here, "--dataset_name", "few.jsonl")


def test_fewer_rows_than_a_step_takes_are_refused(here):
    with pytest.raises(SystemExit, match="3 training rows, and each step needs 8 different prompts"):
        rehearsed(here, "--train_rows", "3")


PLACEHOLDERS = ["n/a", "N/A", "N.A.", "TBD", "(none)", "null", "NaN", "To do", "unknown"]


def test_a_placeholder_is_not_an_experts_answer(tmp_path):
    rows = [f"Who is number {n}?,{answer}" for n, answer in enumerate(PLACEHOLDERS)]
    (tmp_path / "mine.csv").write_text("\n".join(["question,answer", *rows]))
    run = in_folder(ROOT / "templates" / "own_data", "data.py", str(tmp_path / "mine.csv"))
    for line, answer in enumerate(PLACEHOLDERS, start=2):
        assert f"line {line}: the answer is {answer!r}, which counts as missing" in run.stderr, run.stderr
    assert run.returncode


def test_an_experts_answer_may_be_the_word_none_if_its_key_says_so(tmp_path):
    (tmp_path / "mine.csv").write_text("question,answer,key\nHow many moons has Venus?,None.,none\n")
    run = in_folder(ROOT / "templates" / "own_data", "data.py", str(tmp_path / "mine.csv"))
    assert run.returncode == 0 and "1 valid rows" in run.stdout, run.stderr


def test_the_table_of_a_run_is_shown_again_and_without_one_a_folder_that_is_there_is_named(tmp_path):
    project = new_project("code_reward", tmp_path / "project")
    (project / "outputs" / "code").mkdir(parents=True)
    (project / "outputs" / "code" / "report.json").write_text("{}")
    run = in_folder(project, "-m", "grpo_run.report")
    assert run.returncode == 1 and "for example outputs/code" in run.stderr, run.stderr


@pytest.mark.parametrize("place", ["mine.txt", "mine.txt/run"])
def test_an_output_dir_that_is_a_file_is_refused_before_a_model_is_loaded(here, place):
    """It was a traceback after the model was loaded."""
    (here / "mine.txt").write_text("mine")
    with pytest.raises(SystemExit, match=f"output_dir is {place}, and .*mine.txt is a file"):
        rehearsed(here, "--output_dir", place)


def test_a_read_only_output_dir_is_refused_before_a_model_is_loaded(here, monkeypatch):
    """It was a traceback after the model was loaded. (Root may write everywhere, so the answer is given here.)"""
    monkeypatch.setattr(folder.os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit, match="output_dir is outputs/new, and .* is read-only"):
        rehearsed(here, "--output_dir", "outputs/new")
    assert not (here / "outputs" / "new.lock").exists()


@slow
def test_a_model_in_the_output_folder_is_not_renamed_away(here):
    (here / "outputs" / "whole" / "model").mkdir(parents=True)
    (here / "outputs" / "whole" / "model" / "config.json").write_text("{}")
    (here / "outputs" / "whole" / "report.json").write_text("{}")
    model = ["--output_dir", "outputs/whole", "--model_name_or_path", "outputs/whole/model"]
    with pytest.raises(SystemExit, match="model_name_or_path is in outputs/whole, which would be renamed"):
        folder.begin(start.parse([*PLAIN, *model]))
    assert (here / "outputs" / "whole" / "report.json").exists()


@slow
def test_no_token_gets_into_a_report(here):
    from grpo_run.training import entries

    settings = start.parse([*PLAIN, "--output_dir", "outputs/token", "--hub_token", "hf_secret"])
    folder.begin(settings)
    written = (here / "outputs" / "token" / "run.json").read_text() + str(entries(settings, "qwen3"))
    assert "learning_rate" in written and "hf_secret" not in written
