"""What a template checks of settings, rows and rewards before it loads a model, and how soon."""

import json
import os
import shutil
from types import SimpleNamespace

import pytest
from course import ROOT
from datasets import Dataset
from grpo_run import checking, limits, rows, scoring, start, table
from template_projects import ALONE, FAST, imported, in_folder

from grpo_utils.models import model_path
from grpo_utils.project import new_project

PLAIN = ["--config", "config.cpu.yaml", "--use_unsloth", "false"]


@pytest.fixture(scope="module")
def basic(tmp_path_factory):
    return new_project("basic_grpo", tmp_path_factory.mktemp("checking") / "project")


@pytest.fixture
def here(basic, monkeypatch):
    """In the project's folder, with an environment of this test's own."""
    monkeypatch.chdir(basic)
    monkeypatch.setattr(os, "environ", dict(ALONE))
    return basic


SOON = """
import sys
from grpo_run import start
try:
    start.read(sys.argv[1:])
except SystemExit as error:
    print(error)
print({"torch", "trl", "transformers", "datasets", "unsloth"} & set(sys.modules))
"""


@pytest.mark.parametrize("change", ["--max_stesp 5", "--learning_rate fast", "--num_generations 7", ""])
def test_a_mistake_in_the_settings_is_found_before_anything_heavy_is_imported(basic, change):
    """Each took 15 seconds or more."""
    said = in_folder(basic, "-c", SOON, "--config", "config.cpu.yaml", *change.split()).stdout.splitlines()
    assert said[-1] == "set()" and said[0].startswith("Error: ") == bool(change), said


ROWS_SOON = """
import runpy, sys
sys.argv[0] = "train.py"
try:
    runpy.run_path("train.py", run_name="__main__")
except SystemExit as error:
    print(error)
print({"torch", "trl", "transformers", "unsloth"} & set(sys.modules))
"""


@pytest.mark.parametrize(
    "template, change, said",
    [
        ("basic_grpo", ["--dataset_name", "no.jsonl"], "'no.jsonl' is not a file here, and not 'addition' or"),
        ("basic_grpo", ["--dataset_name", "adition"], "Did you mean 'addition'?"),
        ("own_data", ["--dataset_name", "expert_answer.csv"], "Did you mean 'expert_answers.csv'?"),
        pytest.param(
            "multi_stage", ["--dataset_name", "no.jsonl"], "'no.jsonl' is not a file here", marks=pytest.mark.slow
        ),
        pytest.param(
            "multi_stage",
            ["--use_peft", "false", "--load_in_4bit", "false"],
            "use_peft must be true",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "multi_stage",
            ["--max_steps", "1"],
            "--max_steps has no effect, because stages.cpu.yaml sets it in stages 'form', 'answers'",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "structured_output",
            ["--dataset_name", "no.jsonl"],
            "'no.jsonl' is not a file here, and not 'people'",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "tool_agent", ["--dataset_name", "no.jsonl"], "'no.jsonl' is not a file here", marks=pytest.mark.slow
        ),
        pytest.param(
            "scale_out", ["--dataset_name", "no.jsonl"], "'no.jsonl' is not a file here", marks=pytest.mark.slow
        ),
        pytest.param("scale_out", ["--use_unsloth", "true"], "use_unsloth must be false here", marks=pytest.mark.slow),
    ],
)
def test_a_mistake_in_the_data_is_found_before_torch_is_imported(tmp_path, template, change, said):
    project = new_project(template, tmp_path / "project")
    run = in_folder(project, "-c", ROWS_SOON, "--config", "config.cpu.yaml", *change)
    assert said in run.stdout and run.stdout.splitlines()[-1] == "set()", run.stdout + run.stderr
    assert not (project / "outputs").exists()


@pytest.mark.slow
def test_the_settings_read_from_trls_source_are_those_of_its_classes():
    """With their defaults, wherever these are plain values."""
    from dataclasses import fields

    from trl import GRPOConfig, ModelConfig

    found = start.known_settings()
    own = {one.name for one in fields(start.RunConfig)} | {"vllm_sampling_params", "unsloth_num_chunks"}
    real = {one.name: one for kind in (GRPOConfig, ModelConfig) for one in fields(kind)}
    assert found.keys() - own == real.keys()
    plain = {name: one.default for name, one in real.items() if isinstance(one.default, int | float | str)}
    plain = {name: getattr(default, "value", default) for name, default in plain.items()}
    differ = {name for name, default in plain.items() if found[name].default != default}
    assert len(plain) > 100 and differ == {"optim"}  # TRL computes it


