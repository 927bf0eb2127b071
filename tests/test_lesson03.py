"""Lesson 03 as readers run it: the committed notebook, and the same with other parameters."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
from course import ROOT
from lessons import alt_texts, command_of, report_in, run_lesson

from grpo_utils.arguments import training_arguments
from grpo_utils.models import model_path
from grpo_utils.profiles import CPU
from grpo_utils.rewards import is_strictly_right, math_rewards
from grpo_utils.runs import start_run

pytestmark = pytest.mark.slow
LESSON = ROOT / "notebooks" / "03_grpo_lora.ipynb"
RATES = {"n", "format_rate", "accuracy", "accuracy_ci95", "greedy_accuracy"}
IN_FORM = {"formed", "accuracy_given_format", "accuracy_given_format_ci95"}
TIMES = {"written", "train_seconds", "wall_seconds", "processor_seconds"}


def test_the_committed_lesson_trains_a_model_that_really_learned(committed):
    report = report_in(committed)
    before, after = report["before"], report["after"]
    assert before["accuracy"] <= 0.40 and before["greedy_accuracy"] <= 0.2
    assert after["accuracy"] >= 0.90 and after["greedy_accuracy"] >= 0.95
    assert before["accuracy_ci95"][1] + 0.3 < after["accuracy_ci95"][0]
    assert report["p_value"] < 1e-6
    assert report["merge_difference"] < 1e-4
    assert report["merged"]["accuracy"] >= 0.85


def test_the_report_keeps_the_contract(committed):
    report = report_in(committed)
    assert {"profile", "family", "model", "steps", "seed", "p_value", "backend", "load_in_4bit"} <= report.keys()
    assert TIMES | {"before", "after", "versions", "machine", "config"} <= report.keys()
    assert report["machine"]["gpu"] is None and report["machine"]["cores"] >= 1
    assert report["before"].keys() == report["after"].keys() == RATES | IN_FORM | {"by_kind"}
    assert list(report["before"]["by_kind"]) == ["carry", "no carry"]
    assert all(counts.keys() == IN_FORM | {"n"} for counts in report["before"]["by_kind"].values())
    assert report["before"]["n"] == report["after"]["n"] >= 200
    assert {"unsloth", "trl", "transformers", "peft", "bitsandbytes", "torch"} <= report["versions"].keys()
    assert (report["profile"], report["family"], report["model"]) == ("cpu", "qwen", "tiny-qwen3")
    assert (report["backend"], report["load_in_4bit"]) == ("unsloth", True)
    assert 0 < report["train_seconds"] < report["wall_seconds"]


def test_the_report_is_enough_to_repeat_the_run(committed):
    config = report_in(committed)["config"]
    assert "<reasoning>" in config["system_prompt"]
    rewards, weights = math_rewards()
    assert [reward["name"] for reward in config["rewards"]] == [reward.__name__ for reward in rewards]
    assert [reward["weight"] for reward in config["rewards"]] == weights
    arguments = config["training_arguments"]
    assert len(arguments) > 100
    assert (arguments["loss_type"], arguments["beta"], arguments["learning_rate"]) == ("dapo", 0.0, CPU.learning_rate)


def test_the_adapter_names_its_base_and_no_path(committed):
    config = json.loads((committed / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "tiny-qwen3"
    assert str(ROOT) not in (committed / "adapter" / "README.md").read_text()


def test_the_arguments_written_out_in_the_lesson_are_those_of_the_profile(committed):
    arguments = report_in(committed)["config"]["training_arguments"]
    wanted = training_arguments(CPU, reward_weights=math_rewards().weights, output_dir="outputs/run/checkpoints")
    wanted.pop("report_to")  # transformers keeps "none" as an empty list
    assert arguments["optim"].startswith(wanted.pop("optim"))  # Unsloth takes the fused form of the same optimizer
    assert {name: arguments[name] for name in wanted} == wanted


#: Runs after the page's example.
PLAIN = """
import sys
assert not {"unsloth", "peft", "grpo_utils"} & set(sys.modules), "not plain"
assert (type(chat.model).__name__, str(chat.model.dtype)) == ("Qwen3ForCausalLM", "torch.float32")
"""


def test_the_example_of_the_page_answers_with_the_merged_model_on_plain_transformers(committed):
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(from transformers import pipeline.*?)```", page, re.S)
    command = [sys.executable, "-c", example[1] + PLAIN]
    run = subprocess.run(command, cwd=committed.parents[1], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert is_strictly_right(run.stdout.strip().splitlines()[-1], "42"), run.stdout


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Every parameter set to something that is not its default."""
    folder = tmp_path_factory.mktemp("other")
    shutil.copytree(model_path("tiny-gemma3"), folder / "my-gemma")
    parameters = {
        "PROFILE": "cpu",
        "FAMILY": "gemma",
        "MODEL": "./my-gemma",
        "BACKEND": "transformers",
        "BASE_BITS": 16,
        "STEPS": 200,
        "MINUTES": 0.02,  # after about a second, which is a few steps
        "SEED": 5,
        "EVAL_ROWS": 24,
        "REPORT_TO": "tensorboard",
    }
    result = run_lesson(LESSON, folder, **parameters, OUTPUT_DIR="mine")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return folder, result.stdout


