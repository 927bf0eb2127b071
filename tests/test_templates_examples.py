"""Rows as examples in every prompt, and the config for a small real model."""

import json

import pytest
import yaml
from course import ROOT
from datasets import Dataset
from grpo_run.checking import with_examples
from grpo_run.demonstrating import of_gold_answers
from template_projects import FAST, check_report, in_folder

from grpo_utils.models import model_path
from grpo_utils.project import new_project

SYSTEM = {"role": "system", "content": "Add."}
ROWS = Dataset.from_list(
    [{"prompt": [SYSTEM, {"role": "user", "content": f"{n} + 1?"}], "answer": str(n + 1)} for n in range(6)]
)
SMALL = sorted((ROOT / "templates").glob("*/config.small.yaml"))


def test_the_first_rows_are_shown_in_all_prompts_and_no_longer_trained_on():
    rows, held_out = with_examples(ROWS, ROWS.select([5]), 2, lambda row: f"<answer>{row['answer']}</answer>")
    assert rows["answer"] == ["3", "4", "5", "6"] and held_out["answer"] == ["6"]
    turns = ("0 + 1?", "<answer>1</answer>", "1 + 1?", "<answer>2</answer>")
    shown = [{"role": role, "content": text} for role, text in zip(("user", "assistant") * 2, turns)]
    assert held_out[0]["prompt"] == [SYSTEM, *shown, {"role": "user", "content": "5 + 1?"}]


@pytest.mark.parametrize("gold_text", [None, lambda row: None])
def test_without_a_gold_answer_to_show_it_is_refused(gold_text):
    with pytest.raises(SystemExit, match="Set examples: 0"):
        with_examples(ROWS, ROWS, 2, gold_text)


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.parent.name)
def test_the_config_for_a_small_model_passes_the_checks(path, tmp_path):
    project = new_project(path.parent.name, tmp_path / "project")
    assert yaml.safe_load(path.read_text())["model_name_or_path"] == "./smollm2"
    missing = in_folder(project, "train.py", "--config", "config.small.yaml", "--check")
    assert missing.returncode == 1 and "Fetch it: python -m grpo_core.smollm2 smollm2" in missing.stderr
    (project / "smollm2").symlink_to(model_path("tiny-qwen3"))
    checked = in_folder(project, "train.py", "--config", "config.small.yaml", "--check", "--max_prompt_tokens", "1000")
    assert checked.returncode == 0 and "Checked all" in checked.stdout, checked.stderr[-2000:]


@pytest.mark.slow
def test_a_run_with_examples_is_asked_with_them(tmp_path):
    project = new_project("basic_grpo", tmp_path / "project")
    options = ["--examples", "2", "--max_steps", "2", "--max_prompt_tokens", "400"]
    run = in_folder(project, "train.py", *FAST, *options)
    assert run.returncode == 0, run.stderr[-3000:]
    check_report(project / "outputs" / "basic" / "report.json")
    first = json.loads((project / "outputs" / "basic" / "held_out.jsonl").read_text().splitlines()[0])
    assert [turn["role"] for turn in first["prompt"]] == ["system", "user", "assistant", "user", "assistant", "user"]
    asked = in_folder(project, "ask.py", "outputs/basic", "What is 15 + 27?")
    assert asked.returncode == 0 and asked.stdout.strip(), asked.stderr[-2000:]


@pytest.mark.slow
@pytest.mark.parametrize("template", [path.parent.name for path in SMALL])
def test_without_a_file_sft_imitates_the_gold_answers_and_training_goes_on_from_it(template, tmp_path):
    project = new_project(template, tmp_path / "project")
    trained = in_folder(project, "sft.py", *FAST, "--train_rows", "8", "--num_train_epochs", "1")
    if template == "code_reward":  # its generated tasks have no solution
        assert trained.returncode == 1 and "no training row has a gold answer to imitate" in trained.stderr
        return
    assert trained.returncode == 0 and "8 demonstrations: the gold answers" in trained.stdout, trained.stderr[-3000:]
    start = trained.stdout.split("--model_name_or_path ")[1].split()[0]
    checked = in_folder(project, "train.py", *FAST, "--model_name_or_path", start, "--check")
    assert checked.returncode == 0 and "Checked all" in checked.stdout, checked.stderr[-2000:]


def test_a_gold_answer_that_is_missing_is_left_out():
    rows = Dataset.from_list([{"prompt": "1?", "answer": "1"}, {"prompt": "2?", "answer": ""}])
    assert of_gold_answers(rows, lambda row: row["answer"] or None, str.isdigit) == [("1?", "1")]
    with pytest.raises(SystemExit, match="gold_text in rewards.py writes '1', for which is_in_form is False"):
        of_gold_answers(rows, lambda row: row["answer"] or None, str.isalpha)