COLUMNS = table.Columns(("question", "answer"))
GOOD = [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(60)]


def error_of(path, lines, columns=COLUMNS) -> str:
    """The error for a file with these lines, and good ones after them."""
    path.write_text("\n".join([*lines, *map(json.dumps, GOOD)]), encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        rows.read_rows(str(path), columns)
    return str(stopped.value)


def test_blank_contradictory_and_repeated_rows_are_all_reported(tmp_path):
    """basic_grpo trained on 150 blank questions, and on 150 questions with two answers each."""
    bad = [
        {"question": " ", "answer": "1"},
        GOOD[0],
        {"question": "what is 0 + 1", "answer": "2"},
        {"question": "Who?"},
    ]
    said = error_of(tmp_path / "a.jsonl", map(json.dumps, bad))
    assert "bad rows in" in said and "line 1: the question is empty" in said
    assert "line 3: has the same question as line 2, but another answer: keep one." in said
    assert "line 4: has no column 'answer'; it has 'question'." in said and "line 5: duplicates line 2" in said


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "question;answer\nWho?;Ana",
            "is not JSONL; its first line 'question;answer' looks like CSV. Rename it to a.csv",
        ),
        (json.dumps(GOOD, indent=1), "is one JSON list. Write one object per line"),
        ("", "has no rows. A row has question and answer."),
    ],
)
def test_a_file_that_is_not_jsonl_is_called_what_it_is(tmp_path, text, said):
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(SystemExit) as stopped:
        rows.read_rows(str(tmp_path / "a.jsonl"), COLUMNS)
    assert said in str(stopped.value)


def test_a_split_decides_and_a_larger_share_only_adds_held_out_rows():
    mine = [row | {"split": ""} for row in GOOD]
    few, many = ([row["question"] for row in rows.of_split(mine, "test", share)] for share in (0.1, 0.4))
    assert 0 < len(few) < len(many) < 40 and set(few) < set(many)
    chosen = [row | {"split": "test" if n < 12 else "train"} for n, row in enumerate(GOOD)]
    assert rows.of_split(chosen, "test", 0.1) == chosen[:12] and rows.of_split(chosen, "train", 0.9) == chosen[12:]


def test_json_columns_are_the_same_from_jsonl_and_csv(tmp_path):
    columns = table.Columns(("question", "calls"), as_json=("calls",))
    (tmp_path / "a.jsonl").write_text('{"question": "Who?", "calls": [[1, "x"]]}')
    (tmp_path / "a.csv").write_text('question,calls\nWho?,"[[1, ""x""]]"\n')
    read = [rows.read_rows(str(tmp_path / name), columns) for name in ("a.jsonl", "a.csv")]
    assert read[0] == read[1] == [{"question": "Who?", "calls": '[[1, "x"]]', "split": ""}]


ROW = {"prompt": [{"role": "user", "content": "What is 40 + 2?"}], "answer": "42"}


def some_reward(completions, answer, **kwargs):
    return [float(gold in completion[0]["content"]) for completion, gold in zip(completions, answer)]


def rehearsed(is_right, is_in_form=lambda text: bool(text), gold_text=lambda row: row["answer"]):
    scoring.rehearse({some_reward: 1.0}, ROW, is_right, is_in_form, gold_text)


def no_return(text, row):
    bool(text == row["answer"])


def wrong_column(text, row):
    return text == row["gold"]


def one_for_true(text, row):
    return float(text == row["answer"])


def never(text, *row):
    return False


@pytest.mark.parametrize(
    "is_right, said",
    [
        (no_return, "no_return returned None (NoneType); it should return True or False. Is a `return` missing?"),
        (wrong_column, "wrong_column raised.\nRow: {'answer': '42'}\nText: ''\n"),
        (one_for_true, "one_for_true returned 0.0 (float); it should return True or False"),
        (never, "is_right returned False for the gold answer"),
    ],
)
def test_is_right_is_tried_before_a_model_is_loaded(is_right, said):
    """Each ended in a traceback after the model was loaded, or in an accuracy of 0."""
    with pytest.raises(SystemExit) as stopped:
        rehearsed(is_right)
    assert said in str(stopped.value) and "rewards.py" in str(stopped.value)


def test_is_in_form_is_tried_too():
    def right(text, row):
        return text == row["answer"]

    rehearsed(right)
    with pytest.raises(SystemExit, match="is_in_form returned False for the gold answer"):
        rehearsed(right, is_in_form=never)
    with pytest.raises(SystemExit, match="raised"):
        rehearsed(right, is_in_form=lambda: True)