def test_every_override_arrives(other):
    folder, _ = other
    report = report_in(folder / "mine")
    arguments = report["config"]["training_arguments"]
    assert (report["profile"], report["family"], report["model"]) == ("cpu", "gemma", "./my-gemma")
    assert (report["backend"], report["load_in_4bit"]) == ("transformers", False)
    assert arguments["max_steps"] == 200
    assert (report["seed"], arguments["seed"], report["config"]["evaluation"]["seed"]) == (5, 5, 5)
    assert report["before"]["n"] == report["after"]["n"] == 24
    assert "tensorboard" in arguments["report_to"]
    assert list(folder.rglob("events.out.tfevents*"))


def test_training_that_the_clock_ended_is_evaluated_reported_and_merged(other):
    folder, shown = other
    report = report_in(folder / "mine")
    assert 1 <= report["steps"] < 200 and report["stopped"] in shown
    assert f"after {report['steps']} of 200 steps" in report["stopped"] and "0.02 minutes" in report["stopped"]
    assert (folder / "mine/merged/model.safetensors").is_file() and report["merged"]["n"] == 24


def test_the_command_line_ends_with_the_table(other):
    _, shown = other
    tail = shown[shown.rindex("./my-gemma, cpu ") :]
    assert all(re.search(rf"^{row} ", tail, re.MULTILINE) for row in ("before", "after", "merged"))


def test_the_executed_notebook_stays_beside_its_run(other):
    folder, _ = other
    assert (folder / "mine" / LESSON.name).is_file() and (folder / "mine" / "adapter").is_dir()


@pytest.mark.upgrade
def test_the_same_seed_gives_the_same_report_but_for_times(tmp_path):
    reports = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        result = run_lesson(LESSON, tmp_path / name, STEPS=2, EVAL_ROWS=16)  # Unsloth, 4-bit
        assert result.returncode == 0, result.stderr[-3000:]
        report = report_in(tmp_path / name / "outputs/run")
        reports.append({key: value for key, value in report.items() if key not in TIMES})
    assert reports[0] == reports[1]


def test_a_run_killed_in_training_is_kept_and_the_next_one_says_so(tmp_path):
    command = command_of(LESSON, STEPS=500, EVAL_ROWS=8, BACKEND="transformers")
    said = tmp_path / "said.txt"
    with open(said, "w") as log:
        killed = subprocess.Popen(command, cwd=tmp_path, stdout=log, stderr=log, start_new_session=True)
        wait_for(lambda: "GRPO   1%" in said.read_text(), "training", killed)
        kernel = json.loads((tmp_path / "outputs/run/started.txt").read_text())["pid"]
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
    wait_for(lambda: not psutil.pid_exists(kernel), "the kernel to follow its parent")
    assert "New run in outputs/run." in said.read_text()  # a lesson prints what start_run says
    folder, note = start_run(tmp_path / "outputs/run")
    assert "an unfinished run" in note and [path.name for path in folder.iterdir()] == ["started.txt"]
    assert len(list((tmp_path / "outputs").glob("run-unfinished-*"))) == 1


def wait_for(happened, what: str, process: subprocess.Popen | None = None) -> None:
    """Wait up to three minutes until ``happened()``."""
    deadline = time.monotonic() + 180
    while not happened():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        assert process is None or process.poll() is None, "the run ended by itself"
        time.sleep(0.5)


def printed_row(name: str, text: str) -> list[float]:
    """The numbers with three decimals in the last line that starts with ``name``; none of an interval."""
    line = [line for line in text.splitlines() if line.startswith(f"{name} ")][-1]
    return [float(number) for number in re.findall(r"-?\d+\.\d{3}", re.sub(r"\(.*?\)", "", line))]


def test_the_stored_table_shows_a_gain(printed):
    strict, _, _ = printed.partition("accuracy among the n correctly formatted")
    before, after = (printed_row(name, strict) for name in ("before", "after"))
    assert all(new > old + 0.3 for old, new in zip(before, after, strict=True)), (before, after)
    assert before[2] < before[1]  # the most likely answer lacks the format


def test_the_stored_log_shows_format_first_and_more_ties(book, printed):
    log = {key: printed_row(key, printed) for key in ("reward", "frac_reward_zero_std", "completions/mean_length")}
    assert all(last > first for first, last in log.values()) and log["reward"][1] <= 3.0
    *_, alt = alt_texts(book)
    (_, formatted), (_, correct) = re.findall(r"reward ([.\d]+) to ([.\d]+)[,.]", alt)
    assert float(formatted) >= float(correct) > 0.85


def test_most_groups_are_informative_and_one_is_shown(printed):
    counted = re.findall(r"^(?:informative groups|groups with correct and wrong answers): +(\d) of 8$", printed, re.M)
    informative, mixed = map(int, counted)
    assert 8 >= informative >= mixed > 4
    lines = re.findall(r"^reward (\S+)  advantage (\S+)  ", printed, re.MULTILINE)
    assert len(lines) == 8 and 0 < sum(reward == "3.00" for reward, _ in lines) < 8
    advantages = {reward: float(advantage) for reward, advantage in lines}
    assert advantages["3.00"] > advantages["1.00"] > 0 > advantages["0.25"] > advantages["0.00"]


def test_the_hand_written_texts_earn_what_the_lesson_derives(printed):
    rows = re.findall(r"^ +(\d) +(\d) +([.\d]+) +([.\d]+)   <", printed, re.MULTILINE)
    assert [" ".join(row) for row in rows] == ["1 1 1.00 3.00", "0 1 1.00 1.00", "0 0 0.50 0.25", "0 0 0.00 0.00"]