def test_a_reward_that_scores_the_gold_answer_like_any_other_text_is_noted(capsys):
    """It counted "<" in a list, and was 0 in every step."""

    def dead_reward(completions, **kwargs):
        return [float(completion.count("<")) for completion in completions]

    right = scoring.rehearse
    right({some_reward: 1.0, dead_reward: 0.5}, ROW, lambda t, row: t == "42", bool, lambda row: "42")
    said = capsys.readouterr().out
    assert "Note: dead_reward gave 0.0 to each of the" in said and "some_reward" not in said


def settings_of(**changes) -> SimpleNamespace:
    """Settings of the tiny model for `fitting`."""
    values = dict(per_device_train_batch_size=64, gradient_accumulation_steps=1, steps_per_generation=None)
    values |= dict(generation_batch_size=None, num_generations=8)
    training = SimpleNamespace(chat_template_kwargs=None, max_completion_length=changes.pop("completion", 32))
    run = SimpleNamespace(max_prompt_tokens=changes.pop("prompt", 96))
    model = SimpleNamespace(model_name_or_path=str(model_path("tiny-qwen3")))
    return SimpleNamespace(run=run, training=training, model=model, values=values | changes)


def asked(*lengths: int) -> Dataset:
    """Rows with prompts of this many words."""
    return Dataset.from_list([{"prompt": [{"role": "user", "content": "is " * n}], "answer": "42"} for n in lengths])


@pytest.mark.slow
def test_prompts_that_are_too_long_name_the_limit_to_set():
    """The error asked for more rows or a smaller batch, and neither could help."""
    with pytest.raises(SystemExit) as stopped:
        checking.fitting(settings_of(), asked(*[200] * 40), asked(200))
    said = str(stopped.value)
    most = int(said.rpartition("max_prompt_tokens: ")[2].rstrip("."))
    kept, tested = checking.fitting(settings_of(prompt=most), asked(*[200] * 40), asked(200))
    assert "0 of 40 prompts" in said and "(median)" in said and most % 32 == 0 and (len(kept), len(tested)) == (40, 1)


@pytest.mark.slow
def test_held_out_prompts_that_are_too_long_are_left_out_and_counted(capsys):
    kept, tested = checking.fitting(settings_of(), asked(*[3] * 40, 500), asked(3, 500, 3))
    said = capsys.readouterr().out
    assert (len(kept), len(tested)) == (40, 2) and "40 of 41 prompts, and 2 of 3 held-out ones" in said


@pytest.mark.slow
def test_a_gold_answer_that_does_not_fit_is_noted_and_if_none_fits_refused(capsys):
    """--max_completion_length 4 trained, and no completion could be correct."""
    gold, rows = ["42 is it" * 9, *["42"] * 39], asked(*[3] * 40)
    texts = iter(gold)
    checking.fitting(settings_of(completion=16), rows, asked(3), lambda row: next(texts))
    assert "Note: 1 of 40 gold answers" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="40 of 40 gold answers, .* max_completion_length=4 tokens; set max_comp"):
        checking.fitting(settings_of(completion=4), rows, asked(3), lambda row: "42 is the answer")


def test_a_tracker_that_is_not_installed_is_named(here, monkeypatch):
    """It was a traceback after the model was loaded and evaluated."""
    monkeypatch.setattr(limits, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="report_to is wandb, which is not installed: pip install wandb"):
        start.read([*PLAIN, "--report_to", "wandb"])


@pytest.mark.parametrize(
    "change, free, needed",
    [
        ("", 1 << 20, 1),  # the tiny model's adapter is smaller than the model
        ("--model_name_or_path owner/model", 99 << 20, 100),
        ("--use_peft false --load_in_4bit false", 6 << 20, 7),
    ],
)
def test_a_full_disk_is_named_before_a_model_is_loaded(here, monkeypatch, change, free, needed):
    monkeypatch.setattr(limits, "check_on_hub", lambda name, config: None)
    values = start.read([*PLAIN, *change.split()])
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=free))
    with pytest.raises(SystemExit, match=f"has {free >> 20} MiB free, and this run takes about {needed} MiB"):
        checking.check_space(values)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=(needed + 1) << 20))
    checking.check_space(values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["basic_grpo", "own_data", "code_reward", "structured_output", "tool_agent", "multi_stage", "scale_out"]
)
def test_check_stops_before_a_model_is_loaded_and_writes_nothing(tmp_path, name):
    project = new_project(name, tmp_path / "project")
    files = {path for path in project.rglob("*") if "__pycache__" not in path.parts}
    (project / "tiny-model" / "model.safetensors").unlink()  # so that nothing could load it
    run = in_folder(project, "train.py", *FAST, "--check")
    assert run.returncode == 0 and "nothing was trained" in run.stdout, run.stderr[-2000:]
    after = {path for path in project.rglob("*") if "__pycache__" not in path.parts}
    assert after == files - {project / "tiny-model" / "model.safetensors"}


@pytest.mark.slow
def test_check_asks_whether_the_run_could_be_resumed(basic):
    (basic / "outputs" / "old" / "checkpoint-2").mkdir(parents=True)
    run = in_folder(basic, "train.py", *FAST, "--output_dir", "outputs/old", "--check")
    assert run.returncode == 1 and "outputs/old has checkpoints that are not from this template" in run.stderr


HELD = """
import json, sys
import data, extra, grpo_run.finishing
from grpo_run.folder import identity
print(json.dumps(sorted(identity({"dataset_name": ""})["files"])))
"""


def test_only_code_that_training_imports_is_compared_when_a_run_resumes(basic):
    """An edit to a helper that training never imports did not let the run go on."""
    (basic / "extra.py").write_text("")
    (basic / "notes.py").write_text("")
    found = json.loads(in_folder(basic, "-c", HELD).stdout)
    assert {"extra.py", "data.py", "rewards.py", "grpo_run/training.py"} <= set(found)
    assert not {"notes.py", "ask.py", "sft.py", "for_trl.py", "test_rewards.py"} & set(found)
    assert not {f"grpo_run/{name}.py" for name in ("finishing", "held_out", "cards", "merge", "push")} & set(found)
    (basic / "extra.py").unlink()
    (basic / "notes.py").unlink()


CODE = {"question": "Write twice(x).", "function": "twice", "calls": [[1], [2]], "expected": [2, 4]}


@pytest.mark.parametrize(
    "change, said",
    [
        ({"solution": "def twice(x): return 2 * x"}, ""),
        ({"solution": "def twice(x): return x + 1"}, "the solution of 'Write twice(x).' does not pass its own tests"),
        ({"solution": "def f(x): return 2 * x"}, "it returns ['no value: "),
        ({"expected": ["True", "False"]}, "line 1: expected has the text 'True', which is not the value: write true"),
        ({"question": "Double x."}, "line 1: the question does not name the function 'twice'"),
        ({"calls": [1, 2]}, "line 1: calls is [1, 2]: write a list with the arguments of each call"),
        ({"expected": [2]}, "line 1: expected is [2]: write a list with a result for each of the 2 calls"),
    ],
)
def test_a_test_that_no_program_could_pass_is_refused(tmp_path, change, said):
    """They were accepted, and the honest program earned nothing."""
    (tmp_path / "own.jsonl").write_text(json.dumps(CODE | change))
    with imported(ROOT / "templates" / "code_reward", "sandbox", "rewards", "data") as (_, _, data):
        if said:
            with pytest.raises(SystemExit) as stopped:
                data.load_rows(str(tmp_path / "own.jsonl"), "train", 9, 0, 0.0)
            assert said in str(stopped.value)
        else:
            assert len(data.load_rows(str(tmp_path / "own.jsonl"), "train", 9, 0, 0.0)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["basic_grpo", "own_data", "structured_output", "scale_out"])
def test_preflight_reads_the_config_of_a_template_with_its_rows_and_rewards(tmp_path, grpo_check, monkeypatch, name):
    """It called the template's own settings unknown, and checked neither rows nor rewards."""
    monkeypatch.chdir(new_project(name, tmp_path / "project"))
    with open("data.py", "a", encoding="utf-8") as file:  # what it prints is none of the rows
        file.write('\nprint("loading")\n')
    code, said, _ = grpo_check("preflight", "config.cpu.yaml")
    assert code == 0 and "prompt lengths in tokens" in said and "`probe` scored" in said, said
    assert "unknown_argument" not in said and "skipped" not in said, said
    (tmp_path / "project" / "config.cpu.yaml").write_text("model_name_or_path: ./tiny-model\ndataset_name: no.jsonl\n")
    assert "'no.jsonl' is not a file here" in grpo_check("preflight", "config.cpu.yaml")[1]
